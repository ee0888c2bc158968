"""A causal order of prototypes: what taking each one out does to the tokens that are drawn.

At every position t of the model's own continuations of training prompts the whole distribution of
the next token is known, with and without a set S of slices. Let e_w be what a word that was drawn
adds to the score, u(v) what a token adds on average, y the token drawn, q the judge's
distribution and rho_t = p_t,S(y) / p_t(y), 0 where y leaves the sampler's nucleus. Then

    effect(S) = sum_t sum_v (p_t(v) - p_t,S(v)) u(v)
                + sum_w e_w (1 - prod_{t in w} rho_t) - sum_t (1 - rho_t) u(y_t)
    cost(S)   = sum_t sum_v (p_t,S(v) - p_t(v)) (-log q_t(v))

estimate the fall of the score and the rise of the judge's loss, in nats. The first line of the
effect sees every token that could be drawn, the second corrects what an average token misses with
the words that were drawn. Prototypes join greedily by effect - price * cost. The contexts are
those of the positions given, and what changed text leads to is not foreseen; so an order is made
in rounds, each on continuations with the set so far suppressed, and p_t is then what the model
draws from with that set.
"""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from engine.live.model import LiveModel
from engine.live.results import Sampler
from engine.pipeline.suppression_weights import TokenEffects, token_weights


MOST_CELLS = 180_000_000
"""Positions times vocabulary that are kept in memory at once."""
_ROWS = 64
_PART = 2048
_TINY = 1e-12
_RIM = 1e-3
_MOST = math.log(4.0)
"""A token drawn counts for at most four: the rest of a ratio would be noise."""


@dataclass(frozen=True)
class Drawn:
    """A continuation of a training prompt."""

    prompt: tuple[int, ...]
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class Positions:
    """What is known where tokens were drawn."""

    activations: Float[Tensor, "pos k"]
    indices: Int[Tensor, "pos k"]
    logits: Float[Tensor, "pos vocab"]
    """Emitted logits over the sampler's temperature."""
    judged: Float[Tensor, "pos vocab"]
    """-log q of every next token, nats, in half precision."""
    drawn: Int[Tensor, " pos"]
    """The token drawn."""


@dataclass(frozen=True)
class Ranked:
    """A prototype in its place."""

    prototype: int
    effect: float
    """Fall of the expected score per 1,000 tokens drawn when it joins those before it."""
    cost: float
    """Rise of the judge's expected loss, nats per token drawn, when it joins."""


@torch.inference_mode()
def read_positions(
    model: LiveModel, judge: LiveModel, drawn: Sequence[Drawn], temperature: float
) -> Positions:
    """Read continuations anew and keep what stands at each token drawn; prompts share a length."""
    parts = []
    for start in range(0, len(drawn), _ROWS):
        rows = drawn[start : start + _ROWS]
        length = len(rows[0].prompt)
        longest = max(len(row.tokens) for row in rows)
        ids = torch.zeros(len(rows), length + longest, dtype=torch.long)
        known = torch.zeros(len(rows), longest, dtype=torch.bool)
        for number, row in enumerate(rows):
            ids[number, : length + len(row.tokens)] = torch.tensor([*row.prompt, *row.tokens])
            known[number, : len(row.tokens)] = True
        # A causal model does not see what stands behind a position, padding among it.
        ids, known = ids.to(model.device), known.to(model.device)
        found = model.run(ids[:, :-1]).at(slice(length - 1, None))
        _, activations, indices = model.bank(found)
        other = judge.run(ids[:, :-1]).states[:, length - 1 :][known]
        parts.append(
            Positions(
                activations[known],
                indices[known],
                model.logits(found.states[known]) / temperature,
                -judge.logits(other).log_softmax(-1).half(),
                ids[:, length:][known],
            )
        )
    joined = zip(*(vars(part).values() for part in parts), strict=True)
    return Positions(*(torch.cat(list(columns)) for columns in joined))


@dataclass(frozen=True)
class Value:
    """What positions are worth under some logits, each summed over nothing yet."""

    score: Float[Tensor, " pos"]
    """Expected token weight."""
    loss: Float[Tensor, " pos"]
    """Expected loss under the judge."""
    log_share: Float[Tensor, " pos"]
    """log p of the token drawn; a very low number where it is outside the nucleus."""


