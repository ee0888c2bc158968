"""Methods of the agreement study: the registry's, and further forms of the cached statistics.

Names: `path`, `errors`, `activations`, with +diagonal, +coupled or +unit as the registry has them,
stored in 8 bits; `path@4` the same stored in 4 bits, `path@32` not quantised; `errors~16` the
output errors projected at random to 16 numbers; `full+diagonal` and `full+coupled` the exact
gradients under the preconditioner of unquantised statistics.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import get_args

import numpy as np
import torch
from jaxtyping import Float

from engine.corpus.documents import Progress, no_progress
from engine.errors import ConfigError
from engine.influence.ekfac import Ekfac, EkfacSettings
from engine.influence.frame import Sequences
from engine.influence.methods import METHODS, method_named
from engine.influence.projected import ProjectedIndex
from engine.influence.prototype_gradients import full_scores
from engine.prism.attribution.gradient import VARIANTS, BankGradient, Variant
from engine.prism.attribution.pool import TokenPool
from engine.prism.attribution.preconditioner import Preconditioner
from engine.prism.attribution.quantise import Bits
from engine.prism.attribution.scoring import (
    by_norm,
    gradients_of,
    make_pool,
    pool_preconditioner,
)
from engine.prism.attribution.search import gradient_norms, score_pool
from engine.prism.model import PrismForCausalLM


FULL = ("full", "full+diagonal", "full+coupled")
"""The exact gradients, plain and conditioned; one pass gives all."""
_BITS: dict[str, Bits] = {str(bits): bits for bits in get_args(Bits)}
_SKETCH = re.compile(r"errors~(\d+)")
_SKETCH_SEED = 0


@dataclass(frozen=True)
class Scored:
    """Scores of one method and what they cost."""

    scores: Float[np.ndarray, "queries pool"]
    seconds: float
    """Wall time, preparation included."""
    cpu_seconds: float
    bits: int | None = None
    """Bits a stored number, where statistics are stored."""
    bytes_a_sequence: float | None = None
    """Bytes kept of a sequence; None where they were not counted."""


@dataclass(frozen=True)
class _Stored:
    """A pool in memory with its preconditioner and what they took."""

    pool: TokenPool
    conditioner: Preconditioner
    seconds: float
    cpu_seconds: float


def check_method(name: str) -> None:
    """Refuse a name that no method of the study has.

    Raises:
        ConfigError: There is no such method.
    """
    base, _, bits = name.partition("@")
    if bits and (base not in VARIANTS or bits not in _BITS):
        raise ConfigError(
            f"There is no method {name}; after @ stands the number of bits, one of "
            f"{', '.join(_BITS)}, and before it a form of the cached statistics."
        )
    if not bits and name not in FULL and not _SKETCH.fullmatch(name):
        method_named(name)


@dataclass
class Scorers:
    """Scores one pool for the same queries by any method of the study."""

    model: PrismForCausalLM
    pool: Sequences
    queries: Sequences
    progress: Progress = no_progress
    ekfac: EkfacSettings = field(default_factory=EkfacSettings)
    _stored: dict[int, _Stored] = field(default_factory=dict)

    def group(self, name: str) -> tuple[str, ...]:
        """Methods that one call scores together."""
        return FULL if name in FULL else (name,)

    def score(self, name: str) -> dict[str, Scored]:
        """Scores of a method, and of those that come with it, by name."""
        check_method(name)
        if name in FULL:
            return self._full()
        base, _, bits = name.partition("@")
        sketch = _SKETCH.fullmatch(name)
        if sketch:
            return {name: self._sketch(int(sketch.group(1)))}
        if base in VARIANTS:
            return {name: self._cached(Variant.parse(base), _BITS[bits or "8"])}
        return {name: self._reference(name)}

    def _timed(self, work: Callable[[], Float[np.ndarray, "queries pool"]]) -> Scored:
        wall, cpu = time.perf_counter(), time.process_time()
        scores = np.ascontiguousarray(work(), dtype=np.float32)
        return Scored(scores, time.perf_counter() - wall, time.process_time() - cpu)

    def stored(self, bits: Bits) -> _Stored:
        """The pool's statistics in so many bits, made once."""
        if bits not in self._stored:
            self._stored.clear()  # one is large enough
            wall, cpu = time.perf_counter(), time.process_time()
            pool, inverse = make_pool(self.model, self.pool, bits=bits, progress=self.progress)
            conditioner = pool_preconditioner(pool, self.model, inverse)
            spent = time.perf_counter() - wall, time.process_time() - cpu
            self._stored[bits] = _Stored(pool, conditioner, *spent)
        return self._stored[bits]

    def _cached(self, variant: Variant, bits: Bits) -> Scored:
        held = self.stored(bits)

        def work() -> Float[np.ndarray, "queries pool"]:
            gradients = [
                held.conditioner.apply(gradient, variant.conditioning)
                for gradient in gradients_of(self.model, self.queries, variant)
            ]
            scores = score_pool(held.pool, gradients)
            if variant.unit:
                scores = by_norm(scores, gradient_norms(held.pool, variant.statistic))
            return scores

        return self._with_store(self._timed(work), held, bits, self._bytes(held.pool, variant))

    def _sketch(self, size: int) -> Scored:
        """Errors projected to `size` numbers: <S e, S e'> is <e, S'S e'>, S Gaussian of 1/size."""
        held = self.stored(32)

        def work() -> Float[np.ndarray, "queries pool"]:
            generator = torch.Generator().manual_seed(_SKETCH_SEED)
            shape = (size, held.pool.d_model)
            sketch = torch.randn(shape, generator=generator) / size**0.5
            square = sketch.T @ sketch
            gradients = [
                BankGradient(g.statistic, g.prototypes, g.rows @ square.to(g.rows))
                for g in gradients_of(self.model, self.queries, Variant("errors"))
            ]
            return score_pool(held.pool, gradients)

        pairs = self._bytes(held.pool, Variant("activations"))
        tokens = self.pool.n_predicted / len(self.pool)
        return self._with_store(self._timed(work), held, 32, pairs + 4 * size * tokens)

    def _with_store(self, scored: Scored, held: _Stored, bits: int, size: float) -> Scored:
        return replace(
            scored,
            seconds=scored.seconds + held.seconds,
            cpu_seconds=scored.cpu_seconds + held.cpu_seconds,
            bits=bits,
            bytes_a_sequence=size,
        )

    def _bytes(self, pool: TokenPool, variant: Variant) -> float:
        """Bytes of a sequence that the variant's score reads."""
        arrays = pool.arrays
        read = [arrays.prototypes, arrays.activations]
        if variant.statistic == "errors":
            read += [arrays.errors, arrays.scales[:, :1]]
        if variant.statistic == "path":
            read = list(arrays)
        return sum(column[:1].nbytes for column in read) * pool.n_tokens / pool.n_sequences

    def _full(self) -> dict[str, Scored]:
        conditioner = self.stored(32).conditioner
        diagonal = torch.from_numpy(1 / (conditioner.diagonal + conditioner.added))
        inverses = [None, diagonal, torch.from_numpy(conditioner.inverse)]
        wall, cpu = time.perf_counter(), time.process_time()
        found = full_scores(self.model, self.pool, self.queries, inverses, self.progress)
        spent = time.perf_counter() - wall, time.process_time() - cpu
        return {
            name: Scored(scores, *spent, bytes_a_sequence=0.0)
            for name, scores in zip(FULL, found, strict=True)
        }

    def _reference(self, name: str) -> Scored:
        frame = (self.model, self.pool, self.queries, self.progress)
        if name == "ekfac":
            ekfac = Ekfac(self.model, self.pool, self.ekfac)
            ekfac.fit(self.progress)
            scored = self._timed(lambda: ekfac.score(self.pool, self.queries, self.progress))
            return replace(scored, bytes_a_sequence=0.0)
        scored = self._timed(lambda: METHODS[name].score(*frame))
        if name == "projected":
            index = ProjectedIndex(self.model, self.pool)
            return replace(scored, bytes_a_sequence=index.bytes_a_sequence)
        recomputed = ("gradient-dot", "gradient-cosine", "random")
        states = 4.0 * self.model.config.d_model
        sizes = {"knn": states, "knn-last": states} | dict.fromkeys(recomputed, 0.0)
        return replace(scored, bytes_a_sequence=sizes.get(name))
