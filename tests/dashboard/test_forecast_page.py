"""The Forecast page: both regimes side by side, every input of a link, missing tables."""

import json
from pathlib import Path

import pytest

from dashboard import text_forecast
from dashboard.components import forecast_candidates
from engine.store import RunWriter, open_run, read_table
from tests.dashboard.live_pages import open_page, pages, words


def drop(run: Path, *names: str) -> None:
    """Take tables out of a run's manifest."""
    manifest = json.loads((run / "run.json").read_text())
    kept = {n: t for n, t in manifest["tables"].items() if n not in names}
    (run / "run.json").write_text(json.dumps({**manifest, "tables": kept}))


def test_it_opens_with_one_model_out_beside_one_root_out(models_run: Path):
    """Two scatters, two residual strips, baselines, candidates and their methods."""
    app = open_page("forecast", run=models_run.name)
    assert not app.exception
    assert not app.warning
    assert len(app.get("plotly_chart")) == 7
    facts = "".join(pages(app))
    for said in ("Spearman, one model out", "Spearman, one root out", "Lost with the root",
                 "NDCG@10", "random order"):  # fmt: skip
        assert said in facts


@pytest.mark.slow
def test_every_input_of_a_link_is_kept(models_run: Path):
    """Target, method, groups, the other regime, measure, candidates."""
    app = open_page(
        "forecast", target="jobs", method="size", group="Root", beside="one family out",
        measure="Mean absolute error", over="mean over all targets", candidate_target="calendar",
        candidate_outcome="gain by adaptation", candidate_method="score before adaptation",
    )  # fmt: skip
    assert not app.exception
    assert not app.warning
    assert app.selectbox(key="group").value == "Root"
    facts = "".join(pages(app))
    assert "Spearman, one family out" in facts
    assert "Lost with the family" in facts
    assert "root-3" in facts
    assert models_run.is_dir()


def test_a_way_that_says_the_same_of_every_model_has_no_spearman(models_run: Path):
    """Said in words, above and beside the scatters."""
    rows = read_table(open_run(models_run), "model_forecast_results")
    method = rows["method"].iloc[0]
    gone = (rows["method"] == method) & (rows["metric"] == "spearman")
    writer = RunWriter.resume(models_run)
    writer.begin_stage("again", {})
    writer.write_table("model_forecast_results", rows[~gone])
    writer.finish_stage("again", {})
    app = open_page("forecast", method=text_forecast.method_words(method))
    assert not app.exception
    assert "not defined <span>it says the same of every model</span>" in "".join(pages(app))
    assert text_forecast.NO_ORDER in words(app)
    assert text_forecast.UNBOUNDED in words(app)


@pytest.mark.parametrize(("value", "said"), [(1.1e-16, "0 %"), (-3e-12, "0 %"), (0.0123, "1.2 %")])
def test_a_rounding_error_is_no_regret(value: float, said: str):
    """The best of all is among the first five."""
    assert forecast_candidates.figure_text(value, "regret@5") == said


@pytest.mark.slow
def test_nonsense_in_a_link_is_said_and_left_out(models_run: Path):
    """One sentence each."""
    nonsense = {"target": "x", "method": "y", "group": "z", "measure": "0", "candidate_target": "q"}
    app = open_page("forecast", **nonsense)
    assert not app.exception
    said = "\n".join(warning.value for warning in app.warning)
    assert all(f"The link's {name} is" in said for name in nonsense)
    assert models_run.is_dir()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "command", "charts"),
    [
        (("model_forecasts",), "headwater models forecast", 2),
        (("model_candidates",), "headwater models select", 5),
    ],
)
def test_what_was_not_computed_names_its_command(
    models_run: Path, names: tuple[str, ...], command: str, charts: int
):
    """The other half of the page is drawn."""
    drop(models_run, *names)
    app = open_page("forecast")
    assert not app.exception
    assert any(command in code.value for code in app.code)
    assert len(app.get("plotly_chart")) == charts


@pytest.mark.slow
def test_a_map_without_cards_has_one_group(models_run: Path):
    """Nothing is documented of its models."""
    drop(models_run, "model_cards")
    app = open_page("forecast")
    assert not app.exception
    assert "not known" in words(app)
