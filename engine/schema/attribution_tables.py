"""The attribution pool of a run; how far attribution methods agree on one, and their costs."""

import pyarrow as pa

from engine.schema.columns import (
    DOMAIN,
    PROTOTYPE,
    ColumnSpec,
    TableSpec,
    count,
    identifier,
    real,
    text,
)


_METHOD = text("method", "Name of the method")

ATTRIBUTION_SEQUENCES = TableSpec(
    "attribution_sequences",
    "Training sequences of the attribution pool; the numbers of their tokens lie in arrays beside",
    "one row per sequence",
    ("sequence",),
    (
        identifier("sequence", "Sequence of the pool, counted from 0"),
        ColumnSpec("doc_id", pa.string(), "id", "Document it is a stretch of"),
        DOMAIN,
        ColumnSpec(
            "corpus_document",
            pa.int32(),
            "number",
            "Row of that document in the corpus's own `documents` table; -1 where it is not in it",
        ),
        identifier("start", "Position in the document of its first predicted token"),
        count("n_tokens", "Predicted tokens; the arrays hold as many rows for it"),
        real("loss", "number", "Sum of -log p over its predicted tokens, nats"),
        real("inverse_square_norm", "number", "Mean of 1 / |z|^2 over its tokens"),
        real("activations_norm", "number", "Norm of its summed activations"),
        real("errors_norm", "number", "Norm of its gradient, activations held constant"),
        real("path_norm", "number", "Norm of its gradient with the path through the activations"),
    ),
    sharded=True,
)

ATTRIBUTION_PROTOTYPES = TableSpec(
    "attribution_prototypes",
    "What the preconditioner needs of each prototype, over the tokens of the attribution pool",
    "one row per prototype",
    ("prototype",),
    (
        PROTOTYPE,
        count("n_active_tokens", "Tokens of the pool on which it is active"),
        ColumnSpec(
            "usage", pa.float64(), "number", "Sum of its squared activations: diagonal of C"
        ),
        real("largest", "share", "Largest activation"),
        ColumnSpec(
            "nearest",
            pa.float64(),
            "number",
            "Sum of the activations of the tokens it is nearest to",
        ),
    ),
)

ATTRIBUTION_AGREEMENT = TableSpec(
    "attribution_agreement",
    "Agreement of every method's ranking of one pool with the rankings it is held against",
    "one row per method, reference and query",
    ("method", "reference", "query"),
    (
        _METHOD,
        text("reference", "Name of the method it is compared with"),
        identifier("query", "Query, counted from 0"),
        DOMAIN,
        real("overlap_10", "share", "Share of the method's first 10 that the reference also has"),
        real("overlap_top", "share", "The same of the first `top`"),
        count("top", "How many first ones `overlap_top` compares"),
        real("spearman", "cosine", "Rank correlation over the whole pool", True),
    ),
)

ATTRIBUTION_COSTS = TableSpec(
    "attribution_costs",
    "What each method of the agreement study keeps and takes",
    "one row per method",
    ("method",),
    (
        _METHOD,
        ColumnSpec("bits", pa.int32(), "count", "Bits a stored number, where statistics are", True),
        real("bytes_a_sequence", "number", "Bytes kept of a sequence of the pool; 0: none", True),
        real("seconds", "seconds", "Wall time of scoring all queries, preparation included"),
        real("cpu_seconds", "seconds", "CPU time of the same"),
        count("pool", "Sequences of the pool"),
        count("queries", "Queries"),
        count("pool_tokens", "Predicted tokens of the pool"),
    ),
)

ATTRIBUTION_TABLES = (
    ATTRIBUTION_SEQUENCES,
    ATTRIBUTION_PROTOTYPES,
    ATTRIBUTION_AGREEMENT,
    ATTRIBUTION_COSTS,
)
"""Tables of the attribution pool and of the study of agreement."""
