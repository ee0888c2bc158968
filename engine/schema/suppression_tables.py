"""Saved concepts."""

from engine.schema.columns import (
    PROTOTYPE,
    TableSpec,
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
