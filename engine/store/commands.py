"""Which command makes a table, and which runs a stage, for every kind of run."""

HEADS, MODELS = "heads", "models"
"""Kinds of the runs that hold no prototypes: attention heads, and maps of models."""
ABOUT = {HEADS: "attention heads", MODELS: "models and their embeddings"}
PREFIXES = {HEADS: "head_", MODELS: "model_"}
"""Beginnings of the names of the tables of such runs."""

_POOL_TABLES = ("attribution_sequences", "attribution_prototypes")
_AGREEMENT_TABLES = ("attribution_agreement", "attribution_costs")
_COMMANDS = {
    "scan": "index",
    "suppression": "suppress",
    "attribution": "attribution-index",
    "attribution_agreement": "study attribution",
    "heads_analysis": "heads analyse",
    "embed": "models embed --catalogue FILE",
    "answers": "models embed --catalogue FILE --answers FOLDER",
    "relations": "models relate",
    "routing": "models route",
    "forecasts": "models forecast",
    "selection": "models select",
    "stability": "models stability",
    "layouts": "models map",
    "add": "models add MODEL",
}
"""Commands that are not called as their stage is."""
_TRAIN_TABLES = ("training_log", "evaluations", "validation_loss")
_ANALYSED = ("head_effects", "head_overlaps", "head_tags", "head_tails")
"""Tables that are computed from others of a run about attention heads."""
_HEAD_STAGES = ("study", "monitor", "influence", "motifs", "augment", "mixtures")
"""Stages of such a run, each made by the command `headwater heads` of its name."""
_HEAD_TABLES = {"head_motifs": "motifs", "head_tokens": "influence", "head_mixtures": "mixtures"}
"""Stages of the tables of such a run that neither its study nor its analysis makes."""
_STUDIES = ("coverage", "tradeoff", "downstream")
"""Stages, each with one table of its name, that measure a finished run."""
_RETRAINED = ("retraining_", "planted_", "attribution_validity")
"""Beginnings of the names of tables that the study by retraining makes."""
_MODEL_TABLES = {
    "model_questions": "answers",
    "model_answers": "answers",
    "model_pairs": "relations",
    "model_pair_scores": "relations",
    "model_relation_results": "relations",
    "model_neighbours": "relations",
    "model_parents": "relations",
    "model_trees": "relations",
    "model_routes": "routing",
    "model_routing_results": "routing",
    "model_forecasts": "forecasts",
    "model_forecast_results": "forecasts",
    "model_adaptations": "selection",
    "model_candidates": "selection",
    "model_selection_results": "selection",
    "model_stability": "stability",
    "model_layouts": "layouts",
    "model_layout_results": "layouts",
}
"""Stages of the tables of a map of models that are not made where models are embedded."""


def command_of(kind: str, table: str, run: str) -> str:
    """The command that makes a table of a run of some kind."""
    return command_of_stage(kind, _stage(table), run)


def command_of_stage(kind: str, stage: str, run: str) -> str:
    """The command that runs, or resumes, a stage of a run of some kind."""
    if stage in _HEAD_STAGES:
        return f"headwater heads {stage} --run {run}"
    if stage in _STUDIES:
        return f"headwater study {stage} --run {run}"
    command = {"train": first_stage(kind), **_COMMANDS}.get(stage, stage)
    return f"headwater {command} --run {run}"


def first_stage(kind: str) -> str:
    """The command that makes a run of some kind."""
    made = {"retrofit": "retrofit", HEADS: "heads study", MODELS: _COMMANDS["embed"]}
    return made.get(kind, "train")


def _stage(table: str) -> str:
    if table in _ANALYSED:
        return "heads_analysis"
    if table.startswith("head_"):
        return _HEAD_TABLES.get(table, "study")
    if table.startswith("model_"):
        return _MODEL_TABLES.get(table, "embed")
    for stage in ("suppression", "curvature", "control", "downstream"):
        if table.startswith(stage):
            return stage
    if table in _POOL_TABLES:
        return "attribution"
    if table in _AGREEMENT_TABLES:
        return "attribution_agreement"
    if table.startswith(_RETRAINED):
        return "retrain-check"
    if table in _STUDIES:
        return table
    return "train" if table in _TRAIN_TABLES else "index"
