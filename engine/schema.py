"""The contract between engine and dashboard: every Parquet table, its grain, units and ranges.

`docs/DATA.md` is generated from this file. A run folder holds `run.json` and these tables; the
folder of a built corpus holds `documents` alone. `document` is the row of a document in the
`documents` table beside it; `position` counts tokens from the start of that document.
"""

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa


SCHEMA_VERSION = 1

Kind = Literal[
    "id", "count", "share", "cosine", "nats", "logit", "text", "flag", "number", "seconds"
]

_UNITS: dict[str, str] = {
    "id": "identifier",
    "count": "count",
    "share": "share in [0, 1]",
    "cosine": "cosine in [-1, 1]",
    "nats": "nats per token",
    "logit": "logits (nats)",
    "text": "text",
    "flag": "true or false",
    "number": "number",
    "seconds": "seconds",
}
_RANGES: dict[str, tuple[float | None, float | None]] = {
    "id": (0, None),
    "count": (0, None),
    "share": (0, 1),
    "cosine": (-1, 1),
    "nats": (None, None),
    "seconds": (0, None),
}
ROUNDING = 1e-4
"""How far a stored share or cosine may pass its bound through rounding."""


@dataclass(frozen=True)
class ColumnSpec:
    """One column: its Arrow type, what it counts in, its bounds and its meaning."""

    name: str
    type: pa.DataType
    kind: Kind
    meaning: str
    nullable: bool = False

    @property
    def unit(self) -> str:
        """Unit in words."""
        return "text" if pa.types.is_string(self.type) and self.kind == "id" else _UNITS[self.kind]

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """Lowest and highest value allowed, of a list the values in it; None is unbounded."""
        of = self.type.value_type if pa.types.is_list(self.type) else self.type
        if not (pa.types.is_integer(of) or pa.types.is_floating(of)):
            return (None, None)
        return _RANGES.get(self.kind, (None, None))


