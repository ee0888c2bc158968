"""`headwater models relate | neighbours`: which models are related, and who is like whom."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli.console import Reporter, digits, say, say_json, say_table
from engine.cli.parameters import JsonOption


if TYPE_CHECKING:
    import pandas as pd


MapOption = Annotated[str, typer.Option("--run", "-r", help="Run that holds the map.")]
FirstArgument = Annotated[str | None, typer.Argument(metavar="A", help="A model of the map.")]
SecondArgument = Annotated[str | None, typer.Argument(metavar="B", help="Another one.")]
SampleOption = Annotated[
    bool, typer.Option(help="Let every model write texts, for PhyloLM; needs their weights here.")
]
SeedOption = Annotated[int, typer.Option(help="Seed of splits, draws and samples.")]
ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help="A model of the map.")]
VariantOption = Annotated[str, typer.Option(help="Way of embedding: able, paper, square_root ...")]
CountOption = Annotated[int, typer.Option(help="Neighbours at most.")]


def relate(
    a: FirstArgument = None,
    b: SecondArgument = None,
    *,
    run: MapOption,
    sample: SampleOption = True,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Say of two models how alike they are; without names, judge every method over all pairs.

    Without names, the tables of relations are computed: pairs by documented lineage, scores by
    every method, accuracy over ten splits by root and once on held-out roots, parents, trees.
    What is alike depends on input alike; that is no proof of derivation.
    """
    from engine.config import require

    require((a is None) == (b is None), "Name two models, or none to judge all pairs of the map.")
    if a is not None and b is not None:
        _of_two(run, a, b, as_json=as_json)
        return
    from engine.store import open_run, read_table

    open_run(run)  # an unknown run is said before anything slow is loaded
    from engine.atlas.sampling import SamplingSettings
    from engine.pipeline.models_relations import RelationSettings, relate_models

    settings = RelationSettings(sampling=SamplingSettings(seed=seed), sample=sample, seed=seed)
    done = relate_models(run, settings, Reporter())
    results = read_table(done, "model_relation_results")
    if as_json:
        say_json({"run": done.name, "results": results.to_dict("records")})
        return
    _show(results)
    say(str(done.path))


def neighbours(
    model: ModelArgument,
    *,
    run: MapOption,
    variant: VariantOption = "able",
    count: CountOption = 10,
    as_json: JsonOption = False,
) -> None:
    """List the models most like a model, with what is documented of them.

    The percentile is among pairs documented as unrelated; a verdict is evidence of related input
    dependence, not proof of derivation.
    """
    from engine.atlas.verdicts import CAVEAT
    from engine.pipeline.models_neighbours import neighbours as found_of

    found = found_of(run, model, variant, count)
    if as_json:
        say_json(found)
        return
    headings = {"model": "left", "cosine": "right", "percentile among unrelated": "right"}
    headings |= {"evidence": "left", "documented": "left"}
    say_table(
        headings,
        [
            (
                row["model"],
                digits(row["cosine"]),
                digits(row["percentile_unrelated"]),
                row["verdict"],
                row["known_relation"],
            )
            for row in found["neighbours"]
        ],
    )
    say(CAVEAT)


def _of_two(run: str, a: str, b: str, *, as_json: bool) -> None:
    from engine.pipeline.models_neighbours import compare

    found = compare(run, a, b)
    if as_json:
        say_json(found)
        return
    headings = {"method": "left", "alike": "right", "percentile among unrelated": "right"}
    say_table(
        headings | {"evidence": "left"},
        [
            (
                row["method"],
                digits(row["score"]),
                digits(row["percentile_unrelated"]),
                row["verdict"],
            )
            for row in found["comparisons"]
        ],
    )
    say(f"By the documents {b} is to {a}: {found['known_relation']}.")
    say(found["caveat"])


_SHOWN = (
    ("accuracy", "all", "accuracy"),
    ("precision", "all", "precision"),
    ("AUC", "all", "auc"),
    ("twins", "twin", "auc"),
    ("held out", "held_out", "auc"),
    ("its twins", "held_out:twin", "auc"),
)
"""Heading, group and metric of what is printed."""


def _show(results: "pd.DataFrame") -> None:
    """A line a method and classifier."""
    figures: dict[tuple[str, str], dict[tuple[str, str], dict[str, Any]]] = {}
    for row in results.to_dict("records"):
        own = figures.setdefault((row["method"], row["classifier"]), {})
        own[row["group"], row["metric"]] = {str(name): value for name, value in row.items()}
    headings = {"method": "left", "classifier": "left"}
    headings |= {heading: "right" for heading, *_ in _SHOWN}
    say_table(
        headings,
        [
            (
                *key,
                *(
                    digits(own[group, metric]["value"]) if (group, metric) in own else ""
                    for _, group, metric in _SHOWN
                ),
            )
            for key, own in figures.items()
            if key[1] != "none"
        ],
    )
