"""Model maps: probes, what models' answers depend on, their embeddings, and which failed."""

import pyarrow as pa

from engine.schema.columns import ColumnSpec, TableSpec, count, identifier, real, text


_MODEL = text("model", "Name of the model, the same in every table")
_PROBE = identifier("probe", "Probe, counted from 0 within the run's set")

MODEL_PROBES = TableSpec(
    "model_probes",
    "Questions that every model of the map was asked",
    "one row per probe",
    ("probe",),
    (
        _PROBE,
        text("key", "Hash of prompt and options, 16 hex digits; names the probe's columns"),
        text("source", "Set it comes from; the text of gpqa may not be published"),
        text("prompt", "All a model reads before an option"),
        ColumnSpec("options", pa.list_(pa.string()), "text", "Options that are scored, in order"),
        identifier("answer", "Right option, counted from 0", pa.int16()),
        count("n_words", "Words of the prompt: runs without spaces"),
    ),
)

MODEL_CATALOGUE = TableSpec(
    "model_catalogue",
    "Models of the map, embedded or failed",
    "one row per model",
    ("model",),
    (
        _MODEL,
        text("place", "Folder, hub id or packaged model it was read from"),
        text("status", "embedded or failed"),
        text("reason", "Why it failed, in a sentence; empty where it did not"),
        text("architecture", "Class of the model; empty where it was not loaded"),
        count("n_parameters", "Parameters; 0 where it was not loaded"),
        text(
            "hook",
            "Module whose output is attributed: embedding, or norm where a norm lies directly on "
            "it; empty where it failed",
        ),
        real(
            "homogeneity",
            "number",
            "Median over tokens of |x · g| / (‖x‖ ‖g‖) at the embedding; below 1e-4 the product "
            "vanishes there by Euler's theorem",
            nullable=True,
        ),
        ColumnSpec(
            "two_parts", pa.bool_(), "flag", "Read in two parts, the second from cached keys"
        ),
        text("dtype", "Number format it computed in; empty where it failed"),
        count("n_probes", "Probes that its columns hold numbers for"),
        count("n_skipped", "Probes longer than its context, whose columns are 0"),
        real("accuracy", "share", "Share of the probes it read that it answers right", True),
        real("seconds", "seconds", "Time of loading, attributing and writing together"),
        count("bytes", "Size of its weights; 0 where it was not loaded"),
    ),
)

MODEL_EMBEDDINGS = TableSpec(
    "model_embeddings",
    "Embeddings of models, by the way they were made",
    "one row per model and variant",
    ("model", "variant"),
    (
        _MODEL,
        text(
            "variant",
            "able; paper (its rule for spaces); square_root, per_probe, correct_only (ablations); "
            "contrast (signed square roots of entries less their mean over options; ours)",
        ),
        ColumnSpec(
            "vector",
            pa.list_(pa.float32()),
            "number",
            "Projected attribution; its length is about 1, its cosines are what compares",
        ),
    ),
)

MODEL_WORDS = TableSpec(
    "model_words",
    "What each option of each answer depends on, by word; compact",
    "one row per model and probe",
    ("model", "probe"),
    (
        _MODEL,
        _PROBE,
        real("scale", "number", "Largest absolute attribution of the probe, in nats"),
        ColumnSpec(
            "values",
            pa.list_(pa.int8()),
            "number",
            "By option, then by word: attribution = sign(v) (v / 127)^2 scale, in nats; positive "
            "raises the option's log-probability",
        ),
        ColumnSpec(
            "slot",
            pa.list_(pa.float32()),
            "number",
            "By option: attribution of tokens that span no character, in nats",
        ),
    ),
)

MODEL_OPTIONS = TableSpec(
    "model_options",
    "Log-probabilities of options, and whether models are right",
    "one row per model and probe it read",
    ("model", "probe"),
    (
        _MODEL,
        _PROBE,
        ColumnSpec(
            "log_probabilities",
            pa.list_(pa.float32()),
            "number",
            "By option: log-probability summed over its tokens, in nats, never positive",
        ),
        identifier(
            "choice",
            "Likeliest option, by log-probability a byte where texts are scored; counted from 0",
            pa.int16(),
        ),
        ColumnSpec("correct", pa.bool_(), "flag", "Whether the choice is the right option"),
    ),
)

MODEL_TABLES = (MODEL_PROBES, MODEL_CATALOGUE, MODEL_EMBEDDINGS, MODEL_WORDS, MODEL_OPTIONS)
"""Tables of runs of the kind `models`."""
