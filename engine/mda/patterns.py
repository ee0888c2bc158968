"""Where a head of a known kind should look: targets of attention, as masks over pairs.

A mask M is true at (t, s) where the position t should attend to s. The score of a head is the
mean, over the positions that have a target, of the attention mass on their targets: 0 is none,
1 is all. Prefix matching is Olsson et al. (2022): from a token of the second copy of a repeated
random sequence to the one just after its first occurrence.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from engine.config import require
from engine.errors import UnsupportedModel
from engine.mda.settings import ProbeConfig
from engine.numerics import full_precision


Mask = Bool[Tensor, "batch pos pos"]


def previous_token(tokens: Int[Tensor, "batch pos"]) -> Mask:
    """Each position to the one before it."""
    batch, length = tokens.shape
    mask = torch.zeros(length, length, dtype=torch.bool, device=tokens.device)
    mask.diagonal(-1).fill_(True)
    return mask.expand(batch, -1, -1)


def duplicate_token(tokens: Int[Tensor, "batch pos"]) -> Mask:
    """Each position to the earlier positions that hold the same token."""
    return (tokens[:, :, None] == tokens[:, None, :]).tril(-1)


def prefix_match(tokens: Int[Tensor, "batch pos"]) -> Mask:
    """Each position to those just after an earlier occurrence of its token."""
    after = torch.zeros_like(duplicate_token(tokens))
    after[:, :, 1:] = duplicate_token(tokens)[:, :, :-1]
    return after & torch.ones_like(after[0]).tril(-1)


PATTERNS: dict[str, Callable[[Int[Tensor, "batch pos"]], Mask]] = {
    "prefix_matching": prefix_match,
    "previous_token": previous_token,
    "duplicate_token": duplicate_token,
}
"""Mask of each kind of head, by name."""
ON_REPEATED = ("prefix_matching", "duplicate_token")
"""Patterns that have targets only where tokens repeat."""


def repeated_sequences(
    vocabulary: Int[np.ndarray, " tokens"], config: ProbeConfig
) -> Int[Tensor, "batch pos"]:
    """Random tokens, drawn without replacement where there are enough, then the same again.

    Args:
        vocabulary: tokens that the model has seen; others would test its guess of an unseen row.
        config: sizes and seed.
    """
    half = random_sequences(vocabulary, config, config.length // 2)
    return torch.cat([half, half], dim=1)


def random_sequences(
    vocabulary: Int[np.ndarray, " tokens"], config: ProbeConfig, length: int | None = None
) -> Int[Tensor, "batch pos"]:
    """Random tokens, none twice in a sequence where the vocabulary is large enough."""
    require(len(vocabulary) >= 2, "The probe needs 2 tokens or more that the model has seen.")
    length = config.length if length is None else length
    generator = np.random.default_rng(config.seed)
    again = length > len(vocabulary)
    rows = [generator.choice(vocabulary, length, replace=again) for _ in range(config.sequences)]
    return torch.from_numpy(np.stack(rows).astype(np.int64))


def attention_patterns(
    model: Any, tokens: Int[Tensor, "batch pos"]
) -> tuple[Float[Tensor, "batch heads pos pos"], ...]:
    """Attention after the softmax, a tensor a layer.

    Raises:
        UnsupportedModel: the model does not give its patterns.
    """
    implementation = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        device = next(model.parameters()).device
        out = model(input_ids=tokens.to(device), output_attentions=True, use_cache=False)
    finally:
        model.set_attn_implementation(implementation)
    if not out.attentions or any(pattern is None for pattern in out.attentions):
        raise UnsupportedModel(
            f"{type(model).__name__} does not give its attention patterns, so its heads cannot be "
            "measured; use a model with eager attention."
        )
    return tuple(full_precision(pattern) for pattern in out.attentions)


def pattern_scores(
    patterns: Iterable[Float[Tensor, "batch heads pos pos"]], mask: Mask
) -> Float[Tensor, "layers heads"]:
    """Mean attention mass on the targets over the positions that have one; in [0, 1]."""
    rows = mask.any(-1).sum()
    scores = [(pattern * mask[:, None]).sum(dim=(0, 2, 3)) / rows for pattern in patterns]
    return torch.stack(scores)


@torch.inference_mode()
def head_scores(
    model: Any,
    vocabulary: Int[np.ndarray, " tokens"],
    config: ProbeConfig | None = None,
    batch_size: int | None = None,
) -> dict[str, Float[Tensor, "layers heads"]]:
    """Every head's score by pattern.

    Prefix matching and duplicate token are taken over the second copy of repeated sequences,
    previous token and any pattern that was added over sequences without repeats.

    Args:
        model: decoder in evaluation mode.
        vocabulary: tokens that the model has seen.
        config: sizes and seed of the sequences.
        batch_size: sequences whose patterns exist at once; all if None.
    """
    config = config or ProbeConfig()
    size = batch_size or config.sequences
    repeated = repeated_sequences(vocabulary, config)
    plain = random_sequences(vocabulary, config)
    others = tuple(name for name in PATTERNS if name not in ON_REPEATED)
    found = _mean_scores(model, plain.split(size), others)
    found |= _mean_scores(model, repeated.split(size), ON_REPEATED)
    return {name: found[name] for name in PATTERNS}


def _mean_scores(
    model: Any, batches: Iterable[Int[Tensor, "_batch pos"]], names: tuple[str, ...]
) -> dict[str, Float[Tensor, "layers heads"]]:
    """Scores by pattern over all batches, each weighted by its positions that have a target."""
    sums: dict[str, Tensor | float] = dict.fromkeys(names, 0.0)
    counts = dict.fromkeys(names, 0)
    for tokens in batches:
        seen = attention_patterns(model, tokens)
        for name in names:
            mask = PATTERNS[name](tokens).to(seen[0].device)
            count = int(mask.any(-1).sum())
            sums[name] = sums[name] + count * pattern_scores(seen, mask).cpu()
            counts[name] += count
    return {name: torch.as_tensor(total) / counts[name] for name, total in sums.items()}
