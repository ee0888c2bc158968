"""What the study by retraining says, as rows: the badge, LDS, ceiling, recall, removal."""

import numpy as np
import pandas as pd
import pytest

from dashboard import validity


@pytest.fixture
def table() -> pd.DataFrame:
    """Two methods in both scopes, measured on one model."""
    return pd.DataFrame(
        {
            "method": ["path", "path", "bm25", "bm25"],
            "scope": ["all", "domain", "all", "domain"],
            "model": "a" * 16,
            "pool": "b" * 16,
            "measured": "2026-11-29",
            "lds": [0.4, 0.3, 0.2, 0.1],
            "low": [0.35, 0.25, 0.15, np.nan],
            "high": [0.45, 0.35, 0.25, np.nan],
            "subset_low": [0.37, 0.2, np.nan, np.nan],
            "subset_high": [0.43, 0.41, np.nan, np.nan],
            "ceiling": [0.6, 0.5, 0.6, 0.5],
            "n_subsets": 53,
            "n_seeds": 2,
            "n_queries": 47,
            "is_default": [True, True, False, False],
        }
    )


def test_the_badge_holds_for_the_measured_model_alone(table: pd.DataFrame):
    """The same method on another model is not validated, and a model without a name neither."""
    assert validity.badge(table, "path", "a" * 16).here
    assert not validity.badge(table, "path", "c" * 16).here
    assert not validity.badge(table, "path", "").here
    assert validity.badge(table, "path", "a" * 16).row("all")["lds"] == pytest.approx(0.4)


def test_a_method_that_was_not_measured_has_no_number(table: pd.DataFrame):
    """The badge still names model, pool and date of the study."""
    found = validity.badge(table, "knn", "a" * 16)
    assert found.row("all") is None
    assert found.facts["measured"] == "2026-11-29"


def test_without_a_study_there_is_no_badge(table: pd.DataFrame):
    """Nothing is known, so nothing is said."""
    assert validity.badge(table.iloc[:0], "path", "a" * 16) is None


def test_the_wider_interval_is_drawn(table: pd.DataFrame):
    """Over queries or over subsets, whichever says less; missing ones stay missing."""
    rows = validity.lds_rows(table)
    assert rows["low"].tolist()[:3] == pytest.approx([0.35, 0.2, 0.15])
    assert rows["high"].tolist()[:3] == pytest.approx([0.45, 0.41, 0.25])
    assert np.isnan(rows["low"].iloc[3])
    assert rows["panel"].tolist() == ["all", "domain", "all", "domain"]


def test_the_ceiling_has_an_interval_over_reported_queries(table: pd.DataFrame):
    """Queries on which methods were chosen take no part."""
    queries = pd.DataFrame({"query": range(6), "half": ["report", "development"] * 3})
    lds = pd.DataFrame(
        {
            "method": "ceiling",
            "scope": "all",
            "query": range(6),
            "spearman": [0.5, -9.0, 0.6, -9.0, 0.7, -9.0],
        }
    )
    found = validity.ceilings(table, lds, queries)
    value, low, high = found["all"]
    assert value == pytest.approx(0.6)
    assert 0.5 <= low < 0.6 < high <= 0.7
    assert found["domain"] == (0.5, 0.5, 0.5)


def test_recall_counts_questions_by_kind():
    """Two of three repeated and none of three rephrased are found; no interval is empty."""
    recall = pd.DataFrame({"method": "path", "query": range(6), "rank": [1, 10, 11, 12, 400, 11]})
    queries = pd.DataFrame({"query": range(6), "kind": ["repeated"] * 3 + ["rephrased"] * 3})
    rows = validity.recall_rows(recall, queries).set_index("panel")
    assert rows.loc["repeated", "value"] == pytest.approx(2 / 3)
    assert rows.loc["rephrased", "value"] == 0
    assert rows.loc["rephrased", "high"] > 0.4


