"""`headwater heads motifs`: the structure of the samples that formed a head."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.console import Reporter, digits, say, say_json, say_table
from engine.cli.parameters import JsonOption
from engine.errors import ConfigError


if TYPE_CHECKING:
    from engine.mda.motifs import Motif

HeadsRunOption = Annotated[
    str, typer.Option("--run", "-r", help="Name of a run about attention heads, or its folder.")
]
UnitOption = Annotated[
    str | None, typer.Option(help="Kind of head: induction, previous_token, ...; all if unset.")
]


def motifs(
    *,
    run: HeadsRunOption = "heads",
    unit: UnitOption = None,
    endpoint: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="OpenAI-compatible endpoint that refines the motifs; some of the samples are sent "
            "there, with the key of HEADWATER_ENDPOINT_KEY. None is asked unless given.",
        ),
    ] = None,
    endpoint_model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Model to ask for there.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Extract the structure of a head's top samples: repeats, tables, key-value pairs, nesting.

    A motif holds how the samples are built and not what they say: distances and lengths of repeats,
    delimiters, depths, shapes of lines, lengths of words. Synthetic samples are made from it.
    """
    if (endpoint is None) != (endpoint_model is None):
        raise ConfigError("--endpoint and --endpoint-model must be given together.")
    from engine.store import open_run

    open_run(run)  # an unknown run is said before anything slow is loaded
    from engine.endpoint import KEY, Endpoint
    from engine.pipeline.heads_motifs import motifs_json, read_motifs, write_motifs

    asked = None
    if endpoint is not None:
        asked = Endpoint(endpoint, str(endpoint_model), os.environ.get(KEY))
    done = write_motifs(run, unit=unit, endpoint=asked, progress=Reporter())
    found = read_motifs(done, unit)
    if as_json:
        say_json({"run": done.name, "motifs": motifs_json(found)})
        return
    _show(found)
    say(str(done.path))


def _show(found: "dict[str, list[Motif]]") -> None:
    """A line a kind of head and motif."""
    headings = {"unit": "left", "motif": "left", "samples": "right", "share": "right"}
    cells = [
        (unit, motif.name, digits(motif.n_samples), digits(motif.share), _summary(motif))
        for unit, own in found.items()
        for motif in own
    ]
    say_table({**headings, "built of": "left"}, cells)


def _summary(motif: "Motif") -> str:
    """The most frequent values of each part of the structure."""
    from engine.mda.motifs import Distribution

    parts = []
    for name, value in vars(motif.structure).items():
        if isinstance(value, Distribution):
            first = ", ".join(repr(v) for v in value.most_frequent(3))
            parts.append(f"{name.replace('_', ' ')} {first}")
        elif isinstance(value, float):
            parts.append(f"{name} {digits(value)}")
    return "; ".join(parts)
