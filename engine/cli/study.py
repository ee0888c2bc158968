"""`headwater study`: experiments whose tables the pages and the ledger read."""

from typing import Annotated

import typer

from engine.cli.console import Reporter, say, say_json
from engine.cli.parameters import DEMO, JsonOption, RunOption


app = typer.Typer(no_args_is_help=True, help="Run experiments over many generations.")


@app.callback()
def study() -> None:
    """Run experiments over many generations."""


@app.command()
def suppression(
    *,
    run: RunOption = DEMO,
    concept: Annotated[str, typer.Option(help="Saved concept to suppress.")] = "NSFW",
    generations: Annotated[int, typer.Option(help="Generations in each condition.", min=2)] = 200,
    tokens: Annotated[int, typer.Option(help="Tokens a generation.", min=1)] = 40,
    strength: Annotated[float, typer.Option(help="Strength of suppression, 0 to 1.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of prompts, samplers and the random set.")] = 0,
    dense_run: Annotated[
        str | None, typer.Option(help="Dense twin under which perplexity is measured.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Score generations before and after suppressing a concept, and with a random control.

    Prompts are held-out texts; every condition shares prompt, seed and sampler. The random set is
    matched on firing rate.
    """
    from engine.pipeline.suppression import SuppressionStudy, study_suppression

    settings = SuppressionStudy(
        concept=concept,
        generations=generations,
        tokens=tokens,
        strength=strength,
        seed=seed,
        dense_run=dense_run,
    )
    summary = study_suppression(run, settings, Reporter())
    if as_json:
        say_json(summary)
        return
    for condition, score in summary.items():
        say(f"{condition}: mean score {score:.3f}")
