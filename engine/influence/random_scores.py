"""Random scores: what a method has to beat."""

import numpy as np
from jaxtyping import Float

from engine.corpus.documents import Progress, no_progress
from engine.influence.frame import Sequences
from engine.prism.model import PrismForCausalLM


def score_random(
    model: PrismForCausalLM,  # noqa: ARG001
    pool: Sequences,
    queries: Sequences,
    progress: Progress = no_progress,  # noqa: ARG001
    *,
    seed: int = 0,
) -> Float[np.ndarray, "queries pool"]:
    """Independent standard normal scores, float32, drawn from `seed`."""
    generator = np.random.default_rng(seed)
    return generator.standard_normal((len(queries), len(pool)), dtype=np.float32)
