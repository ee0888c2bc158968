"""The batch result of the Suppression page: read from tables, without a model."""

import json
from pathlib import Path

from tests.dashboard.live_pages import open_page, pages, words


TAB = "Over many prompts"


def drop_tables(run: Path, *names: str) -> None:
    """Take tables out of the manifest of a run."""
    manifest = json.loads((run / "run.json").read_text())
    for name in [n for n in manifest["tables"] if n.startswith(names)]:
        del manifest["tables"][name]
    (run / "run.json").write_text(json.dumps(manifest))


def test_the_batch_result_needs_no_model(synthetic_run: Path):
    """The tab reads tables alone, so it opens on a run whose model is not here."""
    assert synthetic_run.is_dir()
    app = open_page("suppression", show=TAB)
    assert not app.exception
    assert "holds no model" not in words(app)
    facts = "".join(pages(app))
    assert "Mean score, classifier" in facts
    assert "0.500 → 0.110" in facts
    assert "random sets" in facts


def test_a_failed_scorer_says_why_and_shows_no_number(synthetic_run: Path):
    """A failure is a result; it is never a score of 0."""
    assert synthetic_run.is_dir()
    app = open_page("suppression", show=TAB)
    assert any("judge failed" in w.value and "refused" in w.value for w in app.warning)
    assert "Mean score, judge" not in "".join(pages(app))


def test_the_candidates_are_listed_by_rank(synthetic_run: Path):
    """What spoke for each prototype stands beside it."""
    assert synthetic_run.is_dir()
    app = open_page("suppression", show=TAB)
    table = next(d.value for d in app.dataframe if "scored_log_ratio" in d.value)
    assert table["rank"].is_monotonic_increasing
    assert table["chosen"].any()


def test_the_live_part_comes_first(synthetic_run: Path):
    """Without a word in the link the page is the live one; the batch is not computed."""
    assert synthetic_run.is_dir()
    app = open_page("suppression")
    assert not app.exception
    assert "Mean score, classifier" not in "".join(pages(app))


def test_a_tab_that_is_not_there_is_said(synthetic_run: Path):
    """A cut link shows the live part and one sentence."""
    assert synthetic_run.is_dir()
    app = open_page("suppression", show="Everything")
    assert not app.exception
    assert any("The link's show is" in w.value for w in app.warning)


def test_a_run_without_a_batch_names_the_command(synthetic_run: Path):
    """An empty state is a sentence and a command."""
    drop_tables(synthetic_run, "suppression")
    app = open_page("suppression", show=TAB)
    assert not app.exception
    assert any(c.value.startswith("headwater suppress") for c in app.code)
