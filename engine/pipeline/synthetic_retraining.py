"""The tables of the study by retraining of a synthetic run: random numbers, no result."""

from collections.abc import Hashable, Iterable

import numpy as np
import pandas as pd

from engine.pipeline.synthetic_tables import Columns


_SUBSETS, _SEEDS, _QUERIES, _FACTS, _POOL = 13, (0, 1), 23, 3, 59
_METHODS = ("errors", "path+diagonal+unit", "path+coupled", "ekfac", "knn", "tfidf", "random")
_SCOPES = ("all", "domain")
_PARTS = ("top", "bottom")


def retraining_tables(
    generator: np.random.Generator, doc_ids: list[str], domains: tuple[str, ...]
) -> dict[str, Columns]:
    """A small study over documents of the run.

    Args:
        generator: Source of every number.
        doc_ids: Documents of the run.
        domains: Domains of the run.
    """
    frames = {
        "retraining_pool": _pool(generator, doc_ids, domains),
        "retraining_queries": _queries(generator, doc_ids, domains),
        "planted_facts": _facts(),
        "retraining_subsets": _subsets(generator),
        "retraining_outcomes": _outcomes(generator),
        "retraining_lds": _lds(generator),
        "retraining_removal": _removal(generator, domains),
        "planted_recall": _recall(generator),
        "attribution_validity": _validity(generator),
    }
    return {table: {str(c): frame[c] for c in frame} for table, frame in frames.items()}


def _grid(**values: Iterable[Hashable]) -> pd.DataFrame:
    """Every combination, the last name varying fastest."""
    return pd.MultiIndex.from_product(list(values.values()), names=list(values)).to_frame(False)


def _pool(
    generator: np.random.Generator, doc_ids: list[str], domains: tuple[str, ...]
) -> pd.DataFrame:
    rows = np.arange(_POOL)
    fact = np.where(rows < _POOL - _FACTS, -1, rows - (_POOL - _FACTS))
    return pd.DataFrame(
        {
            "sequence": rows,
            "doc_id": [doc_ids[row % len(doc_ids)] for row in rows],
            "domain": np.where(fact < 0, np.array(domains, object)[rows % len(domains)], "planted"),
            "start": generator.integers(0, 90, _POOL),
            "n_tokens": 128,
            "fact": fact,
        }
    )


def _queries(
    generator: np.random.Generator, doc_ids: list[str], domains: tuple[str, ...]
) -> pd.DataFrame:
    rows = np.arange(_QUERIES)
    asked = rows - (_QUERIES - 2 * _FACTS)
    real = asked < 0
    kind = np.where(real, "held-out", np.where(asked < _FACTS, "repeated", "rephrased"))
    return pd.DataFrame(
        {
            "query": rows,
            "kind": kind,
            "doc_id": [doc_ids[row % len(doc_ids)] if real[row] else None for row in rows],
            "domain": np.where(real, np.array(domains, object)[rows % len(domains)], "planted"),
            "start": generator.integers(0, 90, _QUERIES) * real,
            "n_predicted": np.where(real, 127, 5),
            "fact": np.where(real, -1, asked % _FACTS),
            "half": np.where(real, np.where(rows % 2 == 0, "development", "report"), "planted"),
        }
    )


def _facts() -> pd.DataFrame:
    rows = np.arange(_FACTS)
    return pd.DataFrame(
        {
            "fact": rows,
            "relation": "keeper",
            "subject": [f"Subject {row}" for row in rows],
            "answer": [f"Answer {row}" for row in rows],
            "text": [f"Subject {row} is kept by Answer {row}." for row in rows],
            "repeated_prompt": [f"Subject {row} is kept by" for row in rows],
            "rephrased_prompt": [f"The keeper of Subject {row} is" for row in rows],
            "sequence": rows + _POOL - _FACTS,
        }
    )


def _subsets(generator: np.random.Generator) -> pd.DataFrame:
    members = generator.random((_SUBSETS, _POOL)) < 0.5
    return pd.DataFrame(
        {
            "subset": np.arange(_SUBSETS),
            "n_members": members.sum(1),
            "members": [np.packbits(row).tobytes().hex() for row in members],
        }
    )


def _outcomes(generator: np.random.Generator) -> pd.DataFrame:
    frame = _grid(subset=range(_SUBSETS), seed=_SEEDS, query=range(_QUERIES))
    return frame.assign(loss=generator.gamma(20.0, 20.0, len(frame)))


def _lds(generator: np.random.Generator) -> pd.DataFrame:
    frame = _grid(method=(*_METHODS, "ceiling"), scope=_SCOPES, query=range(_QUERIES))
    return frame.assign(spearman=generator.uniform(-0.2, 0.8, len(frame)))


def _removal(generator: np.random.Generator, domains: tuple[str, ...]) -> pd.DataFrame:
    ranked = _grid(domain=domains, method=_METHODS[:-1], part=_PARTS, seed=_SEEDS)
    control = _grid(domain=domains, method=_METHODS[-1:], part=("random",), seed=_SEEDS)
    frame = pd.concat([ranked, control], ignore_index=True)
    loss = generator.gamma(20.0, 20.0, len(frame))
    return frame.assign(
        n_removed=5, n_queries=4, loss=loss, full_loss=loss - generator.random(len(frame))
    )


def _recall(generator: np.random.Generator) -> pd.DataFrame:
    asked = range(_QUERIES - 2 * _FACTS, _QUERIES)
    frame = _grid(method=_METHODS, query=asked)
    return frame.assign(rank=generator.integers(1, _POOL + 1, len(frame)))


def _validity(generator: np.random.Generator) -> pd.DataFrame:
    frame = _grid(method=_METHODS, scope=_SCOPES)
    lds = generator.uniform(0.0, 0.6, len(frame))
    return frame.assign(
        model="0" * 16,
        pool="1" * 16,
        measured="2026-01-01",
        lds=lds,
        low=lds - 0.05,
        high=lds + 0.05,
        subset_low=lds - 0.08,
        subset_high=lds + 0.08,
        ceiling=0.7,
        n_subsets=_SUBSETS,
        n_seeds=len(_SEEDS),
        n_queries=_QUERIES // 2,
        is_default=frame["method"] == "path+coupled",
    )
