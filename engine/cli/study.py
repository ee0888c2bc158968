"""`headwater study`: experiments whose tables the pages and the ledger read."""

from typing import Annotated

import typer

from engine.cli.console import Reporter, digits, say, say_json, say_table
from engine.cli.options import with_config
from engine.cli.parameters import DEMO, JsonOption, RunOption
from engine.config import TrainConfig
from engine.errors import ConfigError


app = typer.Typer(no_args_is_help=True, help="Measure a run: coverage, suppression.")
TwinOption = Annotated[
    str | None, typer.Option(metavar="RUN", help="Run of the matched dense twin.")
]
_SHOWN = ("coverage_r1", "coverage_r2", "residual_share", "participation_ratio", "dead_share")


@app.command()
def coverage(
    *, run: RunOption = DEMO, dense_run: TwinOption = None, as_json: JsonOption = False
) -> None:
    """Measure how well the bank covers held-out tokens, beside a random and a k-means bank.

    With the dense twin, also its states and the held-out loss of both, by domain.
    """
    from engine.store import open_run, read_table

    open_run(run)  # an unknown run is said before anything slow is loaded
    from engine.pipeline.coverage import measure_coverage

    done = measure_coverage(run, dense_run, progress=Reporter())
    table = read_table(done, "coverage")
    if as_json:
        say_json(table.to_dict(orient="records"))
        return
    headings = {"bank": "left"} | dict.fromkeys((n.replace("_", " ") for n in _SHOWN), "right")
    cells = zip(table["bank"], table[list(_SHOWN)].to_numpy(), strict=True)
    say_table(headings, [(bank, *(digits(float(v)) for v in values)) for bank, values in cells])
    say(str(done.path))


@app.command()
@with_config(TrainConfig, "Settings of every arm")
def tradeoff(
    *,
    config: TrainConfig,
    trunk: Annotated[
        str, typer.Option(metavar="RUN", help="Run with a checkpoint at bank-start to start from.")
    ],
    run: RunOption = DEMO,
    weights: Annotated[
        str, typer.Option(metavar="NUMBERS", help="Clustering weights, an arm each.")
    ] = "0.03,0.1,0.3,1",
    as_json: JsonOption = False,
) -> None:
    """Draw the frontier of loss against coverage: short arms that differ in loss weights alone.

    Every arm, and a dense one, starts from the trunk's checkpoint and sees the same rows.
    """
    from engine.pipeline.tradeoff import arm_weights, train_arms, write_tradeoff
    from engine.store import read_table

    arms = arm_weights(_numbers(weights), config.weights.reconstruction)
    runs = train_arms(trunk, config, prefix=run, arms=arms, progress=Reporter())
    done = write_tradeoff(run, runs)
    table = read_table(done, "tradeoff")
    if as_json:
        say_json(table.to_dict(orient="records"))
        return
    columns = ("validation_loss", *_SHOWN)
    headings = {"arm": "left"} | dict.fromkeys((n.replace("_", " ") for n in columns), "right")
    cells = zip(table["arm"], table[list(columns)].to_numpy(), strict=True)
    say_table(headings, [(arm, *(digits(float(v)) for v in values)) for arm, values in cells])
    say(str(done.path))


def _numbers(typed: str) -> list[float]:
    """Numbers of `0.1,0.3`."""
    try:
        return [float(part) for part in typed.split(",")]
    except ValueError as error:
        raise ConfigError(f"--weights {typed!r} is no list; write --weights 0.1,0.3.") from error


@app.command()
def suppression(
    *,
    run: RunOption = DEMO,
    concept: Annotated[str, typer.Option(help="Saved concept to suppress.")] = "NSFW",
    generations: Annotated[int, typer.Option(help="Generations a condition.", min=2)] = 240,
    tokens: Annotated[int, typer.Option(help="Tokens a generation.", min=1)] = 40,
    prompt_tokens: Annotated[
        int, typer.Option(help="Tokens of a held-out text that make a prompt.", min=1)
    ] = 10,
    strength: Annotated[float, typer.Option(help="Strength of suppression, 0 to 1.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of prompts, samplers and the random set.")] = 0,
    dense_run: TwinOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score generations before and after suppressing a concept, and with a random control.

    Prompts open held-out unwanted texts; every condition shares prompt, seed and sampler. The
    random set is matched on firing rate. Perplexity is taken under the dense twin, or under the
    run's own decoder where no twin is named.
    """
    from engine.store import open_run

    open_run(run)  # an unknown run is said before anything slow is loaded
    from engine.pipeline.suppression_study import SuppressionStudy, study_suppression

    settings = SuppressionStudy(
        concept=concept,
        generations=generations,
        tokens=tokens,
        prompt_tokens=prompt_tokens,
        strength=strength,
        seed=seed,
        dense_run=dense_run,
    )
    means = study_suppression(run, settings, Reporter())
    if as_json:
        say_json({"run": run, "concept": concept, "mean_scores": means})
        return
    for condition, score in means.items():
        say(f"{condition}: mean score {score:.3f}")