class Ranking:
    """Prototypes joining a set one by one."""

    def __init__(
        self,
        model: LiveModel,
        positions: Positions,
        effects: TokenEffects,
        *,
        sampler: Sampler,
        strength: float = 1.0,
        suppressed: Sequence[int] = (),
    ) -> None:
        """Start with the set under which the tokens were drawn.

        Args:
            model: With a bank.
            positions: Where tokens were drawn.
            effects: Words of the tokens drawn, in the same order.
            sampler: With which they were drawn.
            strength: How much of a slice is taken out.
            suppressed: What was suppressed when the tokens were drawn.
        """
        if model.prototypes is None:
            raise ValueError("the model has no bank")
        self._model, self._prototypes = model, model.prototypes
        self._positions = positions
        self._scale, self._top_p = strength / sampler.temperature, sampler.top_p
        device = model.device
        weights = token_weights(positions.drawn.cpu().numpy(), effects.share, model.vocab_size)
        self._weights = torch.tensor(weights, dtype=torch.float32, device=device)
        between = len(effects.effect)
        self._word = torch.tensor(np.where(effects.word >= 0, effects.word, between), device=device)
        self._effect = torch.tensor(np.append(effects.effect, 0.0), device=device)
        self._group()
        self._logits = self._base = positions.logits.clone()
        for prototype in suppressed:
            rows, logits = self._changed(prototype)
            self._base[rows] = logits
        self._before = self._value(self._base, slice(None))
        self._restart()

    def _group(self) -> None:
        """Positions and activations of each prototype, prototype after prototype."""
        active = self._positions.activations > 0
        number = self._positions.indices[active]
        order = number.argsort(stable=True)
        self._rows = active.nonzero()[order, 0]
        self._values = self._positions.activations[active][order]
        edges = torch.arange(self._model.n_prototypes + 1, device=self._model.device)
        self._first = torch.searchsorted(number[order].contiguous(), edges).tolist()

    def _restart(self) -> None:
        """Suppress what was when the tokens were drawn, and no more."""
        self._logits = self._base.clone()
        self._now = Value(*(column.clone() for column in vars(self._before).values()))
        self._log_ratio = torch.zeros(
            len(self._effect), dtype=torch.float64, device=self._model.device
        )

    @property
    def n_positions(self) -> int:
        """Tokens drawn."""
        return len(self._logits)

    @torch.inference_mode()
    def first_order(self) -> tuple[Float[np.ndarray, " prototypes"], ...]:
        """Effect and cost of every prototype by the slope at the start, summed over positions.

        The slope of the effect along the logits is p (u - sum p u) and, at a token drawn that is
        one of a word's, (e_w - u(y)) (1 at y - p).
        """
        totals = [torch.zeros(self._model.n_prototypes, device=self._model.device) for _ in "ab"]
        whole = self._effect[self._word] - self._weights[self._positions.drawn]
        for start in range(0, self.n_positions, _ROWS * 16):
            rows = slice(start, start + _ROWS * 16)
            shares = self._base[rows].softmax(-1)
            toward = shares * (self._weights - (shares @ self._weights)[:, None])
            own = whole[rows].float()[:, None]
            toward -= own * shares
            toward.scatter_add_(1, self._positions.drawn[rows, None], own)
            judged = self._positions.judged[rows].float()
            lost = -shares * (judged - (shares * judged).sum(-1, keepdim=True))
            numbers = self._positions.indices[rows]
            active = self._prototypes[numbers]
            for total, change in zip(totals, (toward, lost), strict=True):
                slope = change @ self._model.head.weight * (self._model.factor * self._scale)
                slices = torch.einsum("td,tkd->tk", slope, active)
                slices *= self._positions.activations[rows]
                total.index_add_(0, numbers.reshape(-1), slices.reshape(-1))
        effect, cost = (total.cpu().numpy().astype(np.float64) for total in totals)
        return effect, cost

    @torch.inference_mode()
    def rank(self, candidates: Sequence[int], length: int, price: float) -> list[Ranked]:
        """The first `length` candidates in the order in which they join; each helps when it does.

        A gain found earlier is taken for an upper end of what it is now, and only the candidate
        that seems best is looked at anew.

        Args:
            candidates: Prototypes that may join.
            length: Most that do.
            price: Score that a nat of the judge's loss is worth.
        """
        self._restart()
        queue = []
        for number in sorted(set(candidates)):
            effect, cost = self._gain(number)
            queue.append((price * cost - effect, number))
        heapq.heapify(queue)
        chosen: list[Ranked] = []
        while queue and len(chosen) < length:
            _, prototype = heapq.heappop(queue)
            effect, cost = self._gain(prototype)
            gain = effect - price * cost
            if queue and gain < -queue[0][0]:
                heapq.heappush(queue, (-gain, prototype))
                continue
            if gain <= 0:
                break
            self._accept(prototype)
            n = self.n_positions
            chosen.append(Ranked(prototype, 1000 * effect / n, cost / n))
        return chosen

    def _changed(self, prototype: int) -> tuple[Tensor, Tensor]:
        """Positions where a prototype is active and their logits once its slice is gone."""
        own = slice(self._first[prototype], self._first[prototype + 1])
        rows = self._rows[own]
        direction = self._model.logits(self._prototypes[prototype][None])[0]
        taken = self._values[own, None] * direction * self._scale
        return rows, self._logits[rows] - taken

    def _gain(self, prototype: int) -> tuple[float, float]:
        """Effect and cost, summed over positions."""
        rows, logits = self._changed(prototype)
        if not len(rows):
            return 0.0, 0.0
        value = self._value(logits, rows)
        now = Value(*(column[rows] for column in vars(self._now).values()))
        effect = float((now.score - value.score).sum())
        shares = [
            (v.log_share - self._before.log_share[rows]).clamp(max=_MOST).exp()
            for v in (now, value)
        ]
        effect -= float(
            ((shares[0] - shares[1]) * self._weights[self._positions.drawn[rows]]).sum()
        )
        words = self._words_of(rows)
        added = torch.zeros_like(self._log_ratio)
        added.index_add_(0, self._word[rows], (value.log_share - now.log_share).double())
        before, after = self._log_ratio[words], (self._log_ratio + added)[words]
        kept = before.clamp(max=_MOST).exp() - after.clamp(max=_MOST).exp()
        effect += float((self._effect[words] * kept).sum())
        cost = float((value.loss - now.loss).sum())
        return effect, cost

    def _words_of(self, rows: Tensor) -> Tensor:
        """The words that the tokens drawn at some positions are pieces of, each once."""
        words = self._word[rows]
        return words[words < len(self._effect) - 1].unique()

    def _accept(self, prototype: int) -> None:
        rows, logits = self._changed(prototype)
        value = self._value(logits, rows)
        change = (value.log_share - self._now.log_share[rows]).double()
        self._log_ratio.index_add_(0, self._word[rows], change)
        self._log_ratio[-1] = 0.0
        self._logits[rows] = logits
        for column, new in zip(vars(self._now).values(), vars(value).values(), strict=True):
            column[rows] = new

    def _value(self, logits: Float[Tensor, "pos vocab"], rows: Tensor | slice) -> Value:
        judged, drawn = self._positions.judged[rows], self._positions.drawn[rows]
        parts = [
            self._part(
                logits[start : start + _PART], *(x[start : start + _PART] for x in (judged, drawn))
            )
            for start in range(0, len(logits), _PART)
        ]
        return Value(*(torch.cat(list(columns)) for columns in zip(*parts, strict=True)))

    def _part(self, logits: Tensor, judged: Tensor, drawn: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        shares = logits.softmax(-1)
        own = shares.gather(-1, drawn[:, None])
        before = torch.where(shares > own, shares, 0.0).sum(-1)
        log_share = own[:, 0].clamp(min=_TINY).log()
        # What was drawn is in the nucleus; near its rim, where two ways of summing may differ,
        # a token counts as inside.
        inside = before < self._top_p + _RIM
        log_share = torch.where(inside, log_share, math.log(_TINY))
        return shares @ self._weights, (shares * judged.float()).sum(-1), log_share
