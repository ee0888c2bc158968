"""`headwater control` and `headwater study downstream`: multiple choice, and what steers it."""

from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.console import Reporter, digits, say, say_json, say_table
from engine.cli.parameters import DEMO, JsonOption, RunOption


if TYPE_CHECKING:
    import pandas as pd


SetsOption = Annotated[
    str,
    typer.Option(
        metavar="SETS",
        help="Question sets, comma-separated: packaged ones by name, JSONL files, or "
        "hub:OWNER/NAME[/CONFIG][@SPLIT].",
    ),
]
ItemsOption = Annotated[
    int | None,
    typer.Option(min=1, help="Questions of each set, chosen by their hashes; all unless given."),
]


def control(
    *,
    run: RunOption = DEMO,
    sets: SetsOption = "mmlu,commonsense_qa,openbook_qa,siqa",
    items: ItemsOption = None,
    features: Annotated[
        str, typer.Option(help="What the controllers weigh: prototypes, sae or both.")
    ] = "both",
    seeds: Annotated[int, typer.Option(min=1, help="Splits into train, validation, test.")] = 5,
    budget: Annotated[
        int, typer.Option(min=1, help="Most weights of a controller that are not 0.")
    ] = 64,
    as_json: JsonOption = False,
) -> None:
    """Train sparse controllers over prototypes, and over SAE features, on multiple-choice sets.

    An option's score is its log-likelihood plus a weighted sum of what each feature adds to its
    tokens; the backbone stays as it is. Results are of held-out questions. Every answer that a
    controller turned is traced to the prototypes that turned it.
    """
    from engine.store import open_run, read_table

    open_run(run)  # an unknown run is said before anything slow is loaded
    from engine.pipeline.control import ControlStudy, study_control
    from engine.questions import parse_sets

    study = ControlStudy(
        sets=tuple(parse_sets(sets)),
        items=items,
        features=features,
        seeds=seeds,
        max_nonzeros=budget,
    )
    done = study_control(run, study, Reporter())
    results, gains = (read_table(done, f"control_{name}") for name in ("results", "gains"))
    if as_json:
        say_json(
            {
                "run": done.name,
                "results": results.to_dict(orient="records"),
                "gains": gains.to_dict(orient="records"),
                "sae": done.manifest["stages"]["control"]["sae"],
            }
        )
        return
    _show_results(results)
    headings = {"set": "left", "comparison": "left"} | dict.fromkeys(
        ("gain, points", "low", "high", "questions"), "right"
    )
    columns = ["set", "comparison", "gain", "low", "high", "n_questions"]
    say_table(
        headings,
        [
            (name, comparison, *(digits(float(v)) for v in values))
            for name, comparison, *values in gains[columns].itertuples(index=False, name=None)
        ],
    )
    say(str(done.path))


def _show_results(results: "pd.DataFrame") -> None:
    """Means over split seeds."""
    means = results.groupby(["set", "condition"], as_index=False)[["accuracy", "nonzeros"]].mean()
    headings = {"set": "left", "condition": "left", "accuracy": "right", "weights": "right"}
    rows = means.itertuples(index=False, name=None)
    say_table(headings, [(s, c, f"{a:.3f}", digits(float(n))) for s, c, a, n in rows])


def downstream(
    *,
    run: RunOption = DEMO,
    dense_run: Annotated[str, typer.Option(metavar="RUN", help="Run of the matched dense twin.")],
    sets: SetsOption = "mmlu,commonsense_qa,openbook_qa,siqa,piqa,logiqa",
    items: ItemsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let a model and its dense twin answer multiple-choice sets, by log-likelihood per byte.

    The paired interval of their difference stands beside the accuracy that guessing would give.
    """
    from engine.store import open_run, read_table

    open_run(run)  # an unknown run is said before anything slow is loaded
    open_run(dense_run)
    from engine.pipeline.downstream import DownstreamStudy, study_downstream
    from engine.questions import parse_sets

    study = DownstreamStudy(dense_run=dense_run, sets=tuple(parse_sets(sets)), items=items)
    done = study_downstream(run, study, Reporter())
    table = read_table(done, "downstream")
    if as_json:
        say_json(table.to_dict(orient="records"))
        return
    shown = ["accuracy", "low", "high", "chance", "difference", "difference_low", "difference_high"]
    headings = {"set": "left", "model": "left"} | dict.fromkeys(
        (name.replace("_", " ") for name in shown), "right"
    )
    rows = table[["set", "model", *shown]].itertuples(index=False, name=None)
    say_table(headings, [(s, m, *(digits(float(v)) for v in values)) for s, m, *values in rows])
    say(str(done.path))
