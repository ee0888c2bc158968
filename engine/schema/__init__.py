"""The contract between engine and dashboard: every Parquet table, its grain, units and ranges.

`docs/DATA.md` is generated from this package. A run folder holds `run.json` and these tables; the
folder of a built corpus holds `documents` alone. `document` is the row of a document in the
`documents` table beside it; `position` counts tokens from the start of that document.
"""

from engine.schema.attribution_tables import ATTRIBUTION_TABLES
from engine.schema.columns import ROUNDING, ColumnSpec, TableSpec
from engine.schema.control_tables import CONTROL_TABLES
from engine.schema.corpus_tables import DOCUMENTS
from engine.schema.curvature_tables import CURVATURE_TABLES
from engine.schema.head_tables import HEAD_TABLES
from engine.schema.head_token_table import HEAD_TOKENS
from engine.schema.model_atlas_tables import MODEL_ATLAS_TABLES
from engine.schema.model_forecast_tables import MODEL_FORECAST_TABLES
from engine.schema.model_lineage_tables import MODEL_LINEAGE_TABLES
from engine.schema.model_relation_tables import MODEL_RELATION_TABLES
from engine.schema.model_routing_tables import MODEL_ROUTING_TABLES
from engine.schema.model_selection_tables import MODEL_SELECTION_TABLES
from engine.schema.model_tables import MODEL_TABLES
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
from engine.schema.retraining_tables import RETRAINING_TABLES
from engine.schema.suppression_study_tables import SUPPRESSION_TABLES
from engine.schema.suppression_tables import CONCEPTS
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
        *SUPPRESSION_TABLES,
        *CONTROL_TABLES,
        *ATTRIBUTION_TABLES,
        *CURVATURE_TABLES,
        *RETRAINING_TABLES,
        *HEAD_TABLES,
        HEAD_TOKENS,
        *MODEL_TABLES,
        *MODEL_LINEAGE_TABLES,
        *MODEL_ATLAS_TABLES,
        *MODEL_RELATION_TABLES,
        *MODEL_ROUTING_TABLES,
        *MODEL_FORECAST_TABLES,
        *MODEL_SELECTION_TABLES,
    )
}
"""Every table by name."""

__all__ = [
    "CONCEPTS",
    "COVERAGE",
    "DOCUMENTS",
    "EVALUATIONS",
    "HEAD_TABLES",
    "HEAD_TOKENS",
    "PROTOTYPES",
    "PROTOTYPE_ACTIVATIONS",
    "PROTOTYPE_DOMAINS",
    "PROTOTYPE_EXAMPLES",
    "PROTOTYPE_HISTOGRAMS",
    "PROTOTYPE_NEIGHBOURS",
    "PROTOTYPE_SIGNATURES",
    "ROUNDING",
    "SCHEMA_VERSION",
    "SUPPRESSION_TABLES",
    "TABLES",
    "TOKEN_RESIDUALS",
    "TRADEOFF",
    "TRAINING_LOG",
    "VALIDATION_LOSS",
    "ColumnSpec",
    "TableSpec",
]
