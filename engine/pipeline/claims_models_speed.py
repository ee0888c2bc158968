"""The claim on what attributing a model costs, from the record of `make bench ARGS=models`."""

from pathlib import Path

import numpy as np

from engine.errors import CacheMissing
from engine.mda.intervals import log_t_interval
from engine.pipeline.claims import ClaimDefinition, Measured
from engine.pipeline.claims_prism import MEASUREMENTS, OURS
from engine.pipeline.measurements import latest_measurement


ATTRIBUTION = "model_attribution"
"""Record of whole models attributed by us and by captum, an option a call, by shape."""


def measure_captum(evidence: Path) -> Measured:
    """Captum's CPU time over ours for the shape that gains least, with every shape's."""
    record = latest_measurement(ATTRIBUTION, evidence)
    ratios: dict[str, list[float]] = {}
    for row in record["rounds"]:
        own = ratios.setdefault(row["shape"], [])
        own.append(row["captum_seconds"] / row["own_seconds"])
    over = {shape: log_t_interval(np.array(own, np.float64)) for shape, own in ratios.items()}
    if not over or min(shape.n for shape in over.values()) < 2:
        raise CacheMissing(f"{ATTRIBUTION} has fewer than two rounds of a shape.")
    least = min(over.values(), key=lambda shape: shape.mean)
    setting = record["setting"]
    return Measured(
        value=least.mean,
        interval=(least.low, least.high),
        control={shape: found.mean for shape, found in over.items()},
        setting=f"{setting['probes']} questions of four options, {setting['mean_tokens']} tokens "
        f"on average, random weights, {setting['device']}, threads {setting['threads']}, CPU "
        f"seconds; {least.n} rounds; control: each shape, width x layers; {record['machine']}",
    )


DEFINITIONS = (
    ClaimDefinition(
        id="able.captum-time",
        paper=OURS,
        claim="Attributing a model, words included, is five times faster than captum with a "
        "forward and backward pass for each option, at every shape that is timed. "
        "(Entered after its figures were seen; the bar of five is older.)",
        paper_value=None,
        unit="captum's time ÷ ours, least of the shapes",
        criterion="value >= 5",
        evidence=MEASUREMENTS,
        command="make bench ARGS=models",
        measure=measure_captum,
    ),
)
"""The claim on speed."""
