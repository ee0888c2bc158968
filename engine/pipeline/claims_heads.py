"""The claims on attention heads: which samples form them, and what changing these does."""

from collections.abc import Mapping
from functools import partial

from engine.mda.units import UNITS
from engine.pipeline import claims_heads_influence as influence, claims_heads_study as study
from engine.pipeline.claims import ClaimDefinition
from engine.pipeline.claims_heads_speed import DEFINITIONS as SPEED, PAPER
from engine.pipeline.claims_prism import OURS


HEADS = "assets/heads"
KINDS = {"induction": "induction", "previous_token": "previous-token"}
"""Kinds of heads that a study has arms for, as they stand in sentences."""
_HEAD = {"induction": "an induction head", "previous-token": "a previous-token head"}
_STEPS = "optimiser steps by which the head forms later"
_SHARE = "share of attention, mean over the window"
_LATER = "(Added after the delays were seen, which a head that forms early has none of.)"
_RANDOM_TO_TOP = "largest mean effect of a random arm ÷ smallest of a top arm, in size"


def study_claims(
    prefix: str,
    folder: str,
    command: str,
    where: str,
    *,
    kinds: Mapping[str, str] = KINDS,
    whole: bool = True,
) -> list[ClaimDefinition]:
    """The claims of one study.

    Args:
        prefix: begins the ids after `mda.`.
        folder: the study's run, relative to the project.
        command: makes the study anew.
        where: what the study trains on, as the end of a sentence.
        kinds: kinds of heads that it has arms for, as `KINDS`.
        whole: whether it has arms that replace samples or insert synthetic ones, and several heads
            of a kind in a seed.
    """
    define = partial(ClaimDefinition, paper=PAPER, paper_value=None, command=command)
    found = [_emergence(define, prefix, folder, where, kinds)]
    for unit, kind in kinds.items():
        own = f"{prefix}{unit.replace('_', '-')}"
        found += _arms(define, own, folder, unit, kind)
        found += [_replacement(define, own, folder, unit, kind)] if whole else []
    for make in (_synthetic, _spread, _transfer, _consequences):
        if whole or make in (_spread, _consequences):
            found += make(define, prefix, folder)
    return found


Define = partial[ClaimDefinition]


def _emergence(
    define: Define, prefix: str, folder: str, where: str, kinds: Mapping[str, str]
) -> ClaimDefinition:
    metrics = {unit: UNITS[unit].metric for unit in kinds}
    named = " and ".join(_HEAD[kind] for kind in kinds.values())
    verb = "forms" if len(kinds) == 1 else "form"
    return define(
        id=f"mda.{prefix}emergence",
        paper=OURS,
        claim=f"{named[0].upper()}{named[1:]} {verb} in every seed, {where}.",
        unit="share of seeds and kinds of heads",
        criterion="value >= 1",
        evidence=f"{folder}/head_scores.parquet",
        measure=partial(study.measure_emergence, kinds=metrics),
    )


def _arms(define: Define, prefix: str, folder: str, unit: str, kind: str) -> list[ClaimDefinition]:
    """What deleting and copying a head's top samples does to it, and its controls."""
    of_effects = partial(define, evidence=f"{folder}/head_effects.parquet")
    deleted = {"arm": "delete_top", "unit": unit, "random": "delete_random"}
    copied = {"arm": "augment_top", "unit": unit, "random": "augment_random"}
    return [
        of_effects(
            id=f"mda.{prefix}-delete",
            claim=f"Without the samples of most influence on it, the {kind} head forms later.",
            unit=_STEPS,
            criterion="low > 0",
            measure=partial(study.measure_delay, **deleted),
        ),
        of_effects(
            id=f"mda.{prefix}-delete-score",
            claim=f"Its score is lower while it forms without them: the {kind} head's. {_LATER}",
            unit=_SHARE,
            criterion="high < 0",
            measure=partial(study.measure_score, **deleted),
        ),
        of_effects(
            id=f"mda.{prefix}-augment",
            claim=f"With copies of these samples, the {kind} head forms earlier.",
            unit=_STEPS,
            criterion="high < 0",
            measure=partial(study.measure_delay, **copied),
        ),
        of_effects(
            id=f"mda.{prefix}-augment-score",
            claim=f"Its score is higher while it forms with them: the {kind} head's. {_LATER}",
            unit=_SHARE,
            criterion="low > 0",
            measure=partial(study.measure_score, **copied),
        ),
        *_controls(define, prefix, folder, unit, kind),
    ]


