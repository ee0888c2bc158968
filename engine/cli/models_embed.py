"""`headwater models embed`: embed every model of a catalogue."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from engine.cli.console import Reporter, digits, note, say, say_json, say_table, size
from engine.cli.models_stability import RayOption, WorkersOption
from engine.cli.parameters import JsonOption


if TYPE_CHECKING:
    from engine.able.probes import ProbeSet, Style
    from engine.pipeline.models_catalogue import Catalogue
    from engine.pipeline.models_embed import EmbedReport, EmbedStudy


CatalogueOption = Annotated[
    Path,
    typer.Option(metavar="FILE", help="CSV with a column `path` or `hub_id`, a line a model."),
]
MapOption = Annotated[
    str, typer.Option("--run", "-r", help="Run that holds the map; made, or gone on with.")
]
ProbesOption = Annotated[
    str | None,
    typer.Option(
        metavar="PARTS",
        help="Probes, NAME or NAME:COUNT with commas between: facts, embedded, public (the "
        "paper's five sources), paper (with the gated sixth), packaged sets, JSONL files. "
        "Those of the run, or embedded, unless given.",
    ),
]
StyleOption = Annotated[str, typer.Option(help="Score the options' letters (the paper) or texts.")]
SourcesOption = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Copies of the public sources, OWNER/NAME each."),
]
DtypeOption = Annotated[str, typer.Option(help="auto, float32, bfloat16 (the paper) or float16.")]
HookOption = Annotated[
    str, typer.Option(help="Where models are attributed: auto, embedding or norm.")
]
BatchOption = Annotated[
    int, typer.Option(help="Tokens times options of a batch; 0: as suits the device.")
]
DimensionsOption = Annotated[int, typer.Option(help="Dimensions of embeddings.")]
SeedOption = Annotated[int, typer.Option(help="Seed of the projection.")]
CodeOption = Annotated[
    list[str] | None,
    typer.Option(metavar="MODEL", help="Let a model run Python code of its own; repeat it."),
]
KeepOption = Annotated[
    bool, typer.Option("--keep", help="Leave fetched models in the hub's cache.")
]
PartOption = Annotated[
    str,
    typer.Option(
        metavar="I/N",
        help="Every N-th model from the I-th, for machines that share the run's folder; a call "
        "without it ends the run.",
    ),
]
MemoryOption = Annotated[
    bool, typer.Option(help="Fail a model that will not fit before it is fetched.")
]
AnswersOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Folder with questions.jsonl and correctness.csv, as a zoo has: which questions "
        "models answer right, for routing and forecasts. The probes alone unless given.",
    ),
]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")]
ForeseeOption = Annotated[
    bool, typer.Option("--dry-run", help="Say what each model would take, and do nothing.")
]


def embed(
    *,
    catalogue: CatalogueOption,
    run: MapOption,
    probes: ProbesOption = None,
    style: StyleOption = "letters",
    probe_sources: SourcesOption = None,
    dtype: DtypeOption = "auto",
    hook: HookOption = "auto",
    batch_tokens: BatchOption = 0,
    dimensions: DimensionsOption = 256,
    seed: SeedOption = 0,
    allow_code: CodeOption = None,
    keep: KeepOption = False,
    part: PartOption = "1/1",
    check_memory: MemoryOption = True,
    answers: AnswersOption = None,
    workers: WorkersOption = 1,
    ray: RayOption = None,
    device: DeviceOption = "auto",
    dry_run: ForeseeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Embed every model of a catalogue by what its answers depend on.

    Each is fetched, asked every probe, kept and freed before the next. A model that fails is
    listed with its reason and the rest goes on; run the command again to go on where it stopped.
    """
    from engine.pipeline.models_catalogue import read_catalogue
    from engine.store import resolve_run

    found = read_catalogue(catalogue.expanduser())
    path = resolve_run(run)
    if not dry_run and not path.is_dir():
        _refuse_unreachable(found)
    from engine.able.model import AttributionSettings
    from engine.jobs import fan_of
    from engine.pipeline.models_answers import read_answers, write_answers
    from engine.pipeline.models_embed import EmbedStudy, embed_catalogue

    settings = AttributionSettings(dtype=dtype, hook=hook, batch_tokens=batch_tokens, device=device)
    study = EmbedStudy(
        attribution=settings,
        n_dimensions=dimensions,
        seed=seed,
        allow_code=tuple(allow_code or ()),
        keep_fetched=keep,
        check_memory=check_memory,
        part=_part(part),
    )
    asked = _probes(path, probes, style, probe_sources)
    if dry_run:
        _foresee(path, found, asked, study, as_json=as_json)
        return
    judged = None if answers is None else read_answers(answers.expanduser(), asked)
    fan = fan_of(workers, ray, int(settings.resolve()[0].type == "cuda"))
    report = embed_catalogue(path, found, asked, study, Reporter(), fan)
    if study.part is None:
        write_answers(path, judged)
    _say(report, len(asked), as_json=as_json)


def _refuse_unreachable(catalogue: "Catalogue") -> None:
    """Say before anything slow is loaded that a hub does not answer, if all models are of one."""
    from engine.able.reach import is_hub_id, require_hub

    if all(is_hub_id(entry.source) for entry in catalogue.entries):
        require_hub(catalogue.entries[0].source)


def _say(report: "EmbedReport", n_probes: int, *, as_json: bool) -> None:
    for name, reason in report.failed.items():
        note(f"{name}: {reason}")
    if as_json:
        say_json(report)
        return
    counts = f"{len(report.embedded)} embedded, {len(report.failed)} failed"
    say(f"{counts}, {n_probes} probes: {report.path}")


def _probes(path: Path, text: str | None, style: str, sources: Path | None) -> "ProbeSet":
    """Probes as asked for; those of the run where nothing is asked."""
    from engine.able.files import read_probe_set
    from engine.able.probe_sources import EMBEDDED, read_probes
    from engine.able.probes import STYLES
    from engine.config import require
    from engine.pipeline.models_embed import PROBES

    require(style in STYLES, f"--style is {style!r}; use one of {', '.join(STYLES)}.")
    if text is None and (path / PROBES).is_file():
        return read_probe_set(path / PROBES)
    return read_probes(text or EMBEDDED, style=cast("Style", style), sources=sources)


def _part(text: str) -> tuple[int, int] | None:
    from engine.config import require

    first, _, n = text.partition("/")
    require(first.isdecimal() and n.isdecimal(), f"--part is {text!r}; write I/N, such as 1/4.")
    return None if (int(first), int(n)) == (1, 1) else (int(first), int(n))


def _foresee(
    path: Path, catalogue: "Catalogue", probes: "ProbeSet", study: "EmbedStudy", *, as_json: bool
) -> None:
    """Print what embedding each model would take."""
    from engine.pipeline.models_embed import foreseen

    rows = foreseen(path, catalogue, probes, study)
    for problem in catalogue.problems:
        note(problem)
    if as_json:
        say_json(rows)
        return
    say_table(
        {"model": "left", "state": "left", "disk": "right", "memory": "right", "remark": "left"},
        [_shown(row) for row in rows],
    )


def _shown(row: dict[str, Any]) -> tuple[str, ...]:
    disk, memory = (digits(None) if row[n] is None else size(row[n]) for n in ("disk", "memory"))
    return (row["model"], row["state"], disk, memory, row["remark"])