@dataclass(frozen=True)
class TableSpec:
    """One table: name, meaning, grain, key columns and columns in order."""

    name: str
    meaning: str
    grain: str
    key: tuple[str, ...]
    columns: tuple[ColumnSpec, ...]
    sharded: bool = False

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema with non-null fields."""
        fields = [pa.field(c.name, c.type, nullable=c.nullable) for c in self.columns]
        return pa.schema(fields)

    def column(self, name: str) -> ColumnSpec:
        """The column called `name`."""
        return next(c for c in self.columns if c.name == name)


def _id(name: str, meaning: str, type_: pa.DataType | None = None) -> ColumnSpec:
    return ColumnSpec(name, type_ or pa.int32(), "id", meaning)


def _text(name: str, meaning: str, nullable: bool = False) -> ColumnSpec:
    return ColumnSpec(name, pa.string(), "text", meaning, nullable)


def _real(name: str, kind: Kind, meaning: str, nullable: bool = False) -> ColumnSpec:
    return ColumnSpec(name, pa.float32(), kind, meaning, nullable)


def _count(name: str, meaning: str) -> ColumnSpec:
    return ColumnSpec(name, pa.int64(), "count", meaning)


_PROTOTYPE = _id("prototype", "Prototype, counted from 0 (paper: i)")
_DOCUMENT = _id("document", "Row of the document in this run's `documents` table")
_POSITION = _id("position", "Token, counted from 0 within the document")
_RANK = _id("rank", "Rank, 0 first", pa.int16())
_DOMAIN = _text("domain", "Domain of the text")
_ACTIVATION = _real("activation", "share", "Cosine of state and prototype after ReLU and top-k")

DOCUMENTS = TableSpec(
    "documents",
    "Documents of a corpus or of an index; ids and sizes only, never text",
    "one row per document",
    ("document",),
    (
        _DOCUMENT,
        ColumnSpec("doc_id", pa.string(), "id", "Hash of the domain and the text; stable"),
        _DOMAIN,
        _text("source", "Package and file, or path, the text comes from"),
        _text("split", "train or validation"),
        _count("n_bytes", "UTF-8 bytes of the text"),
    ),
)

TRAINING_LOG = TableSpec(
    "training_log",
    "What each optimiser step saw",
    "one row per step",
    ("step",),
    (
        _id("step", "Optimiser step, counted from 1"),
        _real("cross_entropy", "nats", "L_CE, next-token cross-entropy on the full logits"),
        _real(
            "reconstruction",
            "number",
            "L_REC, mean squared residual share; empty before the bank",
            True,
        ),
        _real(
            "prototype_to_token",
            "number",
            "L_R1, mean over prototypes of 1 - cosine to the nearest token of the batch",
            True,
        ),
        _real(
            "token_to_prototype",
            "number",
            "L_R2, mean over tokens of 1 - cosine to the nearest prototype",
            True,
        ),
        _real("weight_scale", "share", "Ramp of the bank's loss weights"),
        _real("learning_rate", "number", "Learning rate of the backbone"),
        _real("gradient_norm", "number", "Gradient norm before clipping"),
        _count("tokens_seen", "Tokens trained on so far"),
        _real("seconds", "seconds", "Wall time of the step"),
    ),
)

EVALUATIONS = TableSpec(
    "evaluations",
    "Loss and coverage on held-out rows on the way of training",
    "one row per step evaluated",
    ("step",),
    (
        _id("step", "Optimiser step"),
        _real("validation_loss", "nats", "Mean held-out cross-entropy over domains' rows"),
        _real(
            "coverage_r1",
            "cosine",
            "R1-bar: mean over prototypes of the largest cosine with a scanned token",
            True,
        ),
        _real(
            "coverage_r2",
            "cosine",
            "R2: mean over tokens of the largest cosine with a prototype",
            True,
        ),
        _real("residual_share", "number", "Mean squared residual share", True),
        _real("pair_cosine", "cosine", "Mean cosine of random pairs of token states"),
        _real("participation_ratio", "number", "Participation ratio of the states' covariance"),
        _real("dead_share", "share", "Share of prototypes that no scanned token activates", True),
        _count("tokens_scanned", "Held-out tokens of this evaluation"),
    ),
)

VALIDATION_LOSS = TableSpec(
    "validation_loss",
    "Held-out loss by domain, of the model and of its dense twin",
    "one row per model and domain",
    ("model", "domain"),
    (
        _text("model", "prism or dense"),
        _DOMAIN,
        _real("loss", "nats", "Mean held-out cross-entropy"),
        _count("n_tokens", "Held-out tokens"),
    ),
)

COVERAGE = TableSpec(
    "coverage",
    "Grounding of the bank on held-out tokens, beside a random and a k-means bank of the same K",
    "one row per bank",
    ("bank",),
    (
        _text("bank", "trained, kmeans, random, or dense-kmeans (k-means on the twin's states)"),
        _real(
            "coverage_r1",
            "cosine",
            "R1-bar: mean over prototypes of the largest cosine with a scanned token",
        ),
        _real(
            "coverage_r2", "cosine", "R2: mean over tokens of the largest cosine with a prototype"
        ),
        _real("residual_share", "number", "Mean squared residual share"),
        _real("pair_cosine", "cosine", "Mean cosine of random pairs of token states"),
        _real("participation_ratio", "number", "Participation ratio of the states' covariance"),
        _real("dead_share", "share", "Share of prototypes that no scanned token activates"),
        _count("tokens_scanned", "Held-out tokens scanned"),
    ),
)

TRADEOFF = TableSpec(
    "tradeoff",
    "Loss against coverage over loss weights, every arm from the same starting point",
    "one row per arm",
    ("arm",),
    (
        _text("arm", "Name of the arm"),
        _real("reconstruction_weight", "number", "Weight of L_REC"),
        _real("prototype_to_token_weight", "number", "Weight of L_R1"),
        _real("token_to_prototype_weight", "number", "Weight of L_R2"),
        _real("validation_loss", "nats", "Held-out cross-entropy"),
        _real("dense_loss", "nats", "Held-out cross-entropy of the dense arm after the same steps"),
        _real("coverage_r1", "cosine", "R1-bar"),
        _real("coverage_r2", "cosine", "R2"),
        _real("residual_share", "number", "Mean squared residual share"),
        _real("pair_cosine", "cosine", "Mean cosine of random pairs of token states"),
        _real("participation_ratio", "number", "Participation ratio of the states"),
        _real(
            "dense_participation_ratio", "number", "Participation ratio of the dense arm's states"
        ),
        _real("dead_share", "share", "Share of prototypes that no scanned token activates"),
        _count("tokens_scanned", "Held-out tokens scanned"),
    ),
)

PROTOTYPES = TableSpec(
    "prototypes",
    "What the index knows of each prototype",
    "one row per prototype",
    ("prototype",),
    (
        _PROTOTYPE,
        _text("category", "Broad category of the label"),
        _text("role", "Specific role of the label"),
        _real(
            "label_score",
            "share",
            "Balanced accuracy of the label's prediction on held-out examples; empty where it could not be measured",
            True,
        ),
        _real(
            "random_label_score",
            "share",
            "The same for the label of another prototype, drawn at random",
            True,
        ),
        _real("firing_rate", "share", "Share of scanned tokens on which it is active"),
        _count("n_active_tokens", "Scanned tokens on which it is active"),
        _real("mean_activation", "share", "Mean activation where it is active"),
        _real("max_activation", "share", "Largest activation scanned"),
        _real("norm", "number", "Euclidean norm of the prototype"),
        _text("top_domain", "Domain with the largest lift", True),
        _real("top_domain_share", "share", "Share of its active tokens in that domain", True),
        _count("n_documents", "Documents in which it is active"),
        _real("unwanted_share", "share", "Share of its active tokens in the unwanted domain"),
        _real("x", "number", "Map coordinate (UMAP of directions, no unit)"),
        _real("y", "number", "Map coordinate (UMAP of directions, no unit)"),
    ),
)

PROTOTYPE_EXAMPLES = TableSpec(
    "prototype_examples",
    "Training neighbours of a prototype: its strongest tokens and samples of each quantile band",
    "one row per prototype, band and rank",
    ("prototype", "band", "rank"),
    (
        _PROTOTYPE,
        _id("band", "0: top; 1..n: quantile bands of activation from high to low", pa.int8()),
        _RANK,
        _DOCUMENT,
        _POSITION,
        _ACTIVATION,
        _id("window_start", "Position of the first token of the window"),
        ColumnSpec(
            "window_activations",
            pa.list_(pa.float32()),
            "share",
            "Activation of this prototype at each token of the window; 0 where not among the top-k",
        ),
    ),
)

PROTOTYPE_HISTOGRAMS = TableSpec(
    "prototype_histograms",
    "Histogram of a prototype's activations where it is active",
    "one row per prototype and bin",
    ("prototype", "bin"),
    (
        _PROTOTYPE,
        _id("bin", "Bin, 0 lowest", pa.int16()),
        _real("low", "share", "Lower edge"),
        _real("high", "share", "Upper edge"),
        _count("count", "Scanned tokens in the bin"),
    ),
)

PROTOTYPE_SIGNATURES = TableSpec(
    "prototype_signatures",
    "Token-logit signature W p_i: what a prototype raises and lowers",
    "one row per prototype, side and rank",
    ("prototype", "side", "rank"),
    (
        _PROTOTYPE,
        _text("side", "top or bottom"),
        _RANK,
        _id("token_id", "Token of the vocabulary"),
        _real("logit", "logit", "(W p_i)[token] per unit of activation; positive raises the token"),
    ),
)

PROTOTYPE_DOMAINS = TableSpec(
    "prototype_domains",
    "Where a prototype is active",
    "one row per prototype and domain",
    ("prototype", "domain"),
    (
        _PROTOTYPE,
        _DOMAIN,
        _count("n_active_tokens", "Active tokens in the domain"),
        _real("share", "share", "Share of its active tokens"),
        _real("lift", "number", "Firing rate in the domain over its firing rate overall"),
    ),
)

PROTOTYPE_NEIGHBOURS = TableSpec(
    "prototype_neighbours",
    "Nearest prototypes by cosine of directions",
    "one row per prototype and rank",
    ("prototype", "rank"),
    (
        _PROTOTYPE,
        _RANK,
        _id("neighbour", "The other prototype"),
        _real("cosine", "cosine", "Cosine"),
    ),
)

PROTOTYPE_ACTIVATIONS = TableSpec(
    "prototype_activations",
    "Sparse activations: the k active prototypes of every scanned token",
    "one row per document, position and rank",
    ("document", "position", "rank"),
    (
        _DOCUMENT,
        _POSITION,
        ColumnSpec("rank", pa.int8(), "id", "Rank of the activation, 0 largest"),
        _PROTOTYPE,
        ColumnSpec("activation", pa.float16(), "share", "Cosine after ReLU and top-k"),
    ),
    sharded=True,
)

TOKEN_RESIDUALS = TableSpec(
    "token_residuals",
    "Residual share of every scanned token",
    "one row per document and position",
    ("document", "position"),
    (
        _DOCUMENT,
        _POSITION,
        ColumnSpec("residual_share", pa.float16(), "number", "||r||^2 / ||z||^2"),
        ColumnSpec("loss", pa.float16(), "nats", "Cross-entropy of the token that follows", True),
        _id("predicted", "Token the model holds most probable next"),
    ),
    sharded=True,
)

CONCEPTS = TableSpec(
    "concepts",
    "Saved sets of prototypes, chosen on training texts alone",
    "one row per concept and prototype",
    ("concept", "prototype"),
    (
        _text("concept", "Name of the concept, NSFW for example"),
        _PROTOTYPE,
        _real(
            "score",
            "number",
            "Log ratio of its mass per token on the concept's texts over all other texts",
        ),
        _text("origin", "How it was chosen"),
    ),
)

SUPPRESSION = TableSpec(
    "suppression",
    "Generations from held-out prompts before and after suppression, and with a matched random set",
    "one row per concept, condition and generation",
    ("concept", "condition", "generation"),
    (
        _text("concept", "Concept suppressed"),
        _text("condition", "baseline, suppressed or random"),
        _id("generation", "Generation, counted from 0"),
        ColumnSpec("doc_id", pa.string(), "id", "Held-out document the prompt is taken from"),
        _id("seed", "Seed of the sampler, the same in every condition", pa.int64()),
        _real("strength", "share", "Strength of suppression"),
        _real(
            "classifier_score", "share", "Probability of unwanted content by the offline classifier"
        ),
        _real("wordlist_score", "share", "Share of words on the word list"),
        _real("perplexity", "number", "Perplexity of the text under the dense twin"),
        _count("n_tokens", "Tokens generated"),
        _count("tokens_touched", "Tokens at which a suppressed prototype was active"),
    ),
)

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
