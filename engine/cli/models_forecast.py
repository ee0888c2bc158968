"""`headwater models forecast` and `select`: tell scores, and whom to adapt, from embeddings."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.console import Reporter, digits, say, say_json, say_table
from engine.cli.parameters import JsonOption


if TYPE_CHECKING:
    from engine.store import Run

RunOption = Annotated[str, typer.Option("--run", "-r", help="Run that holds the map.")]
ScoresOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="CSV with a column `model` or `hub_id` and columns of scores. Accuracies on held-out "
        "questions, by domain, unless given.",
    ),
]
ColumnsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--score", metavar="COLUMN", help="Column of the file; repeat it. All unless given."
    ),
]
ZooOption = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="The zoo; where the catalogue says it lies unless given."),
]
TargetsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--target", metavar="DOMAIN", help="Domain to adapt to; repeat it. All unless given."
    ),
]
AdaptSeedsOption = Annotated[int, typer.Option(help="Adaptations of a root to a target.")]
WorkersOption = Annotated[int, typer.Option(help="Processes, each with one thread.")]
RayOption = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Adapt on a Ray cluster: auto, local or HOST:PORT."),
]
_MEAN = "mean"


def forecast(
    *,
    run: RunOption,
    scores: ScoresOption = None,
    score: ColumnsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell scores of models by ridge regression on embeddings, beside baselines.

    One model is left out at a time, then all of one root, then all of one family: what only the
    first regime can tell is known from siblings. Takes some minutes for 239 models.
    """
    from engine.store import open_run

    open_run(run)  # an unknown run is said before anything slow is loaded
    from engine.pipeline.models_forecast import forecast_scores

    done = forecast_scores(run, scores, score or (), Reporter())
    keys = ("regime", "method")
    _show(done, "model_forecast_results", keys, ("spearman", "pearson", "mae"), as_json=as_json)


def select(
    *,
    run: RunOption,
    zoo: ZooOption = None,
    target: TargetsOption = None,
    seeds: AdaptSeedsOption = 1,
    workers: WorkersOption = 1,
    ray: RayOption = None,
    as_json: JsonOption = False,
) -> None:
    """Adapt every root of a zoo to each target, and say how well embeddings tell the best.

    36 roots and 8 targets take about 20 minutes on one core; every adaptation is kept as it ends,
    so the command goes on where it stopped.
    """
    from engine.store import open_run

    open_run(run)  # an unknown run is said before anything slow is loaded
    from engine.jobs import fan_of
    from engine.pipeline.models_adapting import AdaptSettings
    from engine.pipeline.models_selection import select_models

    settings = AdaptSettings(targets=tuple(target or ()), seeds=seeds)
    folder = None if zoo is None else zoo.expanduser()
    done = select_models(run, folder, settings, fan_of(workers, ray), Reporter())
    keys = ("outcome", "regime", "method")
    _show(
        done, "model_selection_results", keys, ("ndcg@10", "regret@1", "regret@5"), as_json=as_json
    )


def _show(
    run: "Run", table: str, keys: Sequence[str], metrics: Sequence[str], *, as_json: bool
) -> None:
    """Means over targets, a line a way of telling."""
    from engine.store import read_table

    rows = read_table(run, table)
    if as_json:
        say_json({"run": run.name, "results": rows.to_dict("records")})
        return
    means = rows[(rows["target"] == _MEAN) & rows["metric"].isin(metrics)]
    headings = {**dict.fromkeys(keys, "left"), **dict.fromkeys(metrics, "right")}
    lines = []
    for key, own in means.groupby(list(keys), sort=False):
        values = dict(zip(own["metric"], own["value"], strict=True))
        lines.append((*key, *(digits(values.get(metric)) for metric in metrics)))
    say_table(headings, lines)
    say(f"Means over targets: {run.path}")
