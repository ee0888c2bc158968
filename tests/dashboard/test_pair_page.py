"""The Pair page: what it opens on, every input of a link, and runs that lack something."""

import json
from pathlib import Path

import pytest

from dashboard import data, service_pair, text_pair
from dashboard.components.pair_answers import sums_rows, word_rows
from dashboard.components.pair_controls import PairView
from dashboard.components.pair_words import option_strip, reading
from engine.store import read_table
from tests.dashboard.live_pages import link, open_page, pages, words


def drop(run: Path, *names: str) -> None:
    """Take tables out of a run's manifest."""
    manifest = json.loads((run / "run.json").read_text())
    kept = {n: t for n, t in manifest["tables"].items() if n not in names}
    (run / "run.json").write_text(json.dumps({**manifest, "tables": kept}))


def ref_of(run: Path) -> data.RunRef:
    return next(ref for ref in data.run_refs() if ref.name == run.name)


def test_it_opens_on_a_model_and_its_parent_at_what_parts_them_most(models_run: Path):
    """Facts with the caveat, strips, answers, sums, questions, domains; no link needed."""
    app = open_page("pair", run=models_run.name)
    assert not app.exception
    assert not app.warning
    assert app.selectbox(key="a").value == "root-0-mild_sft"
    assert app.selectbox(key="b").value == "root-0"
    assert len(app.get("plotly_chart")) == 3
    said = words(app)
    assert "not proof of derivation" in said
    shares = service_pair.shares(ref_of(models_run), "root-0-mild_sft", "root-0", "able")
    most = int(shares.loc[shares["share"].idxmax(), "probe"])
    assert f"**Question {most}**, " in said
    facts = "".join(pages(app))
    assert "parent" in facts
    assert "Same answer" in facts


def test_every_input_of_a_link_is_kept(models_run: Path):
    """Both models, the embedding, the question, its domain, and how words are shaded."""
    app = open_page(
        "pair", a="root-1", b="root-2-quantised", variant="contrast", probe="4", domain="calendar",
        words="Against the others", scale="Both alike",
    )  # fmt: skip
    assert not app.exception
    assert not app.warning
    assert app.selectbox(key="variant").value == "contrast"
    assert "**Question 4**, calendar; 5 of 7" in words(app)
    assert app.segmented_control(key="scale").value == "Both alike"
    assert models_run.is_dir()


def test_whose_shares_are_drawn_stands_above_them(models_run: Path):
    """Words of another embedding are not kept; the sentence speaks of the shares below it."""
    app = open_page("pair", variant="paper")
    assert not app.exception
    said = words(app)
    assert said.index(text_pair.PAPER_SHARES) < said.index(text_pair.DISTANCE)
    assert models_run.is_dir()


@pytest.mark.slow
def test_nonsense_in_a_link_is_said_and_left_out(models_run: Path):
    """One sentence each; the page opens on its defaults."""
    nonsense = {"a": "<script>", "b": "nobody", "probe": "99", "variant": "x", "domain": "y",
                "words": "z", "scale": "0"}  # fmt: skip
    app = open_page("pair", **nonsense)
    assert not app.exception
    said = "\n".join(warning.value for warning in app.warning)
    assert all(f"The link's {name} is" in said for name in nonsense)
    assert models_run.is_dir()


@pytest.mark.slow
def test_swapping_exchanges_the_models_and_steps_walk_the_questions(models_run: Path):
    """The question stays with a step; a new pair forgets it."""
    app = open_page("pair", a="root-1", b="root-2", probe="6")
    app.button(key="pair_next").click().run()
    assert link(app, "probe") == "0"
    app.button(key="swap").click().run()
    assert not app.exception
    assert (app.selectbox(key="a").value, app.selectbox(key="b").value) == ("root-2", "root-1")
    app.selectbox(key="b").set_value("root-3").run()
    assert link(app, "probe") == ""
    assert models_run.is_dir()


@pytest.mark.slow
def test_the_same_model_twice_is_one_sentence(models_run: Path):
    """There is nothing to compare."""
    app = open_page("pair", a="root-1", b="root-1")
    assert not app.exception
    assert any("same model" in info.value for info in app.info)
    assert models_run.is_dir()


def test_words_and_what_lies_outside_them_add_up(models_run: Path):
    """Against the sums of what was stored; hovering names both models' numbers."""
    ref = ref_of(models_run)
    view = PairView("root-1", "root-2", "able")
    read = reading(ref, view, 3, against=False)
    run = data.run_of(ref)
    stored = read_table(run, "model_words", where={"model": "root-1", "probe": 3}).iloc[0]
    roots = stored["values"].astype(float).reshape(4, 3) / 127
    exact = (abs(roots) * roots * stored["scale"]).sum(1) + stored["slot"]
    sums = sums_rows(read)
    assert sums["total"][:4].tolist() == pytest.approx(exact.tolist())
    assert (sums["words"] + sums["slot"]).tolist() == pytest.approx(sums["total"].tolist())
    assert len(word_rows(read)) == 4 * 3
    strip = option_strip(read, 0, 1)
    assert [cell.text for cell in strip.cells] == ["Question:", "number", "3?"]
    assert "root-2: " in strip.cells[0].title
    assert "outside words = " in strip.note
    centred = reading(ref, view, 3, against=True)
    assert centred.sides[0].block.sum(0) == pytest.approx(0)


def test_text_that_may_not_be_published_is_not_shown(models_run: Path):
    """Words of a gated set are numbered."""
    read = reading(ref_of(models_run), PairView("root-1", "root-2", "able"), 3, against=False)
    hidden = type(read)(**{**vars(read), "source": "gpqa"})
    assert [word for word, _ in hidden.words] == ["word0", "word1", "word2"]
    assert not word_rows(hidden)["word"].str.contains("number").any()


@pytest.mark.slow
def test_a_map_without_pairs_or_neighbours_says_less_and_works(models_run: Path):
    """No percentile, no documented relation but the roots, no list of neighbours."""
    drop(models_run, "model_pairs", "model_neighbours")
    app = open_page("pair", a="root-1", b="root-2")
    assert not app.exception
    facts = "".join(pages(app))
    assert "no unrelated pair is documented" in facts
    assert "no root in common" in facts


@pytest.mark.slow
def test_a_run_of_another_kind_says_where_maps_are(synthetic_run: Path):
    """One sentence with the commands."""
    drop(synthetic_run, *(n for n in read_names(synthetic_run) if n.startswith("model_")))
    app = open_page("pair")
    assert not app.exception
    assert any("headwater models" in code.value for code in app.code)


def read_names(run: Path) -> list[str]:
    return list(json.loads((run / "run.json").read_text())["tables"])
