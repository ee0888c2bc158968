"""The samples that raise a head most, read back from a run: their tokens and their text."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int
from tokenizers import Tokenizer

from engine.corpus.build import open_corpus
from engine.corpus.documents import Progress, no_progress
from engine.corpus.shards import TokenShards, tokenise_corpus
from engine.corpus.tokenizer import load_tokenizer, plain_encoder
from engine.errors import CacheMissing, CorpusError
from engine.mda.arms import Sample
from engine.mda.settings import MixtureConfig
from engine.mda.stream import MixedStream
from engine.snippets import tokenizer_of
from engine.store import Run, query, read_table


TABLES = ("head_samples", "head_influence", "head_choices")
"""Tables that a head's samples are read from."""


@dataclass(frozen=True)
class TopSamples:
    """Samples of a kind of head, in training order of each seed."""

    samples: tuple[tuple[int, int, int], ...]
    """Seed, step and row of each."""
    rows: tuple[Int[np.ndarray, " _"], ...]
    """Token ids of each; shorter than a whole row where only a piece of a document is known."""
    texts: tuple[str, ...]
    """Text of each."""


class SampleReader:
    """Reads samples of a run back from its corpus; samples that were generated are made anew."""

    def __init__(self, run: Run, progress: Progress = no_progress) -> None:
        """Open the run's corpus in the run's tokens.

        Raises:
            CacheMissing: the run holds no influence on heads.
            CorpusError: the corpus is not built, or is in another state than the run's.
        """
        for table in TABLES:
            run.files(table)
        self.run = run
        self.tokenizer: Tokenizer = plain_encoder(load_tokenizer(tokenizer_of(run.model_path)))
        self.shards: TokenShards = tokenise_corpus(_corpus_of(run), self.tokenizer, progress)
        self._stream = lru_cache(maxsize=1)(self._open_stream)
        self._mixtures: dict[str, Any] = _stage_facts(run, "study").get("mixtures", {})

    @property
    def units(self) -> list[str]:
        """Kinds of heads that samples were scored for."""
        return sorted(set(read_table(self.run, "head_choices", columns=["unit"])["unit"]))

    def tokenise(self, text: str) -> list[int]:
        """Token ids of a text."""
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def top(self, unit: str, seed: int | None = None) -> TopSamples:
        """The samples that raise the chosen head of a kind most, as many as were selected.

        Args:
            unit: kind of head.
            seed: one seed; all of the run if None.

        Raises:
            CacheMissing: no samples were scored for such heads.
        """
        choices = choices_of(self.run, unit, seed)
        found: list[tuple[int, int, int]] = []
        rows: list[Int[np.ndarray, " _"]] = []
        for _, choice in choices.iterrows():
            own = self._selected(choice)
            found += [(int(choice["seed"]), step, row) for step, row in own]
            rows += self._rows(int(choice["seed"]), own)
        texts = self.tokenizer.decode_batch([row.tolist() for row in rows])
        return TopSamples(tuple(found), tuple(rows), tuple(texts))

    def _selected(self, choice: Any) -> list[Sample]:
        """Step and row of the samples with the largest influence, ties by order."""
        column = list(choice["heads"]).index(f"{choice['layer']}.{choice['head']}") + 1
        frame = query(
            self.run,
            "SELECT step, row FROM (SELECT step, row, influence[?] AS value FROM head_influence "
            "WHERE seed = ? AND unit = ?) WHERE isfinite(value) "
            "ORDER BY value DESC, step, row LIMIT ?",
            [column, int(choice["seed"]), choice["unit"], int(choice["n_selected"])],
        )
        return sorted((int(step), int(row)) for step, row in frame.itertuples(index=False))

    def _rows(self, seed: int, samples: list[Sample]) -> list[Int[np.ndarray, " _"]]:
        if str(seed) in self._mixtures:
            stream = self._stream(seed)
            return [stream.batch(step)[row] for step, row in samples]
        wanted = read_table(self.run, "head_samples", where={"seed": seed})
        names = ["step", "row", "document", "position"]
        numbers = wanted[names].to_numpy(np.int64)
        places = {(int(n[0]), int(n[1])): (int(n[2]), int(n[3])) for n in numbers}
        documents = self._documents()
        chosen = [places[sample] for sample in samples]
        return [self._window(documents.get(document), at) for document, at in chosen]

    def _documents(self) -> dict[int, int]:
        """Numbers of documents in the corpus, by their numbers in the run."""
        known = read_table(self.run, "documents", columns=["document", "doc_id"])
        pairs = zip(known["document"], known["doc_id"], strict=True)
        places = {int(number): self.shards.corpus.position_of(str(name)) for number, name in pairs}
        return {number: place for number, place in places.items() if place is not None}

    def _window(self, document: int | None, position: int) -> Int[np.ndarray, " _"]:
        """The tokens of a row that lie in the document it begins in, no separator among them.

        A row at position 0 may begin with the separator, and then holds one token less.
        """
        order = _stage_facts(self.run, "influence").get("shared", {}).get("order")
        if order is None or document is None:
            raise CacheMissing(
                f"Run {self.run.name} does not say how its rows were made, so its samples cannot "
                f"be read; make it again with `{self.run.command_of_stage('influence')}`."
            )
        length = int(order[1]) + (position > 0)
        first = 1 + position  # the separator in front is not counted
        return self.shards.run(document)[first : first + length].astype(np.int64)

    def _open_stream(self, seed: int) -> MixedStream:
        return MixedStream(self.shards, MixtureConfig(**self._mixtures[str(seed)]))


def choices_of(run: Run, unit: str, seed: int | None = None) -> pd.DataFrame:
    """Rows of `head_choices` of a kind of head, in one seed or in all.

    Raises:
        CacheMissing: no samples were scored for such heads.
    """
    where = {"unit": unit} if seed is None else {"unit": unit, "seed": seed}
    choices = read_table(run, "head_choices", where=where)
    if choices.empty:
        known = sorted(set(read_table(run, "head_choices", columns=["unit"])["unit"]))
        raise CacheMissing(
            f"Run {run.name} has no samples scored for {unit} heads"
            + (f" in seed {seed}; " if seed is not None else "; ")
            + f"it knows {', '.join(known)}."
        )
    return choices


def _stage_facts(run: Run, stage: str) -> dict[str, Any]:
    return run.manifest.get("stages", {}).get(stage, {})


def _corpus_of(run: Run) -> Any:
    facts = run.manifest.get("corpus") or {}
    if "name" not in facts:
        raise CacheMissing(f"Run {run.name} names no corpus, so its samples have no text.")
    corpus = open_corpus(facts["name"])
    if corpus.fingerprint != facts["fingerprint"]:
        raise CorpusError(
            f"The corpus {corpus.name} is in another state than the one of run {run.name}, so its "
            "samples cannot be found; build that corpus again from the same packages."
        )
    return corpus
