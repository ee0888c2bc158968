"""Attribution behind the pages and the command: a query in, training sequences out."""

import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float

from engine.corpus.documents import Progress, no_progress
from engine.errors import CacheMissing, ConfigError, CorpusError, PackageMissing, PromptError
from engine.influence.neighbours import States
from engine.live import records
from engine.live.attribution_pool import PoolTexts
from engine.live.attribution_query import Traced, query_statistics, resolve
from engine.live.attribution_results import (
    Attribution,
    AttributionPool,
    AttributionQuery,
    AttributionScores,
)
from engine.live.memory import Memory
from engine.live.reader import Reader
from engine.prism.attribution.gradient import VARIANTS, Variant, summed_gradient
from engine.prism.attribution.index import AttributionIndex, Prepared, ranked
from engine.store import Run
from engine.store.pools import DEFAULT_VARIANT


CACHED = "cached"
"""Name of the default variant among the methods."""
STATES: dict[str, States] = {"knn": "mean", "knn-last": "last"}
"""Methods that compare one state of each text; those of the pool are computed once."""
SHOWN_PROTOTYPES = 8
"""Prototypes listed of each result."""
_KEPT = 8


class Attributor:
    """The attribution pool of a loaded run. Methods are pure functions of their arguments.

    What is kept between calls changes speed alone.
    """

    def __init__(self, run: Run | None, name: str, reader: Reader) -> None:
        self._run = run
        self._name = name
        self._reader = reader
        self._prepared: Memory[Prepared] = Memory(_KEPT)
        self._scored: Memory[Float[np.ndarray, " sequences"]] = Memory(_KEPT)

    @cached_property
    def index(self) -> AttributionIndex:
        """The pool, opened, and its loops compiled.

        Raises:
            UnsupportedModel: the model has no bank.
            CacheMissing: there is no pool.
            CacheStale: it was made with another checkpoint, or is damaged.
        """
        self._reader.require_bank("attributed")
        if self._run is None:
            raise CacheMissing(
                f"{self._name} is a model folder and not a run, so it has no attribution pool; "
                "choose a run."
            )
        prism = self._reader.model.prism
        assert prism is not None
        with self._reader.lock:
            found = AttributionIndex.open(self._run, prism)
            found.warm()
        return found

    @cached_property
    def texts(self) -> PoolTexts:
        """Texts of the pool, from the corpus."""
        assert self._run is not None
        return PoolTexts(self.index, self._run)

    @property
    def pool(self) -> AttributionPool:
        """What can be searched."""
        index = self.index
        return AttributionPool(
            n_sequences=index.pool.n_sequences,
            n_tokens=index.pool.n_tokens,
            bits=int(index.facts["bits"]),
            length=int(index.facts["length"]),
            domains=tuple(sorted(set(index.sequences["domain"]))),
            variants=VARIANTS,
            default=DEFAULT_VARIANT,
            model=str(index.facts["model"]),
        )

    # --- scores -----------------------------------------------------------------------------

    def scores(
        self,
        query: AttributionQuery,
        method: str = CACHED,
        progress: Progress = no_progress,
    ) -> AttributionScores:
        """Score the whole pool for a query.

        Args:
            query: what is traced.
            method: `cached`, a variant of the cached statistics by name, or any other method of
                the registry (`full`, `ekfac`, `knn`, `tfidf`, `bm25`, ...), which read the texts
                of the pool from the corpus and are slow.
            progress: wraps what is slow.

        Raises:
            PromptError: the query cannot be read as asked.
            ConfigError: there is no such method.
            CacheMissing, CacheStale: there is no pool that fits the model.
            CorpusError: a method needs texts that are not on this machine.
        """
        method = DEFAULT_VARIANT if method == CACHED else method
        unit = method_unit(method)
        index = self.index
        traced = resolve(query, self._reader)
        start = time.perf_counter()
        statistics = query_statistics(traced, self._reader)
        seconds = {"pass": time.perf_counter() - start}
        if method in VARIANTS:
            found, more = self._cached(traced, statistics, Variant.parse(method))
        else:
            found, more = self._other(traced, method, progress)
        ids = index.sequences
        frame = pd.DataFrame(
            {
                "sequence": ids["sequence"],
                "document": ids["corpus_document"],
                "doc_id": ids["doc_id"],
                "domain": ids["domain"],
                "position": ids["start"],
                "n_tokens": ids["n_tokens"],
                "score": found.astype(np.float64),
            }
        )
        return AttributionScores(
            frame=frame,
            method=method,
            unit=unit,
            target="".join(self._reader.codec.texts(list(traced.targets))),
            target_ids=traced.targets,
            loss=float(statistics.loss.double().sum()),
            seconds={**seconds, **more},
            notices=traced.notices,
        )

    def _cached(
        self, traced: Traced, statistics: Any, variant: Variant
    ) -> tuple[Float[np.ndarray, " sequences"], Mapping[str, float]]:
        start = time.perf_counter()
        prepared = self._prepare(traced, statistics, variant)
        prepared_at = time.perf_counter()
        found = self.index.scores([prepared])[0]
        done = time.perf_counter()
        return found, {"preparation": prepared_at - start, "search": done - prepared_at}

    def _prepare(self, traced: Traced, statistics: Any, variant: Variant) -> Prepared:
        bank = self._reader.model.prototypes
        assert bank is not None

        def make() -> Prepared:
            found = query_statistics(traced, self._reader) if statistics is None else statistics
            with torch.inference_mode():
                gradient = summed_gradient(found, bank, variant.statistic)
                return self.index.prepare(gradient, variant)

        with self._reader.lock:
            return self._prepared.get((traced.ids, traced.rows, traced.targets, variant), make)

    def _other(
        self, traced: Traced, method: str, progress: Progress
    ) -> tuple[Float[np.ndarray, " sequences"], Mapping[str, float]]:
        """Scores of a method of the registry, over the texts of the pool."""
        from engine.influence.methods import method_named

        chosen = method_named(method)
        start = time.perf_counter()
        rows = self.texts.rows(progress)
        prepared_at = time.perf_counter()

        def score() -> Float[np.ndarray, " sequences"]:
            prism, query = self._reader.model.prism, traced.sequence()
            assert prism is not None
            if method in STATES:
                found = self.texts.likeness(prism, query, STATES[method], progress)
            else:
                found = chosen.score(prism, rows, query, progress)[0]
            return found.astype(np.float64)

        with self._reader.lock:
            found = self._scored.get((traced.ids, traced.rows, traced.targets, method), score)
        seconds = {"preparation": prepared_at - start, "search": time.perf_counter() - prepared_at}
        return found, seconds

    # --- results ----------------------------------------------------------------------------

    def attribute(
        self,
        query: AttributionQuery,
        method: str = CACHED,
        top: int = 20,
        progress: Progress = no_progress,
    ) -> Attribution:
        """The `top` training sequences that lower the loss of a query most.

        A pool smaller than that is shown whole, with a notice. Arguments and errors are those of
        `scores`.

        Raises:
            PromptError: fewer than one result was asked for.
        """
        if top < 1:
            raise PromptError(f"{top} results were asked for; choose 1 or more.")
        scored = self.scores(query, method, progress)
        best = ranked(scored.frame["score"].to_numpy(), top)
        results = scored.frame.iloc[best["sequence"]].reset_index(drop=True)
        results.insert(0, "rank", best["rank"].to_numpy())
        if top > scored.n_sequences:
            notice = (
                f"The pool holds {scored.n_sequences:,} sequences, fewer than the {top:,} asked "
                "for; all are shown."
            )
            scored = AttributionScores(**{**vars(scored), "notices": (*scored.notices, notice)})
        chosen = best["sequence"].tolist() if scored.method in VARIANTS else []
        shares = [
            self.shares(query, scored.method, sequence).head(SHOWN_PROTOTYPES).assign(rank=rank)
            for rank, sequence in enumerate(chosen, start=1)
        ]
        columns = ["rank", "prototype", "share"]
        frame = pd.concat(shares, ignore_index=True) if shares else pd.DataFrame(columns=columns)
        return Attribution(results, frame[columns], query, scored)

    def shares(self, query: AttributionQuery, method: str, sequence: int) -> pd.DataFrame:
        """What each prototype adds to a sequence's score, in the unit of the score.

        Returns:
            prototype, label, share; by falling absolute share. They add up to the score.

        Raises:
            ConfigError: the method has no prototypes.
        """
        found = self.index.shares(self._detail(query, method), self._checked(sequence))
        labels = records.read_labels(self._run)
        names = [labels.get(int(i), "") for i in found["prototype"]]
        found.insert(1, "label", pd.Series(names, dtype=object))
        return found

    def token_scores(
        self, query: AttributionQuery, method: str, sequences: Sequence[int]
    ) -> pd.DataFrame:
        """What each predicted token adds to the scores of some sequences.

        Returns:
            sequence, position (in its document), token_id (-1 where the corpus is not here),
            token, score; by sequence and position. They add up to the scores.

        Raises:
            ConfigError: the method has no token scores.
        """
        prepared = self._detail(query, method)
        parts = []
        for sequence in sequences:
            values = self.index.token_scores(prepared, self._checked(sequence))
            start = int(self.index.sequences["start"].iloc[sequence])
            tokens = self.texts.tokens(sequence)
            parts.append(
                pd.DataFrame(
                    {
                        "sequence": sequence,
                        "position": start + np.arange(len(values)),
                        "token_id": [token.token_id for token in tokens],
                        "token": pd.Series([token.text for token in tokens], dtype=object),
                        "score": values,
                    }
                )
            )
        columns = ["sequence", "position", "token_id", "token", "score"]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)

    def text(self, sequence: int) -> str:
        """Text of a sequence; empty where the corpus is not on this machine."""
        return "".join(token.text for token in self.texts.tokens(self._checked(sequence)))

    def overlap(
        self, query: AttributionQuery, methods: Sequence[str], top: int = 100
    ) -> pd.DataFrame:
        """How far other methods name the same first `top` sequences as the default variant.

        Returns:
            method, top (fewer in a smaller pool), overlap in [0, 1], seconds, reason (why a method
            could not be asked; empty otherwise).
        """
        from engine.influence.agreement import top_overlap

        own = self.scores(query).frame["score"].to_numpy()[None]
        n = min(top, own.shape[1])
        rows = []
        for method in methods:
            try:
                other = self.scores(query, method)
            except (CorpusError, PackageMissing, ConfigError) as error:
                rows.append((method, n, np.nan, 0.0, str(error)))
                continue
            values = other.frame["score"].to_numpy()[None]
            shared = float(top_overlap(own, values, n)[0])
            rows.append((method, n, shared, sum(other.seconds.values()), ""))
        names = pd.Index(["method", "top", "overlap", "seconds", "reason"])
        return pd.DataFrame(rows, columns=names)

    def _detail(self, query: AttributionQuery, method: str) -> Prepared:
        method = DEFAULT_VARIANT if method == CACHED else method
        if method not in VARIANTS:
            raise ConfigError(
                f"The method {method} scores whole texts and says nothing of tokens or prototypes; "
                f"choose {CACHED} or one of its variants."
            )
        traced = resolve(query, self._reader)
        return self._prepare(traced, None, Variant.parse(method))

    def _checked(self, sequence: int) -> int:
        n = self.index.pool.n_sequences
        if not 0 <= sequence < n:
            raise PromptError(f"There is no sequence {sequence}; the pool has 0 to {n - 1}.")
        return sequence


def method_unit(method: str) -> str:
    """Unit of a method's scores.

    Raises:
        ConfigError: there is no such method.
    """
    from engine.influence.methods import METHODS

    if method not in METHODS:
        raise ConfigError(
            f"There is no attribution method {method!r}; choose {CACHED} or one of "
            f"{', '.join(METHODS)}."
        )
    return METHODS[method].unit
