"""The claims on what tracing heads costs, from the records of `make bench`."""

from pathlib import Path

import numpy as np
from jaxtyping import Float
from scipy.stats import t

from engine.errors import CacheMissing
from engine.mda.intervals import log_t_interval
from engine.pipeline.claims import ClaimDefinition, Measured
from engine.pipeline.claims_prism import MEASUREMENTS, OURS
from engine.pipeline.measurements import latest_measurement


PAPER = "MDA (arXiv 2601.21996)"
ALL_HEADS = "heads-all"
"""Record of one pass for all heads against one pass for a single head, by layer."""
COST = "heads-cost"
"""Record of the time of a pass by size of the model."""

KRONFLUENCE = "heads-kronfluence"
"""Record of the same blocks scored by Kronfluence."""


def measure_all_heads(evidence: Path) -> Measured:
    """Time of scoring all heads in one pass ÷ mean time of one head, over layers and rounds."""
    record = latest_measurement(ALL_HEADS, evidence)
    ratios = np.array([r["all_s"] / r["one_s"] for r in record["rounds"]], np.float64)
    over = log_t_interval(ratios)
    if over.n < 2:
        raise CacheMissing(f"{ALL_HEADS} has {over.n} rounds; two are needed.")
    n_heads = float(record["setting"]["heads"])
    both = [(r["all_s"] + r["all_fit_s"]) / (r["one_s"] + r["one_fit_s"]) for r in record["rounds"]]
    return Measured(
        value=over.mean,
        interval=(over.low, over.high),
        control={"with_curvature": float(np.mean(both)), "one_after_the_other": n_heads},
        setting=f"{_facts(record)}; {over.n} interleaved rounds; one head: mean over layers; "
        f"{record['machine']}",
    )


def fit_exponent(
    parameters: Float[np.ndarray, " sizes"], seconds: Float[np.ndarray, " sizes"]
) -> tuple[float, float, float]:
    """Exponent of a power law of time over parameters, by least squares of logarithms.

    Returns:
        The exponent and its 95 % t-interval from the residuals of the fit.
    """
    x, y = np.log(parameters), np.log(seconds)
    centred = x - x.mean()
    slope = float((centred * y).sum() / (centred**2).sum())
    rest = y - y.mean() - slope * centred
    freedom = len(x) - 2
    error = float(np.sqrt((rest**2).sum() / freedom / (centred**2).sum()))
    half = float(t.ppf(0.975, freedom)) * error
    return slope, slope - half, slope + half


def local_slopes(
    parameters: Float[np.ndarray, " sizes"], seconds: Float[np.ndarray, " sizes"]
) -> Float[np.ndarray, " steps"]:
    """Exponent between each size and the next."""
    return np.diff(np.log(seconds)) / np.diff(np.log(parameters))


def measure_cost(evidence: Path) -> Measured:
    """Exponent of the time of scoring a sample over the model's parameters."""
    record = latest_measurement(COST, evidence)
    by_size = _medians(record["rounds"])
    if len(by_size) < 4:
        raise CacheMissing(f"{COST} has {len(by_size)} sizes; four are needed.")
    parameters = np.array([row["parameters"] for row in by_size], np.float64)
    scoring = np.array([row["sample_s"] for row in by_size], np.float64)
    tracing = scoring + np.array([row["fit_sample_s"] for row in by_size])
    whole = np.array(
        [row["fixed_s"] + s * row["samples"] for row, s in zip(by_size, tracing, strict=True)]
    )
    value, low, high = fit_exponent(parameters, scoring)
    slopes = local_slopes(parameters, scoring)
    control = {f"slope_{place}": float(slope) for place, slope in enumerate(slopes, 1)}
    control |= {
        "with_curvature": fit_exponent(parameters, tracing)[0],
        "with_curvature_and_fixed_overhead": fit_exponent(parameters, whole)[0],
        "span": float(parameters[-1] / parameters[0]),
    }
    return Measured(
        value=value,
        interval=(low, high),
        control=control,
        setting=f"{_facts(record)}; {len(by_size)} sizes from {parameters[0]:,.0f} to "
        f"{parameters[-1]:,.0f} parameters with random weights, medians of "
        f"{len(record['rounds']) // len(by_size)} rounds; slopes from size to size; fixed overhead "
        f"(probe, eigenvectors, solving) apart; {record['machine']}",
    )


def _medians(rounds: list[dict[str, float]]) -> list[dict[str, float]]:
    """Figures by size, the smallest first: medians over rounds."""
    sizes = sorted({row["parameters"] for row in rounds})
    own = [[row for row in rounds if row["parameters"] == size] for size in sizes]
    return [{key: float(np.median([r[key] for r in rows])) for key in rows[0]} for rows in own]


def measure_kronfluence(evidence: Path) -> Measured:
    """Samples scored a second over Kronfluence's, for all heads at once on the same blocks."""
    record = latest_measurement(KRONFLUENCE, evidence)
    row = record["rounds"][0]
    names = ("samples_a_s", "kronfluence_samples_a_s", "relative_difference")
    fitting = {"curvature": row["kronfluence_fit_s"] / row["fit_s"]}
    return Measured(
        value=row["samples_a_s"] / row["kronfluence_samples_a_s"],
        control={**{name: float(row[name]) for name in names}, **fitting},
        setting=f"{_facts(record)}; Kronfluence 1.0.1 with every head's maps apart, the same "
        "labels, damping and copying probe; relative_difference: of all scores; "
        f"{record['machine']}",
    )


def _facts(record: dict[str, object]) -> str:
    setting = record["setting"]
    assert isinstance(setting, dict)
    return ", ".join(f"{key} {value}" for key, value in setting.items())


DEFINITIONS = [
    ClaimDefinition(
        id="mda.all-heads-time",
        paper=OURS,
        claim="Scoring every head of a model in one pass takes at most twice as long as scoring "
        "one head.",
        paper_value=None,
        unit="time of all heads ÷ mean time of one",
        criterion="value <= 2",
        evidence=MEASUREMENTS,
        command="make bench ARGS=heads",
        measure=measure_all_heads,
    ),
    ClaimDefinition(
        id="mda.cost-exponent",
        paper=PAPER,
        claim="The cost of scoring a sample grows more slowly than the number of parameters.",
        paper_value=None,
        unit="exponent of time over parameters",
        criterion="high < 1",
        evidence=MEASUREMENTS,
        command="make bench ARGS=heads",
        measure=measure_cost,
    ),
    ClaimDefinition(
        id="mda.kronfluence",
        paper=OURS,
        claim="All heads are scored at least as fast as by Kronfluence on the same blocks, with "
        "the same scores.",
        paper_value=None,
        unit="samples a second ÷ Kronfluence's",
        criterion="value >= 1 and control.relative_difference <= 0.001",
        evidence=MEASUREMENTS,
        command="make bench-peers && make bench ARGS=heads",
        measure=measure_kronfluence,
    ),
]
"""The claims on speed, in the order of the ledger."""