@pytest.mark.parametrize(
    ("hits", "total", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (7, 20, 0.1812, 0.5671)],
)
def test_wilsons_interval_is_the_published_one(hits: int, total: int, low: float, high: float):
    """Values of the textbook formula; all found is not certainty."""
    assert validity.wilson(hits, total) == pytest.approx((low, high), abs=2e-4)


def test_removal_is_paired_with_its_random_control():
    """The control of the same seed and group is subtracted; groups count once each."""
    rows = [
        ("law", "path", "top", 0, 10.0),
        ("law", "path", "top", 1, 12.0),
        ("law", "path", "random", 0, 9.0),
        ("law", "path", "random", 1, 10.0),
        ("code", "path", "top", 0, 5.0),
        ("code", "path", "random", 0, 4.5),
        ("code", "path", "bottom", 0, 4.0),
    ]
    removal = pd.DataFrame(rows, columns=["domain", "method", "part", "seed", "loss"])
    found = validity.removal_rows(removal).set_index("panel")
    assert found.loc["top", "value"] == pytest.approx(((1.0 + 2.0) / 2 + 0.5) / 2)
    assert found.loc["bottom", "value"] == pytest.approx(-0.5)
    assert np.isnan(found.loc["bottom", "low"])


def test_agreement_is_with_the_full_gradient_of_the_same_curvature():
    """A preconditioned variant is held against the preconditioned full gradient, none to itself."""
    rows = [
        ("path", "full", 0, 0.9),
        ("path", "full", 1, 0.8),
        ("path", "full+diagonal", 0, 0.1),
        ("path+diagonal@4", "full", 0, 0.2),
        ("path+diagonal@4", "full+diagonal", 0, 0.7),
        ("full", "full", 0, 1.0),
        ("path", "ekfac", 0, 0.4),
        ("bm25", "full", 0, 0.3),
    ]
    agreement = pd.DataFrame(rows, columns=["method", "reference", "query", "overlap_top"])
    found = validity.agreement_rows(agreement).set_index(["panel", "method"])["value"]
    assert found["full", "path"] == pytest.approx(0.85)
    assert found["full", "path+diagonal@4"] == pytest.approx(0.7)
    assert found["full", "bm25"] == pytest.approx(0.3)
    assert found["ekfac", "path"] == pytest.approx(0.4)
    assert len(found) == 4


def test_a_ceiling_of_one_seed_is_none(table: pd.DataFrame):
    """With one seed nothing is known of noise, and no line is drawn."""
    empty = pd.DataFrame()
    assert validity.ceilings(table.assign(ceiling=np.nan), empty, empty) == {}


def test_means_of_seeds_can_be_predicted_beyond_one_seed_against_another():
    """Simulated: with noise as large as the signal, 0.5 between seeds and 0.82 with their mean."""
    rng = np.random.default_rng(0)
    signal = rng.normal(size=20_000)
    seeds = signal + rng.normal(size=(2, 20_000))
    between = np.corrcoef(*seeds)[0, 1]
    with_mean = np.corrcoef(signal, seeds.mean(0))[0, 1]
    assert validity.reachable(between, 2) == pytest.approx(with_mean, abs=0.01)
    assert validity.reachable(0.4, 1) == pytest.approx(np.sqrt(0.4))


def test_the_best_method_is_named_whatever_is_looked_at(table: pd.DataFrame):
    """Over all sequences, by the value."""
    assert validity.best(table) == ("path", pytest.approx(0.4))
    assert validity.best(table.iloc[:0]) is None


def test_the_chosen_variant_is_always_shown():
    """Main methods and it; everything when asked for."""
    rows = pd.DataFrame({"method": ["path", "path+coupled+unit", "errors+unit", "bm25"]})
    found = validity.shown(rows, "path+coupled+unit", everything=False)
    assert found["method"].tolist() == ["path", "path+coupled+unit", "bm25"]
    assert len(validity.shown(rows, "", everything=True)) == 4
