"""The claims ledger: one row a claim, judged by a program, kept in `docs/claims.json`.

A criterion is a comparison written before the value is measured: `value >= 0.94`,
`low > 0 and value >= 0.5`, `value > 2 * control.random`. Names are `value`, `low` and `high` (the
ends of the interval) and `control.NAME`. It is read as an expression tree of comparisons and
arithmetic alone; nothing else is evaluated.
"""

import ast
import dataclasses
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.config import PROJECT_ROOT
from engine.errors import CacheMissing, CacheStale, ConfigError
from engine.store import read_json, write_json_atomic


LEDGER = PROJECT_ROOT / "docs" / "claims.json"
NOT_MEASURED = "not measured"
NOT_COMPARABLE = "not comparable at this scale"
Holds = bool | str
"""True, False, or one of the two sentences above."""
UPDATE_COMMAND = "headwater claims --update"

_ARITHMETIC: dict[type[ast.AST], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_COMPARISONS: dict[type[ast.AST], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
}


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One row of the ledger."""

    id: str
    """`method.claim`."""
    paper: str
    """The paper that claims it, or the design goal it stands for."""
    claim: str
    """The claim, one sentence."""
    paper_value: float | None
    """The paper's figure in `unit`; None where it reports none."""
    value: float | None
    """Ours; None until it is measured."""
    unit: str
    """Unit of value, paper_value, interval and control."""
    interval: tuple[float, float] | None
    """95 % interval of value; None where there is none."""
    control: dict[str, float] | None
    """What the value is compared with, by name."""
    setting: str
    """Model, data, sizes and seeds of our figure."""
    criterion: str
    """The comparison that decides."""
    evidence: str
    """File the value is computed from, relative to the project."""
    command: str
    """Rebuilds the evidence."""
    holds: Holds
    """Whether the criterion holds."""


def judge(
    criterion: str,
    value: float,
    interval: tuple[float, float] | None = None,
    control: Mapping[str, float] | None = None,
) -> bool:
    """Whether a criterion holds for a value.

    Raises:
        ConfigError: When it is no comparison, or names something the claim does not have.
    """
    names = {"value": value}
    if interval is not None:
        names |= {"low": interval[0], "high": interval[1]}
    tree = _parse(criterion)
    return _truth(tree, names, dict(control or {}), criterion)


def _parse(criterion: str) -> ast.expr:
    try:
        return ast.parse(criterion, mode="eval").body
    except SyntaxError as error:
        raise ConfigError(f"The criterion {criterion!r} is no comparison.") from error


def _truth(
    node: ast.expr, names: dict[str, float], control: dict[str, float], criterion: str
) -> bool:
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return all(_truth(part, names, control, criterion) for part in node.values)
    if not isinstance(node, ast.Compare):
        raise ConfigError(f"The criterion {criterion!r} is no comparison.")
    left = _number(node.left, names, control, criterion)
    for comparison, part in zip(node.ops, node.comparators, strict=True):
        right = _number(part, names, control, criterion)
        compare = _COMPARISONS.get(type(comparison))
        if compare is None:
            raise ConfigError(f"The criterion {criterion!r} has a comparison that is not read.")
        if not compare(left, right):
            return False
        left = right
    return True


def _number(
    node: ast.expr, names: dict[str, float], control: dict[str, float], criterion: str
) -> float:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return float(node.value)  # pyright: ignore[reportArgumentType]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(node.operand, names, control, criterion)
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        left = _number(node.left, names, control, criterion)
        right = _number(node.right, names, control, criterion)
        return _ARITHMETIC[type(node.op)](left, right)
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    if isinstance(node, ast.Attribute) and ast.unparse(node).removeprefix("control.") in control:
        return control[node.attr]
    raise ConfigError(
        f"The criterion {criterion!r} names {ast.unparse(node)!r}, which this claim does not have; "
        f"it has {', '.join([*names, *(f'control.{name}' for name in control)])}."
    )


def read_claims(path: Path | None = None) -> list[Claim]:
    """The rows of the ledger.

    Raises:
        CacheMissing: There is no ledger.
        CacheStale: It is not in the form this version reads.
    """
    path = path or LEDGER
    if not path.is_file():
        raise CacheMissing(f"There is no claims ledger at {path}; run `{UPDATE_COMMAND}`.")
    try:
        return [_claim(row) for row in read_json(path)]
    except (TypeError, KeyError, ValueError) as error:
        raise CacheStale(
            f"{path} is not a ledger this version reads ({error}); run `{UPDATE_COMMAND}`."
        ) from error


def _claim(row: dict[str, Any]) -> Claim:
    interval = row["interval"]
    values: dict[str, Any] = {**row, "interval": None if interval is None else tuple(interval)}
    return Claim(**values)


def write_claims(claims: list[Claim], path: Path | None = None) -> Path:
    """Write the ledger and return its path; the order of rows is the order given."""
    path = path or LEDGER
    write_json_atomic(path, [dataclasses.asdict(claim) for claim in claims])
    return path
