"""What a column and a table are: type, unit, range and meaning; and the columns tables share."""

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa


Kind = Literal[
    "id", "count", "share", "cosine", "nats", "logit", "text", "flag", "number", "seconds"
]

_UNITS: dict[str, str] = {
    "id": "identifier",
    "count": "count",
    "share": "share in [0, 1]",
    "cosine": "cosine in [-1, 1]",
    "nats": "nats per token",
    "logit": "logits (nats)",
    "text": "text",
    "flag": "true or false",
    "number": "number",
    "seconds": "seconds",
}
_RANGES: dict[str, tuple[float | None, float | None]] = {
    "id": (0, None),
    "count": (0, None),
    "share": (0, 1),
    "cosine": (-1, 1),
    "nats": (None, None),
    "seconds": (0, None),
}
ROUNDING = 1e-4
"""How far a stored share or cosine may pass its bound through rounding."""


@dataclass(frozen=True)
class ColumnSpec:
    """One column: its Arrow type, what it counts in, its bounds and its meaning."""

    name: str
    type: pa.DataType
    kind: Kind
    meaning: str
    nullable: bool = False

    @property
    def unit(self) -> str:
        """Unit in words."""
        return "text" if pa.types.is_string(self.type) and self.kind == "id" else _UNITS[self.kind]

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """Lowest and highest value allowed, of a list the values in it; None is unbounded."""
        of = self.type.value_type if pa.types.is_list(self.type) else self.type
        if not (pa.types.is_integer(of) or pa.types.is_floating(of)):
            return (None, None)
        return _RANGES.get(self.kind, (None, None))


@dataclass(frozen=True)
class TableSpec:
    """One table: name, meaning, grain, key columns and columns in order."""

    name: str
    meaning: str
    grain: str
    key: tuple[str, ...]
    columns: tuple[ColumnSpec, ...]
    sharded: bool = False

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema with non-null fields."""
        fields = [pa.field(c.name, c.type, nullable=c.nullable) for c in self.columns]
        return pa.schema(fields)

    def column(self, name: str) -> ColumnSpec:
        """The column called `name`."""
        return next(c for c in self.columns if c.name == name)


def identifier(name: str, meaning: str, type_: pa.DataType | None = None) -> ColumnSpec:
    """An integer that names or orders something."""
    return ColumnSpec(name, type_ or pa.int32(), "id", meaning)


def text(name: str, meaning: str, nullable: bool = False) -> ColumnSpec:
    """A text column."""
    return ColumnSpec(name, pa.string(), "text", meaning, nullable)


def real(name: str, kind: Kind, meaning: str, nullable: bool = False) -> ColumnSpec:
    """A float32 column."""
    return ColumnSpec(name, pa.float32(), kind, meaning, nullable)


def count(name: str, meaning: str) -> ColumnSpec:
    """A 64-bit count."""
    return ColumnSpec(name, pa.int64(), "count", meaning)


PROTOTYPE = identifier("prototype", "Prototype, counted from 0 (paper: i)")
DOCUMENT = identifier("document", "Row of the document in this run's `documents` table")
POSITION = identifier("position", "Token, counted from 0 within the document")
RANK = identifier("rank", "Rank, 0 first", pa.int16())
DOMAIN = text("domain", "Domain of the text")
ACTIVATION = real("activation", "share", "Cosine of state and prototype after ReLU and top-k")
