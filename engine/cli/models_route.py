"""`headwater models route`: train and judge routers of questions, or rank models for one."""

from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.console import Reporter, digits, note, say, say_json, say_table
from engine.cli.parameters import JsonOption


if TYPE_CHECKING:
    from engine.store import Run

RunOption = Annotated[str, typer.Option("--run", "-r", help="Run that holds the map.")]
QuestionOption = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Rank the models for this question; trains nothing."),
]
BudgetOption = Annotated[
    int | None, typer.Option(help="With --question: rank models of at most so many parameters.")
]
TopOption = Annotated[int, typer.Option(help="With --question: models shown.")]
VariantOption = Annotated[str, typer.Option(help="Embeddings that the router reads.")]
SeedsOption = Annotated[int, typer.Option(help="Trainings of every fold.")]


def route(
    *,
    run: RunOption,
    question: QuestionOption = None,
    max_parameters: BudgetOption = None,
    top: TopOption = 10,
    variant: VariantOption = "able",
    seeds: SeedsOption = 3,
    as_json: JsonOption = False,
) -> None:
    """Route questions to models by frozen embeddings, beside EmbedLLM and its baselines.

    Every question is tested once, by routers trained on others; models are added by their embedding
    alone, and held against retraining. 239 models and 624 questions take about twenty minutes on
    one core.
    """
    from engine.store import open_run

    opened = open_run(run)  # an unknown run is said before anything slow is loaded
    if question is not None:
        _rank(opened, question, max_parameters, top, as_json=as_json)
        return
    from engine.pipeline.models_routing import RoutingSettings, route_models

    _show(route_models(run, RoutingSettings(variant=variant, seeds=seeds), Reporter()), as_json)


def _show(done: "Run", as_json: bool) -> None:
    """Accuracy over all questions and over those that embeddings were not made with."""
    from engine.store import read_table

    rows = read_table(done, "model_routing_results")
    if as_json:
        say_json({"run": done.name, "results": rows.to_dict("records")})
        return
    chosen = rows[rows["group"].isin(("all", "held_out", "new_models:k=0"))]
    headings = {"router": "left", "group": "left", "metric": "left", "value": "right"}
    headings |= {"95 % interval": "left", "n": "right"}
    say_table(
        headings,
        [
            (
                row["router"],
                row["group"],
                row["metric"],
                digits(row["value"]),
                f"{digits(row['low'])} to {digits(row['high'])}",
                digits(row["n"]),
            )
            for row in chosen.to_dict("records")
            if row["metric"] in ("accuracy", "correctness", "over_embedllm")
        ],
    )
    say(str(done.path))


def _rank(run: "Run", text: str, max_parameters: int | None, top: int, *, as_json: bool) -> None:
    """Models for one question."""
    from engine.live.routing import QuestionRouter

    found = QuestionRouter(run).rank(text, max_parameters=max_parameters)
    rows = found.models.head(max(1, top)).to_dict("records")
    if as_json:
        say_json(
            {
                "question": text,
                "models": rows,
                "neighbours": found.neighbours.to_dict("records"),
                "unknown_words": found.unknown_words,
                "single_best": {"model": found.single_best, "predicted": found.expected_best},
                "random": {"predicted": found.expected_random},
            }
        )
        return
    if found.neighbours.empty:
        note(
            "No known question shares a word with this one, so the ranking is that of no question."
        )
    shown = ("predicted", "low", "high", "backing", "accuracy", "n_parameters")
    say_table(
        {"model": "left", **dict.fromkeys(shown, "right")},
        [(row["model"], *(digits(float(row[name])) for name in shown)) for row in rows],
    )
