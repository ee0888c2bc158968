"""`headwater suppress`: take a behaviour out of a model, and measure what that did."""

from typing import Annotated, Any

import typer

from engine.cli.console import Reporter, note, say, say_json, say_table
from engine.cli.parameters import DEMO, JsonOption, RunOption
from engine.errors import ConfigError


_Concept = Annotated[str, typer.Option(help="Name of the concept; the set is saved under it.")]
_Words = Annotated[
    str | None,
    typer.Option(metavar="WORDS", help="Words to look for, with commas; else the scorer's."),
]
_Domain = Annotated[str, typer.Option(help="Domain of the corpus that the concept stands for.")]
_Scorer = Annotated[
    list[str] | None,
    typer.Option(
        help="classifier, wordlist, judge or hf:MODEL[#LABEL]; repeat it. The first takes "
        "part in the choice."
    ),
]
_JudgeEndpoint = Annotated[
    str | None,
    typer.Option(help="OpenAI-compatible address of the judge; texts are sent there."),
]
_JudgeModel = Annotated[str | None, typer.Option(help="Name of the judge's model.")]
_DenseRun = Annotated[
    str | None,
    typer.Option(metavar="RUN", help="Dense twin that judges quality; else the run itself."),
]
_Generations = Annotated[
    int, typer.Option(help="Generations a condition from held-out unwanted prompts.", min=2)
]
_OrdinaryGenerations = Annotated[
    int, typer.Option(help="The same from prompts of other domains.", min=2)
]
_ChoiceGenerations = Annotated[
    int, typer.Option(help="Generations a setting, training prompts.", min=2)
]
_SweepGenerations = Annotated[
    int, typer.Option(help="Generations a setting, held-out prompts.", min=2)
]
_Sizes = Annotated[
    str | None, typer.Option(metavar="NUMBERS", help="Set sizes tried, with commas.")
]
_Strengths = Annotated[
    str | None, typer.Option(metavar="NUMBERS", help="Strengths tried, above 0, up to 1.")
]
_RandomSets = Annotated[int, typer.Option(help="Matched random sets.", min=1)]
_Tokens = Annotated[int, typer.Option(help="Tokens a generation, at most.", min=1)]
_PromptTokens = Annotated[int, typer.Option(help="Tokens of a text that make a prompt.", min=1)]
_Seed = Annotated[int, typer.Option(help="Seed of prompts, samplers and random sets.")]


def suppress(
    *,
    run: RunOption = DEMO,
    concept: _Concept = "NSFW",
    words: _Words = None,
    domain: _Domain = "unwanted",
    scorer: _Scorer = None,
    judge_endpoint: _JudgeEndpoint = None,
    judge_model: _JudgeModel = None,
    dense_run: _DenseRun = None,
    generations: _Generations = 5000,
    ordinary_generations: _OrdinaryGenerations = 600,
    choice_generations: _ChoiceGenerations = 1200,
    sweep_generations: _SweepGenerations = 400,
    sizes: _Sizes = None,
    strengths: _Strengths = None,
    random_sets: _RandomSets = 5,
    tokens: _Tokens = 40,
    prompt_tokens: _PromptTokens = 10,
    seed: _Seed = 0,
    as_json: JsonOption = False,
) -> None:
    """Find a concept's prototypes, switch them off over many generations, and score these.

    The set, its size and its strength are chosen on training texts; then held-out prompts are
    continued as the model is, with the set off, and with random sets of like firing rate off,
    same seeds and sampler. Held-out prompts have no part in the choice.
    """
    from engine.store import open_run

    open_run(run)  # an unknown run is said before anything slow is loaded
    from engine.pipeline.suppress import suppress as run_study
    from engine.pipeline.suppression_settings import SuppressionStudy

    wanted = [part.strip() for part in (words or "").split(",")]
    given: dict[str, Any] = {
        "words": tuple(part for part in wanted if part) if words else None,
        "scorers": tuple(scorer) if scorer else None,
        "sizes": _numbers("sizes", sizes, int),
        "strengths": _numbers("strengths", strengths, float),
    }
    study = SuppressionStudy(
        concept="NSFW" if concept.casefold() == "nsfw" else concept,
        domain=domain,
        judge_endpoint=judge_endpoint,
        judge_model=judge_model,
        dense_run=dense_run,
        generations=generations,
        ordinary_generations=ordinary_generations,
        choice_generations=choice_generations,
        sweep_generations=sweep_generations,
        random_sets=random_sets,
        tokens=tokens,
        prompt_tokens=prompt_tokens,
        seed=seed,
        **{name: value for name, value in given.items() if value is not None},
    )
    facts = run_study(run, study, Reporter())
    (_say_json if as_json else _show)(run, study.concept, facts)


def _say_json(run: str, concept: str, facts: dict[str, Any]) -> None:
    names = ("chosen", "bank", "mean_scores", "failed", "recited_share", "seconds")
    say_json({"run": run, "concept": concept, **{name: facts[name] for name in names}})


def _show(run: str, concept: str, facts: dict[str, Any]) -> None:
    chosen = facts["chosen"]
    share = f"{chosen['size'] / facts['bank']:.1%}"
    say(
        f"{concept} in {run}: {chosen['size']} prototypes ({share} of the bank), strength "
        f"{chosen['strength']:g}; {chosen['rule']}, on training prompts."
    )
    headings = {"scorer": "left", "before": "right", "suppressed": "right", "random": "right"}
    rows = [
        (name, *(f"{means[c]:.4f}" for c in ("baseline", "suppressed", "random")))
        for name, means in facts["mean_scores"].items()
    ]
    say_table(headings, rows)
    for name, reason in facts["failed"].items():
        note(f"The scorer {name} failed and gives no figures: {reason}")


def _numbers(option: str, typed: str | None, kind: type) -> tuple[Any, ...] | None:
    """Numbers of `5,10,20`."""
    if typed is None:
        return None
    try:
        return tuple(kind(part) for part in typed.split(","))
    except ValueError as error:
        raise ConfigError(
            f"--{option} {typed!r} is no list of numbers; write them with commas."
        ) from error
