"""`headwater models add`: put one model more on a map."""

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli.console import Reporter, digits, duration, note, say, say_json, say_table, size
from engine.cli.models_map import MapRunOption
from engine.cli.parameters import JsonOption


if TYPE_CHECKING:
    from engine.store import Run


def add(
    model: Annotated[str, typer.Argument(help="Folder, hub id or packaged model.")],
    *,
    run: MapRunOption,
    name: Annotated[
        str | None, typer.Option(help="What to call it; its hub id or folder's name unless given.")
    ] = None,
    allow_code: Annotated[
        bool, typer.Option("--allow-code", help="Let the model run Python code of its own.")
    ] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the model and estimate, and do nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Embed one model into a map and put it beside its nearest neighbours.

    The others stay where they are, byte for byte; `models map` lays all of them out anew. Stop it
    with Ctrl-C; the same command goes on where it stopped. A map that ships is copied first.
    """
    from engine.store import open_run

    held = open_run(run)  # an unknown run is said before anything slow is loaded
    if dry_run:
        _foresee(run, model, name, as_json=as_json)
        return
    _refuse_unreachable(held, model.strip())
    from engine.pipeline.models_add import add_model

    found = add_model(run, model, name, allow_code=allow_code, device=device, progress=Reporter())
    if found.n_skipped:
        note(f"{found.n_skipped} probes are longer than its context and count as 0.")
    if as_json:
        say_json(found)
        return
    _show_neighbours(found.neighbours)
    took = f"in {duration(found.seconds)}" if found.seconds else "which was there"
    say(f"{found.model}, {took}: {found.path}")


def _refuse_unreachable(held: "Run", source: str) -> None:
    """Say early that a hub does not answer; a model that is on the map needs none."""
    from engine.able.reach import is_hub_id, require_hub
    from engine.config import cache_root
    from engine.store import open_run, read_table

    if not is_hub_id(source):
        return
    own = cache_root() / f"{held.path.name}-own"
    runs = (held, open_run(own)) if own.is_dir() else (held,)
    for run in runs:
        known = run.has("model_catalogue")
        if known and not read_table(run, "model_catalogue", where={"place": source}, limit=1).empty:
            return
    require_hub(source)


def _show_neighbours(rows: list[dict[str, Any]]) -> None:
    from engine.atlas.verdicts import CAVEAT

    headings = {"neighbour": "left", "cosine": "right", "percentile of unrelated": "right"}
    say_table(
        headings | {"verdict": "left"},
        [
            (r["model"], digits(r["cosine"]), digits(r["percentile_unrelated"]), r["verdict"])
            for r in rows
        ],
    )
    note(CAVEAT)


def _foresee(run: str, model: str, name: str | None, *, as_json: bool) -> None:
    """Print what was checked, and what adding the model would take."""
    from engine.live.adding import prospect

    found = prospect(run, model, name or "")
    if as_json:
        say_json({"passed": found.passed, **dataclasses.asdict(found)})
        return
    say_table(
        {"check": "left", "state": "left", "finding": "left"},
        [(check.name, check.state, check.said) for check in found.checks],
    )
    if found.memory is not None and found.disk is not None:
        time = "" if found.seconds is None else f", {duration(found.seconds)}"
        say(f"About {size(found.memory)} of memory, {size(found.disk)} of disk{time}.")
