"""Model maps: routers that choose a model for a question, and how often they choose well."""

import pyarrow as pa

from engine.schema.columns import ColumnSpec, TableSpec, count, identifier, real, text


_ROUTER = text(
    "router",
    "able (frozen embeddings), embedllm (learned ones), knn (nearest questions); in results also "
    "single_best, random, oracle",
)
LOW = real("low", "number", "Lower end of the 95 % interval", nullable=True)
HIGH = real("high", "number", "Upper end of the 95 % interval", nullable=True)

MODEL_ROUTES = TableSpec(
    "model_routes",
    "What routers expect of every model on every question, which was in no training of theirs",
    "one row per router, question and model",
    ("router", "question", "model"),
    (
        _ROUTER,
        identifier("question", "Row of the question in `model_questions`"),
        text("model", "Name of the model, the same in every table"),
        real("predicted", "share", "Predicted probability that the model answers right"),
        ColumnSpec("correct", pa.bool_(), "flag", "Whether it does"),
        identifier("fold", "Fold of the questions, counted from 0, that is tested", pa.int16()),
    ),
)

MODEL_ROUTING_RESULTS = TableSpec(
    "model_routing_results",
    "How well routers do",
    "one row per router, group and metric",
    ("router", "group", "metric"),
    (
        _ROUTER,
        text(
            "group",
            "all; probe and held_out (questions embeddings were made with, and others); unseen "
            "(held out, as is every other wording of the fact); domain:NAME; budget:PARAMETERS "
            "(models of at most so many); new_models:HOW and new_lineages:HOW, of models that no "
            "training saw, HOW being k=0, k=20, k=100 answers of each, or retrained",
        ),
        text(
            "metric",
            "accuracy: share of questions that the chosen model answers right; correctness: share "
            "of pairs of model and question whose prediction is right; auc: of these predictions; "
            "usage_random: accuracy were the same calls dealt to questions at random; models_used; "
            "over_embedllm, over_single_best: accuracy less theirs; correctness_over_embedllm; "
            "choice_among_new: accuracy where new models alone are chosen from; seed_spread: "
            "standard deviation of the accuracy over seeds",
        ),
        real("value", "number", "The figure"),
        LOW,
        HIGH,
        count("n", "Questions, or pairs for correctness and auc, seeds for seed_spread"),
    ),
)

MODEL_ROUTING_TABLES = (MODEL_ROUTES, MODEL_ROUTING_RESULTS)
"""Tables of the stage `route`."""
