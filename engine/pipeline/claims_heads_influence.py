"""The claims on attention heads that the influence of samples decides."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Bool

from engine.errors import CacheMissing
from engine.mda.enrichment import DOMAIN, enrichment_over_seeds
from engine.mda.intervals import Interval, t_interval
from engine.mda.tails import TOP_SHARE, top_share
from engine.pipeline.claims import Measured
from engine.pipeline.claims_heads_study import study_setting
from engine.pipeline.heads_analysis import asked_of, check_analysed, scored_of
from engine.store import Run, open_run, read_table


PLANTED = "planted"
"""Domain of the rows in which a random segment repeats."""
STRUCTURES = ("repeat", "markup", "latex", "table", "list", "key_value", "template")
"""Tags of text with long-range structure; source code as such is none, being most of the text."""
EXPONENTIAL_SHARE = TOP_SHARE * (1 - math.log(TOP_SHARE))
"""Share that the largest tenth has of exponential values, whose tail is not heavy: 0.33."""
SIGNIFICANT = 0.05
"""p-value under which one distribution counts as preferred."""


def measure_top_share(evidence: Path, *, unit: str) -> Measured:
    """Share of the positive influence on the chosen head that the largest tenth carries."""
    run, tails, chosen = _tails(evidence, unit)
    own = tails[chosen]
    positive = own[own["sign"] == "positive"]["top10_share"].to_numpy(np.float64)
    over = _over_seeds(run, t_interval(positive))
    negative = own[own["sign"] == "negative"]["top10_share"]
    of_raising = tails[tails["sign"] == "positive"]["top10_share"]
    whole, absolute = _shares_of_all(run, unit)
    control = {
        "exponential": EXPONENTIAL_SHARE,
        "tenth_of_all_samples": whole,
        "tenth_of_all_by_size": absolute,
        "negative": float(negative.mean()) if len(negative) else math.nan,
        "lowest_of_any_head": float(of_raising.min()),
        "highest_of_any_head": float(of_raising.max()),
    }
    return Measured(
        value=over.mean,
        interval=(over.low, over.high),
        control={name: value for name, value in control.items() if math.isfinite(value)},
        setting=f"{study_setting(run)}; {over.n} seeds; t-interval; largest tenth of the samples "
        "that raise the head; negative: of those that lower it; tenth_of_all_samples: the same "
        "sum carried by the largest tenth of all samples; tenth_of_all_by_size: the sum of all "
        "sizes carried by the largest tenth in size",
    )


def _shares_of_all(run: Run, unit: str) -> tuple[float, float]:
    """Shares of the positive sum, and of the sum of sizes, that a tenth of all samples carries."""
    found = []
    for asked in asked_of(run, unit=unit):
        values = asked.influence[:, asked.place]
        values = values[np.isfinite(values)]
        raising = np.maximum(values, 0)
        found.append((top_share(raising), top_share(np.abs(values))))
    whole, absolute = np.mean(found, axis=0)
    return float(whole), float(absolute)


def measure_exponent(evidence: Path, *, unit: str) -> Measured:
    """Power-law exponent of the positive influence on the chosen head, mean over seeds."""
    run, tails, chosen = _tails(evidence, unit)
    own = tails[chosen & (tails["sign"] == "positive") & tails["exponent"].notna()]
    over = _over_seeds(run, t_interval(own["exponent"].to_numpy(np.float64)))
    clear = own["lognormal_p"] < SIGNIFICANT
    control = {
        "lognormal_preferred": float((clear & (own["lognormal_ratio"] < 0)).mean()),
        "power_law_preferred": float((clear & (own["lognormal_ratio"] > 0)).mean()),
        "mean_low": float(own["low"].mean()),
        "mean_high": float(own["high"].mean()),
        "tail_share": float((own["n_tail"] / own["n"]).mean()),
    }
    return Measured(
        value=over.mean,
        interval=(over.low, over.high),
        control=control,
        setting=f"{study_setting(run)}; {over.n} seeds; t-interval over seeds; mean_low and "
        "mean_high: mean ends of each seed's bootstrap interval; preferred: share of seeds in "
        f"which one distribution fits the tail better with p < {SIGNIFICANT:g}",
    )


def measure_structure(evidence: Path, *, unit: str) -> Measured:
    """Enrichment of structured natural text among the samples that raise the chosen head most."""
    run = open_run(evidence.parent)
    seeds = scored_of(run, unit)
    over, share, base = enrichment_over_seeds(seeds, STRUCTURES, without=PLANTED)
    _over_seeds(run, over)
    control = {"share": share, "base": base}
    for tag in STRUCTURES:
        alone = enrichment_over_seeds(seeds, [tag], without=PLANTED)[0]
        if alone.n:
            control[tag] = alone.mean
    return Measured(
        value=over.mean,
        interval=(over.low, over.high),
        control=control,
        setting=f"{study_setting(run)}; {over.n} seeds; t-interval; natural rows alone, the top "
        f"{TOP_SHARE:.0%} of them; structures: {', '.join(STRUCTURES)}",
    )


def measure_planted(evidence: Path, *, unit: str) -> Measured:
    """Enrichment of rows in which a random segment repeats, among the most influential."""
    run = open_run(evidence.parent)
    check_analysed(run)
    where = {"unit": unit, "tag": f"{DOMAIN}{PLANTED}"}
    table = read_table(run, "head_tags", where=where)
    rows = {row["sign"]: row for row in table.to_dict("records")}
    if "positive" not in rows:
        raise CacheMissing(f"Run {run.name} has no planted rows.")
    row = rows["positive"]
    value, low, high = (float(row[name]) for name in ("enrichment", "low", "high"))
    over = _over_seeds(run, Interval(value, low, high, int(row["n_seeds"])))
    control = {"share": float(row["share"]), "base": float(row["base"])}
    if "negative" in rows:
        control["negative"] = float(rows["negative"]["enrichment"])
    return Measured(
        value=over.mean,
        interval=(over.low, over.high),
        control=control,
        setting=f"{study_setting(run)}; {over.n} seeds; t-interval; top {TOP_SHARE:.0%} of the "
        "window's samples",
    )


def _tails(evidence: Path, unit: str) -> tuple[Run, pd.DataFrame, Bool[np.ndarray, " rows"]]:
    """The run, the tails of a kind's influence, and which of them are a chosen head's."""
    run = open_run(evidence.parent)
    check_analysed(run)
    tails = read_table(run, "head_tails", where={"unit": unit})
    choices = read_table(run, "head_choices", where={"unit": unit})
    columns = ["seed", "layer", "head"]
    chosen = set(choices[columns].itertuples(index=False, name=None))
    mark = [row in chosen for row in tails[columns].itertuples(index=False, name=None)]
    return run, tails, np.array(mark, bool)


def _over_seeds(run: Run, over: Interval) -> Interval:
    if over.n < 2:
        raise CacheMissing(f"{over.n} seeds of run {run.name} have this figure; two are needed.")
    return over
