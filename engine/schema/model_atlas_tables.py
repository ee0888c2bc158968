"""Model maps: where models lie on a picture, how true it is, and how firm embeddings are."""

import pyarrow as pa

from engine.schema.columns import ColumnSpec, TableSpec, count, real, text


_VARIANT = text("variant", "Way of embedding, as in `model_embeddings`")
_LAYOUT = text("layout", "umap, tsne or pca")

MODEL_LAYOUTS = TableSpec(
    "model_layouts",
    "Places of models on pictures of two dimensions",
    "one row per variant, layout and model",
    ("variant", "layout", "model"),
    (
        _VARIANT,
        _LAYOUT,
        text("model", "Name of the model, the same in every table"),
        real(
            "x", "number", "Place; without a unit, and of umap and tsne near distances alone tell"
        ),
        real("y", "number", "Place"),
        ColumnSpec(
            "added",
            pa.bool_(),
            "flag",
            "Put beside its nearest neighbours after the others had been laid out, none of which "
            "it moved",
        ),
    ),
)

MODEL_LAYOUT_RESULTS = TableSpec(
    "model_layout_results",
    "How much of the embeddings' neighbourhoods a picture keeps",
    "one row per variant and layout",
    ("variant", "layout"),
    (
        _VARIANT,
        _LAYOUT,
        real(
            "trustworthiness",
            "share",
            "1 less a penalty for neighbours on the picture that are none by cosine",
        ),
        real(
            "continuity",
            "share",
            "1 less a penalty for neighbours by cosine that are none on the picture",
        ),
        real("neighbours_kept", "share", "Neighbours by cosine that are neighbours on the picture"),
        count("n_neighbours", "Neighbours of a model that are counted"),
        count("n", "Models laid out"),
    ),
)

MODEL_STABILITY = TableSpec(
    "model_stability",
    "How far embeddings move, and their cosines with them, when something is done otherwise",
    "one row per study, setting and measure",
    ("study", "setting", "measure"),
    (
        text(
            "study",
            "probe_count, convergence, dimension, projector_seed, dtype, batch, option_order, "
            "template, hook, space_rule, copy, rewrite or noise",
        ),
        text("setting", "What was done otherwise, in a word or number"),
        real("x", "number", "The setting as a number, where it is one", nullable=True),
        text(
            "measure",
            "cosine (of a model's vector with its usual one), distance (of both at length 1), "
            "finds_itself (its usual vector is the nearest of all models' usual ones), "
            "agreement (correlation of the models' cosines with one another with the usual ones), "
            "neighbours_kept (of ten), relative_error (of squared distances, root mean square), "
            "expected, half_gap (between cosines from two disjoint sets of probes, root mean "
            "square), lineage_auc, tokenizer_gap (mean cosine of unrelated pairs of one tokenizer "
            "less that of others), quotient (distance per x), homogeneity",
        ),
        real(
            "value", "number", "Median over models, or mean over draws; of finds_itself the share"
        ),
        real("low", "number", "Lowest of the models or draws", nullable=True),
        real("high", "number", "Highest of the models or draws", nullable=True),
        count("n", "Models, or draws"),
    ),
)

MODEL_ATLAS_TABLES = (MODEL_LAYOUTS, MODEL_LAYOUT_RESULTS, MODEL_STABILITY)
"""Tables of pictures and of stability."""
