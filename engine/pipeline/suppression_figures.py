"""Figures of a suppression study with their intervals over prompts.

Several generations continue one prompt, so generations are no independent units; every interval
is a bootstrap over prompts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from engine.pipeline.claims_intervals import (
    Figures,
    Resampled,
    Statistic,
    bootstrap,
    figure,
    ratio_of_sums,
    relative_drop,
)
from engine.pipeline.suppression_generating import MEASURES


RESAMPLES = 2_000
EDGES = (0.0, 0.05, 0.2, 0.5, 0.8, 1.0)
"""Baseline scores at which buckets begin and end."""
TOUCHED = "touched"
_LEAST_PROMPTS = 5
"""Prompts above 0 at baseline that a share of the baseline needs."""
Numbers = Float[np.ndarray, " generations"]
Interval = tuple[float, float, float]
"""A figure, lower and upper end of its interval."""


def margins(margin: float) -> dict[str, tuple[float | None, float | None]]:
    """Ratios to the baseline that are allowed by measure; None leaves a side open.

    A text may become likelier or repeat itself less; it may not become less likely, repeat itself
    more, or change its variety or length either way by more than the margin.
    """
    both = (1 / (1 + margin), 1 + margin)
    return {
        "perplexity": (None, 1 + margin),
        "distinct_1": both,
        "distinct_2": both,
        "distinct_3": both,
        "repetition": (None, 1 + margin),
        "n_tokens": both,
        TOUCHED: (None, None),
    }


def by_prompt(prompts: Sequence[str], *columns: Numbers) -> Float[np.ndarray, "units columns"]:
    """Sums of columns over the generations of each prompt."""
    codes, names = pd.factorize(np.asarray(prompts))
    sums = [np.bincount(codes, column, minlength=len(names)) for column in columns]
    return np.column_stack(sums)


def _interval(units: Float[np.ndarray, "units columns"], statistic: Statistic) -> Interval:
    low, high = bootstrap(units, statistic, resamples=RESAMPLES)
    return figure(units, statistic), low, high


def mean(prompts: Sequence[str], values: Numbers) -> Interval:
    """Mean over generations."""
    return _interval(by_prompt(prompts, values, np.ones_like(values)), ratio_of_sums)


def drop(prompts: Sequence[str], before: Numbers, after: Numbers) -> Interval:
    """1 - mean after over mean before; generations are paired."""
    return _interval(by_prompt(prompts, before, after), relative_drop)


def ratio(prompts: Sequence[str], before: Numbers, after: Numbers) -> Interval:
    """Mean after over mean before."""
    return _interval(by_prompt(prompts, after, before), ratio_of_sums)


def log_ratio(columns: Resampled) -> Figures:
    """A geometric mean: exp of the sum of the first column over the sum of the second."""
    return np.exp(ratio_of_sums(columns))


def geometric_mean(prompts: Sequence[str], values: Numbers) -> Interval:
    """Geometric mean over generations."""
    return _interval(by_prompt(prompts, np.log(values), np.ones_like(values)), log_ratio)


def geometric_ratio(prompts: Sequence[str], before: Numbers, after: Numbers) -> Interval:
    """Geometric mean after over geometric mean before."""
    difference = np.log(after) - np.log(before)
    return _interval(by_prompt(prompts, difference, np.ones_like(after)), log_ratio)


def named(name: str, found: Interval | None) -> dict[str, float | None]:
    """Columns of a figure and its interval."""
    value, low, high = found if found is not None else (None, None, None)
    return {name: value, f"{name}_low": low, f"{name}_high": high}


@dataclass(frozen=True)
class Condition:
    """The generations of one condition, in the order of its prompts."""

    prompts: tuple[str, ...]
    """Document of each generation's prompt."""
    columns: dict[str, np.ndarray]
    """Figures by name, a place a generation."""

    @classmethod
    def of(cls, prompts: Sequence[str], rows: dict[str, list[Any]]) -> "Condition":
        """Columns of numbers; a scorer that failed on some has none."""
        kept = {name: values for name, values in rows.items() if None not in values}
        arrays = {name: np.asarray(values, np.float64) for name, values in kept.items()}
        return cls(tuple(prompts), arrays)

    def first(self, count: int) -> "Condition":
        """The first generations alone."""
        return Condition(
            self.prompts[:count], {name: values[:count] for name, values in self.columns.items()}
        )


