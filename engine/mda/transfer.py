"""How far acting on one head's samples moves other heads: of the same kind, and of another."""

from collections.abc import Sequence

import numpy as np

from engine.mda.curves import StudyFrames
from engine.mda.intervals import Interval, log_t_interval


TOP_ARMS = ("delete_top", "augment_top")
"""Arms that act on the samples with the most influence."""


def transfer_ratio(
    frames: StudyFrames,
    unit: str,
    arms: Sequence[str] = TOP_ARMS,
    *,
    own_metric: bool = False,
) -> Interval:
    """Mean absolute effect on other heads of the same kind ÷ on heads of another kind.

    An effect is a head's change of score, mean over the window, in arms that act on the chosen
    head's samples; its size is averaged over heads and arms within a seed. The figure is the
    geometric mean over seeds with the t-interval of its logarithm. Noise adds to both sizes, so it
    draws the ratio towards 1. Seeds without another head of the same kind do not count.

    Args:
        frames: the study.
        unit: kind of head whose samples the arms act on.
        arms: names; random ones, which belong to no kind, give what chance does.
        own_metric: each head by the metric that is highest for it, in place of the kind's own:
            what a head does, it may do less of, whatever its kind.
    """
    ratios = []
    for choice in frames.chosen:
        named = [a for a in frames.arms_of(choice.seed) if a[0] in arms and a[1] in ("", unit)]
        if choice.unit != unit or not named:
            continue
        compared = [frames.compare(choice.seed, *arm) for arm in named]
        same, other = compared[0].kinds(choice)
        if not (same.any() and other.any()):
            continue
        changes = [c.own_changes() if own_metric else c.changes(choice.metric) for c in compared]
        sizes = np.abs(np.stack(changes)).mean(axis=0)
        if sizes[other].mean() > 0:
            ratios.append(sizes[same].mean() / sizes[other].mean())
    return log_t_interval(np.array(ratios, np.float64))
