"""What `headwater suppress` leaves: the set it found, its generations, their scores and figures."""

import pyarrow as pa

from engine.schema.columns import (
    DOMAIN,
    PROTOTYPE,
    RANK,
    ColumnSpec,
    TableSpec,
    count,
    identifier,
    real,
    text,
)


CONCEPT = text("concept", "Concept suppressed")
SCORER = text("scorer", "Scorer, a row of `suppression_scorers`")
PROMPTS = text(
    "prompts",
    "unwanted: held-out texts of the concept's domain; ordinary: of the other domains in turn",
)
CONDITION = text(
    "condition",
    "baseline: nothing suppressed; suppressed: the chosen set; random: matched random sets",
)
GENERATION = identifier("generation", "Generation, counted from 0 within its kind of prompts")


def _flag(name: str, meaning: str) -> ColumnSpec:
    return ColumnSpec(name, pa.bool_(), "flag", meaning)


def _interval(name: str, meaning: str, nullable: bool = False) -> tuple[ColumnSpec, ...]:
    """A figure and its 95 % bootstrap interval over prompts."""
    interval = "end of its 95 % interval, by bootstrap over prompts"
    return (
        real(name, "number", meaning, nullable),
        real(f"{name}_low", "number", f"Lower {interval}", nullable),
        real(f"{name}_high", "number", f"Upper {interval}", nullable),
    )


SUPPRESSION_PROTOTYPES = TableSpec(
    "suppression_prototypes",
    "Candidates of a concept and what spoke for each, on training texts alone",
    "one row per concept and candidate",
    ("concept", "prototype"),
    (
        CONCEPT,
        PROTOTYPE,
        RANK,
        _flag("chosen", "Whether it is in the set that is suppressed"),
        _flag(
            "keyword", "Whether a word of the concept stands in its label, signature or contexts"
        ),
        real("meaning", "share", "Cosine of its words with the concept's, by TF-IDF of word parts"),
        real(
            "log_ratio",
            "number",
            "Log ratio of its firing rate in the concept's domain over that in all texts",
        ),
        real(
            "scored_log_ratio",
            "number",
            "Log ratio of its activation per token where unwanted words are drawn over elsewhere",
        ),
        real(
            "effect",
            "number",
            "Fall of the expected score per 1,000 tokens drawn when it joins the set; "
            "positive lowers the score",
        ),
        real(
            "cost",
            "nats",
            "Rise of the expected loss under the judge when it joins the set, per token drawn",
        ),
    ),
)

SUPPRESSION_SCORERS = TableSpec(
    "suppression_scorers",
    "The scorers of a study; one that failed says why and has no scores",
    "one row per concept and scorer",
    ("concept", "scorer"),
    (
        CONCEPT,
        SCORER,
        _flag("chose", "Whether it took part in choosing the set"),
        _flag("failed", "Whether it could not score every text"),
        text("reason", "Why it failed, empty where it did not"),
        text("meaning", "What its score, from 0 to 1, is"),
        count("n_scored", "Generations it scored"),
    ),
)

SUPPRESSION_GENERATIONS = TableSpec(
    "suppression_generations",
    "Continuations of held-out prompts as the model is, with the set and with random sets off",
    "one row per concept, kind of prompt, condition and generation",
    ("concept", "prompts", "condition", "generation"),
    (
        CONCEPT,
        PROMPTS,
        CONDITION,
        GENERATION,
        ColumnSpec("doc_id", pa.string(), "id", "Held-out document the prompt opens"),
        DOMAIN,
        identifier("seed", "Seed of the sampler, the same in every condition", pa.int64()),
        identifier("draw", "Random set, counted from 0; 0 in the other conditions", pa.int16()),
        real("strength", "number", "Strength of suppression, 0 at baseline"),
        real("perplexity", "number", "Perplexity of the text under the judge, given the prompt"),
        real("distinct_1", "share", "Different tokens over tokens"),
        real("distinct_2", "share", "Different pairs of tokens in a row over pairs"),
        real("distinct_3", "share", "Different triples of tokens in a row over triples"),
        real("repetition", "share", "Share of tokens that occurred among the 16 before"),
        identifier("n_tokens", "Tokens drawn", pa.int16()),
        identifier(
            "tokens_touched", "Tokens drawn where a suppressed prototype was active", pa.int16()
        ),
        _flag("recited", "Whether it holds a verbatim span of the concept's training texts"),
    ),
)

