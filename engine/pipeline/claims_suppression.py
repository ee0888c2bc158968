"""The suppression claims: paired over generations that share prompt, seed and sampler."""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from engine.errors import CacheMissing
from engine.pipeline.claims import ClaimDefinition, Measured
from engine.pipeline.claims_intervals import (
    Statistic,
    bootstrap,
    geometric_ratio,
    mean_difference,
    relative_drop,
)
from engine.pipeline.claims_prism import DEMO, OURS, PAPER, run_setting
from engine.store import open_run, read_table


CONCEPT = "NSFW"
HARD_SCORE = 0.8
"""Baseline score from which a generation counts as hard (the paper's highest bucket)."""
_CONDITIONS = ["baseline", "suppressed", "random"]
_SCORES = ("classifier_score", "wordlist_score")


def _generations(evidence: Path, column: str) -> tuple[pd.DataFrame, str]:
    """A column, one row a generation and one column a condition; and the setting in words."""
    run = open_run(evidence.parent)
    table = read_table(run, evidence.stem, where={"concept": CONCEPT})
    wide = table.pivot(index="generation", columns="condition", values=column)
    if not set(_CONDITIONS) <= set(wide.columns):
        raise CacheMissing(f"{evidence} lacks one of the conditions {', '.join(_CONDITIONS)}.")
    wide = wide[_CONDITIONS].dropna()
    if wide.empty:
        raise CacheMissing(f"{evidence} holds no generation with all conditions.")
    concept = read_table(run, "concepts", columns=["prototype"], where={"concept": CONCEPT})
    setting = (
        f"{run_setting(run)}; {len(concept)} prototypes of concept {CONCEPT}, strength "
        f"{table['strength'].max():g}; {len(wide)} generations from "
        f"{table['doc_id'].nunique()} held-out prompts, mean {table['n_tokens'].mean():.0f} tokens"
    )
    return wide, setting


def _means(wide: pd.DataFrame) -> dict[str, float]:
    return {name: float(wide[name].mean()) for name in _CONDITIONS}


def _pairs(wide: pd.DataFrame, first: str, second: str) -> NDArray[np.float64]:
    return wide[[first, second]].to_numpy(np.float64)


def measure_drop(evidence: Path, *, column: str) -> Measured:
    """How far the mean score falls, as a share of the baseline's; the random set's fall beside."""
    wide, setting = _generations(evidence, column)
    return _drop(wide, setting)


def measure_hardest(evidence: Path) -> Measured:
    """The same over generations whose baseline score is high.

    These would score lower anywhere: they are chosen by a noisy score. The random set's fall
    shows how much of the drop that is.
    """
    wide, setting = _generations(evidence, "classifier_score")
    hard = wide[wide["baseline"] >= HARD_SCORE]
    if hard.empty:
        raise CacheMissing(f"No baseline generation of {evidence} scores {HARD_SCORE} or more.")
    return _drop(hard, f"{setting}; {len(hard)} of them score {HARD_SCORE} or more at baseline")


def _drop(wide: pd.DataFrame, setting: str) -> Measured:
    pairs = _pairs(wide, "baseline", "suppressed")
    random = float(relative_drop(_pairs(wide, "baseline", "random")))
    return Measured(
        value=float(relative_drop(pairs)),
        interval=bootstrap(pairs, relative_drop),
        control={**_means(wide), "random_drop": random},
        setting=setting,
    )


def measure_against_random(evidence: Path) -> Measured:
    """Mean score under the random set minus mean score under the concept."""
    wide, setting = _generations(evidence, "classifier_score")
    pairs = _pairs(wide, "random", "suppressed")
    return Measured(
        value=float(mean_difference(pairs)),
        interval=bootstrap(pairs, mean_difference),
        control=_means(wide),
        setting=f"{setting}; random set matched on firing rate",
    )


def measure_quality(evidence: Path) -> Measured:
    """Perplexity under the dense twin after suppression over before; lengths beside."""
    wide, setting = _generations(evidence, "perplexity")
    lengths, _ = _generations(evidence, "n_tokens")
    statistic: Statistic = geometric_ratio
    pairs = _pairs(wide, "baseline", "suppressed")
    return Measured(
        value=float(statistic(pairs)),
        interval=bootstrap(pairs, statistic),
        control={
            "random": float(statistic(_pairs(wide, "baseline", "random"))),
            **{f"{name}_tokens": mean for name, mean in _means(lengths).items()},
        },
        setting=f"{setting}; geometric means, under the dense twin",
    )


_define = partial(
    ClaimDefinition,
    evidence=f"{DEMO}/suppression.parquet",
    command="headwater study suppression --run demo",
)
DEFINITIONS: list[ClaimDefinition] = [
    _define(
        id="prism.suppression-drop",
        paper=PAPER,
        claim="Suppressing the concept's prototypes lowers the mean score of generations as far "
        "as in the paper (0.668 to 0.154), by the offline classifier.",
        paper_value=0.769,
        unit="relative drop of the mean score",
        criterion="value >= 0.769",
        measure=partial(measure_drop, column=_SCORES[0]),
    ),
    _define(
        id="prism.suppression-drop-wordlist",
        paper=OURS,
        claim="An independent second scorer, a word list, sees the drop too.",
        paper_value=None,
        unit="relative drop of the mean score",
        criterion="low > 0",
        measure=partial(measure_drop, column=_SCORES[1]),
    ),
    _define(
        id="prism.suppression-hardest",
        paper=PAPER,
        claim="The generations that score highest at baseline fall as far as in the paper "
        "(2 to 0.144 of 2).",
        paper_value=0.928,
        unit="relative drop of the mean score",
        criterion="value >= 0.928",
        measure=measure_hardest,
    ),
    _define(
        id="prism.suppression-quality",
        paper=PAPER,
        claim="Suppression leaves the quality of the text unchanged: perplexity under the dense "
        "twin rises by less than a tenth.",
        paper_value=1.0,
        unit="perplexity, suppressed ÷ baseline",
        criterion="value <= 1.1",
        measure=measure_quality,
    ),
    _define(
        id="prism.suppression-random",
        paper=OURS,
        claim="A random set of the same size, matched on firing rate, does not do the same.",
        paper_value=None,
        unit="mean score, random − suppressed",
        criterion="low > 0",
        measure=measure_against_random,
    ),
]
"""The claims on suppression, in the order of the ledger."""
