"""Gradients of losses with respect to the bank, and the variants in which they are compared.

The cross-entropy of a token gives the bank no gradient at all while the residual absorbs every
change of it, so attribution holds the residual r constant, and which prototypes are active with
it. Then the gradient of one token's loss with respect to an active prototype p is, with the
activation a = cos(z, p), unit vectors zu = z/|z| and pu = p/|p|, and the output error e = dL/dz,

    errors:  a e                      the activation held constant as well
    path:    a e + b (zu - a pu)      with the path through it; slope b = <e, pu>, 0 where a = 0

Gradients are those of the SUM of -log p over the predicted tokens of a sequence or query. Derived
from the equations of "Prototype Language Models" (arXiv 2607.00510), its section on attribution.
"""

import itertools
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor

from engine.errors import ConfigError
from engine.numerics import full_precision, unit_vectors
from engine.prism.attribution.statistics import TokenStatistics


Statistic = Literal["activations", "errors", "path"]
Conditioning = Literal["none", "diagonal", "coupled"]


@dataclass(frozen=True)
class Variant:
    """A way of comparing gradients, by name: `path`, `errors+diagonal`, `path+coupled+unit`, ...

    statistic: `activations` compares activations alone, `errors` the gradients with activations
        held constant, `path` the whole gradients.
    conditioning: the query's gradient is divided by the curvature of the bank's own losses:
        its diagonal, or the prototypes-by-prototypes matrix (`coupled`).
    unit: the score of a sequence is divided by the norm of its own gradient.
    """

    statistic: Statistic = "path"
    conditioning: Conditioning = "none"
    unit: bool = False

    @classmethod
    def parse(cls, name: str) -> "Variant":
        """The variant of a name.

        Raises:
            ConfigError: No variant has that name.
        """
        if name not in _VARIANTS:
            raise ConfigError(
                f"There is no attribution variant {name!r}; begin with activations, errors or "
                "path, and add +diagonal or +coupled, then +unit, as wanted: path+diagonal+unit."
            )
        return _VARIANTS[name]

    @property
    def name(self) -> str:
        """Name the variant is known by."""
        parts: list[str] = [self.statistic]
        if self.conditioning != "none":
            parts.append(self.conditioning)
        if self.unit:
            parts.append("unit")
        return "+".join(parts)


_VARIANTS = {
    variant.name: variant
    for variant in itertools.starmap(
        Variant, itertools.product(get_args(Statistic), get_args(Conditioning), (False, True))
    )
}
VARIANTS = tuple(_VARIANTS)
"""Name of every variant."""


@dataclass(frozen=True)
class BankGradient:
    """Gradient of a loss with respect to the bank: the rows that are not zero.

    statistic: what was held constant.
    prototypes: numbers of the rows, rising.
    rows: the gradient, nats per unit of prototype; of `activations`, the summed activations in one
        column.
    """

    statistic: Statistic
    prototypes: Int[Tensor, " rows"]
    rows: Float[Tensor, "rows width"]

    def dense(self, n_prototypes: int) -> Float[Tensor, "prototypes width"]:
        """The same with its zero rows."""
        whole = self.rows.new_zeros(n_prototypes, self.rows.shape[1])
        whole[self.prototypes] = self.rows
        return whole


def slopes(
    statistics: TokenStatistics, bank: Float[Tensor, "prototypes d_model"]
) -> Float[Tensor, "tokens k"]:
    """B = <e, p/|p|> of each active prototype, 0 where its activation is: dL/da over |p|."""
    units = unit_vectors(full_precision(bank)).to(statistics.errors.dtype)
    along = torch.stack(
        [(statistics.errors * units[column]).sum(-1) for column in statistics.indices.unbind(1)], 1
    )
    return torch.where(statistics.activations > 0, along, 0.0)


def token_gradients(
    statistics: TokenStatistics,
    bank: Float[Tensor, "prototypes d_model"],
    statistic: Statistic,
) -> Float[Tensor, "tokens k width"]:
    """Gradient of each token's loss with respect to each of its active prototypes.

    [tokens x k x d_model] values: hand in few tokens at a time.
    """
    activations = statistics.activations[..., None]
    if statistic == "activations":
        return activations
    found = activations * statistics.errors[:, None]
    if statistic == "errors":
        return found
    units = unit_vectors(full_precision(bank)).to(found.dtype)[statistics.indices]
    path = statistics.unit_states[:, None] - activations * units
    return found + slopes(statistics, bank)[..., None] * path


def summed_gradient(
    statistics: TokenStatistics,
    bank: Float[Tensor, "prototypes d_model"],
    statistic: Statistic,
    chunk: int = 512,
) -> BankGradient:
    """Gradient of the summed loss of all the tokens."""
    prototypes, place = torch.unique(statistics.indices, return_inverse=True)
    width = 1 if statistic == "activations" else statistics.errors.shape[1]
    rows = statistics.errors.new_zeros(len(prototypes), width)
    names = statistics.__dataclass_fields__
    for start in range(0, len(statistics), chunk):
        own = slice(start, start + chunk)
        part = TokenStatistics(**{name: getattr(statistics, name)[own] for name in names})
        rows.index_add_(
            0, place[own].flatten(), token_gradients(part, bank, statistic).flatten(0, 1)
        )
    return BankGradient(statistic, prototypes, rows)


def query_gradients(
    statistics: TokenStatistics,
    bank: Float[Tensor, "prototypes d_model"],
    statistic: Statistic,
    n_queries: int,
) -> list[BankGradient]:
    """One gradient for each row of the statistics, a query each.

    Raises:
        ConfigError: a query has no predicted token.
    """
    counts = torch.bincount(statistics.row, minlength=n_queries).tolist()
    if len(counts) > n_queries or 0 in counts:
        raise ConfigError(
            f"Query {counts.index(0) if 0 in counts else n_queries} has no predicted token; "
            "leave it out."
        )
    split = {
        name: getattr(statistics, name).split(counts) for name in statistics.__dataclass_fields__
    }
    return [
        summed_gradient(
            TokenStatistics(**{name: parts[query] for name, parts in split.items()}),
            bank,
            statistic,
        )
        for query in range(n_queries)
    ]
