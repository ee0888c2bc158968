"""The Routing page: questions of the run and typed ones, every input of a link, missing tables."""

import json
from pathlib import Path

import numpy as np
import pytest

from dashboard import data, service_routing, text_routing as text
from dashboard.components.routing_question import within
from engine.store import RunWriter, write_array_atomic
from tests.dashboard.live_pages import open_page, pages, words


@pytest.fixture
def routed(models_run: Path) -> Path:
    """The map with a router that it keeps: random heads over the encoder of its questions."""
    from engine.atlas.question_encoder import QuestionEncoder, question_text
    from engine.store import open_run, read_table

    prompts = read_table(open_run(models_run), "model_questions")["prompt"]
    arrays = dict(QuestionEncoder.fit([question_text(p) for p in prompts]).arrays)
    n = arrays["components"].shape[0] + 1
    generator = np.random.default_rng(0)
    arrays |= {"heads": generator.normal(size=(5, n, 14)), "centre": np.zeros(13),
               "scale": np.ones(1)}  # fmt: skip
    writer = RunWriter.resume(models_run)
    writer.begin_stage("routing", {"made": "up"})
    folder = writer.array_folder("routing")
    folder.mkdir(parents=True)
    for name, array in arrays.items():
        write_array_atomic(folder / f"{name}.npy", array)
    writer.register_arrays("routing", arrays)
    writer.finish_stage("routing", {"variant": "able"})
    return models_run


def test_it_opens_on_a_question_that_routing_gains(models_run: Path):
    """Ranking, what it is held against, accuracy, differences, domains."""
    app = open_page("routing", run=models_run.name)
    assert not app.exception
    assert not app.warning
    ref = next(r for r in data.run_refs() if r.name == models_run.name)
    question = service_routing.opening_question(ref, "able")
    first = service_routing.ranking(ref, "able", question).iloc[0]
    best = service_routing.single_best(ref)
    assert first["correct"]
    assert not service_routing.right(ref).loc[best, question]
    facts = "".join(pages(app))
    assert f"<dd>{first['model']} <span>right</span></dd>" in facts
    assert f"<dd>{best} <span>wrong</span></dd>" in facts
    assert "Usage-weighted random" in facts
    assert len(app.get("plotly_chart")) == 5


@pytest.mark.slow
@pytest.mark.parametrize("panel", ["New models", "Budget", "Models used"])
def test_every_tab_opens_from_a_link(models_run: Path, panel: str):
    """With another router and question."""
    app = open_page("routing", panel=panel, router="knn", question="5", limit="1,000")
    assert not app.exception
    assert not app.warning
    assert app.selectbox(key="router").value == "knn"
    assert models_run.is_dir()


@pytest.mark.slow
def test_nonsense_in_a_link_is_said_and_left_out(models_run: Path):
    """One sentence each."""
    nonsense = {"router": "x", "question": "9999", "limit": "many", "from": "nowhere"}
    app = open_page("routing", **nonsense)
    assert not app.exception
    said = "\n".join(warning.value for warning in app.warning)
    assert all(f"The link's {name} is" in said for name in nonsense)
    assert models_run.is_dir()


def test_a_limit_hides_larger_models_and_says_how_many(models_run: Path):
    """Models of unknown size are hidden too; a limit that leaves none hides none."""
    ref = next(r for r in data.run_refs() if r.name == models_run.name)
    rows = service_routing.ranking(ref, "able", 3)
    kept, hidden = within(rows, 1_200)
    assert kept["parameters"].max() <= 1_200
    assert len(kept) + hidden == len(rows)
    assert within(rows, 1)[1] == 0
    app = open_page("routing", limit="1,000", question="3")
    assert f"{len(rows) - 1} of {len(rows)} models hidden" in words(app)


def test_what_a_choice_is_held_against_keeps_to_the_limit(models_run: Path):
    """Single best, calls and oracle are of the models that the limit leaves."""
    ref = next(r for r in data.run_refs() if r.name == models_run.name)
    right = service_routing.right(ref)
    allowed = tuple(sorted(right.index[1::2]))
    best = service_routing.single_best(ref, allowed)
    assert right.loc[best].sum() == right.loc[list(allowed)].sum(axis=1).max()
    calls = service_routing.calls(ref, "able", allowed)
    assert set(calls.index) <= set(allowed)
    assert calls.sum() == service_routing.calls(ref, "able").sum()
    app = open_page("routing", limit="1,000", question="3")
    left = service_routing.ranking(ref, "able", 3)["parameters"].between(1, 1_000).sum()
    assert f"of {left} models are, within the limit" in "".join(pages(app))


def test_the_band_is_named_for_what_it_is(routed: Path):
    """Calibration of a question of the run, the prediction's interval of a typed one."""
    asked = ({}, {"from": "My own question", "asked": "number 5?"})
    for given, said in zip(asked, (text.BAND_CAME_TRUE, text.BAND_PREDICTION), strict=True):
        app = open_page("routing", **given)
        assert not app.exception
        specs = [str(chart.proto.spec) for chart in app.get("plotly_chart")]
        assert any(f"band: {said}" in spec for spec in specs)
    assert routed.is_dir()


def test_a_typed_question_is_ranked_by_the_router_that_the_run_keeps(routed: Path):
    """Interval, single best and random by its expectation, questions that back it."""
    app = open_page("routing", **{"from": "My own question", "asked": "number 5? zebra"})
    assert not app.exception
    said = words(app)
    assert "zebra" in said
    assert "Right on questions like it" in said
    assert any("similarity" in table.value for table in app.dataframe)
    app.text_area(key="asked").set_value("  ").run()
    assert any("Type a question" in info.value for info in app.info)
    assert routed.is_dir()


@pytest.mark.slow
def test_a_map_without_a_kept_router_answers_questions_of_the_run_alone(models_run: Path):
    """With the command that trains one."""
    app = open_page("routing", **{"from": "My own question"})
    assert not app.exception
    assert any("headwater models route" in code.value for code in app.code)
    assert models_run.is_dir()


@pytest.mark.slow
def test_a_map_without_routes_names_the_command(models_run: Path):
    """Nothing is trained on a page."""
    manifest = json.loads((models_run / "run.json").read_text())
    manifest["tables"].pop("model_routes")
    (models_run / "run.json").write_text(json.dumps(manifest))
    app = open_page("routing")
    assert not app.exception
    assert any("headwater models route" in code.value for code in app.code)
