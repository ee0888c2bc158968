"""Scores of tokens become scores of words, so that models with different tokenizers compare.

Three steps, each keeping the sum: a token's score is spread evenly over its characters, characters
are added up within their word, and what no character carries goes into a slot of its own. A token
that spans no character (a mark of the beginning, say) has its score in that slot.

Two rules for spaces:

- `stripped`, ours: a token's score goes to its characters that are no space. Many tokenizers give a
  word the space before it and others do not; this way they agree. A token of spaces alone goes to
  the word before it, as a token that joins these spaces to that word would.
- `paper` (ABLE): the score goes to all characters evenly, a space belongs to the word before it,
  the first word takes spaces before it and the score of tokens that span nothing.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from engine.errors import UnsupportedModel


WordRule = Literal["stripped", "paper"]
RULES: tuple[WordRule, ...] = ("stripped", "paper")
CONSERVED = 1e-6
"""Largest difference allowed between the sum over words and slot and that over tokens, relative to
the sum of absolute token scores."""

Offsets = Int[np.ndarray, "tokens 2"]
"""First character of each token and the one after its last."""


@dataclass(frozen=True)
class WordMap:
    """Which share of each token's score each word takes: one linear map."""

    token: Int[np.ndarray, " entries"]
    """Token of each entry."""
    word: Int[np.ndarray, " entries"]
    """Word of each entry; the number of words stands for the slot."""
    share: Float[np.ndarray, " entries"]
    """Share of the token's score; the shares of a token add up to 1."""
    n_words: int
    """Words of the prompt."""

    def apply(
        self, scores: Float[np.ndarray, "options tokens"]
    ) -> tuple[Float[np.ndarray, "options words"], Float[np.ndarray, " options"]]:
        """Scores of words, and of the slot.

        Raises:
            UnsupportedModel: Their sum differs from that of the tokens.
        """
        found = np.zeros((scores.shape[0], self.n_words + 1))
        exact = scores.astype(np.float64)
        for option in range(scores.shape[0]):
            weights = exact[option, self.token] * self.share
            found[option] = np.bincount(self.word, weights=weights, minlength=self.n_words + 1)
        gap = np.abs(found.sum(1) - exact.sum(1))
        if bool((gap > CONSERVED * np.abs(exact).sum(1)).any()):
            raise UnsupportedModel(
                f"Attribution is lost between tokens and words (off by {gap.max():.3g}): the "
                "tokenizer's offsets do not fit its text."
            )
        return found[:, :-1], found[:, -1]


def character_words(prompt: str, spans: tuple[tuple[int, int], ...]) -> Int[np.ndarray, " chars"]:
    """Word of every character; a space belongs to the word before it, or to the first."""
    words = np.zeros(len(prompt), dtype=np.int64)
    for word, (start, _) in enumerate(spans):
        words[start:] = word
    return words


def word_map(
    prompt: str,
    spans: tuple[tuple[int, int], ...],
    offsets: Offsets,
    rule: WordRule = "stripped",
) -> WordMap:
    """How the scores of a prompt's tokens go to its words.

    Args:
        prompt: The text.
        spans: First and last character of each word, the latter exclusive; one at least.
        offsets: Of the tokens; what passes the prompt's end is clipped.
        rule: What becomes of spaces and of tokens that span nothing.
    """
    n_tokens, n_words = len(offsets), len(spans)
    start, end = np.clip(offsets, 0, len(prompt)).T
    lengths = np.maximum(end - start, 0)
    token = np.repeat(np.arange(n_tokens), lengths)
    character = np.arange(len(token)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    character += np.repeat(start, lengths)
    if rule == "stripped":
        solid = np.array([not letter.isspace() for letter in prompt], dtype=bool)[character]
        kept = solid | (np.bincount(token[solid], minlength=n_tokens)[token] == 0)
        token, character = token[kept], character[kept]
    word = character_words(prompt, spans)[character]
    pairs, counts = np.unique(token * n_words + word, return_counts=True)
    spanned = np.bincount(token, minlength=n_tokens)
    empty = np.flatnonzero(spanned == 0)
    rest = np.full_like(empty, 0 if rule == "paper" else n_words)
    return WordMap(
        token=np.concatenate([pairs // n_words, empty]),
        word=np.concatenate([pairs % n_words, rest]),
        share=np.concatenate([counts / spanned[pairs // n_words], np.ones(len(empty))]),
        n_words=n_words,
    )


def check_offsets(text: str, offsets: Offsets, name: str) -> None:
    """Refuse offsets that fall back or leave out letters and digits of a text of plain ASCII.

    Raises:
        UnsupportedModel: They do.
    """
    check_falls(offsets, name)
    covered = np.zeros(len(text), dtype=bool)
    for start, end in np.clip(offsets, 0, len(text)).tolist():
        covered[start:end] = True
    missed = [c for c, hit in zip(text, covered, strict=True) if c.isalnum() and not hit]
    if missed:
        raise _unfit(name, f"leave out {''.join(missed)[:20]!r}")


def check_falls(offsets: Offsets, name: str) -> None:
    """Refuse offsets that fall back in the text; tokens that span nothing are passed over.

    Raises:
        UnsupportedModel: They do.
    """
    spanning = offsets[offsets[:, 1] > offsets[:, 0]]
    if bool((np.diff(spanning, axis=0) < 0).any()):
        raise _unfit(name, "fall back in the text")


def _unfit(name: str, what: str) -> UnsupportedModel:
    return UnsupportedModel(
        f"The offsets of {name}'s tokenizer {what}, so its tokens cannot be laid on words; "
        "a newer release of `tokenizers` or of the model's tokenizer.json may mend that."
    )