def bucket_rows(
    scorer: str, conditions: dict[str, Condition], *, split: bool = True
) -> list[dict[str, Any]]:
    """Rows of `suppression_buckets` of one scorer and one kind of prompt.

    Buckets are of the baseline score, which is noisy: the hardest would score lower anywhere,
    and the random sets show how much of a fall that is.
    """
    column = f"score:{scorer}"
    base = conditions["baseline"]
    scores = base.columns[column]
    bucket = np.digitize(scores, EDGES[1:-1]) + 1
    chosen = [(0, np.ones(len(scores), bool))]
    if split:
        chosen += [(int(b), bucket == b) for b in np.unique(bucket)]
    rows = []
    for number, inside in chosen:
        prompts = [p for p, kept in zip(base.prompts, inside, strict=True) if kept]
        edges = (EDGES[number - 1], EDGES[number]) if number else (EDGES[0], EDGES[-1])
        for condition, found in conditions.items():
            values = found.columns[column][inside]
            fall = None
            if condition != "baseline" and _comparable(prompts, scores[inside]):
                fall = drop(prompts, scores[inside], values)
            rows.append(
                {
                    "scorer": scorer,
                    "condition": condition,
                    "bucket": number,
                    "score_from": edges[0],
                    "score_to": edges[1],
                    "n_generations": int(inside.sum()),
                    "n_prompts": len(set(prompts)),
                    **named("mean", mean(prompts, values)),
                    **named("drop", fall),
                }
            )
    return rows


def _comparable(prompts: Sequence[str], before: Numbers) -> bool:
    """Whether so many prompts have something that hardly a resample is without it."""
    return int((by_prompt(prompts, before) > 0).sum()) >= _LEAST_PROMPTS


def quality_rows(conditions: dict[str, Condition], margin: float) -> list[dict[str, Any]]:
    """Rows of `suppression_quality` of one kind of prompt."""
    base = conditions["baseline"]
    rows = []
    for condition, found in conditions.items():
        other = condition != "baseline"
        for measure, (low, high) in margins(margin).items():
            compared = None
            if measure == TOUCHED:
                touched, n = found.columns["tokens_touched"], found.columns["n_tokens"]
                value = _interval(by_prompt(found.prompts, touched, n), ratio_of_sums)
            else:
                before, after = base.columns[measure], found.columns[measure]
                geometric = measure == MEASURES[0]
                value = (geometric_mean if geometric else mean)(found.prompts, after)
                if other and _comparable(base.prompts, before):
                    compared = (geometric_ratio if geometric else ratio)(
                        found.prompts, before, after
                    )
            rows.append(
                {
                    "condition": condition,
                    "measure": measure,
                    **named("mean", value),
                    **named("ratio", compared),
                    "margin_low": low,
                    "margin_high": high,
                    "within": None if compared is None else _within(compared, low, high),
                }
            )
    return rows


def _within(found: Interval, low: float | None, high: float | None) -> bool:
    return (low is None or found[1] >= low) and (high is None or found[2] <= high)


def sweep_rows(
    scorers: Sequence[str], base: Condition, found: Condition, shared: dict[str, Any]
) -> list[dict[str, Any]]:
    """Rows of `suppression_sweep` of one setting, one a scorer that did not fail."""
    quality = geometric_ratio(base.prompts, base.columns["perplexity"], found.columns["perplexity"])
    touched = found.columns["tokens_touched"].sum() / found.columns["n_tokens"].sum()
    rows = []
    for scorer in scorers:
        column = f"score:{scorer}"
        if column not in base.columns or column not in found.columns:
            continue
        before, after = base.columns[column], found.columns[column]
        known = _comparable(base.prompts, before)
        fall = drop(base.prompts, before, after) if known else None
        rows.append(
            {
                **shared,
                "scorer": scorer,
                "baseline": float(before.mean()),
                **named("mean", mean(base.prompts, after)),
                **named("drop", fall),
                **named("perplexity_ratio", quality),
                "touched": float(touched),
                "n_generations": len(after),
                "n_prompts": len(set(base.prompts)),
            }
        )
    return rows