def _controls(
    define: Define, prefix: str, folder: str, unit: str, kind: str
) -> list[ClaimDefinition]:
    """What as many random samples do to it."""
    of_effects = partial(define, evidence=f"{folder}/head_effects.parquet")
    return [
        of_effects(
            id=f"mda.{prefix}-random",
            claim=f"Deleting or copying as many random samples does not move the {kind} head: both "
            "intervals hold 0.",
            unit=_RANDOM_TO_TOP,
            criterion="control.delete_random_low <= 0 and control.delete_random_high >= 0 "
            "and control.augment_random_low <= 0 and control.augment_random_high >= 0",
            measure=partial(study.measure_random, unit=unit),
        ),
        of_effects(
            id=f"mda.{prefix}-specific",
            claim=f"Random samples move the {kind} head less than half as much as top samples do. "
            f"{_LATER}",
            unit=_RANDOM_TO_TOP,
            criterion="value < 0.5",
            measure=partial(study.measure_random, unit=unit),
        ),
    ]


def _replacement(define: Define, prefix: str, folder: str, unit: str, kind: str) -> ClaimDefinition:
    """What the top ones of a later interval do in the places of the top samples."""
    return define(
        id=f"mda.{prefix}-replacement",
        claim=f"In the places of the top samples, the top samples of a later interval serve "
        f"the {kind} head better than random samples of it.",
        unit=f"{_SHARE}, replaced by top − by random samples",
        criterion="low > 0",
        evidence=f"{folder}/head_scores.parquet",
        measure=partial(
            study.measure_pair, unit=unit, arms=("replace_top", "replace_random"), measure="score"
        ),
    )


def _synthetic(define: Define, prefix: str, folder: str) -> list[ClaimDefinition]:
    of_scores = partial(define, evidence=f"{folder}/head_scores.parquet")
    return [
        of_scores(
            id=f"mda.{prefix}synthetic-gain",
            claim="Synthetic samples made from the motifs of the top samples raise the induction "
            "score. (The paper, at 14 million parameters; 9.8 to 15.8 % at four sizes.)",
            paper_value=12.3,
            unit="percent of the baseline's score at the end of the window",
            criterion="low > 0",
            measure=partial(study.measure_gain, unit="induction"),
        ),
        of_scores(
            id=f"mda.{prefix}synthetic-control",
            claim="They raise it more than samples of the same tokens without the motifs.",
            unit=f"{_SHARE}, with − without motifs",
            criterion="low > 0",
            measure=partial(
                study.measure_pair,
                unit="induction",
                arms=("synthetic", "synthetic_control"),
                measure="score",
            ),
        ),
    ]


