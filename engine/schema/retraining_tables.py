"""What retraining on subsets of a pool showed: outcomes, scores held against them, removals."""

import pyarrow as pa

from engine.schema.columns import (
    DOMAIN,
    ColumnSpec,
    TableSpec,
    count,
    identifier,
    real,
    text,
)


SEQUENCE = identifier("sequence", "Sequence of the study's pool, counted from 0")
QUERY = identifier("query", "Query of the study, counted from 0")
SEED = identifier("seed", "Seed of the training's initialisation and order", pa.int64())
METHOD = text("method", "Name of the attribution method")
LOSS = real("loss", "number", "Sum of -log p over the query's predicted tokens, nats")
FACT = identifier("fact", "Invented fact; -1 where the text is real")
_DOC_ID = ColumnSpec("doc_id", pa.string(), "id", "Document it is taken from")
_START = identifier("start", "Position of its first token in that document")
_INTERVAL = (
    real("low", "number", "Lower end of the 95 % bootstrap interval over queries", True),
    real("high", "number", "Upper end of the 95 % bootstrap interval over queries", True),
)

RETRAINING_POOL = TableSpec(
    "retraining_pool",
    "Sequences of the pool that the study's models are trained on",
    "one row per sequence",
    ("sequence",),
    (
        SEQUENCE,
        _DOC_ID,
        DOMAIN,
        _START,
        count("n_tokens", "Tokens, the separator in front included"),
        ColumnSpec("fact", pa.int32(), "number", "Invented fact it states; -1 for real text"),
    ),
)

RETRAINING_QUERIES = TableSpec(
    "retraining_queries",
    "Queries whose loss is measured after every retraining",
    "one row per query",
    ("query",),
    (
        QUERY,
        text(
            "kind",
            "held-out text, or a question for an invented fact: repeated in the words of its "
            "document, rephrased in words that no document has",
        ),
        text("doc_id", "Held-out document it is taken from; empty for questions", True),
        DOMAIN,
        _START,
        count("n_predicted", "Tokens whose loss is summed"),
        ColumnSpec("fact", pa.int32(), "number", "Invented fact it asks for; -1 for held-out text"),
        text(
            "half",
            "Of held-out text development (methods are chosen on it) or report; planted for "
            "questions",
        ),
    ),
)

PLANTED_FACTS = TableSpec(
    "planted_facts",
    "Invented facts, each with one document in the pool and two questions",
    "one row per fact",
    ("fact",),
    (
        identifier("fact", "Fact, counted from 0"),
        text("relation", "Kind of fact"),
        text("subject", "What it is about"),
        text("answer", "What only its document says"),
        text("text", "Its document, which is invented, before it is cut to a sequence"),
        text("repeated_prompt", "Question in the words of the document"),
        text("rephrased_prompt", "Question in words that no document has"),
        identifier("sequence", "Sequence of the pool that holds it"),
    ),
)

RETRAINING_SUBSETS = TableSpec(
    "retraining_subsets",
    "Members of each retrained subset of the pool",
    "one row per subset",
    ("subset",),
    (
        identifier("subset", "Subset, counted from 0"),
        count("n_members", "Sequences in it"),
        ColumnSpec(
            "members",
            pa.string(),
            "text",
            "Hexadecimal digits of its bits, sequence 0 first (numpy.packbits)",
        ),
    ),
)

RETRAINING_OUTCOMES = TableSpec(
    "retraining_outcomes",
    "Loss of every query after every retraining",
    "one row per subset, seed and query",
    ("subset", "seed", "query"),
    (identifier("subset", "Subset, counted from 0"), SEED, QUERY, LOSS),
)

RETRAINING_LDS = TableSpec(
    "retraining_lds",
    "Linear datamodeling score by query: rank correlation of predicted and measured outcomes",
    "one row per method, scope and query",
    ("method", "scope", "query"),
    (
        text("method", "Name of the attribution method, or ceiling: one seed against the other"),
        text("scope", "all sequences, or within the query's domain"),
        QUERY,
        real("spearman", "cosine", "Spearman correlation over subsets"),
    ),
)

RETRAINING_REMOVAL = TableSpec(
    "retraining_removal",
    "What removing the sequences that a method ranks first or last did to a domain's queries",
    "one row per domain, method, removed part and seed",
    ("domain", "method", "part", "seed"),
    (
        DOMAIN,
        METHOD,
        text("part", "top or bottom of the method's ranking, or random (the control)"),
        SEED,
        count(
            "n_removed", "Sequences of this domain removed; as many of every other domain studied"
        ),
        count("n_queries", "Queries of the group"),
        real("loss", "number", "Mean summed loss of the group's queries after removal, nats"),
        real("full_loss", "number", "The same after training on the whole pool with this seed"),
    ),
)

PLANTED_RECALL = TableSpec(
    "planted_recall",
    "Rank of an invented fact's own document by the scores of its question",
    "one row per method and question",
    ("method", "query"),
    (
        METHOD,
        QUERY,
        count("rank", "Rank of the document among all sequences of the pool, 1 first"),
    ),
)

ATTRIBUTION_VALIDITY = TableSpec(
    "attribution_validity",
    "How far each method's scores can be trusted, and on which model and pool that was measured",
    "one row per method and scope",
    ("method", "scope"),
    (
        METHOD,
        text("scope", "all sequences, or within the query's domain"),
        text("model", "Fingerprint of the model"),
        text("pool", "Fingerprint of pool and queries"),
        text("measured", "Day of the measurement, UTC"),
        real("lds", "cosine", "Mean Spearman correlation over queries of the reported half"),
        *_INTERVAL,
        real("subset_low", "number", "Lower end of the 95 % bootstrap interval over subsets", True),
        real("subset_high", "number", "Upper end of it", True),
        real(
            "ceiling",
            "cosine",
            "The same of one seed's outcomes against another's; empty where there was one seed",
            True,
        ),
        count("n_subsets", "Retrained subsets"),
        count("n_seeds", "Trainings a subset"),
        count("n_queries", "Queries averaged over"),
        ColumnSpec(
            "is_default", pa.bool_(), "flag", "Whether it is the cached variant that was chosen"
        ),
    ),
)

RETRAINING_TABLES = (
    RETRAINING_POOL,
    RETRAINING_QUERIES,
    PLANTED_FACTS,
    RETRAINING_SUBSETS,
    RETRAINING_OUTCOMES,
    RETRAINING_LDS,
    RETRAINING_REMOVAL,
    PLANTED_RECALL,
    ATTRIBUTION_VALIDITY,
)
"""Every table of the study by retraining."""
