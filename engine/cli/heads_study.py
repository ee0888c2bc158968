"""`headwater heads study`, `augment`, `intervene` and `mixtures`: runs in which heads form."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli.console import Reporter, digits, note, say, say_json, say_table
from engine.cli.options import read_config, with_config
from engine.cli.parameters import DryRunOption, JsonOption
from engine.pipeline.heads_settings import Action, HeadStudy, Intervention, Side


if TYPE_CHECKING:
    from engine.store import Run


@with_config(HeadStudy, "Settings of the study")
def study(
    *,
    config: HeadStudy,
    run: Annotated[
        str, typer.Option("--run", "-r", help="Name of the study's run, a folder in the cache.")
    ] = "heads-study",
    device: Annotated[str, typer.Option(help="Device, or auto.")] = "auto",
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Train small decoders until heads form, trace these to samples, and train again without them.

    Each seed has a baseline and arms that leave it just before its heads form: top or random
    samples deleted, copied or replaced, synthetic ones inserted. Every part is kept as it ends: a
    stopped study goes on where it stopped, and more seeds or arms are added to what is there.
    """
    if dry_run:
        say_json(config)
        return
    from engine.corpus.build import open_corpus

    open_corpus(config.corpus)  # a missing corpus is said before anything slow is loaded
    from engine.pipeline.heads_study import run_study

    _show(run_study(config, run, device=device, progress=Reporter()), as_json)


def _show(done: "Run", as_json: bool) -> None:
    """The effects of the arms, a line an arm, kind of head and measure; why there are none."""
    from engine.store import read_table

    if not done.has("head_effects"):
        note(_without_effects(done.manifest["stages"]["study"]))
        if as_json:
            say_json([])
        else:
            say(str(done.path))
        return
    effects = read_table(done, "head_effects")
    if as_json:
        say_json(effects.to_dict(orient="records"))
        return
    headings = {"arm": "left", "unit": "left", "measure": "left", "effect": "right"}
    shown = effects[effects["measure"].isin(["score", "delay", "copy_loss"])]
    columns = ["arm", "unit", "measure", "effect", "low", "high"]
    cells = [
        (arm, unit, measure, *(digits(float(value)) for value in values))
        for arm, unit, measure, *values in shown[columns].itertuples(index=False)
    ]
    say_table({**headings, "low": "right", "high": "right"}, cells)
    say(str(done.path))


def _without_effects(facts: dict[str, Any]) -> str:
    """Why a study that is done shows no effects."""
    if facts["emerged"]:
        return (
            "This study has no arms of a kind of head, so there are no effects; "
            "name kinds with --units and arms with --arms."
        )
    seeds, steps = facts["seeds"], facts["study"]["longest_steps"]
    return (
        f"No induction head formed in {seeds} seed{'s' if seeds > 1 else ''} within {steps} steps; "
        "raise --longest-steps or --repeat-share (the scores of the baselines are kept)."
    )


@with_config(HeadStudy, "Settings of the larger study")
def augment(
    *,
    config: HeadStudy,
    source: Annotated[
        Path, typer.Option(metavar="FILE", help="Settings of the study that gives the motifs.")
    ],
    run: Annotated[
        str, typer.Option("--run", "-r", help="Name of the new run, a folder in the cache.")
    ] = "heads-augment",
    device: Annotated[str, typer.Option(help="Device, or auto.")] = "auto",
    as_json: JsonOption = False,
) -> None:
    """Insert synthetic samples, made from the motifs of one study, in the training of another size.

    Beside them: the larger model's own top samples, random ones, and synthetic samples without the
    motifs. Name the same file as --config and --source to stay at the source's size.
    """
    from engine.corpus.build import open_corpus

    open_corpus(config.corpus)  # a missing corpus is said before anything slow is loaded
    from engine.pipeline.heads_study import run_study

    origin = read_config(source, HeadStudy)
    done = run_study(config, run, source=origin, device=device, progress=Reporter())
    _show(done, as_json)


@with_config(HeadStudy, "Settings of the study")
def intervene(
    *,
    config: HeadStudy,
    seed: Annotated[int, typer.Option(help="Seed of the study.", min=0)] = 0,
    action: Annotated[Action, typer.Option(help="What is done with the samples.")] = "delete",
    side: Annotated[
        Side, typer.Option(help="Samples that raise the head most, lower it most, or random ones.")
    ] = "top",
    unit: Annotated[str, typer.Option(help="Kind of head whose probe is asked.")] = "induction",
    head: Annotated[
        str | None, typer.Option(metavar="L.H", help="Head; the one that formed most if unset.")
    ] = None,
    share: Annotated[float, typer.Option(help="Share of the window's samples.")] = 0.1,
    device: Annotated[str, typer.Option(help="Device, or auto.")] = "auto",
    as_json: JsonOption = False,
) -> None:
    """Train one arm of a study's seed and say what it did to the head, against the baseline.

    Baseline and influence are taken from the study's folder, or made there first.
    """
    from engine.mda.blocks import parse_head

    wanted = Intervention(
        action=action,
        side=side,
        unit=unit,
        head=None if head is None else parse_head(head),
        share=share,
    )
    from engine.corpus.build import open_corpus

    open_corpus(config.corpus)  # a missing corpus is said before anything slow is loaded
    from engine.pipeline.heads_intervene import intervene as change

    found = change(config, seed, wanted, device=device, progress=Reporter())
    if as_json:
        say_json(found)
        return
    say(f"Head {found['head']}, steps {found['window'][0]} to {found['window'][1]}:")
    cells = [(name, digits(value)) for name, value in found["effects"].items()]
    say_table({f"{action} {found['n']} {side} samples": "left", "effect": "right"}, cells)


@with_config(HeadStudy, "Settings of everything but the rows")
def mixtures(
    *,
    config: HeadStudy,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="JSON list: name, domain_weights, repeat_share.")
    ],
    run: Annotated[
        str, typer.Option("--run", "-r", help="Run of a study, which the table becomes part of.")
    ] = "heads-study",
    device: Annotated[str, typer.Option(help="Device, or auto.")] = "auto",
    as_json: JsonOption = False,
) -> None:
    """See whether heads form at all, by what the training rows are made of.

    One baseline a mixture and seed, trained until heads formed or the longest run is over.
    """
    from engine.cli.heads_mixture_file import read_mixtures

    named = read_mixtures(file)  # before anything slow is loaded
    from engine.pipeline.heads_mixtures import try_mixtures
    from engine.store import read_table

    done = try_mixtures(config, named, run, device=device, progress=Reporter())
    table = read_table(done, "head_mixtures")
    measured = ["tokens_seen", "prefix_matching", "previous_token", "copy_loss"]
    last = table.groupby(["mixture", "seed"], sort=False)[measured].last().reset_index()
    if as_json:
        say_json(last.to_dict(orient="records"))
        return
    headings = {"mixture": "left", "seed": "right", "M tokens": "right"}
    headings |= {name.replace("_", " "): "right" for name in measured[1:]}
    cells = [
        (name, str(seed), f"{tokens / 1e6:.1f}", *(digits(float(value)) for value in values))
        for name, seed, tokens, *values in last.itertuples(index=False)
    ]
    say_table(headings, cells)
    say(str(done.path))
