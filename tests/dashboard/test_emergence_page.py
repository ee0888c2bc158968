"""The Emergence page: curves, effects, badge, panels, and runs that lack something."""

from pathlib import Path

import pytest

from dashboard import data
from dashboard.components.emergence_added import by_size, pretty
from dashboard.components.emergence_curves import Comparison, curves_of
from dashboard.components.emergence_effects import mixture_words
from tests.dashboard.live_pages import open_page, pages, words
from tests.dashboard.test_heads_page import drop


def ref_of(run: Path) -> data.RunRef:
    return next(r for r in data.run_refs() if r.name == run.name)


def test_the_page_opens_on_the_main_arms_of_the_induction_head(heads_run: Path):
    """Curves, effects and the transfer panel; the badge names what was measured on.

    Without an arm there is one sentence: an empty figure would say nothing.
    """
    assert heads_run.is_dir()
    app = open_page("emergence")
    assert not app.exception
    assert len(app.get("plotly_chart")) == 4
    facts = "".join(pages(app))
    assert "measured on this run" in facts
    assert "GPT-NeoX 2 × 24" in facts
    assert "70% code, 30% generated repeats" in facts
    assert "delete random 2" in words(app)
    app.pills(key="arms").set_value([]).run()
    assert not app.exception
    assert any("at least one arm" in info.value for info in app.info)


@pytest.mark.parametrize(
    ("panel", "charts"), [("Catalysts", 4), ("Augmentation", 3), ("Mixtures", 3)]
)
def test_every_panel_opens_from_a_link(panel: str, charts: int, heads_run: Path):
    """One tab is drawn at a time; the axis of training steps draws each seed alone.

    Seeds branch at different steps, so there is no mean to draw.
    """
    assert heads_run.is_dir()
    shown = {"kind": "Previous token", "reach": "Whole training", "axis": "Training step"}
    app = open_page("emergence", panel=panel, gallery="true", **shown)
    assert not app.exception
    assert not app.warning
    assert app.toggle(key="each").disabled
    assert "Each line is a seed" in words(app)
    gallery = "raise the score of head 0.2 of seed 0 most" in words(app)
    assert gallery == (panel == "Catalysts")
    assert len(app.get("plotly_chart")) == charts


def test_curves_are_of_the_arms_asked_for_and_start_at_the_branch(heads_run: Path):
    """The baseline is read for the branch, and drawn only where it was asked for."""
    compared = Comparison("induction", ("delete_top", "delete_random"), (0, 1), "x", True, False)
    found, panels = curves_of(ref_of(heads_run), compared, ["induction", "previous_token"])
    assert panels == ["induction", "previous_token", "copy_loss", "icl", "loss"]
    assert set(found["arm"]) == {"delete_top", "delete_random"}
    assert found.groupby(["panel", "arm", "seed"])["x"].min().eq(0).all()


def test_a_monitored_model_has_curves_and_no_causal_evidence(heads_run: Path):
    """The badge says so in words."""
    drop(heads_run, "head_arms", "head_effects", "head_choices", "head_influence", "head_overlaps")
    app = open_page("emergence")
    assert not app.exception
    assert "not validated for this model" in "".join(pages(app))
    assert "no cause" in words(app)
    assert len(app.get("plotly_chart")) == 1


@pytest.mark.parametrize("panel", ["Transfer", "Augmentation"])
def test_a_panel_without_its_tables_names_the_command(panel: str, heads_run: Path):
    """The other figures stay."""
    tables = ("effects", "overlaps", "tags", "motifs", "mixtures", "influence")
    drop(heads_run, *(f"head_{name}" for name in tables))
    app = open_page("emergence", panel=panel)
    assert not app.exception
    assert any("headwater heads" in code.value and "--run heads" in code.value for code in app.code)
    assert len(app.get("plotly_chart")) == 1


def test_rows_added_are_compared_over_runs_by_size(heads_run: Path):
    """One run alone is no comparison; parameters are shown as JSON with indents."""
    sizes = by_size("induction")
    assert set(sizes["run"]) == {heads_run.name}
    assert set(sizes["arm"]) == {
        "insert synthetic", "insert control", "augment top", "augment random"
    }  # fmt: skip
    assert pretty('{"a": {"b": [1, [2]]}}') == '{\n  "a": {\n    "b": [1, [2]]\n  }\n}'
    assert pretty("no JSON") == "no JSON"


def test_a_mixture_is_said_in_shares():
    """Domains are scaled to their part of all rows."""
    study = {"repeat_share": 0.2, "domain_weights": {"code": 3.0, "law": 1.0, "verse": 0.0}}
    assert mixture_words(study) == "60% code, 20% law, 20% generated repeats"
    assert mixture_words({"domain_weights": {"code": 1.0}}) == "100% code"
