"""Prompts of a suppression study: openings of documents of a split, and spans that are recited."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from engine.corpus.build import Corpus
from engine.errors import CorpusError
from engine.live.text import Codec


RECITED_TOKENS = 12
"""Length of a verbatim span of training text that counts as recited."""
_LONGEST_TOKEN = 32
"""A token rarely holds more characters; the rest of a long text is not encoded."""
_PER_DOMAIN = 40
"""Documents read of each ordinary domain."""


@dataclass(frozen=True)
class Prompt:
    """The first tokens of a document, and the seed of one continuation."""

    doc_id: str
    domain: str
    ids: tuple[int, ...]
    seed: int
    """Seed of the sampler in every condition."""


@dataclass(frozen=True)
class PromptSource:
    """Where prompts come from."""

    corpus: Corpus
    codec: Codec
    domain: str
    prompt_tokens: int
    seed: int

    def unwanted(self, split: str, count: int) -> list[Prompt]:
        """Openings of documents of the concept's domain; when they end they come again.

        Half of the training documents are of the split `train`, for finding a set, and the others
        of the split `choice`, for choosing among sets, so that a choice is not made on the texts
        a set was fitted to.

        Raises:
            CorpusError: There is no such document that is longer than a prompt.
        """
        documents = self._documents(split)
        found = self._openings(documents[documents["domain"] == self.domain])
        if not found:
            raise CorpusError(
                f"The corpus {self.corpus.name} has no {_SPLIT[split]} texts of the domain "
                f"{self.domain} of more than {self.prompt_tokens} tokens; build the preset small "
                "or full with its package, or name another domain with --domain."
            )
        if split != "validation":
            order = np.random.default_rng(self.seed).permutation(len(found))
            cut = max(1, len(found) // 2)
            kept = order[:cut] if split == "train" or cut == len(found) else order[cut:]
            found = [found[i] for i in sorted(kept)]
        return self._repeat(found, count, split)

    def ordinary(self, split: str, count: int) -> list[Prompt]:
        """Openings of documents of the other domains, taken from these in turn."""
        documents = self._documents(split)
        others = documents[documents["domain"] != self.domain]
        generator = np.random.default_rng(self.seed)
        queues = []
        for _, rows in others.groupby("domain"):
            order = generator.permutation(len(rows))[:_PER_DOMAIN]
            queues.append(self._openings(rows.iloc[order]))
        depth = max((len(queue) for queue in queues), default=0)
        found = [queue[i] for i in range(depth) for queue in queues if len(queue) > i]
        if not found:
            raise CorpusError(
                f"The corpus {self.corpus.name} holds no {_SPLIT[split]} text outside the domain "
                f"{self.domain}; build a larger one."
            )
        return self._repeat(found, count, f"{split} ordinary", shuffle=False)

    def texts(self, split: str) -> list[list[int]]:
        """Tokens of the documents of the concept's domain."""
        documents = self._documents(split)
        own = documents.loc[documents["domain"] == self.domain, "document"]
        return [self.codec.encode(self.corpus.text(int(i)), "document") for i in own]

    def _documents(self, split: str) -> pd.DataFrame:
        frame = self.corpus.documents[["document", "doc_id", "domain", "split"]]
        return frame[frame["split"] == ("validation" if split == "validation" else "train")]

    def _openings(self, documents: pd.DataFrame) -> list[tuple[str, str, tuple[int, ...]]]:
        found = []
        columns = zip(documents["document"], documents["doc_id"], documents["domain"], strict=True)
        for document, doc_id, domain in columns:
            text = self.corpus.text(int(document))[: _LONGEST_TOKEN * (self.prompt_tokens + 1)]
            ids = self.codec.encode(text, "document") if text.strip() else []
            if len(ids) > self.prompt_tokens:
                found.append((str(doc_id), str(domain), tuple(ids[: self.prompt_tokens])))
        return found

    def _repeat(
        self,
        found: Sequence[tuple[str, str, tuple[int, ...]]],
        count: int,
        kind: str,
        *,
        shuffle: bool = True,
    ) -> list[Prompt]:
        """`count` prompts, every opening as often as any other up to one, each with its seed."""
        order = np.arange(len(found))
        if shuffle:
            order = np.random.default_rng(self.seed).permutation(len(found))
        first = self.seed * 1_000_003 + _FIRST_SEED[kind]
        chosen = [found[order[number % len(order)]] for number in range(count)]
        return [
            Prompt(doc_id, domain, ids, first + number)
            for number, (doc_id, domain, ids) in enumerate(chosen)
        ]


_SPLIT = {"train": "training", "choice": "training", "validation": "held-out"}
_FIRST_SEED = {
    "validation": 0,
    "validation ordinary": 200_000_000,
    "train": 400_000_000,
    "train ordinary": 600_000_000,
    "choice": 800_000_000,
}
"""First seed of the sampler, apart for prompts that settings are chosen on."""


def training_spans(texts: Sequence[Sequence[int]]) -> frozenset[tuple[int, ...]]:
    """Every span of `RECITED_TOKENS` tokens of some texts."""
    return frozenset(
        tuple(ids[start : start + RECITED_TOKENS])
        for ids in texts
        for start in range(len(ids) - RECITED_TOKENS + 1)
    )


def recites(ids: Sequence[int], spans: frozenset[tuple[int, ...]]) -> bool:
    """Whether a generation holds one of the spans."""
    starts = range(len(ids) - RECITED_TOKENS + 1)
    return any(tuple(ids[start : start + RECITED_TOKENS]) in spans for start in starts)
