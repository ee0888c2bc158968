"""`headwater attribution-index`: store what attribution needs of a run's training texts."""

from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.console import Reporter, say, say_json, size
from engine.cli.parameters import DEMO, JsonOption, RunOption
from engine.errors import ConfigError


if TYPE_CHECKING:
    from engine.store import Run


def attribution_index(
    *,
    run: RunOption = DEMO,
    sequences: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Training windows to store, spread over the domains; 3,000 unless --all is given.",
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Store every window of the training texts.")
    ] = False,
    length: Annotated[
        int, typer.Option(min=2, help="Tokens of a window, the separator in front included.")
    ] = 128,
    bits: Annotated[
        int, typer.Option(help="Bits of each stored number of errors and states: 8 or 4.")
    ] = 8,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    in_place: Annotated[
        bool,
        typer.Option(
            "--in-place", help="Write into the folder of a shipped run instead of the cache."
        ),
    ] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    as_json: JsonOption = False,
) -> None:
    """Index training texts for attribution: which of them lower the loss of a prediction.

    One pass of the model over the texts, resumed where it was stopped. Of a shipped run the pool is
    kept in the cache, and comes before the one that ships. `headwater attribute` searches it.
    """
    if every and sequences is not None:
        raise ConfigError("--all stores every window, so --sequences has no meaning beside it.")
    if bits not in (4, 8):
        raise ConfigError(f"--bits is {bits}; choose 8 or 4.")
    from engine.store import open_run

    open_run(run)  # before what is slow to load
    from engine.pipeline.attribution import build_pool
    from engine.pipeline.attribution_rows import PoolSettings

    settings = PoolSettings(
        sequences=None if every else sequences or 3_000,
        length=length,
        bits=bits,
        seed=seed,
        device=device,
    )
    done = build_pool(run, settings, Reporter(), in_place=in_place)
    _report(done, as_json=as_json)


def _report(done: "Run", *, as_json: bool) -> None:
    from engine.store.pools import POOL

    facts = done.manifest["stages"][POOL]
    n_bytes = sum(file["bytes"] for file in done.arrays[POOL]["files"])
    if as_json:
        say_json(
            {
                "run": done.name,
                "path": str(done.path),
                "sequences": facts["sequences"],
                "tokens": facts["tokens"],
                "bytes": n_bytes,
            }
        )
        return
    say(f"{facts['sequences']:,} sequences, {facts['tokens']:,} tokens, {size(n_bytes)}")
    say(f'Search it with: headwater attribute "TEXT" --run {done.name}')
    say(str(done.path))
