"""Saved concepts of a run: sets of prototypes that stand for one kind of text."""

import pandas as pd

from engine.store.reading import read_table
from engine.store.runs import Run


def read_concepts(run: Run) -> dict[str, tuple[int, ...]]:
    """Prototypes of each saved concept, rising; empty where the run has none.

    The set that `headwater suppress` chose stands for its concept; where there is none, the set
    that the index found does.
    """
    found: dict[str, tuple[int, ...]] = {}
    if run.has("concepts"):
        found |= _sets(read_table(run, "concepts", columns=["concept", "prototype"]))
    if run.has("suppression_prototypes"):
        columns = ["concept", "prototype", "chosen"]
        frame = read_table(run, "suppression_prototypes", columns=columns)
        found |= _sets(frame[frame["chosen"]])
    return found


def _sets(frame: pd.DataFrame) -> dict[str, tuple[int, ...]]:
    groups = frame.groupby("concept")["prototype"]
    return {str(name): tuple(sorted(int(i) for i in ids)) for name, ids in groups}
