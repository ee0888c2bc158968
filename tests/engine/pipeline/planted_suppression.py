"""A tiny indexed run and a planted corpus of unwanted and ordinary texts."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from engine.corpus.build import Corpus, DomainRange
from engine.store import RunWriter
from tests.engine import tiny_models


BAD = "dog"
TEXTS = {
    "unwanted": (
        "the dog and the fox run over the river by the bank one two three",
        "words and dog numbers jump over the lazy valley and the dog sleeps",
        "a lazy dog of the river runs and the fox sleeps near the dog valley",
        "one dog two dog three four five words over the bank dog",
        "the quick valley jumps over the brown river bank and the dog",
        "five numbers",
    ),
    "fiction": (
        "the river bank is brown and the valley is quick and one fox jumps",
        "numbers jump over words and a quick river runs near the bank",
        "one two three four five numbers over a brown valley by the river",
        "the fox sleeps near the bank and a river runs over the valley",
    ),
    "law": (
        "words near the river over the bank and numbers by the valley one",
        "two words and three numbers jump over the brown bank near a fox",
    ),
}
TRAINING = {"unwanted": 3, "fiction": 2, "law": 1}
"""The first texts of each domain are training texts."""


class PlantedCorpus(Corpus):
    """The texts above, held in memory."""

    def __init__(self) -> None:
        self.path = Path("planted")
        self.missing: dict[str, str] = {}
        self.texts = [text for own in TEXTS.values() for text in own]
        rows = [
            (domain, "train" if number < TRAINING[domain] else "validation")
            for domain, own in TEXTS.items()
            for number in range(len(own))
        ]
        self.documents = pd.DataFrame(rows, columns=["domain", "split"])
        self.documents["document"] = range(len(rows))
        self.documents["doc_id"] = [f"{i:016x}" for i in range(len(rows))]
        self.domains: dict[str, DomainRange] = {}
        self._positions = None

    def text(self, document: int) -> str:
        return self.texts[document]


def save_indexed_run(path: Path) -> Path:
    """A run with what the search reads: labels, signatures, examples, domains."""
    tiny_models.save_run(path)
    tokenizer = tiny_models.tiny_tokenizer()
    generator = np.random.default_rng(4)
    n = tiny_models.N_PROTOTYPES
    documents = PlantedCorpus().documents
    lengths = [len(tokenizer.encode(text).ids) for text in PlantedCorpus().texts]
    document = generator.integers(0, len(lengths), n)
    position = np.array([generator.integers(0, lengths[d]) for d in document])
    share = generator.random(n)
    active = tiny_models.prototypes_frame()["n_active_tokens"].to_numpy()
    inside = (active * share).astype(int)
    expected = np.maximum(active * 0.4, 1e-9)
    tables: dict[str, dict[str, Any]] = {
        "documents": {
            "document": documents["document"],
            "doc_id": documents["doc_id"],
            "domain": documents["domain"],
            "source": documents["doc_id"],
            "split": documents["split"],
            "n_bytes": [len(text) for text in PlantedCorpus().texts],
        },
        "prototype_signatures": {
            "prototype": np.arange(n),
            "side": ["top"] * n,
            "rank": np.zeros(n, int),
            "token_id": generator.integers(1, tiny_models.VOCAB - 1, n),
            "logit": np.ones(n),
        },
        "prototype_examples": {
            "prototype": np.arange(n),
            "band": np.zeros(n, int),
            "rank": np.zeros(n, int),
            "document": document,
            "position": position,
            "activation": np.full(n, 0.5),
            "window_start": np.zeros(n, int),
            "window_activations": [[0.5]] * n,
        },
        "prototype_domains": {
            "prototype": np.arange(n),
            "domain": ["unwanted"] * n,
            "n_active_tokens": inside,
            "share": share,
            "lift": inside / expected,
        },
    }
    writer = RunWriter.resume(path)
    writer.begin_stage("scan", {"seed": 0})
    for name, columns in tables.items():
        writer.write_table(name, pd.DataFrame(columns))
    writer.finish_stage("scan", {"seconds": 1.0})
    return path


class Counting:
    """A scorer: half for the bad word, the rest for the share of its letters."""

    name = "counting"
    meaning = "share of letters d, o and g, and of the word dog"

    def score(self, texts):
        return [
            min(1.0, 0.5 * (BAD in text) + 0.5 * sum(c in BAD for c in text) / max(1, len(text)))
            for text in texts
        ]


class Vowels:
    """Another scorer."""

    name = "vowels"
    meaning = "share of vowels"

    def score(self, texts):
        return [sum(c in "aeiou" for c in text) / max(1, len(text)) for text in texts]
