"""The contract between engine and dashboard: every Parquet table, its grain, units and ranges.

`docs/DATA.md` is generated from this package. A run folder holds `run.json` and these tables; the
folder of a built corpus holds `documents` alone. `document` is the row of a document in the
`documents` table beside it; `position` counts tokens from the start of that document.
"""

from engine.schema.columns import ROUNDING, ColumnSpec, TableSpec
from engine.schema.corpus_tables import DOCUMENTS
from engine.schema.prototype_tables import (
    PROTOTYPE_ACTIVATIONS,
    PROTOTYPE_DOMAINS,
    PROTOTYPE_EXAMPLES,
    PROTOTYPE_HISTOGRAMS,
    PROTOTYPE_NEIGHBOURS,
    PROTOTYPE_SIGNATURES,
    PROTOTYPES,
    TOKEN_RESIDUALS,
)
from engine.schema.suppression_tables import CONCEPTS, SUPPRESSION
from engine.schema.training_tables import (
    COVERAGE,
    EVALUATIONS,
    TRADEOFF,
    TRAINING_LOG,
    VALIDATION_LOSS,
)


SCHEMA_VERSION = 1
"""Goes up whenever a column changes; runs of another version are refused."""

TABLES: dict[str, TableSpec] = {
    spec.name: spec
    for spec in (
        DOCUMENTS,
        TRAINING_LOG,
        EVALUATIONS,
        VALIDATION_LOSS,
        COVERAGE,
        TRADEOFF,
        PROTOTYPES,
        PROTOTYPE_EXAMPLES,
        PROTOTYPE_HISTOGRAMS,
        PROTOTYPE_SIGNATURES,
        PROTOTYPE_DOMAINS,
        PROTOTYPE_NEIGHBOURS,
        PROTOTYPE_ACTIVATIONS,
        TOKEN_RESIDUALS,
        CONCEPTS,
        SUPPRESSION,
    )
}
"""Every table by name."""

__all__ = [
    "CONCEPTS",
    "COVERAGE",
    "DOCUMENTS",
    "EVALUATIONS",
    "PROTOTYPES",
    "PROTOTYPE_ACTIVATIONS",
    "PROTOTYPE_DOMAINS",
    "PROTOTYPE_EXAMPLES",
    "PROTOTYPE_HISTOGRAMS",
    "PROTOTYPE_NEIGHBOURS",
    "PROTOTYPE_SIGNATURES",
    "ROUNDING",
    "SCHEMA_VERSION",
    "SUPPRESSION",
    "TABLES",
    "TOKEN_RESIDUALS",
    "TRADEOFF",
    "TRAINING_LOG",
    "VALIDATION_LOSS",
    "ColumnSpec",
    "TableSpec",
]
