"""`headwater curvature`: how coupled and how well conditioned a bank's Hessian is."""

from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.console import Reporter, digits, say, say_json, say_table
from engine.cli.parameters import DEMO, JsonOption, RunOption


if TYPE_CHECKING:
    import pandas as pd

_SHOWN = ("coupling", "coupling_normalised", "block_diagonal_share", "condition_number")


def curvature(
    *,
    run: RunOption = DEMO,
    arms: Annotated[
        str,
        typer.Option(
            metavar="RUNS",
            help="Runs over clustering strength, separated by commas, or patterns of names such "
            "as 'mine-*-arm-*'; dense ones among them are what the others are held against.",
        ),
    ] = "",
    tokens: Annotated[
        int, typer.Option(help="Training tokens the Hessian is summed over.")
    ] = 131_072,
    damping: Annotated[
        float, typer.Option(help="Share of the mean eigenvalue added for condition numbers.")
    ] = 0.1,
    as_json: JsonOption = False,
) -> None:
    """Measure the Hessian of the losses in prototype space: coupling, spectrum, condition number.

    Activations and assignments are held fixed. With --arms also a series of runs that differ in
    clustering weight and seed alone, made by `headwater study tradeoff`, so that coupling and
    conditioning become a curve; loss and signs of collapse stand beside.
    """
    from engine.store import open_run, read_table

    open_run(run)  # an unknown run is said before anything slow is loaded
    from engine.pipeline.curvature import study_curvature
    from engine.pipeline.curvature_run import CurvatureStudy

    study = CurvatureStudy(tokens=tokens, damping=damping)
    named = [name.strip() for name in arms.split(",") if name.strip()]
    done = study_curvature(run, named, study, progress=Reporter())
    rows = read_table(done, "curvature").merge(read_table(done, "curvature_arms"), on="arm")
    if as_json:
        say_json({"run": done.name, "curvature": rows.to_dict(orient="records")})
        return
    _show(rows)
    say(str(done.path))


def _show(rows: "pd.DataFrame") -> None:
    headings = {"run or arm": "left", "R1, R2 weight": "right", "term": "left"}
    headings |= dict.fromkeys((name.replace("_", " ") for name in _SHOWN), "right")
    weight = (rows["prototype_to_token_weight"] + rows["token_to_prototype_weight"]) / 2
    figures = rows[list(_SHOWN)].to_numpy()
    listed = zip(rows["arm"], weight, rows["term"], figures, strict=True)
    say_table(
        headings,
        [
            (arm, digits(float(w)), term, *(digits(float(v)) for v in values))
            for arm, w, term, values in listed
        ],
    )
