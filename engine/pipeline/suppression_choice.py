"""Choosing a setting: order, size and strength, by a rule, on continuations of training prompts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.live.results import Suppression
from engine.pipeline.suppression_figures import Condition, sweep_rows
from engine.pipeline.suppression_finding import Found
from engine.pipeline.suppression_generating import Bench
from engine.pipeline.suppression_prompts import Prompt
from engine.pipeline.suppression_settings import SuppressionStudy
from engine.provenance import fingerprint


@dataclass(frozen=True)
class Setting:
    """What may be suppressed, and what that did on training prompts."""

    price: float
    """Whose order is taken."""
    size: int
    strength: float
    drop: float
    ratio: float
    ratio_high: float
    """Upper end of the interval of the perplexity ratio."""
    rule: str = ""


def sizes_of(study: SuppressionStudy, found: Found, price: float) -> list[int]:
    """Sizes to try: every one that the order can fill, and the whole order."""
    largest = len(found.orders[price])
    return sorted({min(size, largest) for size in study.sizes if largest})


@dataclass(frozen=True)
class Dose:
    """What one setting of a sweep suppresses."""

    condition: str
    """suppressed or random."""
    size: int
    strength: float
    prototypes: tuple[int, ...]


def sweep(
    bench: Bench, split: str, prompts: Sequence[Prompt], base: Condition, doses: Sequence[Dose]
) -> list[dict[str, Any]]:
    """Rows of `suppression_sweep`: every dose on the same prompts and seeds.

    Args:
        bench: What generates and scores.
        split: Of the prompts.
        prompts: One a generation.
        base: The same with nothing suppressed.
        doses: What is suppressed in turn.
    """
    rows: list[dict[str, Any]] = []
    documents = [prompt.doc_id for prompt in prompts]
    for dose in doses:
        mark = fingerprint(dose.prototypes)
        step = f"sweep-{split}-{dose.condition}-{dose.size}-{dose.strength:g}-{mark}"
        suppression = Suppression(dose.prototypes, dose.strength)
        figures = bench.measured(step, prompts, suppression)
        shared = {
            "split": split,
            "condition": dose.condition,
            "set_size": dose.size,
            "strength": dose.strength,
        }
        rows += sweep_rows(bench.scorers.names, base, Condition.of(documents, figures), shared)
    return rows


def tried(rows: Sequence[dict[str, Any]], price: float, scorer: str) -> list[Setting]:
    """Settings of one order, from rows of the sweep on training prompts and the first scorer."""
    return [
        Setting(
            price,
            row["set_size"],
            row["strength"],
            row["drop"] or 0.0,
            row["perplexity_ratio"],
            row["perplexity_ratio_high"],
        )
        for row in rows
        if row["scorer"] == scorer and row["condition"] == "suppressed"
    ]


def choose(known: Sequence[Setting], study: SuppressionStudy) -> Setting:
    """The setting to report.

    The rule, in order: among settings whose fall reaches `wanted_drop` and the whole interval of
    whose perplexity ratio stays within the margin, the largest fall; else among those whose fall
    reaches it, the smallest ratio; else among those within the margin, the largest fall; else the
    smallest ratio.
    """
    far = [s for s in known if s.drop >= study.wanted_drop]
    near = [s for s in known if s.ratio_high <= 1 + study.margin]
    for rule, group in (
        ("largest fall among settings that fall far enough within the margin", _both(far, near)),
        ("smallest perplexity ratio among settings that fall far enough", far),
        ("largest fall within the margin, where none falls far enough", near),
        ("smallest perplexity ratio, where none stays within the margin", list(known)),
    ):
        if group:
            by_fall = rule.startswith("largest")
            best = max(group, key=lambda s: (s.drop if by_fall else -s.ratio, -s.size))
            return replace(best, rule=rule)
    raise ValueError("no setting was tried")


def _both(far: Sequence[Setting], near: Sequence[Setting]) -> list[Setting]:
    return [setting for setting in far if setting in near]
