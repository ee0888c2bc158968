"""`headwater retrain-check`: attribution held against retraining."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from engine.cli.console import Reporter, digits, note, say, say_json, say_table
from engine.cli.options import with_config
from engine.cli.parameters import DryRunOption, JsonOption
from engine.errors import ConfigError
from engine.pipeline.retraining_settings import RetrainConfig


if TYPE_CHECKING:
    from engine.pipeline.retraining import Study

Stage = Literal["train", "score", "removal", "all"]
USUAL_SUBSETS = 50
"""Subsets below which the intervals are said to be wide."""


@with_config(RetrainConfig, "Settings of the study")
def retrain_check(
    *,
    config: RetrainConfig,
    run: Annotated[
        str, typer.Option("--run", "-r", help="Name of the study's run, a folder in the cache.")
    ] = "study",
    stage: Annotated[
        Stage,
        typer.Option(help="train the subsets, score the methods, train the removals, or all."),
    ] = "all",
    methods: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Methods to score, comma-separated; all unless named."),
    ] = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Hold attribution against retraining: a small model trained on random halves of a pool.

    The loss of held-out queries after each retraining is compared with the summed scores of the
    sequences it was trained on (the linear datamodeling score), beside the noise ceiling of two
    seeds; then the sequences that methods rank first are removed and the model is trained again.
    Every retraining is kept as it ends: a stopped study goes on where it stopped.
    """
    if dry_run:
        say_json(config)
        return
    from engine.corpus.build import open_corpus

    open_corpus(config.corpus)  # a missing corpus is said before anything slow is loaded
    named = _named(methods)
    if config.subsets < USUAL_SUBSETS:
        note(f"{config.subsets} subsets are fewer than {USUAL_SUBSETS}: intervals will be wide.")
    from engine.pipeline.retraining import open_study, retrain_subsets, train_study_model

    reporter = Reporter()
    study = open_study(config, run, reporter)
    train_study_model(study)
    if stage in ("train", "all"):
        retrain_subsets(study, reporter)
    if stage == "train":
        say(str(study.path))
        return
    found = _judged(study, named, reporter, removal=stage in ("removal", "all"))
    if as_json:
        say_json(found)
        return
    _show(found)
    say(str(study.path))


def _named(typed: str | None) -> list[str] | None:
    """Names of `errors,ekfac`; unknown ones are refused before anything is trained."""
    if typed is None:
        return None
    from engine.influence.methods import method_named

    names = [name.strip() for name in typed.split(",") if name.strip()]
    if not names:
        raise ConfigError(f"--methods {typed!r} names no method; write --methods path,ekfac.")
    return [method_named(name).name for name in names]


def _judged(
    study: "Study", methods: list[str] | None, reporter: Reporter, *, removal: bool
) -> dict[str, Any]:
    """Score, judge and, where asked, retrain without what was ranked first; the figures."""
    from engine.pipeline.retraining_index import index_study_pool
    from engine.pipeline.retraining_judge import judge, write_judgement
    from engine.pipeline.retraining_removal import retrain_removals
    from engine.pipeline.retraining_scores import score_methods
    from engine.pipeline.retraining_summary import summary

    index_study_pool(study, reporter)
    for sentence in score_methods(study, methods, reporter):
        note(sentence)
    judgement = judge(study)
    if removal:
        retrain_removals(study, judgement.default, reporter)
    return summary(write_judgement(study, judgement))


def _show(found: dict[str, Any]) -> None:
    headings = {"method": "left", "LDS": "right", "95 % interval": "left"}
    headings |= {"LDS in domain": "right", "interval": "left", "found in 10": "right"}
    say_table(headings, [_row(row) for row in found["methods"]])
    ceilings = ", ".join(f"{scope} {digits(v)}" for scope, v in found["ceiling"].items())
    say(
        f"{found['subsets']} subsets, {found['seeds']} seeds, {found['queries']} queries; "
        f"noise ceiling: {ceilings}. Default: {found['default']}."
    )
    for row in found["removal"]:
        say(
            f"Removing the {row['part']} of {row['method']}: {digits(row['change'])} nats a query "
            f"against a random removal ({digits(row['low'])} to {digits(row['high'])})."
        )


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    cells = [row["method"]]
    for scope in ("all", "domain"):
        figures = row[scope]
        cells += [digits(figures["lds"]), f"{digits(figures['low'])} to {digits(figures['high'])}"]
    planted = row["planted"].get("repeated", {})
    return (*cells, digits(planted.get("recall_at_10")))
