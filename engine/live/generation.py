"""Continuing text token by token, one text or many at once, with and without suppression."""

import itertools
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from engine.live.model import LiveModel
from engine.live.results import Ending, Generation, GenerationStep, Sampler, Suppression
from engine.live.sampling import draw
from engine.live.text import Codec, StreamDecoder


@dataclass(frozen=True)
class Request:
    """What to continue and how; the same request always gives the same tokens."""

    ids: Int[Tensor, "batch pos"]
    """Prompts, all of one length."""
    seeds: Sequence[int]
    """One a prompt."""
    sampler: Sampler
    suppression: Suppression | None = None


def continuation(
    model: LiveModel, request: Request, lock: AbstractContextManager[object] | None = None
) -> Iterator[tuple[Int[Tensor, " batch"], Bool[Tensor, " batch"]]]:
    """Draw tokens without end: (token, whether a suppressed prototype was active) for each row.

    The lock is held for one step at a time, so several continuations can take turns. Past the
    context the model reads the last half of it anew and goes on.
    """
    guard = lock or threading.Lock()
    suppression = request.suppression
    on = suppression is not None and suppression.active
    mask = model.mask(suppression.prototypes) if suppression is not None and on else None
    strength = suppression.strength if suppression is not None else 0.0
    window = pending = request.ids[:, -model.context :].to(model.device)
    cache = None
    for step in itertools.count():
        with guard, torch.inference_mode():
            found = model.run(pending, cache=cache, use_cache=True, last_only=True)
            logits = model.logits(model.suppressed(found, mask, strength))[:, -1]
            tokens = draw(logits, request.seeds, step, request.sampler)
            touched = model.touched(found, mask)[:, -1]
        yield tokens, touched
        window = torch.cat([window, tokens[:, None]], dim=1)
        pending, cache = window[:, -1:], found.cache
        if cache is None or window.shape[1] > model.context:
            window = pending = window[:, -max(1, model.context // 2) :]
            cache = None


def stream(
    model: LiveModel,
    codec: Codec,
    request: Request,
    n_tokens: int,
    lock: AbstractContextManager[object] | None = None,
) -> Iterator[GenerationStep]:
    """Continue one prompt until `n_tokens` are drawn or the model ends the text."""
    decoder = StreamDecoder(codec)
    steps = itertools.islice(continuation(model, request, lock), n_tokens)
    for drawn, (tokens, touched) in enumerate(steps, start=1):
        token_id = int(tokens[0])
        ended = token_id in model.end_ids
        ending: Ending = "end of text" if ended else "length" if drawn == n_tokens else ""
        text = "" if ended else decoder.push(token_id)
        if ending:
            text += decoder.finish()
        yield GenerationStep(token_id, text, bool(touched[0]), drawn, ending)
        if ended:
            return


@dataclass(frozen=True)
class Continued:
    """One row of a batch of continuations, cut after the token with which the model ended it."""

    token_ids: list[int]
    """Tokens drawn, the one that ends a text among them."""
    touched: int
    """How many of these were drawn where a suppressed prototype was active."""
    ended: bool
    """Whether the last token ends the text and is no part of it."""

    @property
    def text_ids(self) -> list[int]:
        """Tokens of the text."""
        return self.token_ids[:-1] if self.ended else self.token_ids


def continue_batch(
    model: LiveModel,
    request: Request,
    n_tokens: int,
    lock: AbstractContextManager[object] | None = None,
) -> list[Continued]:
    """Continue many prompts of one length at once, `n_tokens` each at most."""
    drawn = list(itertools.islice(continuation(model, request, lock), n_tokens))
    tokens = torch.stack([step[0] for step in drawn], dim=1).tolist()
    touched = torch.stack([step[1] for step in drawn], dim=1).tolist()
    return [_cut(row, marks, model.end_ids) for row, marks in zip(tokens, touched, strict=True)]


def _cut(tokens: list[int], touched: list[bool], end_ids: frozenset[int]) -> Continued:
    ends = next((i for i, token in enumerate(tokens) if token in end_ids), None)
    length = len(tokens) if ends is None else ends + 1
    return Continued(tokens[:length], sum(touched[:length]), ends is not None)


def collect(steps: list[GenerationStep], notice: str | None) -> Generation:
    """A stream of at least one step as a whole."""
    return Generation(
        text="".join(step.text for step in steps),
        token_ids=tuple(step.token_id for step in steps),
        touched=tuple(step.touched for step in steps),
        ending=steps[-1].ending,
        notice=notice,
    )
