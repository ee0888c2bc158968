"""Model maps: which model to adapt to a task, held against having adapted every one."""

import pyarrow as pa

from engine.schema.columns import TableSpec, count, identifier, real, text
from engine.schema.model_routing_tables import HIGH, LOW


_MODEL = text("model", "Name of the model, the same in every table")
_TARGET = text("target", "Domain that models are adapted to")
_OUTCOME = text(
    "outcome", "after: score on the target after adaptation; gain: that less the score before"
)
_REGIME = text(
    "regime", "What is left out together: one_root_out; one_family_out (twins with their root)"
)
_METHOD = text(
    "method",
    "Ridge on embeddings before adaptation (able, paper, square_root, contrast; able_whole, "
    "contrast_whole: without projection), on outputs (options), on accuracy on probes by domain "
    "(probe_accuracy) or size (log_parameters); the score before (before; of gains its negative); "
    "means of nearest embeddings (neighbours); in results also random",
)

MODEL_ADAPTATIONS = TableSpec(
    "model_adaptations",
    "Scores of roots before and after the same short training on a target",
    "one row per model, target and seed",
    ("model", "target", "seed"),
    (
        _MODEL,
        _TARGET,
        identifier("seed", "Seed of the order of the rows trained on", pa.int16()),
        real("before", "share", "Share of the target's questions answered right before"),
        real("after", "share", "Share answered right after"),
    ),
)

MODEL_CANDIDATES = TableSpec(
    "model_candidates",
    "What is expected of adapting each model to a target, told without it",
    "one row per target, outcome, regime, method and model",
    ("target", "outcome", "regime", "method", "model"),
    (
        _TARGET,
        _OUTCOME,
        _REGIME,
        _METHOD,
        _MODEL,
        real("true", "number", "The outcome, mean over seeds"),
        real(
            "predicted",
            "number",
            "What the method says beyond the mean of the models fitted on, plus the mean of all; "
            "candidates are ranked by it",
        ),
    ),
)

MODEL_SELECTION_RESULTS = TableSpec(
    "model_selection_results",
    "How well candidates for adaptation are chosen",
    "one row per target, outcome, regime, method and metric",
    ("target", "outcome", "regime", "method", "metric"),
    (
        text("target", "As in `model_candidates`; mean: over all targets"),
        _OUTCOME,
        _REGIME,
        _METHOD,
        text(
            "metric",
            "ndcg@10; regret@1, regret@5: best outcome less the best among the first 1 or 5; "
            "spearman; trainings_saved: share of all trainings not needed when one goes down the "
            "ranking until the best is met; random_p: share of random orders with as high an "
            "ndcg@10",
        ),
        real("value", "number", "The figure; of random its mean over all orders", nullable=True),
        LOW,
        HIGH,
        count("n", "Models; of mean: targets"),
    ),
)

MODEL_SELECTION_TABLES = (MODEL_ADAPTATIONS, MODEL_CANDIDATES, MODEL_SELECTION_RESULTS)
"""Tables of the stage `select`."""
