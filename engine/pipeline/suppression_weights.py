"""What each word and each token adds to a scorer's value: words are left out, or stand alone."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from engine.live.text import Codec


Score = Callable[[Sequence[str]], Sequence[float]]
"""A scorer: texts in, values in [0, 1] out."""
SHRINKAGE = 2.0
"""Occurrences without effect added to every token, so that one odd text makes no weight."""
_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class WordEffects:
    """What the words of some texts do to a score."""

    text: Int[np.ndarray, " words"]
    """Text a word stands in."""
    start: Int[np.ndarray, " words"]
    """First character of the word."""
    end: Int[np.ndarray, " words"]
    """Character behind it."""
    effect: Float[np.ndarray, " words"]
    """What the word adds to the score of its text."""


def word_effects(texts: Sequence[str], score: Score) -> WordEffects:
    """Effect of every word on the score of its text.

    A word's share of a sum that saturates lies between two ends: what it takes away when it goes
    last, score(text) - score(text without it), and what it brings when it comes first,
    score(it) - score(nothing). The mean of both is Shapley's value for two words.
    """
    spans = [(i, m.start(), m.end()) for i, text in enumerate(texts) for m in _WORD.finditer(text)]
    if not spans:
        empty = np.zeros(0, np.int64)
        return WordEffects(empty, empty, empty, np.zeros(0))
    words = [texts[i][a:b] for i, a, b in spans]
    distinct = sorted(set(words))
    alone = dict(zip(distinct, score(distinct), strict=True))
    nothing = float(score([""])[0])
    whole = np.array(score(texts), np.float64)
    without = np.array(score([texts[i][:a] + texts[i][b:] for i, a, b in spans]), np.float64)
    text, start, end = (np.array(column, np.int64) for column in zip(*spans, strict=True))
    first = np.array([alone[word] - nothing for word in words])
    return WordEffects(text, start, end, (whole[text] - without + first) / 2)


def unwanted_words(texts: Sequence[str], score: Score, least: float = 0.5) -> list[str]:
    """Lower-case words, letters alone, that score `least` or more by themselves."""
    found = {word for text in texts for word in re.findall(r"[^\W\d_]{3,}", text.casefold())}
    words = sorted(found)
    return [word for word, value in zip(words, score(words), strict=True) if value >= least]


@dataclass(frozen=True)
class TokenEffects:
    """Tokens of some texts, one after the other, and the words they are pieces of."""

    word: Int[np.ndarray, " tokens"]
    """Number of the word a token is part of; -1 between words."""
    effect: Float[np.ndarray, " words"]
    """What each word adds to the score of its text."""

    @property
    def share(self) -> Float[np.ndarray, " tokens"]:
        """A word's effect over its pieces in equal parts; 0 between words."""
        inside = self.word >= 0
        pieces = np.bincount(self.word[inside], minlength=len(self.effect))
        shares = np.zeros(len(self.word))
        shares[inside] = (self.effect / np.maximum(pieces, 1))[self.word[inside]]
        return shares

    @property
    def whole(self) -> Float[np.ndarray, " tokens"]:
        """The effect of the whole word at each of its pieces; 0 between words."""
        return np.where(self.word >= 0, np.append(self.effect, 0.0)[self.word], 0.0)


def token_effects(tokens: Sequence[Sequence[int]], codec: Codec, score: Score) -> TokenEffects:
    """Words of some texts and the tokens they consist of.

    A token between two words that holds the end of one and the beginning of the other counts to
    the later one.

    Args:
        tokens: Token ids of each text.
        codec: Gives their texts.
        score: The scorer.
    """
    pieces = [codec.texts(list(ids)) for ids in tokens]
    effects = word_effects(["".join(parts) for parts in pieces], score)
    first = np.searchsorted(effects.text, np.arange(len(tokens) + 1))
    found = []
    for number, parts in enumerate(pieces):
        lengths = np.array([len(part) for part in parts], np.int64)
        ends = np.cumsum(lengths)
        own = np.full(len(parts), -1, np.int64)
        for word in range(first[number], first[number + 1]):
            own[(ends - lengths < effects.end[word]) & (ends > effects.start[word])] = word
        found.append(own)
    return TokenEffects(np.concatenate([*found, np.zeros(0, np.int64)]), effects.effect)


def token_weights(
    tokens: Int[np.ndarray, " tokens"], share: Float[np.ndarray, " tokens"], vocab_size: int
) -> Float[np.ndarray, " vocab"]:
    """Mean effect of each token of the vocabulary, shrunk towards 0 where it is rare."""
    total = np.bincount(tokens, share, minlength=vocab_size)
    return total / (np.bincount(tokens, minlength=vocab_size) + SHRINKAGE)
