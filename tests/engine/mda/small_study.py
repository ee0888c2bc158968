"""A study made up so that every effect is known: heads rise in straight lines within the window."""

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

from engine.mda.curves import StudyFrames


BRANCH, END, EVERY = 50, 100, 5
HEADS = [(layer, head) for layer in range(2) for head in range(3)]
CHOSEN = (1, 1)
LEVELS = {(1, 1): 1.0, (1, 2): 0.6, (1, 0): 0.4, (0, 0): 0.05, (0, 1): 0.1, (0, 2): 0.02}
"""Prefix matching when the baseline ends: 1.2 is of the kind of 1.1, the others are not."""
Score = Callable[[int, tuple[int, int], np.ndarray], np.ndarray]
"""Prefix matching by seed, head and steps."""


def rising(later: float = 0.0) -> Score:
    """From 0 to the head's level in the 50 steps after the branch, so half of it 25 steps in."""

    def score(_seed: int, head: tuple[int, int], steps: np.ndarray) -> np.ndarray:
        return LEVELS[head] * np.clip((steps - BRANCH - later) / (END - BRANCH), 0, 1)

    return score


def small_study(arms: dict[tuple[str, str], Score], seeds: Iterable[int] = range(3)) -> StudyFrames:
    """A study whose baseline rises and whose arms score as given; losses follow the chosen head."""
    scores, losses, windows = [], [], []
    for seed in seeds:
        for (arm, unit), score in {("baseline", ""): rising(), **arms}.items():
            first = EVERY if arm == "baseline" else BRANCH + EVERY
            steps = np.arange(first, END + 1, EVERY)
            named = {"seed": seed, "arm": arm, "unit": unit}
            for layer, head in HEADS:
                prefix = score(seed, (layer, head), steps)
                own = {"step": steps, "layer": layer, "head": head, "prefix_matching": prefix}
                rest = {"previous_token": 0.3, "duplicate_token": 0.01}
                scores.append(pd.DataFrame({**named, **own, **rest}))
            chosen = score(seed, CHOSEN, steps)
            lost = {"loss": 2.0, "copy_loss": 4 - 3 * chosen, "icl": -0.1 - 0.5 * chosen}
            losses.append(pd.DataFrame({**named, "step": steps, **lost}))
            windows.append({**named, "branch_step": BRANCH, "end_step": END})
    choices = [{"seed": s, "unit": "induction", "layer": 1, "head": 1} for s in seeds]
    return StudyFrames(
        pd.concat(scores, ignore_index=True).sample(frac=1, random_state=0),
        pd.concat(losses, ignore_index=True),
        pd.DataFrame(windows),
        pd.DataFrame(choices),
        {"induction": "prefix_matching"},
    )
