"""The attribution tables of a synthetic run: random numbers of the right shape, no result."""

import numpy as np
import pandas as pd

from engine.pipeline.synthetic_tables import Columns


_QUERIES, _POOL, _TOP = 13, 307, 100
_METHODS = ("path", "errors", "full", "ekfac", "projected", "knn", "random")
_REFERENCES = ("full", "ekfac")
_STATISTICS = ("activations", "errors", "path")


def pool_tables(
    generator: np.random.Generator,
    documents: Columns,
    n_prototypes: int,
) -> tuple[Columns, Columns]:
    """Sequences and prototypes of an attribution pool; its arrays are left out.

    Args:
        generator: Source of every number.
        documents: The run's table of documents.
        n_prototypes: Prototypes of the bank.

    Returns:
        Columns of `attribution_sequences` and of `attribution_prototypes`.
    """
    chosen = np.sort(generator.choice(len(documents["document"]), 11, replace=False))
    lengths = generator.integers(5, 40, len(chosen))
    norms = {f"{name}_norm": generator.gamma(3.0, 1.0, len(chosen)) for name in _STATISTICS}
    sequences = {
        "sequence": np.arange(len(chosen)),
        "doc_id": [documents["doc_id"][i] for i in chosen],
        "domain": [documents["domain"][i] for i in chosen],
        "corpus_document": chosen,
        "start": np.zeros(len(chosen), np.int64),
        "n_tokens": lengths,
        "loss": generator.gamma(2.0, 1.5, len(chosen)) * lengths,
        "inverse_square_norm": generator.uniform(0.01, 0.1, len(chosen)),
        **norms,
    }
    active = generator.integers(1, 29, n_prototypes)
    largest = generator.beta(8, 3, n_prototypes)
    prototypes = {
        "prototype": np.arange(n_prototypes),
        "n_active_tokens": active,
        "usage": active * largest**2 / 2,
        "largest": largest,
        "nearest": active * largest / 3,
    }
    return sequences, prototypes


def attribution_tables(
    generator: np.random.Generator, domains: tuple[str, ...]
) -> dict[str, Columns]:
    """A small study of agreement.

    Args:
        generator: Source of every number.
        domains: Domains of the run.
    """
    pairs = [(m, r) for m in _METHODS for r in _REFERENCES if m != r]
    frame = pd.DataFrame(
        [(*pair, query) for pair in pairs for query in range(_QUERIES)],
        columns=pd.Index(["method", "reference", "query"]),
    )
    share = generator.beta(4, 2, len(frame))
    frame["domain"] = [domains[query % len(domains)] for query in frame["query"]]
    frame["overlap_10"] = np.round(share * 10) / 10
    frame["overlap_top"] = np.round(share * _TOP) / _TOP
    frame["top"] = _TOP
    frame["spearman"] = 2 * share - 1
    n = len(_METHODS)
    costs = {
        "method": list(_METHODS),
        "bits": pd.array([8, 8, *[None] * (n - 2)], dtype="Int32"),
        "bytes_a_sequence": [58_000.0, 31_000.0, 0.0, 0.0, 35_840.0, 768.0, 0.0],
        "seconds": generator.uniform(1, 300, n),
        "cpu_seconds": generator.uniform(1, 300, n),
        "pool": np.full(n, _POOL),
        "queries": np.full(n, _QUERIES),
        "pool_tokens": np.full(n, _POOL * 127),
    }
    agreement = {str(name): frame[name] for name in frame}
    return {"attribution_agreement": agreement, "attribution_costs": costs}
