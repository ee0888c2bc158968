"""What is watched along a training: scores of every head, and how far losses fall in context."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from engine.config import require
from engine.mda.patterns import head_scores, repeated_sequences
from engine.mda.settings import ProbeConfig
from engine.numerics import full_precision


LATE_TOKEN = 500
"""Token, counted from 0, whose loss the reference definition of the ICL score compares."""
EARLY_TOKENS = 50
"""Tokens at the start of a row whose mean loss it is compared with."""
SHARE_EARLY, SHARE_LATE = 1 / 3, 1 / 4
"""Shares of a row that stand for early and late where it has no token 500."""
PREDICTED_MASS = 0.99
"""Share of what a model predicts of its own text that its frequent tokens make up."""
OWN_ROWS, OWN_TOKENS = 16, 32
"""Texts that a model writes to show what it predicts, and the tokens of each."""


@dataclass(frozen=True)
class Contexts:
    """Which predicted tokens of a row the ICL score compares; token 0 has no prediction."""

    early: range
    late: range

    @property
    def definition(self) -> str:
        """In words, for whoever reads the number."""
        late = (
            f"loss at token {self.late.start}"
            if len(self.late) == 1
            else f"mean loss of tokens {self.late.start} to {self.late.stop - 1}"
        )
        return (
            f"{late} minus mean loss of tokens {self.early.start} to {self.early.stop - 1}, in "
            "nats; more negative is more in-context learning"
        )


def contexts(length: int) -> Contexts:
    """What the ICL score compares in rows that predict `length` tokens.

    The reference definition, L_500 - mean(L_0..50), where the row has a token 500; otherwise the
    last quarter (28 tokens at most) against the first third (50 at most).

    Raises:
        ConfigError: the rows are too short to have an early and a late part.
    """
    require(length >= 8, f"Rows of {length} tokens are too short for an ICL score; use 8 or more.")
    if length >= LATE_TOKEN:
        return Contexts(range(1, EARLY_TOKENS + 1), range(LATE_TOKEN, LATE_TOKEN + 1))
    early = min(EARLY_TOKENS, int(length * SHARE_EARLY))
    late = min(28, int(length * SHARE_LATE))
    return Contexts(range(1, early + 1), range(length + 1 - late, length + 1))


@torch.inference_mode()
def measure(
    model: Any,
    vocabulary: Int[np.ndarray, " tokens"],
    held_out: Int[Tensor, "rows length"] | None,
    probe: ProbeConfig,
    batch_size: int,
) -> dict[str, Any]:
    """Scores of every head and losses in nats per token.

    Args:
        model: decoder in evaluation mode.
        vocabulary: tokens that probes are drawn from.
        held_out: rows for `loss` and `icl`, which are None without.
        probe: sizes and seed of the random sequences.
        batch_size: sequences or rows that exist at once.

    Returns:
        `heads`: [layers, heads] by pattern. `copy_loss`: mean loss over the second copy of repeated
        random sequences. `loss`: mean over the held-out rows. `icl`: as `contexts` says.
    """
    scores = head_scores(model, vocabulary, probe, batch_size)
    repeated = repeated_sequences(vocabulary, probe)
    half = repeated.shape[1] // 2
    copied = torch.cat(list(_token_losses(model, repeated.split(batch_size))))[:, half:]
    found: dict[str, Any] = {
        "heads": {name: values.numpy() for name, values in scores.items()},
        "copy_loss": float(copied.mean()),
        "loss": None,
        "icl": None,
    }
    if held_out is not None:
        losses = torch.cat(list(_token_losses(model, held_out.split(batch_size))))
        found["loss"] = float(losses.mean())
        found["icl"] = icl_score(losses)
    return found


def icl_score(losses: Float[Tensor, "rows predicted"]) -> float:
    """Mean loss of late tokens minus that of early ones; column i holds token i + 1."""
    compared = contexts(losses.shape[1])
    late = losses[:, compared.late.start - 1 : compared.late.stop - 1]
    early = losses[:, compared.early.start - 1 : compared.early.stop - 1]
    return float(late.mean() - early.mean())


def _token_losses(
    model: Any, batches: tuple[Int[Tensor, "_batch length"], ...]
) -> Iterator[Float[Tensor, "_batch predicted"]]:
    device = next(model.parameters()).device
    for rows in batches:
        rows = rows.to(device)
        logits = full_precision(model(input_ids=rows[:, :-1], use_cache=False).logits)
        flat = functional.cross_entropy(
            logits.flatten(0, 1), rows[:, 1:].flatten(), reduction="none"
        )
        yield flat.view(len(rows), -1).cpu()


@torch.inference_mode()
def predicted_tokens(
    model: Any, length: int = OWN_TOKENS, seed: int = 0
) -> Int[np.ndarray, " tokens"]:
    """Tokens a model has seen, as its own predictions tell: for when no text of its is at hand.

    The model writes `OWN_ROWS` short texts, each from a random token on; kept are the likeliest
    tokens of its mean prediction over them, up to `PREDICTED_MASS`. A trained model gives next to
    nothing to tokens it never saw.

    Args:
        model: decoder in evaluation mode.
        length: tokens of each text.
        seed: seed of the first tokens and of the draws.
    """
    device = next(model.parameters()).device
    config = model.config.get_text_config()
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(int(config.vocab_size), (OWN_ROWS, 1), generator=generator)
    total = torch.zeros(0)
    for _ in range(length):
        logits = model(input_ids=rows.to(device), use_cache=False).logits[:, -1]
        shares = full_precision(logits).softmax(-1).cpu()
        total = shares.sum(0) if len(total) == 0 else total + shares.sum(0)
        rows = torch.cat([rows, torch.multinomial(shares, 1, generator=generator)], dim=1)
    special = {config.bos_token_id, config.eos_token_id, config.pad_token_id} - {None}
    total[[int(t) for t in special if isinstance(t, int) and 0 <= t < len(total)]] = 0
    order = torch.argsort(-total, stable=True)
    share = torch.cumsum(total[order], 0) / total.sum()
    kept = order[: int((share < PREDICTED_MASS).sum()) + 1]
    return np.sort(kept.numpy()).astype(np.int64)
