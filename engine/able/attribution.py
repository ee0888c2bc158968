"""Gradient x Input of every option's log-probability, for a batch of rows at once.

    s(n, o) = Σ_j log p(y_j | prompt, y_<j)         y: tokens of option o
    a(n, o, t) = Σ_d x_td ∂s(n, o) / ∂x_td           x: output of the embedding at prompt token t

Signed, in nats: to first order, what scaling the token's embedding up by 100 % adds to the option's
log-probability. The target is the summed log-probability, not its mean and not a logit, the tokens
of the answer itself are not attributed, and gold labels are not used: as in the code that the
authors of ABLE (arXiv 2606.07524) released.

A batch takes one forward pass and a backward pass over all its rows for each option, or one that is
batched over the options. Three things make it cheap: only the positions asked for pass through the
head; the gradient ends at the embedding; and the rows are read in two parts, all but the last
tokens first, whose keys and values serve the rest. The second part alone needs the last block in
full, so the backward pass skips most of that block. Whether a model allows each of these is tried
on its own rows (`choose_way`).
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from engine.able.hook import captured
from engine.able.rows import Row
from engine.errors import UnsupportedModel
from engine.lm.loading import MISFITS
from engine.numerics import full_precision


logger = logging.getLogger(__name__)
_FAILURES = (*MISFITS, IndexError, NotImplementedError)
"""What a model raises that does not allow a way of being asked."""


_KEPT = ("cache", "past_key_values", "cache_params", "state")
"""Names under which models return, and take, what they keep of the tokens read so far."""


@dataclass(frozen=True)
class Way:
    """How a model is asked."""

    two_parts: bool
    """Read all but the last tokens first and go on from their keys and values."""
    batched: bool
    """One backward pass batched over the options; one for each option otherwise."""
    positions_only: bool
    """Pass the positions asked for through the head alone."""


PLAIN = Way(two_parts=False, batched=False, positions_only=False)
"""Nothing but a forward pass and a backward pass for each option; every model allows it."""
WAYS = (
    Way(two_parts=True, batched=True, positions_only=True),
    Way(two_parts=True, batched=False, positions_only=True),
    Way(two_parts=False, batched=True, positions_only=True),
    Way(two_parts=False, batched=False, positions_only=True),
)
"""Tried in this order on a GPU, where few and large kernels are fast. On a CPU, whose cache a batch
of rows fills by itself, one backward pass for each option is faster by a seventh and goes first."""


@dataclass(frozen=True)
class Batch:
    """Rows with equally many options, padded at the right."""

    tokens: Int[Tensor, "rows pos"]
    mask: Int[Tensor, "rows pos"]
    """1 where there is a token, 0 where there is padding."""
    positions: Int[Tensor, "rows asked"]
    """Positions whose predictions are asked; where a row asks for fewer, its last once more."""
    answers: Int[Tensor, "rows asked options"]
    """Token asked for."""
    counted: Float[Tensor, "rows asked"]
    """1 where the position counts, 0 where it only fills up."""
    n_prompt: tuple[int, ...]
    """Tokens of each row that are attributed."""

    @property
    def n_options(self) -> int:
        """Options of a row."""
        return self.answers.shape[2]

    @property
    def split(self) -> int:
        """Tokens of the first part: none of them is asked for a prediction."""
        return int(self.positions.min())


def make_batch(rows: Sequence[Row], device: torch.device) -> Batch:
    """Pad rows with equally many options at the right; that is exact for every causal model."""
    longest = max(len(row.tokens) for row in rows)
    asked = max(row.n_positions for row in rows)
    tokens = np.zeros((len(rows), longest), np.int64)
    mask = np.zeros((len(rows), longest), np.int64)
    positions = np.zeros((len(rows), asked), np.int64)
    answers = np.zeros((len(rows), asked, len(rows[0].options)), np.int64)
    counted = np.zeros((len(rows), asked), np.float32)
    for number, row in enumerate(rows):
        length, n = len(row.tokens), row.n_positions
        tokens[number, :length] = row.tokens
        mask[number, :length] = 1
        positions[number] = length - 1
        positions[number, :n] = np.arange(length - n, length)
        answers[number, :n] = row.answers
        counted[number, :n] = 1
    arrays = (tokens, mask, positions, answers, counted)
    moved = [torch.from_numpy(array).to(device) for array in arrays]
    return Batch(*moved, n_prompt=tuple(row.n_prompt for row in rows))


def option_scores(
    model: nn.Module, batch: Batch, way: Way = PLAIN
) -> Float[Tensor, "rows options"]:
    """s(n, o): summed log-probability of every option, nats, in float32 or better."""
    logits = _logits(model, batch, way)
    chosen = full_precision(logits).log_softmax(-1).gather(2, batch.answers)
    return (chosen * batch.counted[:, :, None].to(chosen.dtype)).sum(1)


def attribute(
    model: nn.Module, module: nn.Module, batch: Batch, way: Way = PLAIN
) -> tuple[Float[Tensor, "rows options"], Float[Tensor, "rows options pos"]]:
    """Scores and attributions of a batch; those of padding and of answer tokens are 0.

    Args:
        model: In evaluation mode, parameters frozen.
        module: Module whose output is attributed.
        batch: Rows.
        way: How the model is asked.

    Raises:
        UnsupportedModel: No gradient reaches the module.
    """
    with captured(module) as leaves:
        scores = option_scores(model, batch, way)
    if not (leaves and scores.requires_grad):
        raise UnsupportedModel("No gradient reaches the module that is attributed.")
    gradients = _gradients(scores.sum(0), leaves, batched=way.batched)
    parts = [
        torch.einsum("obtd,btd->bot", full_precision(g), full_precision(x.detach()))
        for g, x in zip(gradients, leaves, strict=True)
    ]
    found = torch.cat(parts, dim=-1)
    places = torch.arange(found.shape[-1], device=found.device)
    limits = torch.tensor(batch.n_prompt, device=found.device)[:, None, None]
    return scores.detach(), found.masked_fill(places >= limits, 0.0)


def choose_way(model: nn.Module, module: nn.Module, batch: Batch, closeness: float) -> Way:
    """The first way whose attributions are those of the plain one on the given rows.

    Args:
        model: In evaluation mode, parameters frozen.
        module: Module whose output is attributed.
        batch: Some rows, of different lengths if there are any.
        closeness: Least cosine between both attributions, for every row and option.
    """
    scores, plain = attribute(model, module, batch)
    on_cpu = batch.tokens.device.type == "cpu"
    ordered = sorted(WAYS, key=lambda way: (not way.two_parts, way.batched is on_cpu))
    for way in ordered:
        if way.two_parts and batch.split < 1:
            continue
        try:
            other_scores, found = attribute(model, module, batch, way)
        except _FAILURES as error:
            logger.debug("%s does not allow %s: %s", type(model).__name__, way, error)
            continue
        near = torch.nn.functional.cosine_similarity(plain, found, dim=2)
        both_zero = (plain == 0).all(2) & (found == 0).all(2)
        gap = (scores - other_scores).abs().max()
        same = gap <= (1 - closeness) * (1 + scores.abs().max())
        if bool(((near >= closeness) | both_zero).all()) and bool(same):
            return way
    return PLAIN


def is_causal(model: nn.Module, tokens: Int[Tensor, "1 pos"]) -> bool:
    """Whether predictions stay as they are when the last token changes.

    Predictions that are no finite numbers say nothing against it.
    """
    changed = tokens.clone()
    changed[0, -1] = int(tokens[0, -1] == 0)  # another token, which every vocabulary has
    with torch.inference_mode():
        before, after = (
            full_precision(model(input_ids=given, use_cache=False).logits)[:, :-1]
            for given in (tokens, changed)
        )
    scale = before.abs().max().clamp_min(1e-6)
    moved = (before - after).abs().max() > 1e-2 * scale
    return not bool(moved)


def _gradients(totals: Float[Tensor, " options"], leaves: list[Tensor], *, batched: bool) -> Any:
    """Gradient of every total in every leaf: one tensor [options, *leaf] a leaf."""
    n = len(totals)
    if batched:
        each = torch.eye(n, device=totals.device, dtype=totals.dtype)
        return torch.autograd.grad(totals, leaves, each, is_grads_batched=True)
    found = [torch.autograd.grad(totals[o], leaves, retain_graph=o < n - 1) for o in range(n)]
    return [torch.stack(of_leaf) for of_leaf in zip(*found, strict=True)]


def _logits(model: nn.Module, batch: Batch, way: Way) -> Float[Tensor, "rows asked vocab"]:
    """Logits at the positions asked for."""
    inputs: dict[str, Any] = {"attention_mask": batch.mask, "use_cache": way.two_parts}
    if not way.two_parts:
        inputs["input_ids"] = batch.tokens
        return _run(model, inputs, batch.positions, way)["logits"]
    first = {
        "input_ids": batch.tokens[:, : batch.split],
        "attention_mask": batch.mask[:, : batch.split],
        "use_cache": True,
    }
    begun = _run(model, first, torch.zeros_like(batch.positions[:, :1]), way)
    kept = next((name for name in _KEPT if name in begun), None)
    if kept is None:
        raise ValueError("the model keeps nothing of what it read")
    inputs |= {"input_ids": batch.tokens[:, batch.split :], kept: begun[kept]}
    return _run(model, inputs, batch.positions - batch.split, way)["logits"]


def _run(
    model: nn.Module, inputs: dict[str, Any], positions: Int[Tensor, "rows asked"], way: Way
) -> Any:
    """Run the model; its output has logits at the positions alone."""
    if not way.positions_only:
        output: Any = model(**inputs, return_dict=True)
        output["logits"] = _pick(output["logits"], positions)
        return output
    head: Any = model.get_output_embeddings()  # pyright: ignore[reportCallIssue]

    def narrow(_module: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (_pick(given[0], positions), *given[1:])

    handle = head.register_forward_pre_hook(narrow)
    try:
        output = model(**inputs, return_dict=True)
    finally:
        handle.remove()
    if output["logits"].shape[:2] != positions.shape:
        raise ValueError("the head did not keep to the positions")
    return output


def _pick(values: Float[Tensor, "rows pos d"], positions: Int[Tensor, "rows asked"]) -> Tensor:
    """Values at some positions of each row."""
    return values.gather(1, positions[:, :, None].expand(-1, -1, values.shape[2]))
