"""`headwater publish`: a copy of a run that is small enough to hand to somebody else."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.console import say, say_json, size
from engine.cli.parameters import JsonOption
from engine.errors import ConfigError


if TYPE_CHECKING:
    from engine.store import Run


ShardsOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Keep only the first N files of the table of activations, which is the largest "
        "by far; all of them unless given.",
    ),
]
RoundOption = Annotated[
    bool,
    typer.Option(
        "--round",
        help="Round a trained model's weights to bfloat16, half the size, and copy what "
        "belongs to its training. Index the copy afterwards.",
    ),
]
PoolOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Keep N sequences of the attribution pool, spread over the domains; all unless given.",
    ),
]
WordsOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Of a map of models keep the word attributions of N probes; all unless given.",
    ),
]


def publish(
    *,
    run: Annotated[str, typer.Option("--run", "-r", help="Name or folder of a finished run.")],
    to: Annotated[
        Path,
        typer.Option(metavar="FOLDER", help="Folder of the copy; its last part becomes its name."),
    ],
    shards: ShardsOption = None,
    rounded: RoundOption = False,
    pool: PoolOption = None,
    words: WordsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy a run to a folder of its own, to share it: its model, its tables, its manifest.

    Whoever gets the folder puts it into their cache and opens it with `headwater dashboard --run`
    and its name. Checkpoints stay behind. With --shards the copy is smaller, and its statistics,
    neighbours and labels are still those of the whole index.

    To ship half the bytes of weights, round first and index the rounded run, so that every table
    describes the very weights that ship: `publish --run mine --to cache/mine-rounded --round`,
    `index --run mine-rounded`, then `publish --run mine-rounded --to shared/mine --shards 4`.
    """
    from engine.store import open_run

    opened = open_run(run)  # an unknown run is said before anything slow is loaded
    if opened.kind == "models":
        if rounded or shards is not None or pool is not None:
            raise ConfigError("A map of models has no weights, shards or pool; use --words alone.")
        from engine.pipeline.publish_map import publish_map

        _report(publish_map(opened, to, words=words), to, rounded=False, as_json=as_json)
        return
    if words is not None:
        raise ConfigError(f"--words is for maps of models, and {opened.name} is none.")
    if rounded and (shards is not None or pool is not None):
        raise ConfigError(
            "--round copies no activations and no pool, so --shards and --pool have no meaning "
            "beside it."
        )
    from engine.pipeline import publish as publishing

    if rounded:
        done = publishing.round_model(run, to)
    else:
        done = publishing.publish(run, to, shards=shards, pool=pool)
    _report(done, to, rounded=rounded, as_json=as_json)


def _report(done: "Run", to: Path, *, rounded: bool, as_json: bool) -> None:
    n_bytes = sum(file.stat().st_size for file in done.path.rglob("*") if file.is_file())
    if as_json:
        say_json({"run": done.name, "path": str(done.path), "bytes": n_bytes})
        return
    say(f"{size(n_bytes)}, {len(done.tables)} tables")
    if rounded:
        say(f"Index it with: headwater index --run {to}")
    say(str(done.path))
