"""LiveEngine: prompt in, contract-shaped values out; no hidden state."""

from collections.abc import Iterator, Sequence
from functools import cached_property

import pandas as pd
import torch
from torch import Tensor

from engine.errors import PromptError
from engine.live import records, views
from engine.live.attribution import CACHED, Attributor
from engine.live.attribution_results import Attribution, AttributionQuery
from engine.live.decomposition import divergence, slice_position
from engine.live.generation import Request, collect, stream
from engine.live.memory import Memory
from engine.live.model import LiveModel, Pass
from engine.live.opening import Opened, open_model
from engine.live.reader import Reader
from engine.live.results import (
    Decomposition,
    Generation,
    GenerationStep,
    PromptActivations,
    Sampler,
    Scores,
    Shift,
    SideEffects,
    Suppression,
    Token,
)
from engine.live.scores import Scorers
from engine.live.side_effects import Reading, measure, read_texts
from engine.live.text import Codec
from engine.store.concepts import read_concepts


MAX_NEW_TOKENS = 4096
"""Longest generation."""
_READINGS_KEPT = 3


class LiveEngine:
    """A loaded run. Every method is a pure function of its arguments; one lock guards torch.

    What is kept between calls (recent prompts' states) changes speed alone, never a result.

    Attributes:
        name: name of the run or folder.
        kind: "prism", "retrofit" or "dense" (no prototypes: `next_tokens` and `generate` only).
        n_prototypes: size of the bank, 0 for a dense model.
        n_active: active prototypes a token, 0 for a dense model.
        context: tokens the model reads at once.
        labels: label by prototype, empty where the run is not indexed.
        attribution: training texts behind a prediction, with their details.
    """

    def __init__(self, opened: Opened) -> None:
        self.name = opened.name
        self.kind = opened.kind
        self.run = opened.run
        self.model: LiveModel = opened.model
        self.codec: Codec = opened.codec
        self.n_prototypes: int = opened.model.n_prototypes
        self.n_active: int = opened.model.n_active
        self.context: int = opened.model.context
        self._reader = Reader(opened.name, opened.model, opened.codec)
        self._readings: Memory[list[Reading]] = Memory(_READINGS_KEPT)
        self._scorers = Scorers()
        self.attribution = Attributor(opened.run, opened.name, self._reader)

    @classmethod
    def open(cls, run: str, *, device: str = "auto") -> "LiveEngine":
        """Load a run by name or path, or a folder written by `save_pretrained`.

        Raises:
            CacheMissing: no such run, or a folder that is neither a run nor a model.
            CacheStale: its files are damaged.
            UnsupportedModel: its logits are not linear in its last state.
        """
        return cls(open_model(run, device))

    @cached_property
    def labels(self) -> dict[int, str]:
        """Label by prototype, empty where the run is not indexed."""
        return records.read_labels(self.run)

    # --- text -------------------------------------------------------------------------------

    def tokens(self, prompt: str) -> list[Token]:
        """Tokens of a prompt, whole; raises `PromptError` when it is empty or not encodable.

        The texts put together are the prompt; a character of several tokens stands in its last.
        """
        return views.as_tokens(self.codec, self._reader.ids(prompt))

    def notice(self, prompt: str) -> str | None:
        """A sentence when the prompt is longer than the context, else None."""
        return views.notice(len(self._reader.ids(prompt)), self.context)

    def token_text(self, token_id: int) -> str:
        """Text of one token of the vocabulary."""
        return self.codec.token_text(token_id)

    def token_id(self, target: str | int) -> int:
        """The single token `target` names; `PromptError` says how it splits otherwise."""
        return self.codec.token_id(target)

    # --- one position -----------------------------------------------------------------------

    def decompose(
        self,
        prompt: str,
        position: int = -1,
        target: str | int | None = None,
        *,
        n_slices: int | None = None,
    ) -> Decomposition:
        """Logit of `target` after `position` as prototype slices and residual.

        Args:
            prompt: text.
            position: token whose state is read; negative counts from the end.
            target: token explained; None takes the likeliest next token.
            n_slices: slices listed, largest absolute first; the rest is in `other`.
        """
        return self._decompose(prompt, position, target, None, n_slices)

    def contrast(
        self,
        prompt: str,
        position: int,
        target: str | int | None,
        distractor: str | int,
        *,
        n_slices: int | None = None,
    ) -> Decomposition:
        """Why `target` and not `distractor`: the same for the difference of their logits.

        Raises:
            PromptError: target and distractor are the same token, or one of them is none.
        """
        return self._decompose(prompt, position, target, distractor, n_slices)

    def _decompose(
        self,
        prompt: str,
        position: int,
        target: str | int | None,
        distractor: str | int | None,
        n_slices: int | None,
    ) -> Decomposition:
        self._reader.require_bank("decomposed")
        ids = self._reader.ids(prompt)
        here, row = self._reader.row(ids, position)
        against = None if distractor is None else self.codec.token_id(distractor)
        wanted = None if target is None else self.codec.token_id(target)
        with self._reader.lock, torch.inference_mode():
            found = self._reader.read(ids)
            if wanted is None:
                wanted = int(self.model.logits(found.states[:, row])[0].argmax())
            if wanted == against:
                raise PromptError(
                    f"Target and distractor are the same token {self.token_text(wanted)!r}; "
                    "choose two."
                )
            slices = slice_position(self.model, found, row, wanted, against)
        shown, other, n_other = views.slice_frame(slices, self.labels, n_slices)
        return Decomposition(
            tokens=tuple(views.as_tokens(self.codec, ids)),
            position=here,
            target_id=wanted,
            target=self.token_text(wanted),
            logit=slices.logit,
            slices=shown,
            other=other,
            n_other=n_other,
            residual=slices.residual,
            residual_share=slices.residual_share,
            gap_logit=slices.gap_logit,
            gap=slices.gap,
            bias=slices.bias,
            distractor_id=against,
            distractor=None if against is None else self.token_text(against),
            notice=views.notice(len(ids), self.context),
        )

    def next_tokens(
        self,
        prompt: str,
        position: int = -1,
        n: int = 20,
        suppression: Suppression | None = None,
    ) -> pd.DataFrame:
        """Likeliest next tokens before and after.

        Returns:
            token_id, token, logit, probability, logit_suppressed, probability_suppressed; the n
            likeliest of either side, by falling `probability`.
        """
        if n < 1:
            raise PromptError(f"{n} tokens were asked for; choose 1 or more.")
        _, before, after = self._logits(prompt, position, suppression)
        return views.next_frame(self.codec, before, after, n)

    def shift(self, prompt: str, position: int, suppression: Suppression) -> Shift:
        """KL of the next-token distribution and the suppressed prototypes active there."""
        found, before, after = self._logits(prompt, position, suppression)
        touched: tuple[int, ...] = ()
        kl = 0.0
        if suppression.active:
            _, activations, indices = self.model.bank(found)
            active = set(indices[0, 0][activations[0, 0] > 0].tolist())
            touched = tuple(sorted(active & set(suppression.prototypes)))
            kl = float(divergence(*(x.double().log_softmax(-1) for x in (before, after))))
        return Shift(kl=kl, touched=touched)

    def _logits(
        self, prompt: str, position: int, suppression: Suppression | None
    ) -> tuple[Pass, Tensor, Tensor]:
        """One position, its logits and its suppressed logits; the same tensor with nothing off."""
        self._reader.check_suppression(suppression)
        ids = self._reader.ids(prompt)
        _, row = self._reader.row(ids, position)
        with self._reader.lock, torch.inference_mode():
            found = self._reader.read(ids).at(slice(row, row + 1))
            before = after = self.model.logits(found.states)[0, 0]
            if suppression is not None and suppression.active:
                mask = self.model.mask(suppression.prototypes)
                states = self.model.suppressed(found, mask, suppression.strength)
                after = self.model.logits(states)[0, 0]
        return found, before, after

    # --- whole texts ------------------------------------------------------------------------

    def activations(self, prompt: str) -> PromptActivations:
        """Active prototypes and residual share of every token that the context holds."""
        self._reader.require_bank("explained")
        ids = self._reader.ids(prompt)
        with self._reader.lock, torch.inference_mode():
            found = self._reader.read(ids)
            _, shares = self.model.residual(found)
        first = len(ids) - found.states.shape[1]
        _, activations, indices = self.model.bank(found)
        return PromptActivations(
            tokens=tuple(views.as_tokens(self.codec, ids)),
            frame=views.activation_frame(activations[0], indices[0], first, self.labels),
            residuals=views.residual_frame(shares[0], first),
            notice=views.notice(len(ids), self.context),
        )

    def firing(self, prompt: str) -> pd.DataFrame:
        """What fires on this text.

        Returns:
            prototype, label, activation (largest over the text), position and token where that
            is, n_tokens on which it is active; by falling `activation`.
        """
        return views.firing_frame(self.activations(prompt))

    def strip(self, text: str | Sequence[int], prototype: int) -> pd.DataFrame:
        """One prototype over a text (or token ids).

        Returns:
            position, token_id, token, activation (0 where it is not among the top-k), similarity
            (cosine before ReLU and top-k); positions that the context holds.
        """
        self._reader.require_bank("explained")
        self._reader.check_prototypes((prototype,))
        ids = self._reader.ids(text) if isinstance(text, str) else self._reader.checked(list(text))
        with self._reader.lock, torch.inference_mode():
            found = self._reader.read(ids)
            similarity = self.model.similarity(found.states, prototype)[0]
        _, activations, indices = self.model.bank(found)
        mine = torch.where(indices[0] == prototype, activations[0], 0.0).sum(-1)
        tokens = views.as_tokens(self.codec, ids)[len(ids) - len(mine) :]
        return views.strip_frame(tokens, mine, similarity)

    # --- generation -------------------------------------------------------------------------

    def generate(
        self,
        prompt: str,
        *,
        n_tokens: int = 60,
        seed: int = 0,
        sampler: Sampler | None = None,
        suppression: Suppression | None = None,
    ) -> Iterator[GenerationStep]:
        """Stream a continuation; equal seeds share every random number, whatever is suppressed.

        Input is checked when called, not at the first step. A prompt longer than the context is
        continued from its last tokens.
        """
        self._reader.check_suppression(suppression)
        if not 1 <= n_tokens <= MAX_NEW_TOKENS:
            raise PromptError(
                f"{n_tokens} tokens were asked for; choose between 1 and {MAX_NEW_TOKENS:,}."
            )
        ids = torch.tensor([self._reader.ids(prompt)])
        request = Request(ids, (seed,), sampler or Sampler(), suppression)
        return stream(self.model, self.codec, request, n_tokens, self._reader.lock)

    def complete(
        self,
        prompt: str,
        *,
        n_tokens: int = 60,
        seed: int = 0,
        sampler: Sampler | None = None,
        suppression: Suppression | None = None,
    ) -> Generation:
        """`generate`, collected."""
        steps = self.generate(
            prompt, n_tokens=n_tokens, seed=seed, sampler=sampler, suppression=suppression
        )
        return collect(list(steps), self.notice(prompt))

    # --- attribution ------------------------------------------------------------------------

    def attribute(
        self,
        prompt: str,
        target: str | int | None = None,
        *,
        position: int = -1,
        span: tuple[int, int] | None = None,
        generation: Sequence[int] = (),
        method: str = CACHED,
        top: int = 20,
    ) -> Attribution:
        """Training sequences that lower the loss of a prediction most; see `AttributionQuery`.

        Scores are positive where a sequence lowers the summed loss of the query, in nats to first
        order; `attribution` gives tokens and prototypes of each result.
        """
        query = AttributionQuery(prompt, target, position, span, tuple(generation))
        return self.attribution.attribute(query, method, top)

    # --- interventions ----------------------------------------------------------------------

    def benign_texts(self, n: int = 24, seed: int = 0) -> tuple[str, ...]:
        """Held-out texts outside the unwanted domain, balanced over domains, from the corpus.

        Raises:
            CorpusError: the run names no corpus, or it is not built on this machine.
        """
        corpus = records.run_corpus(self.run, self.name)
        return tuple(corpus.text(i) for i in records.benign_documents(corpus, n, seed))

    def side_effects(
        self,
        suppression: Suppression,
        texts: Sequence[str] | None = None,
        max_tokens: int = 2048,
    ) -> SideEffects:
        """KL, perplexity and tokens touched on benign texts.

        Args:
            suppression: what is switched off.
            texts: None takes `benign_texts()`.
            max_tokens: tokens read in all, the beginnings of all texts in equal parts.
        """
        self._reader.check_suppression(suppression)
        chosen = tuple(self.benign_texts() if texts is None else texts)
        with self._reader.lock, torch.inference_mode():
            readings = self._readings.get(
                (chosen, max_tokens), lambda: read_texts(self._reader, chosen, max_tokens)
            )
            on = suppression.active
            mask = self.model.mask(suppression.prototypes) if on else None
            return measure(self.model, readings, mask, suppression.strength)

    def concepts(self) -> dict[str, tuple[int, ...]]:
        """Saved sets of prototypes by name; empty where the run has none."""
        return read_concepts(self.run) if self.run is not None else {}

    def concept(self, name: str) -> tuple[int, ...]:
        """Prototypes of a saved concept; the sentence lists those there are.

        Raises:
            PromptError: the run has no concept of that name.
        """
        return records.named_concept(self.concepts(), name, self.name)

    def matched_random(self, prototypes: Sequence[int], seed: int = 0) -> tuple[int, ...]:
        """As many prototypes outside the set, matched on firing rate.

        Raises:
            CacheMissing: the run is not indexed, so there are no firing rates.
            PromptError: the set is more than half of the bank.
        """
        self._reader.check_prototypes(prototypes)
        rates = records.firing_rates(self.run, self.name)
        return records.matched_random(rates, prototypes, seed)

    def score(self, texts: Sequence[str]) -> Scores:
        """Both scorers on texts; a scorer that is not on this machine says so in `missing`."""
        return self._scorers.score(texts)
