"""Saved concepts and what suppressing them did."""

import pyarrow as pa

from engine.schema.columns import (
    PROTOTYPE,
    ColumnSpec,
    TableSpec,
    count,
    identifier,
    real,
    text,
)


CONCEPTS = TableSpec(
    "concepts",
    "Saved sets of prototypes, chosen on training texts alone",
    "one row per concept and prototype",
    ("concept", "prototype"),
    (
        text("concept", "Name of the concept, NSFW for example"),
        PROTOTYPE,
        real(
            "score",
            "number",
            "Log ratio of its mass per token on the concept's texts over all other texts",
        ),
        text("origin", "How it was chosen"),
    ),
)

SUPPRESSION = TableSpec(
    "suppression",
    "Generations from held-out prompts before and after suppression, and with a matched random set",
    "one row per concept, condition and generation",
    ("concept", "condition", "generation"),
    (
        text("concept", "Concept suppressed"),
        text("condition", "baseline, suppressed or random"),
        identifier("generation", "Generation, counted from 0"),
        ColumnSpec("doc_id", pa.string(), "id", "Held-out document the prompt is taken from"),
        identifier("seed", "Seed of the sampler, the same in every condition", pa.int64()),
        real("strength", "share", "Strength of suppression"),
        real(
            "classifier_score", "share", "Probability of unwanted content by the offline classifier"
        ),
        real("wordlist_score", "share", "Share of words on the word list"),
        real("perplexity", "number", "Perplexity of the text under the dense twin"),
        count("n_tokens", "Tokens generated"),
        count("tokens_touched", "Tokens at which a suppressed prototype was active"),
    ),
)
