"""`headwater study`: experiments whose tables the pages and the ledger read."""

from typing import Annotated

import typer

from engine.cli.console import Reporter, digits, say, say_json, say_table
from engine.cli.options import with_config
from engine.cli.parameters import DEMO, JsonOption, RunOption
from engine.config import TrainConfig
from engine.errors import ConfigError


app = typer.Typer(no_args_is_help=True, help="Measure a run: coverage, trade-off.")
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
def attribution(
    *,
    run: RunOption = DEMO,
    pool: Annotated[int, typer.Option(help="Training sequences to rank.", min=10)] = 3_000,
    queries: Annotated[int, typer.Option(help="Held-out sequences to rank for.", min=1)] = 40,
    length: Annotated[int, typer.Option(help="Tokens of a sequence.", min=2)] = 128,
    target_tokens: Annotated[
        int | None, typer.Option(help="Last tokens of a query that count; all if unset.", min=1)
    ] = None,
    top: Annotated[int, typer.Option(help="First ones whose overlap is taken.", min=10)] = 100,
    methods: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Methods, comma-separated; all without peers if unset."),
    ] = None,
    peers: Annotated[
        bool, typer.Option("--peers", help="Also EK-FAC and a projected index (make bench-peers).")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of pool and queries.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Score one pool by every attribution method and measure how far the rankings agree.

    References are the exact gradient of the whole bank, plain and preconditioned, and EK-FAC.
    """
    from engine.store import open_run

    open_run(run)  # an unknown run is said before anything slow is loaded
    from engine.pipeline.attribution_agreement import (
        METHODS,
        PEERS,
        AgreementStudy,
        agreement_summary,
        study_agreement,
    )

    named = tuple(methods.split(",")) if methods else METHODS
    study = AgreementStudy(
        pool=pool,
        queries=queries,
        length=length,
        target_tokens=target_tokens,
        top=top,
        methods=(*named, *PEERS) if peers else named,
        seed=seed,
    )
    done = study_agreement(run, study, Reporter())
    rows = agreement_summary(done)
    if as_json:
        say_json(rows)
        return
    columns = ("overlap_10", "overlap_top", "low", "high", "spearman")
    headings = {"method": "left", "reference": "left"} | dict.fromkeys(columns, "right")
    cells = [(r["method"], r["reference"], *(digits(r[name]) for name in columns)) for r in rows]
    say_table(headings, cells)
    say(str(done.path))
