"""`headwater claims`: the ledger of what the papers claim and what was measured here."""

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.console import Reporter, digits, say, say_json, say_table
from engine.cli.parameters import JsonOption


if TYPE_CHECKING:
    from engine.claims import Claim
    from engine.pipeline.claims import ClaimDefinition


def claims(
    *,
    update: Annotated[
        bool, typer.Option("--update", help="Compute every row anew from its evidence.")
    ] = False,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure",
            help="First measure what needs models: gaps of decompositions and the retrofit's "
            "logits against the original's.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the claims ledger: the paper's figure, ours, and whether the criterion holds.

    Criteria are written before measuring and judged by a program. A claim that fails stays, with
    its figure. Rows whose evidence has not been computed say "not measured".
    """
    from engine.claims import read_claims, write_claims

    if measure:
        from engine.pipeline.exactness import measure_exactness

        measure_exactness(Reporter())
    if update or measure:
        write_claims(computed_claims())
    rows = read_claims()
    if as_json:
        say_json([dataclasses.asdict(row) for row in rows])
    else:
        _show(rows)


def computed_claims() -> list["Claim"]:
    """Every row of the ledger, from the evidence that is here."""
    from engine.pipeline.claims import compute_claims

    return compute_claims(definitions())


def definitions() -> list["ClaimDefinition"]:
    """Every claim that is written down, in the order of the ledger."""
    from engine.pipeline import (
        claims_attribution,
        claims_control,
        claims_curvature,
        claims_heads,
        claims_models_relations,
        claims_models_routing,
        claims_models_speed,
        claims_models_stability,
        claims_prism,
        claims_retraining,
        claims_suppression,
    )

    registered = (
        claims_prism,
        claims_suppression,
        claims_attribution,
        claims_retraining,
        claims_curvature,
        claims_control,
        claims_heads,
        claims_models_relations,
        claims_models_routing,
        claims_models_stability,
        claims_models_speed,
    )
    return [row for claims in registered for row in claims.DEFINITIONS]


def _show(rows: list["Claim"]) -> None:
    headings = {
        "claim": "left",
        "paper": "right",
        "here": "right",
        "95 % interval": "left",
        "criterion": "left",
        "holds": "left",
    }
    say_table(headings, [_row(row) for row in rows])
    counts = {True: 0, False: 0}
    for row in rows:
        if isinstance(row.holds, bool):
            counts[row.holds] += 1
    others = len(rows) - sum(counts.values())
    say(
        f"{len(rows)} claims: {counts[True]} hold, {counts[False]} do not, "
        f"{others} not measured or not comparable. Sentences, settings and controls: "
        f"headwater claims --json"
    )


def _row(row: "Claim") -> tuple[str, ...]:
    low, high = row.interval or (None, None)
    interval = "" if row.interval is None else f"{digits(low)} to {digits(high)}"
    verdict = row.holds if isinstance(row.holds, str) else "yes" if row.holds else "NO"
    return (row.id, digits(row.paper_value), digits(row.value), interval, row.criterion, verdict)
