"""`headwater heads analyse`: what a study's arms did, and what its influence looks like."""

from typing import TYPE_CHECKING

from engine.cli.console import Reporter, digits, say, say_json, say_table
from engine.cli.parameters import JsonOption, RunOption


if TYPE_CHECKING:
    import pandas as pd

_TABLES = ("head_effects", "head_tails", "head_tags", "head_overlaps")
_SHOWN = ("score", "delay")


def analyse(*, run: RunOption = "heads", as_json: JsonOption = False) -> None:
    """Compute effects of arms with intervals over seeds, heavy tails, overlaps, structures.

    Effects are arm minus baseline of the same seed: of scores the mean over the window, of delays
    optimiser steps, positive where the arm is later; a head that does not form within the window
    counts as forming at its end. `headwater heads study` does this at its end.
    """
    from engine.store import open_run, read_table

    open_run(run)  # an unknown run is said before anything slow is loaded
    from engine.pipeline.heads_analysis import analyse_heads

    done = analyse_heads(run, Reporter())
    found = {name: read_table(done, name) for name in _TABLES if done.has(name)}
    if as_json:
        say_json({"run": done.name, **{n: rows.to_dict("records") for n, rows in found.items()}})
        return
    if "head_effects" in found:
        _show(found["head_effects"])
    say(str(done.path))


def _show(effects: "pd.DataFrame") -> None:
    """A line an arm, kind of head and measure."""
    headings = {"arm": "left", "head": "left", "measure": "left", "effect": "right"}
    headings |= {"95 % interval": "left", "seeds": "right"}
    shown = effects[effects["measure"].isin(_SHOWN)].to_dict("records")
    say_table(
        headings,
        [
            (
                row["arm"],
                row["unit"],
                row["measure"],
                digits(row["effect"]),
                f"{digits(row['low'])} to {digits(row['high'])}",
                digits(row["n_seeds"]),
            )
            for row in shown
        ],
    )
