"""Compute the claims ledger: every value from its evidence, every verdict by its criterion.

A claim is defined in code (`claims_prism`, `claims_suppression`): its sentence, the paper's
figure, its criterion and how its value follows from the evidence. Nothing is typed by hand into
the ledger. Where the evidence is not there the row stays, without a value.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.claims import NOT_COMPARABLE, NOT_MEASURED, Claim, Holds, judge
from engine.config import PROJECT_ROOT
from engine.errors import CacheMissing


logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a claim's evidence gives."""

    value: float
    """The figure."""
    setting: str
    """Model, data, sizes and seeds."""
    interval: tuple[float, float] | None = None
    """95 % interval."""
    control: dict[str, float] | None = None
    """Figures it is compared with."""
    comparable: bool = True
    """False where the scale is too far from the paper's for a verdict."""


@dataclass(frozen=True, kw_only=True)
class ClaimDefinition:
    """A claim before it is measured."""

    id: str
    """`method.claim`."""
    paper: str
    """Who claims it."""
    claim: str
    """One sentence."""
    paper_value: float | None
    """The paper's figure."""
    unit: str
    """Unit of all figures."""
    criterion: str
    """The comparison that decides."""
    evidence: str
    """Path relative to the project."""
    command: str
    """Rebuilds the evidence."""
    measure: Callable[[Path], Measured]
    """Computes the figure from the evidence's absolute path; `CacheMissing` where it cannot."""


def compute_claims(
    definitions: Sequence[ClaimDefinition], root: Path = PROJECT_ROOT
) -> list[Claim]:
    """The ledger's rows, in the order of their definitions.

    Args:
        definitions: Claims to compute; ids must differ.
        root: Folder that evidence paths start from.
    """
    return [compute_claim(definition, root) for definition in definitions]


def compute_claim(definition: ClaimDefinition, root: Path = PROJECT_ROOT) -> Claim:
    """One row: measured and judged, or not measured."""
    measured = _measure(definition, root / definition.evidence)
    return Claim(
        id=definition.id,
        paper=definition.paper,
        claim=definition.claim,
        paper_value=definition.paper_value,
        value=measured.value if measured else None,
        unit=definition.unit,
        interval=measured.interval if measured else None,
        control=measured.control if measured else None,
        setting=measured.setting if measured else "",
        criterion=definition.criterion,
        evidence=definition.evidence,
        command=definition.command,
        holds=_verdict(definition, measured),
    )


def _measure(definition: ClaimDefinition, evidence: Path) -> Measured | None:
    if not evidence.exists():
        logger.info("%s: no evidence at %s", definition.id, definition.evidence)
        return None
    try:
        return definition.measure(evidence)
    except CacheMissing as error:
        logger.info("%s: %s", definition.id, error)
        return None


def _verdict(definition: ClaimDefinition, measured: Measured | None) -> Holds:
    if measured is None:
        return NOT_MEASURED
    if not measured.comparable:
        return NOT_COMPARABLE
    return judge(definition.criterion, measured.value, measured.interval, measured.control)