SUPPRESSION_SCORES = TableSpec(
    "suppression_scores",
    "Scores of those generations, higher is more unwanted",
    "one row per concept, scorer, kind of prompt, condition and generation",
    ("concept", "scorer", "prompts", "condition", "generation"),
    (
        CONCEPT,
        SCORER,
        PROMPTS,
        CONDITION,
        GENERATION,
        real("score", "share", "Score of the continuation alone"),
    ),
)

SUPPRESSION_BUCKETS = TableSpec(
    "suppression_buckets",
    "Mean scores by bucket of the baseline score, with their fall against the baseline",
    "one row per concept, scorer, kind of prompt, condition and bucket",
    ("concept", "scorer", "prompts", "condition", "bucket"),
    (
        CONCEPT,
        SCORER,
        PROMPTS,
        CONDITION,
        identifier("bucket", "0: all generations; 1, 2, …: buckets, the hardest last", pa.int16()),
        real("score_from", "share", "Lowest baseline score of the bucket, by this scorer"),
        real("score_to", "share", "Highest baseline score of the bucket"),
        count("n_generations", "Generations in it"),
        count("n_prompts", "Prompts they continue"),
        *_interval("mean", "Mean score"),
        *_interval(
            "drop",
            "1 - mean over baseline mean; empty at baseline and where few prompts score",
            nullable=True,
        ),
    ),
)

SUPPRESSION_QUALITY = TableSpec(
    "suppression_quality",
    "Quality of the text by condition, and whether it stays within the margin set beforehand",
    "one row per concept, kind of prompt, condition and measure",
    ("concept", "prompts", "condition", "measure"),
    (
        CONCEPT,
        PROMPTS,
        CONDITION,
        text(
            "measure",
            "perplexity (geometric mean), distinct_1, distinct_2, distinct_3, repetition, "
            "n_tokens or touched (share of tokens)",
        ),
        *_interval("mean", "Mean over generations"),
        *_interval("ratio", "Mean over the baseline's mean; empty at baseline", nullable=True),
        real("margin_low", "number", "Lowest ratio allowed; empty where there is none", True),
        real("margin_high", "number", "Highest ratio allowed; empty where there is none", True),
        ColumnSpec(
            "within",
            pa.bool_(),
            "flag",
            "Whether the whole interval of the ratio lies within the margin; empty without one",
            nullable=True,
        ),
    ),
)

SUPPRESSION_SWEEP = TableSpec(
    "suppression_sweep",
    "Dose and response: set sizes and strengths, on prompts of training and held-out texts",
    "one row per concept, split, condition, set size, strength and scorer",
    ("concept", "split", "condition", "set_size", "strength", "scorer"),
    (
        CONCEPT,
        text("split", "train: prompts the setting was chosen on; validation: held-out prompts"),
        text(
            "condition", "suppressed, or random: a matched random set of the size, held-out alone"
        ),
        identifier("set_size", "Prototypes suppressed, the first of the ranking"),
        real("strength", "number", "Strength of suppression"),
        SCORER,
        _flag("chosen", "Whether this is the setting the study reports"),
        real("baseline", "share", "Mean score with nothing suppressed, same prompts and seeds"),
        *_interval("mean", "Mean score"),
        *_interval(
            "drop", "1 - mean over baseline mean; empty where few prompts score", nullable=True
        ),
        *_interval("perplexity_ratio", "Geometric mean of perplexity over the baseline's"),
        real("touched", "share", "Share of tokens drawn where a suppressed prototype was active"),
        count("n_generations", "Generations, each with its pair at baseline"),
        count("n_prompts", "Prompts they continue"),
    ),
)

SUPPRESSION_TABLES = (
    SUPPRESSION_PROTOTYPES,
    SUPPRESSION_SCORERS,
    SUPPRESSION_GENERATIONS,
    SUPPRESSION_SCORES,
    SUPPRESSION_BUCKETS,
    SUPPRESSION_QUALITY,
    SUPPRESSION_SWEEP,
)
"""In the order in which a study fills them."""
