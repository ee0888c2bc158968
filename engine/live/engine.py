"""LiveEngine: prompt in, contract-shaped values out; no hidden state."""

from collections.abc import Iterator, Sequence

import pandas as pd

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


class LiveEngine:
    """A loaded run. Every method is a pure function of its arguments; one lock guards torch.

    Attributes:
        name: name of the run or folder.
        kind: "prism", "retrofit" or "dense" (no prototypes: `next_tokens` and `generate` only).
        n_prototypes: size of the bank, 0 for a dense model.
        n_active: active prototypes a token.
        context: tokens the model reads at once.
        labels: label by prototype, empty where the run is not indexed.
    """

    name: str
    kind: str
    n_prototypes: int
    n_active: int
    context: int
    labels: dict[int, str]

    @classmethod
    def open(cls, run: str, *, device: str = "auto") -> "LiveEngine":
        """Load a run by name or path, or a folder written by `save_pretrained`.

        Raises:
            CacheMissing: no such run, or a folder that is neither a run nor a model.
        """
        raise NotImplementedError

    def tokens(self, prompt: str) -> list[Token]:
        """Tokens of a prompt, whole; raises `PromptError` when it is empty or not encodable."""
        raise NotImplementedError

    def notice(self, prompt: str) -> str | None:
        """A sentence when the prompt is longer than the context, else None."""
        raise NotImplementedError

    def token_text(self, token_id: int) -> str:
        """Text of one token of the vocabulary."""
        raise NotImplementedError

    def token_id(self, target: str | int) -> int:
        """The single token `target` names; `PromptError` says how it splits otherwise."""
        raise NotImplementedError

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
        raise NotImplementedError

    def contrast(
        self,
        prompt: str,
        position: int,
        target: str | int | None,
        distractor: str | int,
        *,
        n_slices: int | None = None,
    ) -> Decomposition:
        """Why `target` and not `distractor`: the same for the difference of their logits."""
        raise NotImplementedError

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
        raise NotImplementedError

    def shift(self, prompt: str, position: int, suppression: Suppression) -> Shift:
        """KL of the next-token distribution and the suppressed prototypes active there."""
        raise NotImplementedError

    def activations(self, prompt: str) -> PromptActivations:
        """Active prototypes and residual share of every token."""
        raise NotImplementedError

    def firing(self, prompt: str) -> pd.DataFrame:
        """What fires on this text.

        Returns:
            prototype, label, activation (largest over the text), position and token where that
            is, n_tokens on which it is active; by falling `activation`.
        """
        raise NotImplementedError

    def strip(self, text: str | Sequence[int], prototype: int) -> pd.DataFrame:
        """One prototype over a text (or token ids).

        Returns:
            position, token_id, token, activation (0 where it is not among the top-k), similarity
            (cosine before ReLU and top-k).
        """
        raise NotImplementedError

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

        Input is checked when called, not at the first step.
        """
        raise NotImplementedError

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
        raise NotImplementedError

    def benign_texts(self, n: int = 24, seed: int = 0) -> tuple[str, ...]:
        """Held-out texts outside the unwanted domain, balanced over domains, from the corpus."""
        raise NotImplementedError

    def side_effects(
        self, suppression: Suppression, texts: Sequence[str] | None = None, max_tokens: int = 2048
    ) -> SideEffects:
        """KL, perplexity and tokens touched on benign texts (None: `benign_texts()`)."""
        raise NotImplementedError

    def concepts(self) -> dict[str, tuple[int, ...]]:
        """Saved sets of prototypes by name; empty where the run has none."""
        raise NotImplementedError

    def concept(self, name: str) -> tuple[int, ...]:
        """Prototypes of a saved concept; the sentence lists those there are."""
        raise NotImplementedError

    def matched_random(self, prototypes: Sequence[int], seed: int = 0) -> tuple[int, ...]:
        """As many prototypes outside the set, matched on firing rate."""
        raise NotImplementedError

    def score(self, texts: Sequence[str]) -> Scores:
        """Both scorers on texts; a scorer that is not on this machine says so in `missing`."""
        raise NotImplementedError