def _spread(define: Define, prefix: str, folder: str) -> list[ClaimDefinition]:
    """How influence lies over samples."""
    of_tails = partial(define, evidence=f"{folder}/head_tails.parquet")
    return [
        of_tails(
            id=f"mda.{prefix}top-share",
            claim="Influence on the induction head is heavy-tailed: the largest tenth of the "
            "samples that raise it carries more of their sum than of exponential values. (The "
            "paper: up to about half.)",
            paper_value=0.5,
            unit="share of the summed positive influence",
            criterion="low > control.exponential",
            measure=partial(influence.measure_top_share, unit="induction"),
        ),
        of_tails(
            id=f"mda.{prefix}exponent",
            claim="Its tail is like a power law: in most seeds a log-normal does not fit it "
            "better.",
            unit="exponent of the power law",
            criterion="control.lognormal_preferred < 0.5",
            measure=partial(influence.measure_exponent, unit="induction"),
        ),
        define(
            id=f"mda.{prefix}planted",
            paper=OURS,
            claim="Rows in which a random segment repeats are more frequent among the samples of "
            "most influence on the induction head than among all.",
            unit="share among the top tenth ÷ share among all",
            criterion="low > 1",
            evidence=f"{folder}/head_tags.parquet",
            measure=partial(influence.measure_planted, unit="induction"),
        ),
        define(
            id=f"mda.{prefix}structure",
            claim="So is structured text among natural rows: repeats, markup, LaTeX, tables, "
            "lists, keys with values, templates.",
            unit="share among the top tenth ÷ share among all",
            criterion="low > 1",
            evidence=f"{folder}/head_samples.parquet",
            measure=partial(influence.measure_structure, unit="induction"),
        ),
    ]


def _transfer(define: Define, prefix: str, folder: str) -> list[ClaimDefinition]:
    """What changing an induction head's samples does to other heads."""
    return [
        define(
            id=f"mda.{prefix}transfer",
            claim="Acting on an induction head's samples moves other induction heads several times "
            "as much as heads that are none.",
            paper_value=10,
            unit="mean size of the effect on heads of the kind ÷ on others",
            criterion="low > 1",
            evidence=f"{folder}/head_scores.parquet",
            measure=partial(study.measure_transfer, unit="induction"),
        )
    ]


def _consequences(define: Define, prefix: str, folder: str) -> list[ClaimDefinition]:
    """What changing an induction head's samples does beside it."""
    of_losses = partial(define, evidence=f"{folder}/head_losses.parquet")
    return [
        of_losses(
            id=f"mda.{prefix}icl-coupling",
            claim="In-context learning goes with the induction head: over arms, the more the score "
            "rises, the more negative the in-context score becomes.",
            unit="correlation of the two changes",
            criterion="high < 0",
            measure=partial(study.measure_coupling, unit="induction"),
        ),
        of_losses(
            id=f"mda.{prefix}general-loss",
            claim="Copies of an induction head's top samples do not harm the loss on natural "
            "text: it rises by 1 % at most.",
            unit="percent of the baseline's loss, mean over the window",
            criterion="high <= 1",
            measure=partial(study.measure_loss, unit="induction"),
        ),
    ]


def _larger(folder: str, command: str) -> list[ClaimDefinition]:
    """The claims of synthetic samples at a larger size, made from a smaller decoder's samples."""
    define = partial(ClaimDefinition, paper=PAPER, paper_value=None, command=command)
    own = define(
        id="mda.larger-synthetic-own",
        claim="Synthetic samples from a smaller decoder's motifs serve a larger one at least as "
        "well as copies of its own top samples: at most 0.02 less of the score.",
        unit=f"{_SHARE}, synthetic − own top samples",
        criterion="low > -0.02",
        evidence=f"{folder}/head_scores.parquet",
        measure=partial(
            study.measure_pair, unit="induction", arms=("synthetic", "augment_top"), measure="score"
        ),
    )
    return [*_synthetic(define=define, prefix="larger-", folder=folder), own]


DEFINITIONS: list[ClaimDefinition] = [
    *study_claims(
        "",
        HEADS,
        "headwater heads study --config docs/heads.json --run heads",
        "in a two-layer decoder on source code and rows that repeat random segments",
    ),
    *_larger(
        "assets/heads-large",
        "headwater heads augment --config docs/heads-large.json --source docs/heads.json "
        "--run heads-large",
    ),
    *study_claims(
        "natural-",
        "assets/heads-natural",
        "headwater heads study --config docs/heads-natural.json --run heads-natural",
        "on code, XML, LaTeX and documentation with a quarter of rows that repeat random segments",
        kinds={"induction": KINDS["induction"]},
        whole=False,
    ),
    *SPEED,
]
"""The claims on attention heads, in the order of the ledger."""
