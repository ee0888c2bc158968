"""`headwater models zoo`: small models of known lineage, built here."""

from typing import Annotated

import typer

from engine.cli.console import Reporter, digits, say, say_json, say_table
from engine.cli.parameters import JsonOption


def zoo(
    *,
    to: Annotated[str, typer.Option(metavar="FOLDER", help="Where it is built; resumes it.")],
    only_slice: Annotated[
        bool, typer.Option("--slice", help="Build 24 models, four roots with five derivatives.")
    ] = False,
    jobs: Annotated[int, typer.Option(help="Processes, each with one thread.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of facts, plan and weights.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Build 239 small models whose lineage is known: 36 roots and 203 derivatives.

    Takes about an hour on two cores. Every model is kept as it ends; the folder gets
    catalogue.csv, questions.jsonl and what every model answers.
    """
    from engine.pipeline.models_zoo import build_zoo, open_zoo, zoo_path

    opened = open_zoo(zoo_path(to), only_slice=only_slice, seed=seed)
    cards = build_zoo(opened, jobs=jobs, progress=Reporter())
    if as_json:
        say_json({"path": str(opened.path), "plan": opened.plan.name, "models": cards})
        return
    kinds: dict[str, list[float]] = {}
    for card in cards:
        kinds.setdefault(card["derivation"], []).append(card["accuracy"]["all"])
    say_table(
        {"derivation": "left", "models": "right", "mean accuracy": "right"},
        ((name, digits(len(a)), digits(sum(a) / len(a))) for name, a in kinds.items()),
    )
    say(str(opened.path))
