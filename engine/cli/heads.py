"""`headwater heads`: how attention heads form, and which training samples formed them."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import heads_analyse, heads_influence, heads_motifs, heads_study
from engine.cli.console import Reporter, digits, say, say_json, say_table
from engine.cli.options import with_config
from engine.cli.parameters import JsonOption, NewRunOption
from engine.pipeline.heads_monitor_settings import MonitorConfig


if TYPE_CHECKING:
    from engine.store import Run

app = typer.Typer(
    no_args_is_help=True,
    help="Attention heads: watch them form, trace them to training samples, prove it.",
)
ModelOption = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        help="A run, a save_pretrained folder, a folder of these, a package of weights or a hub "
        "id.",
    ),
]
CheckpointOption = Annotated[
    list[str] | None,
    typer.Option(
        "--checkpoint",
        metavar="NAME",
        help="Name or step of one of its checkpoints, or a folder; repeated. All unless given.",
    ),
]
RevisionsOption = Annotated[
    str | None,
    typer.Option(metavar="NAMES", help="Revisions on a hub, comma-separated: step1000,step2000."),
]
PATTERNS = ("prefix_matching", "previous_token", "duplicate_token")


@app.command()
@with_config(MonitorConfig, "Settings of the measurement")
def monitor(
    *,
    config: MonitorConfig,
    model: ModelOption,
    checkpoint: CheckpointOption = None,
    revisions: RevisionsOption = None,
    corpus: Annotated[
        str | None,
        typer.Option(
            help="Corpus for probe tokens and held-out rows; without one the model's own "
            "predictions say which tokens it has seen, and there is no ICL score."
        ),
    ] = None,
    run: NewRunOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure every head over a list of checkpoints: prefix matching, previous and duplicate token.

    With a corpus also the ICL score: the loss at token 500 minus the mean loss of the first 50
    tokens, or late minus early tokens where rows are shorter. Every checkpoint's result is kept as
    it ends.
    """
    if corpus is not None:
        from engine.corpus.build import open_corpus

        open_corpus(corpus)  # a missing corpus is said before anything slow is loaded
    from engine.pipeline.heads_models import find_source
    from engine.pipeline.heads_monitor import monitor_heads

    source = find_source(model, checkpoint or (), names_of(revisions))
    done = monitor_heads(source, config, run=run, corpus=corpus, progress=Reporter())
    found = monitor_json(done)
    if as_json:
        say_json(found)
        return
    _show_monitor(found)
    say(str(done.path))


def names_of(typed: str | None) -> tuple[str, ...]:
    """Names of `step1000,step2000`."""
    return tuple(name.strip() for name in (typed or "").split(",") if name.strip())


def monitor_json(run: "Run") -> dict[str, Any]:
    """The contract of `monitor --json`: a row a checkpoint and head, ICL score by checkpoint."""
    from engine.store import read_table

    losses = read_table(run, "head_losses")
    names = dict(zip(losses["step"], losses["checkpoint"], strict=True))
    scores = read_table(run, "head_scores")
    scores.insert(0, "checkpoint", scores["step"].map(names))
    columns = ["checkpoint", "layer", "head", *PATTERNS]
    facts = run.manifest["stages"]["monitor"]
    return {
        "rows": scores[columns].to_dict(orient="records"),
        "icl": dict(zip(losses["checkpoint"], losses["icl"], strict=True)),
        "icl_definition": facts["icl"],
        "losses": losses[["checkpoint", "step", "loss", "copy_loss"]].to_dict(orient="records"),
        "probe_tokens": facts["probe_tokens"],
        "run": run.name,
    }


def _show_monitor(found: dict[str, Any]) -> None:
    """A line a checkpoint: the head that shows each pattern most, and the ICL score."""
    cells = []
    for checkpoint, icl in found["icl"].items():
        rows = [row for row in found["rows"] if row["checkpoint"] == checkpoint]
        best = [max(rows, key=lambda row, name=name: row[name]) for name in PATTERNS]
        heads = [
            f"{row['layer']}.{row['head']} {digits(row[name])}"
            for row, name in zip(best, PATTERNS, strict=True)
        ]
        cells.append((checkpoint, *heads, digits(icl)))
    headings = {"checkpoint": "left"} | {n.replace("_", " "): "left" for n in PATTERNS}
    say_table({**headings, "ICL": "right"}, cells)
    if found["icl_definition"]:
        say(f"ICL: {found['icl_definition']}")


app.command()(heads_influence.influence)
app.command()(heads_analyse.analyse)
app.command()(heads_motifs.motifs)
for command in (
    heads_study.study,
    heads_study.intervene,
    heads_study.augment,
    heads_study.mixtures,
):
    app.command()(command)
