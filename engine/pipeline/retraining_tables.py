"""What pool, queries, subsets and outcomes of a study are, as tables: ids and numbers."""

import numpy as np
import pandas as pd
from jaxtyping import Bool, Shaped

from engine.corpus.shards import TokenShards
from engine.pipeline.retraining_facts import Fact
from engine.pipeline.retraining_outcomes import SubsetOutcomes
from engine.pipeline.retraining_pool import (
    HELD_OUT,
    PLANTED,
    StudyData,
    fact_doc_id,
    fact_text,
)


DEVELOPMENT, REPORT = "development", "report"
"""Halves of the held-out queries: the default variant is chosen on the first, reported on the
second."""


def halves(data: StudyData) -> Shaped[np.ndarray, " queries"]:
    """The half each query belongs to: held-out queries of a domain take turns."""
    frame = pd.DataFrame({"kind": data.kind, "domain": data.queries.domain})
    turn = frame.groupby(["kind", "domain"], sort=False).cumcount().to_numpy()
    half = np.where(turn % 2 == 0, DEVELOPMENT, REPORT).astype(object)
    return np.where(data.kind == HELD_OUT, half, PLANTED)


def data_tables(data: StudyData, shards: TokenShards) -> dict[str, pd.DataFrame]:
    """The tables `retraining_pool`, `retraining_queries` and `planted_facts`."""
    return {
        "retraining_pool": _pool_table(data, shards),
        "retraining_queries": _query_table(data, shards),
        "planted_facts": _fact_table(data),
    }


def outcome_tables(found: SubsetOutcomes, seeds: list[int]) -> dict[str, pd.DataFrame]:
    """The tables `retraining_subsets` and `retraining_outcomes` of the finished subsets.

    Args:
        found: Finished subsets.
        seeds: Seeds of their trainings, in order.
    """
    n_seeds, n_subsets, n_queries = found.losses.shape
    subsets = pd.DataFrame(
        {
            "subset": found.subsets,
            "n_members": found.members.sum(1),
            "members": [packed(row) for row in found.members],
        }
    )
    outcomes = pd.DataFrame(
        {
            "subset": np.repeat(found.subsets, n_seeds * n_queries),
            "seed": np.tile(np.repeat(seeds, n_queries), n_subsets),
            "query": np.tile(np.arange(n_queries), n_subsets * n_seeds),
            "loss": found.losses.swapaxes(0, 1).ravel(),
        }
    )
    return {"retraining_subsets": subsets, "retraining_outcomes": outcomes}


def packed(members: Bool[np.ndarray, " pool"]) -> str:
    """Members as hexadecimal digits of their bits, sequence 0 first."""
    return np.packbits(members).tobytes().hex()


def pool_doc_ids(data: StudyData, shards: TokenShards) -> Shaped[np.ndarray, " pool"]:
    """Id of the document of each sequence of the pool; those of facts are in no corpus."""
    ids = shards.corpus.documents["doc_id"].to_numpy(object)
    planted = [fact_doc_id(fact) for fact in data.facts]
    return np.array([*ids[data.pool.document[: data.n_real]], *planted], dtype=object)


def _pool_table(data: StudyData, shards: TokenShards) -> pd.DataFrame:
    rows = np.arange(len(data.pool))
    fact = np.where(rows < data.n_real, -1, rows - data.n_real)
    return pd.DataFrame(
        {
            "sequence": rows,
            "doc_id": pool_doc_ids(data, shards),
            "domain": data.pool.domain,
            "start": data.pool.start,
            "n_tokens": data.pool.length,
            "fact": fact,
        }
    )


def _query_table(data: StudyData, shards: TokenShards) -> pd.DataFrame:
    ids = shards.corpus.documents["doc_id"].to_numpy(object)
    document, fact = data.queries.document, data.fact_of_query
    return pd.DataFrame(
        {
            "query": np.arange(len(data.queries)),
            "kind": data.kind,
            "doc_id": [ids[d] if f < 0 else None for d, f in zip(document, fact, strict=True)],
            "domain": data.queries.domain,
            "start": data.queries.start,
            "n_predicted": data.queries.predicted.sum(1),
            "fact": fact,
            "half": halves(data),
        }
    )


def _fact_table(data: StudyData) -> pd.DataFrame:
    return pd.DataFrame([_fact_row(fact, data.n_real) for fact in data.facts])


def _fact_row(fact: Fact, first: int) -> dict[str, object]:
    (repeated, _), (rephrased, _) = fact.questions
    return {
        "fact": fact.number,
        "relation": fact.relation,
        "subject": fact.subject,
        "answer": fact.answer,
        "text": fact_text(fact),
        "repeated_prompt": repeated,
        "rephrased_prompt": rephrased,
        "sequence": first + fact.number,
    }
