"""A series of runs over clustering strength: which they are, and whether they can be compared."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import pandas as pd

from engine.config import require
from engine.errors import ConfigError
from engine.pipeline.coverage import settings
from engine.pipeline.curvature_run import require_bank
from engine.pipeline.training_identity import EXECUTION
from engine.store import Run, list_runs, open_run


_FREE = EXECUTION | {"weights", "seed", "dense"}
"""Settings in which runs of a series may differ."""


@dataclass(frozen=True)
class Series:
    """Runs with a bank that differ in loss weights and seed alone, and their dense runs."""

    arms: tuple[Run, ...] = ()
    dense: dict[int, Run] = field(default_factory=dict)
    """The dense run of each seed that has one."""

    @classmethod
    def of(cls, names: Sequence[str], leave_out: str = "") -> "Series":
        """Open the runs of these names or patterns.

        Args:
            names: Names and patterns such as `mine-*-arm-*`.
            leave_out: A run that is not an arm even where a pattern takes it in.

        Raises:
            ConfigError: A pattern matches nothing, there are fewer than two arms, all have one
                clustering weight, or two differ in more than loss weights and seed.
            CacheMissing: There is no run of a name.
        """
        runs = [open_run(name) for name in _expanded(names) if name != leave_out]
        arms = tuple(run for run in runs if run.kind != "dense")
        require(
            len(arms) > 1,
            f"--arms names {len(arms)} run{'s' * (len(arms) != 1)} with a bank; a curve over "
            "clustering strength takes at least two, separated by commas.",
        )
        for run in arms:
            require_bank(run)
        dense = {_seed(run): run for run in runs if run.kind == "dense"}
        for run in (*arms[1:], *dense.values()):
            _check_comparable(arms[0], run)
        weights = {_clustering(run) for run in arms}
        require(
            len(weights) > 1,
            f"All {len(arms)} arms have the clustering weight {min(weights):g}; name arms that "
            "differ in it.",
        )
        return cls(arms, dense)

    def beside(self, tables: dict[str, pd.DataFrame], arm: Run) -> dict[str, pd.DataFrame]:
        """The tables of one arm, as rows of another run and with the dense run of its seed."""
        facts = tables["curvature_arms"].assign(role="arm")
        dense = self.dense.get(_seed(arm))
        if dense is not None:
            final = dense.manifest["stages"]["train"]["final"]
            facts = facts.assign(
                dense_loss=final["validation_loss"],
                dense_participation_ratio=final["participation_ratio"],
            )
        return tables | {"curvature_arms": facts}


def _seed(run: Run) -> int:
    return int(settings(run).get("seed", 0))


def _clustering(run: Run) -> float:
    """Mean weight of L_R1 and L_R2."""
    weights = settings(run)["weights"]
    return (weights["prototype_to_token"] + weights["token_to_prototype"]) / 2


def _expanded(names: Sequence[str]) -> list[str]:
    """Names in order, each once, with patterns replaced by the runs they match."""
    found: dict[str, None] = {}
    for name in names:
        if not set(name) & set("*?["):
            found[name] = None
            continue
        here = [run.name for run in list_runs()]
        matching = [own for own in here if fnmatchcase(own, name)]
        if not matching:
            raise ConfigError(f"No run matches {name!r}; runs here: {', '.join(here) or 'none'}.")
        found.update(dict.fromkeys(matching))
    return list(found)


def _check_comparable(first: Run, other: Run) -> None:
    """Refuse two runs whose curvature differs for other reasons than clustering."""
    pairs: list[tuple[str, Any, Any]] = [
        (f"{key} fingerprint", *(run.manifest[key]["fingerprint"] for run in (first, other)))
        for key in ("corpus", "tokenizer")
    ]
    ours, theirs = settings(first), settings(other)
    names = [name for name in ours if name not in _FREE | {"corpus"}]
    pairs += [(name, ours[name], theirs.get(name)) for name in names]
    for name, own, found in pairs:
        if own != found:
            raise ConfigError(
                f"Arms {first.name} and {other.name} cannot be compared: {name} is {own} in one "
                f"and {found} in the other; arms may differ in loss weights and seed alone."
            )
