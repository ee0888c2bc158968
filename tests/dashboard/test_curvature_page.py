"""The Curvature page: what it opens on, what its link keeps, what it says where tables lack."""

import json
from pathlib import Path

import pytest

from dashboard.components.curvature_arms import seeds_words
from engine.store import RunWriter, open_run, read_table
from tests.dashboard.test_pages import open_page, words


def test_the_page_opens_on_the_fair_comparison(synthetic_run: Path):
    """Weights that are the same for every arm; all pictures there, none with an exception."""
    assert synthetic_run.is_dir()
    app = open_page("curvature")
    assert not app.exception
    assert app.selectbox(key="term").value == "Bank's losses, weights 1 · 1 · 1"
    assert len(app.get("plotly_chart")) == 4
    assert "Coupling" in "".join(str(e.proto.body) for e in app.get("html"))


def test_seeds_are_told_by_dash_where_there_are_several():
    """One seed has solid lines alone."""
    assert [seeds_words(n) for n in (1, 2)] == ["1 seed", "2 seeds, by dash"]


@pytest.mark.parametrize(
    "term", ["Co-usage alone", "Cross-entropy, residual fixed", "Clustering alone"]
)
def test_every_term_can_be_linked_to(term: str, synthetic_run: Path):
    """Figures that a term does not have leave a dash or an empty picture."""
    assert synthetic_run.is_dir()
    app = open_page("curvature", term=term, cells="Against chance")
    assert not app.exception
    assert app.selectbox(key="term").value == term
    assert not app.warning
    assert "– <span>of squared norm" not in "".join(str(e.proto.body) for e in app.get("html"))


def test_a_link_to_no_term_is_said_in_a_sentence(synthetic_run: Path):
    """The page opens on its default instead."""
    assert synthetic_run.is_dir()
    app = open_page("curvature", term="nothing", cells="7")
    assert not app.exception
    assert len(app.warning) == 2


def test_a_run_without_curvature_names_the_command(synthetic_run: Path):
    """So does one that was measured without arms or labels."""
    manifest = json.loads((synthetic_run / "run.json").read_text())
    kept = {n: t for n, t in manifest["tables"].items() if not n.startswith("curvature")}
    (synthetic_run / "run.json").write_text(json.dumps({**manifest, "tables": kept}))
    app = open_page("curvature")
    assert not app.exception
    assert any(c.value == "headwater curvature --run synthetic" for c in app.code)


def test_a_run_without_arms_or_labels_shows_the_rest(synthetic_run: Path):
    """What is there is drawn; the commands of the two that lack stand in their place."""
    run = open_run(synthetic_run)
    own = {"arm": run.name}
    tables = {n: read_table(run, n, where=own) for n in ("curvature", "curvature_spectrum")}
    arms = read_table(run, "curvature_arms", where={"role": "run"})
    writer = RunWriter.resume(run.path)
    writer.begin_stage("curvature", 1)
    for name, table in {**tables, "curvature_arms": arms}.items():
        writer.write_table(name, table)
    writer.finish_stage("curvature", {})
    manifest = json.loads((synthetic_run / "run.json").read_text())
    del manifest["tables"]["curvature_cousage"]
    (synthetic_run / "run.json").write_text(json.dumps(manifest))
    app = open_page("curvature")
    assert not app.exception
    assert len(app.get("plotly_chart")) == 1
    commands = "\n".join(c.value for c in app.code)
    assert "headwater study tradeoff --run RUN" in commands
    assert "headwater index --run synthetic" in commands
    assert "no arms" in words(app)
