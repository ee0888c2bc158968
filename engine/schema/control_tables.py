"""Multiple-choice questions: how a model answers them, and what controllers over features change.

A question is named by its set and its number in it; `question_id` is a hash of its text, the same
wherever the set is read. Its text is read again from the package or file, never from a run.
"""

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


_SET = text("set", "Question set")
_SET_OR_MEAN = text("set", "Question set, or `mean` for the mean over the sets")
_QUESTION = identifier("question", "Question, counted from 0 within its set as it is read")
_QUESTION_ID = ColumnSpec(
    "question_id", pa.string(), "id", "Hash of the question's text, options and answer"
)
_N_OPTIONS = ColumnSpec("n_options", pa.int8(), "count", "Options to choose from")
_ANSWER = identifier("answer", "Right option, counted from 0", pa.int8())
_SPLIT = identifier("seed", "Seed of the split into train, validation and test", pa.int16())


def _choice(name: str, meaning: str, nullable: bool = False) -> ColumnSpec:
    return ColumnSpec(name, pa.int8(), "id", meaning, nullable)


CONTROL_QUESTIONS = TableSpec(
    "control_questions",
    "Questions the controllers were trained and tested on",
    "one row per set and question",
    ("set", "question"),
    (_SET, _QUESTION, _QUESTION_ID, _N_OPTIONS, _ANSWER),
)

CONTROL_RESULTS = TableSpec(
    "control_results",
    "Accuracy on held-out questions without a controller and with one, by split",
    "one row per set, condition and split seed",
    ("set", "condition", "seed"),
    (
        _SET,
        text(
            "condition",
            "none (option log-likelihood alone), per-byte (the same over bytes), prototypes or sae",
        ),
        _SPLIT,
        real("accuracy", "share", "Share of test questions answered right"),
        real("validation_accuracy", "share", "Share of validation questions answered right"),
        count("n_train", "Training questions"),
        count("n_validation", "Validation questions"),
        count("n_test", "Test questions"),
        count("nonzeros", "Weights of the controller that are not 0; 0 without one"),
        real("l1", "number", "L1 penalty chosen on validation; none without one", nullable=True),
    ),
)

CONTROL_GAINS = TableSpec(
    "control_gains",
    "Paired differences of accuracy on held-out questions, over all split seeds",
    "one row per set and comparison",
    ("set", "comparison"),
    (
        _SET_OR_MEAN,
        text("comparison", "prototypes-none, sae-none, prototypes-sae or prototypes-per-byte"),
        real("gain", "number", "First minus second, percentage points; positive: first is better"),
        real("low", "number", "Lower end of the 95 % interval, bootstrapped over questions"),
        real("high", "number", "Upper end"),
        count("n_questions", "Distinct questions that were in a test split"),
        count("n_seeds", "Split seeds"),
    ),
)

CONTROL_WEIGHTS = TableSpec(
    "control_weights",
    "Weights of the controllers over prototypes that are not 0",
    "one row per set, split seed and prototype",
    ("set", "seed", "prototype"),
    (
        _SET,
        _SPLIT,
        PROTOTYPE,
        real(
            "weight",
            "number",
            "Added to the prototype's gain of 1 when options are scored; negative damps it",
        ),
        real(
            "mean_effect",
            "logit",
            "Mean over the options of test questions of the absolute change of score it makes",
        ),
    ),
)

CONTROL_ANSWERS = TableSpec(
    "control_answers",
    "Options chosen on test questions without a controller and with one",
    "one row per set, split seed and test question",
    ("set", "seed", "question"),
    (
        _SET,
        _SPLIT,
        _QUESTION,
        _ANSWER,
        _choice("none_choice", "Option chosen by log-likelihood alone"),
        _choice("per_byte_choice", "Option chosen by log-likelihood per byte"),
        _choice("prototypes_choice", "Option chosen with the controller over prototypes", True),
        _choice("sae_choice", "Option chosen with the controller over SAE features", True),
    ),
)

CONTROL_CORRECTIONS = TableSpec(
    "control_corrections",
    "Test questions that the controller over prototypes turned right or wrong, and through what",
    "one row per set, split seed, question and rank",
    ("set", "seed", "question", "rank"),
    (
        _SET,
        _SPLIT,
        _QUESTION,
        identifier("rank", "Rank by absolute contribution, 0 first", pa.int16()),
        _QUESTION_ID,
        _ANSWER,
        _choice("before", "Option chosen without the controller"),
        _choice("after", "Option chosen with it; right or `before` was"),
        PROTOTYPE,
        real(
            "contribution",
            "logit",
            "What its weight adds to the score of `after` minus that of `before`; positive speaks "
            "for `after`",
        ),
    ),
)

DOWNSTREAM = TableSpec(
    "downstream",
    "Accuracy of the model and of its dense twin on multiple-choice sets, without any training",
    "one row per set and model",
    ("set", "model"),
    (
        _SET_OR_MEAN,
        text("model", "prism or dense"),
        real("accuracy", "share", "Share answered right by option log-likelihood"),
        real("low", "share", "Lower end of the 95 % interval, bootstrapped over questions"),
        real("high", "share", "Upper end"),
        count("n_questions", "Questions"),
        real("chance", "share", "Accuracy expected of guessing: mean of 1 over options"),
        real(
            "difference",
            "number",
            "Accuracy minus the dense twin's, percentage points; none for the twin",
            nullable=True,
        ),
        real("difference_low", "number", "Lower end of its paired 95 % interval", nullable=True),
        real("difference_high", "number", "Upper end", nullable=True),
    ),
)

DOWNSTREAM_ANSWERS = TableSpec(
    "downstream_answers",
    "Options that the model and its dense twin choose",
    "one row per set and question",
    ("set", "question"),
    (
        _SET,
        _QUESTION,
        _QUESTION_ID,
        _N_OPTIONS,
        _ANSWER,
        _choice("prism_choice", "Option the model chooses"),
        _choice("dense_choice", "Option its dense twin chooses"),
    ),
)

CONTROL_TABLES: tuple[TableSpec, ...] = (
    CONTROL_QUESTIONS,
    CONTROL_RESULTS,
    CONTROL_GAINS,
    CONTROL_WEIGHTS,
    CONTROL_ANSWERS,
    CONTROL_CORRECTIONS,
    DOWNSTREAM,
    DOWNSTREAM_ANSWERS,
)
"""Every table of this module, in the order of the contract."""
