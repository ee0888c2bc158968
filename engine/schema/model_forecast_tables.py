"""Model maps: scores of models told from what is known of others."""

from engine.schema.columns import TableSpec, count, real, text
from engine.schema.model_routing_tables import HIGH, LOW


_TARGET = text(
    "target", "Score that is told: the domain of held-out questions, or a column of a file"
)
_REGIME = text(
    "regime",
    "What is left out together: one_model_out; one_root_out (all that share a root, or its "
    "teacher); one_family_out (all that share a family, and all that goes back to it)",
)
_METHOD = text(
    "method",
    "Ridge on embeddings (able, paper, square_root, contrast; able_whole, contrast_whole: without "
    "projection; other_domains: without probes of the target), on outputs (options, "
    "log_likelihood), on scores (probe_accuracy) or size (log_parameters); means of documented "
    "relatives (relatives), of nearest embeddings (neighbours), of all (mean)",
)

MODEL_FORECASTS = TableSpec(
    "model_forecasts",
    "Scores of models, told without them",
    "one row per target, regime, method and model",
    ("target", "regime", "method", "model"),
    (
        _TARGET,
        _REGIME,
        _METHOD,
        text("model", "Name of the model, the same in every table"),
        real("true", "number", "The score"),
        real("predicted", "number", "What the method says, fitted without the model's group"),
    ),
)

MODEL_FORECAST_RESULTS = TableSpec(
    "model_forecast_results",
    "How well scores are told",
    "one row per target, regime, method and metric",
    ("target", "regime", "method", "metric"),
    (
        text("target", "As in `model_forecasts`; mean: over all targets"),
        _REGIME,
        _METHOD,
        text(
            "metric",
            "spearman, pearson; mae: mean absolute error; best_rank: rank, 1 first, that the best "
            "model has among predictions; best_in_top5: whether that is 5 or less. All but mae are "
            "of predictions less the mean of the models fitted on, which falls as the score left "
            "out rises; a method that tells no more has no row",
        ),
        real("value", "number", "The figure", nullable=True),
        LOW,
        HIGH,
        count("n", "Models; of mean: targets"),
    ),
)

MODEL_FORECAST_TABLES = (MODEL_FORECASTS, MODEL_FORECAST_RESULTS)
"""Tables of the stage `forecast`."""
