"""What the index knows of prototypes, and the sparse activations it rests on."""

import pyarrow as pa

from engine.schema.columns import (
    ACTIVATION,
    DOCUMENT,
    DOMAIN,
    POSITION,
    PROTOTYPE,
    RANK,
    ColumnSpec,
    TableSpec,
    count,
    identifier,
    real,
    text,
)


PROTOTYPES = TableSpec(
    "prototypes",
    "What the index knows of each prototype",
    "one row per prototype",
    ("prototype",),
    (
        PROTOTYPE,
        text("category", "Broad category of the label"),
        text("role", "Specific role of the label"),
        real(
            "label_score",
            "share",
            "Balanced accuracy of the label on held-out examples; empty if not measured",
            True,
        ),
        real(
            "random_label_score",
            "share",
            "The same for the label of another prototype, drawn at random",
            True,
        ),
        real("firing_rate", "share", "Share of scanned tokens on which it is active"),
        count("n_active_tokens", "Scanned tokens on which it is active"),
        real("mean_activation", "share", "Mean activation where it is active"),
        real("max_activation", "share", "Largest activation scanned"),
        real("norm", "number", "Euclidean norm of the prototype"),
        text("top_domain", "Domain with the largest lift", True),
        real("top_domain_share", "share", "Share of its active tokens in that domain", True),
        count("n_documents", "Documents in which it is active"),
        real("unwanted_share", "share", "Share of its active tokens in the unwanted domain"),
        real("x", "number", "Map coordinate (UMAP of directions, no unit)"),
        real("y", "number", "Map coordinate (UMAP of directions, no unit)"),
    ),
)

PROTOTYPE_EXAMPLES = TableSpec(
    "prototype_examples",
    "Training neighbours of a prototype: its strongest tokens and samples of each quantile band",
    "one row per prototype, band and rank",
    ("prototype", "band", "rank"),
    (
        PROTOTYPE,
        identifier(
            "band", "0: top; 1..n: quantile bands of activation from high to low", pa.int8()
        ),
        RANK,
        DOCUMENT,
        POSITION,
        ACTIVATION,
        identifier("window_start", "Position of the first token of the window"),
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
        PROTOTYPE,
        identifier("bin", "Bin, 0 lowest", pa.int16()),
        real("low", "share", "Lower edge"),
        real("high", "share", "Upper edge"),
        count("count", "Scanned tokens in the bin"),
    ),
)

PROTOTYPE_SIGNATURES = TableSpec(
    "prototype_signatures",
    "Token-logit signature W p_i: what a prototype raises and lowers",
    "one row per prototype, side and rank",
    ("prototype", "side", "rank"),
    (
        PROTOTYPE,
        text("side", "top or bottom"),
        RANK,
        identifier("token_id", "Token of the vocabulary"),
        real("logit", "logit", "(W p_i)[token] per unit of activation; positive raises the token"),
    ),
)

PROTOTYPE_DOMAINS = TableSpec(
    "prototype_domains",
    "Where a prototype is active",
    "one row per prototype and domain",
    ("prototype", "domain"),
    (
        PROTOTYPE,
        DOMAIN,
        count("n_active_tokens", "Active tokens in the domain"),
        real("share", "share", "Share of its active tokens"),
        real("lift", "number", "Firing rate in the domain over its firing rate overall"),
    ),
)

PROTOTYPE_NEIGHBOURS = TableSpec(
    "prototype_neighbours",
    "Nearest prototypes by cosine of directions",
    "one row per prototype and rank",
    ("prototype", "rank"),
    (
        PROTOTYPE,
        RANK,
        identifier("neighbour", "The other prototype"),
        real("cosine", "cosine", "Cosine"),
    ),
)

PROTOTYPE_ACTIVATIONS = TableSpec(
    "prototype_activations",
    "Sparse activations: the k active prototypes of every scanned token",
    "one row per document, position and rank",
    ("document", "position", "rank"),
    (
        DOCUMENT,
        POSITION,
        ColumnSpec("rank", pa.int8(), "id", "Rank of the activation, 0 largest"),
        PROTOTYPE,
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
        DOCUMENT,
        POSITION,
        ColumnSpec("residual_share", pa.float16(), "number", "||r||^2 / ||z||^2"),
        ColumnSpec("loss", pa.float16(), "nats", "Cross-entropy of the token that follows", True),
        identifier("predicted", "Token the model holds most probable next"),
    ),
    sharded=True,
)
