"""Figures whose answers are known, and intervals that know what a prompt is."""

import numpy as np
import pytest

from engine.pipeline.suppression_figures import (
    EDGES,
    Condition,
    bucket_rows,
    drop,
    geometric_mean,
    geometric_ratio,
    margins,
    mean,
    quality_rows,
    sweep_rows,
)
from engine.pipeline.suppression_generating import MEASURES


PROMPTS = [f"p{i % 7}" for i in range(41)]


@pytest.fixture
def conditions() -> dict[str, Condition]:
    generator = np.random.default_rng(1)
    base = generator.random(41)

    def of(scale: float, perplexity: float) -> Condition:
        rows = {name: (generator.random(41) * 0 + 0.5).tolist() for name in MEASURES}
        rows |= {
            "score:s": (base * scale).tolist(),
            "perplexity": (np.exp(base) * perplexity).tolist(),
            "n_tokens": [20] * 41,
            "tokens_touched": [4 if scale < 1 else 0] * 41,
        }
        return Condition.of(PROMPTS, rows)

    return {"baseline": of(1.0, 1.0), "suppressed": of(0.25, 1.2), "random": of(0.99, 1.0)}


def test_figures_are_over_generations_whatever_their_prompts():
    """Means, falls and geometric means as one computes them by hand."""
    values = np.array([1.0, 2.0, 4.0, 8.0])
    prompts = ["a", "a", "a", "b"]
    assert mean(prompts, values)[0] == pytest.approx(3.75)
    assert drop(prompts, values, values / 4)[0] == pytest.approx(0.75)
    assert geometric_mean(prompts, values)[0] == pytest.approx(8**0.5)
    assert geometric_ratio(prompts, values, values * 3)[0] == pytest.approx(3.0)


def test_copies_of_a_generation_do_not_narrow_the_interval():
    """The units are prompts: a hundred continuations of each say as much as one does."""
    values = np.random.default_rng(2).random(11)
    prompts = [str(i) for i in range(11)]
    once = mean(prompts, values)
    often = mean(prompts * 100, np.tile(values, 100))
    assert often == pytest.approx(once)


def test_buckets_split_the_generations_by_baseline_score(conditions: dict[str, Condition]):
    """Each generation once; the fall of each is that of its own generations."""
    rows = bucket_rows("s", conditions)
    base = conditions["baseline"].columns["score:s"]
    own = [row for row in rows if row["condition"] == "suppressed"]
    assert sum(row["n_generations"] for row in own if row["bucket"]) == len(base)
    for row in own:
        inside = (base >= row["score_from"]) & (base < row["score_to"] + (row["score_to"] == 1))
        assert row["n_generations"] == inside.sum()
        assert row["mean"] == pytest.approx(base[inside].mean() / 4)
        assert row["drop"] == (pytest.approx(0.75) if row["n_prompts"] >= 5 else None)
    assert {row["drop"] for row in rows if row["condition"] == "baseline"} == {None}
    assert EDGES[0] == 0
    assert EDGES[-1] == 1


def test_a_fall_from_hardly_anything_is_not_reported():
    """Two prompts with a score make no share of a mean."""
    base = np.zeros(41)
    base[:2] = 0.5
    rows = {"score:s": base.tolist()}
    found = {name: Condition.of(PROMPTS, rows) for name in ("baseline", "random")}
    found = bucket_rows("s", found, split=False)
    assert [row["drop"] for row in found] == [None, None]


def test_quality_is_within_when_its_whole_interval_is(conditions: dict[str, Condition]):
    """Perplexity x 1.2 is not, length is; the baseline is compared with nothing."""
    rows = {(row["condition"], row["measure"]): row for row in quality_rows(conditions, margin=0.1)}
    assert rows["suppressed", "perplexity"]["ratio"] == pytest.approx(1.2)
    assert rows["suppressed", "perplexity"]["within"] is False
    assert rows["random", "perplexity"]["within"] is True
    assert rows["suppressed", "n_tokens"]["within"] is True
    assert rows["suppressed", "touched"]["mean"] == pytest.approx(0.2)
    assert rows["suppressed", "touched"]["within"] is None
    assert {row["ratio"] for (name, _), row in rows.items() if name == "baseline"} == {None}


def test_the_margin_is_equivalence_where_either_way_is_worse():
    """1 / 1.1 and 1.1; a text may become likelier and repeat itself less."""
    found = margins(0.1)
    assert found["distinct_2"] == pytest.approx((1 / 1.1, 1.1))
    assert found["perplexity"] == (None, 1.1)


def test_a_scorer_that_failed_has_no_row_in_the_sweep(conditions: dict[str, Condition]):
    """Neither a zero nor a mean of what it did score."""
    rows = {name: column.tolist() for name, column in conditions["suppressed"].columns.items()}
    rows["score:broken"] = [0.1] * 40 + [None]
    found = Condition.of(PROMPTS, rows)
    shared = {"set_size": 3}
    done = sweep_rows(["s", "broken"], conditions["baseline"], found, shared)
    assert [row["scorer"] for row in done] == ["s"]
    assert done[0]["drop"] == pytest.approx(0.75)
    assert done[0]["perplexity_ratio"] == pytest.approx(1.2)
