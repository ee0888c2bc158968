"""A pool of training sequences as attribution stores them: ids and small numbers, no text."""

from collections.abc import Iterator
from copy import copy
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from engine.prism.attribution.cousage import CoUsage, co_usage
from engine.prism.attribution.gradient import slopes
from engine.prism.attribution.quantise import (
    Bits,
    activation_step,
    quantise,
    quantise_activations,
    restore,
)
from engine.prism.attribution.statistics import TokenStatistics


class TokenArrays(NamedTuple):
    """Stored statistics of predicted tokens, in order of sequence and position.

    prototypes: [tokens k] active prototypes, by falling activation.
    activations: [tokens k] in steps (`activation_step`).
    slopes: [tokens k] b, int8 or float32, times its scale.
    errors: [tokens stored] e, as `quantise` stores it.
    states: [tokens stored] z/|z|, as `quantise` stores it.
    scales: [tokens 3] scales of errors, states and slopes, float32.
    """

    prototypes: Shaped[np.ndarray, "tokens k"]
    activations: Shaped[np.ndarray, "tokens k"]
    slopes: Shaped[np.ndarray, "tokens k"]
    errors: Shaped[np.ndarray, "tokens stored"]
    states: Shaped[np.ndarray, "tokens stored"]
    scales: Float[np.ndarray, "tokens 3"]

    @classmethod
    def of(
        cls,
        statistics: TokenStatistics,
        bank: Float[Tensor, "prototypes d_model"],
        bits: Bits = 8,
    ) -> "TokenArrays":
        """Store the statistics of tokens in so many bits a number of errors and states."""
        wide = np.uint16 if len(bank) <= 2**16 else np.uint32
        errors, error_scale = quantise(_numpy(statistics.errors), bits)
        states, state_scale = quantise(_numpy(statistics.unit_states), bits)
        along, slope_scale = quantise(_numpy(slopes(statistics, bank)), 32 if bits == 32 else 8)
        return cls(
            prototypes=_numpy(statistics.indices).astype(wide),
            activations=quantise_activations(_numpy(statistics.activations), bits),
            slopes=along,
            errors=errors,
            states=states,
            scales=np.stack([error_scale, state_scale, slope_scale], axis=1),
        )

    @classmethod
    def concatenate(cls, parts: "list[TokenArrays]") -> "TokenArrays":
        """The tokens of several, end to end."""
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def at(self, tokens: slice | Int[np.ndarray, " n"]) -> "TokenArrays":
        """Some of the tokens."""
        return TokenArrays(*(column[tokens] for column in self))

    def frozen(self) -> "TokenArrays":
        """The same, read-only and plain: one type for arrays in memory and in files."""
        return TokenArrays(*(frozen(column) for column in self))


def _numpy(values: Tensor) -> np.ndarray:
    return values.detach().cpu().numpy()


def frozen(values: np.ndarray) -> np.ndarray:
    """An array read-only and plain, whether it lies in memory or in a file."""
    plain = values.view(np.ndarray)
    plain.flags.writeable = False
    return plain


class TokenPool:
    """Stored tokens of sequences, with the bank they belong to.

    Attributes:
        arrays: the tokens, read-only.
        offsets: [sequences + 1] first token of each sequence.
        unit_bank: [prototypes d_model] directions of the prototypes, float32.
    """

    def __init__(
        self,
        arrays: TokenArrays,
        offsets: Int[np.ndarray, " ends"],
        bank: Float[Tensor, "prototypes d_model"],
    ) -> None:
        self.arrays = arrays.frozen()
        self.offsets = frozen(np.ascontiguousarray(offsets, dtype=np.int64))
        directions = torch.nn.functional.normalize(bank.detach().float(), dim=1)
        self.unit_bank: Float[np.ndarray, "prototypes d_model"] = directions.cpu().numpy()

    @property
    def n_sequences(self) -> int:
        """Sequences of the pool."""
        return len(self.offsets) - 1

    @property
    def n_tokens(self) -> int:
        """Predicted tokens of the pool."""
        return int(self.offsets[-1])

    @property
    def n_prototypes(self) -> int:
        """Prototypes of the bank."""
        return len(self.unit_bank)

    @property
    def d_model(self) -> int:
        """Width of a state."""
        return self.unit_bank.shape[1]

    @property
    def bytes_a_token(self) -> int:
        """Bytes stored of a token."""
        return sum(column[:1].nbytes for column in self.arrays)

    def tokens_of(self, sequence: int) -> slice:
        """Tokens of one sequence."""
        return slice(int(self.offsets[sequence]), int(self.offsets[sequence + 1]))

    def first(self, n: int) -> "TokenPool":
        """A pool of the first `n` sequences."""
        few = copy(self)
        few.offsets = self.offsets[: n + 1]
        return few

    def read(self, tokens: slice | Int[np.ndarray, " n"]) -> "RestoredTokens":
        """Some tokens as they are read back, float32."""
        stored = self.arrays.at(tokens)
        scales = np.asarray(stored.scales)
        return RestoredTokens(
            prototypes=stored.prototypes.astype(np.int64),
            activations=stored.activations * np.float32(activation_step(stored.activations)),
            slopes=stored.slopes * scales[:, 2:],
            errors=restore(stored.errors, scales[:, 0], self.d_model),
            states=restore(stored.states, scales[:, 1], self.d_model),
        )

    def chunks(self, size: int = 2**16) -> Iterator[slice]:
        """Runs of tokens that cover the pool."""
        for start in range(0, self.n_tokens, size):
            yield slice(start, min(start + size, self.n_tokens))

    def co_usage(self) -> CoUsage:
        """Co-usage of the bank over the pool's tokens as stored."""
        stored = self.arrays
        step = activation_step(stored.activations)
        none = stored.activations[:0].astype(np.float32)
        total = co_usage(stored.prototypes[:0], none, self.n_prototypes)
        for tokens in self.chunks():
            activations = stored.activations[tokens] * step
            total = total + co_usage(stored.prototypes[tokens], activations, self.n_prototypes)
        return total


class RestoredTokens(NamedTuple):
    """Statistics of tokens as a pool gives them back, float32."""

    prototypes: Int[np.ndarray, "tokens k"]
    activations: Float[np.ndarray, "tokens k"]
    slopes: Float[np.ndarray, "tokens k"]
    errors: Float[np.ndarray, "tokens d_model"]
    states: Float[np.ndarray, "tokens d_model"]


def lengths_to_offsets(lengths: Any) -> Int[np.ndarray, " ends"]:
    """First token of each sequence, and the end of the last."""
    return np.concatenate([[0], np.cumsum(np.asarray(lengths, dtype=np.int64))])
