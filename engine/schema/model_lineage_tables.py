"""Model maps: what is documented of models, and which questions they answer right."""

import pyarrow as pa

from engine.schema.columns import ColumnSpec, TableSpec, count, identifier, text


MODEL = text("model", "Name of the model, the same in every table")

MODEL_CARDS = TableSpec(
    "model_cards",
    "What the catalogue documents of models, embedded or not",
    "one row per model of the catalogue",
    ("model",),
    (
        MODEL,
        text("place", "Folder, hub id or packaged model"),
        text("family", "Label its makers publish it under; not lineage; empty where unknown"),
        text("relation", "How it was made of its parents; root or base where it has none"),
        ColumnSpec("parents", pa.list_(pa.string()), "text", "Models it was made of, by name"),
        ColumnSpec(
            "roots",
            pa.list_(pa.string()),
            "text",
            "Models whose random weights it goes back to; itself for a root; empty where unknown",
        ),
        ColumnSpec(
            "copies_weights", pa.bool_(), "flag", "Whether it took over weights of its parents"
        ),
        text("evidence", "Where the lineage is documented; empty where nothing is said"),
        text("architecture", "Model type; empty where unknown"),
        text("tokenizer", "Kind of tokenizer; empty where unknown"),
        text("data", "Data it, or its root, was trained on; empty where unknown"),
        text("size", "Name of its size; empty where unknown"),
        text("target", "Data it was adapted to; empty where none"),
        ColumnSpec(
            "groups",
            pa.list_(pa.string()),
            "text",
            "Groups of models that are alike without lineage, kind:members",
        ),
        count("n_parameters", "Parameters; 0 where unknown"),
    ),
)

MODEL_QUESTIONS = TableSpec(
    "model_questions",
    "Questions whose answers are known for every model of the map",
    "one row per question",
    ("question",),
    (
        identifier("question", "Question, counted from 0"),
        text("key", "Its name in the answers' file, or the probe's hash"),
        text("domain", "Set or domain it comes from"),
        text("prompt", "The question as asked"),
        ColumnSpec("options", pa.list_(pa.string()), "text", "Options, in order"),
        identifier("answer", "Right option, counted from 0", pa.int16()),
        ColumnSpec("is_probe", pa.bool_(), "flag", "Whether embeddings were made with it"),
    ),
)

MODEL_ANSWERS = TableSpec(
    "model_answers",
    "Which questions models answer right",
    "one row per model",
    ("model",),
    (
        MODEL,
        ColumnSpec(
            "correct",
            pa.list_(pa.bool_()),
            "flag",
            "Whether the model's likeliest option is right, by question",
        ),
    ),
)

MODEL_LINEAGE_TABLES = (MODEL_CARDS, MODEL_QUESTIONS, MODEL_ANSWERS)
"""Tables that say what is known of models apart from their embeddings."""
