"""`headwater models map`: draw a map of models."""

from typing import Annotated

import typer

from engine.cli.console import Reporter, digits, say, say_json, say_table
from engine.cli.parameters import JsonOption


MapRunOption = Annotated[str, typer.Option("--run", "-r", help="Run that holds the map.")]
VariantsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--variant", metavar="NAME", help="Way of embedding; repeat it. All unless given."
    ),
]
_TABLE = "model_layout_results"


def draw(
    *,
    run: MapRunOption,
    variant: VariantsOption = None,
    seed: Annotated[int, typer.Option(help="Seed of UMAP and t-SNE.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Lay out every embedded model by UMAP, t-SNE and principal components.

    Says of each picture how many of the embeddings' neighbourhoods it keeps. Models that were
    added get places of their own among the others, which move; `add` itself moves none.
    """
    from engine.store import open_run, read_table

    open_run(run)  # an unknown run is said before anything slow is loaded
    from engine.pipeline.models_map import write_layouts

    done = write_layouts(run, variant or (), seed=seed, progress=Reporter())
    rows = read_table(done, _TABLE).to_dict("records")
    if as_json:
        say_json({"run": done.name, "layouts": rows})
        return
    shown = ("trustworthiness", "continuity", "neighbours_kept", "n_neighbours", "n")
    headings = {"variant": "left", "layout": "left", **dict.fromkeys(shown, "right")}
    say_table(
        headings,
        [(r["variant"], r["layout"], *(digits(float(r[name])) for name in shown)) for r in rows],
    )
    say(str(done.path))
