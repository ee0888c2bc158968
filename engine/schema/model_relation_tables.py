"""Model maps: which models are related, by what is documented and by what is computed."""

import pyarrow as pa

from engine.schema.columns import RANK, ColumnSpec, TableSpec, count, identifier, real, text


_MODEL = text("model", "Name of the model, the same in every table")
_VARIANT = text("variant", "Way of embedding, as in `model_embeddings`")
_METHOD = text(
    "method",
    "What models are compared by: a variant of `model_embeddings`; NAME_whole (the same without "
    "projection), contrast_plain_whole (contrast_whole without square roots); log_likelihoods, "
    "option_probabilities, phylolm, weights, tokenizer, architecture_size, "
    "architecture_tokenizer, random",
)
_PAIR = identifier("pair", "Pair, counted from 0")

MODEL_PAIRS = TableSpec(
    "model_pairs",
    "Pairs of models whose lineage is documented",
    "one row per pair of embedded models, each pair once",
    ("pair",),
    (
        _PAIR,
        text("a", "First model, in the order of the cards"),
        text("b", "Second model"),
        ColumnSpec("related", pa.bool_(), "flag", "Whether edges that copy weights connect them"),
        text(
            "level",
            "positive (related); hard (alike in a way `kind` names); medium (same tokenizer or "
            "data); easy (neither)",
        ),
        text(
            "kind",
            "Of related pairs how the later was made of the earlier, siblings (a parent in "
            "common), ancestor or relatives; of hard ones twin, distilled, convergence, size, "
            "architecture, data or name; else empty",
        ),
        count("edges", "Edges between them in the documented lineage; 0 where none connect them"),
    ),
)

MODEL_PAIR_SCORES = TableSpec(
    "model_pair_scores",
    "How alike the models of pairs are, by method",
    "one row per method and pair",
    ("method", "pair"),
    (
        _METHOD,
        _PAIR,
        real(
            "score",
            "number",
            "Higher is more alike: a cosine, of phylolm a similarity in [0, 1], of labels 1 where "
            "they are equal",
        ),
    ),
)

MODEL_RELATION_RESULTS = TableSpec(
    "model_relation_results",
    "How well methods tell related models from others",
    "one row per method, classifier, group and metric",
    ("method", "classifier", "group", "metric"),
    (
        _METHOD,
        text(
            "classifier",
            "threshold (one score, one threshold from the training pairs), logistic (|a - b| and "
            "a * b, of whole vectors the cosines by probe), none (no pair is classified)",
        ),
        text(
            "group",
            "Pairs that are judged: all (balanced), hard, twin, hard:KIND, derivation:NAME, over "
            "random splits by root; dev, held_out, dev:twin, held_out:twin, measured once; "
            "same_labels (of permutations), parents, tree",
        ),
        text(
            "metric",
            "accuracy, precision, recall, f1, auc, false_positive_rate, permutation_p, chosen "
            "(1: the method chosen on development roots); of parents recall_at_1, "
            "mean_reciprocal_rank, precision, recall, no_parent_recall; of trees triplets, "
            "splits_found, robinson_foulds, cophenetic, kept_distances",
        ),
        real("value", "number", "The figure; over splits their mean"),
        real("sd", "number", "Standard deviation over splits", nullable=True),
        real("low", "number", "Lower end of a 95 % bootstrap interval over roots", nullable=True),
        real("high", "number", "Upper end", nullable=True),
        count("n", "Pairs, models or triplets judged; over splits their mean"),
    ),
)

MODEL_NEIGHBOURS = TableSpec(
    "model_neighbours",
    "Models most like each model",
    "one row per variant, model and rank",
    ("variant", "model", "rank"),
    (
        _VARIANT,
        _MODEL,
        RANK,
        text("neighbour", "The model that is like it"),
        real("cosine", "cosine", "Cosine of their embeddings"),
        real(
            "percentile_unrelated",
            "number",
            "Percent of the pairs documented as unrelated that are less alike; empty where no "
            "lineage is documented",
            nullable=True,
        ),
        text(
            "verdict",
            "strong, moderate, weak or none: evidence of related input dependence, not proof of "
            "derivation; unknown where no unrelated pair is documented",
        ),
        text(
            "known_relation",
            "What the neighbour is to the model by the documents: parent, child, ancestor, "
            "descendant, sibling, relative, teacher, student, twin, unrelated or unknown",
        ),
    ),
)

MODEL_PARENTS = TableSpec(
    "model_parents",
    "Which base each model is taken to go back to, and where its parent ranks",
    "one row per method and model",
    ("method", "model"),
    (
        _METHOD,
        _MODEL,
        text("predicted", "Base it is taken to go back to; empty: none"),
        real("score", "number", "How alike it and its likeliest base are"),
        real(
            "p_value",
            "share",
            "Chance of so alike a base among unrelated ones of the other half of the roots, after "
            "Holm's correction for the number of bases",
        ),
        ColumnSpec("parents", pa.list_(pa.string()), "text", "Documented parents"),
        ColumnSpec("roots", pa.list_(pa.string()), "text", "Documented bases; of a base itself"),
        ColumnSpec(
            "correct",
            pa.bool_(),
            "flag",
            "Whether the prediction is among its documented bases, or none where none of them "
            "is in the map; empty where its bases are not documented",
            nullable=True,
        ),
        ColumnSpec(
            "rank_of_parent",
            pa.int32(),
            "id",
            "Rank of its most alike parent among all other models, 1 first; empty where no parent "
            "of it is embedded",
            nullable=True,
        ),
    ),
)

MODEL_TREES = TableSpec(
    "model_trees",
    "Trees that neighbour joining makes of the embeddings",
    "one row per variant and node",
    ("variant", "node"),
    (
        _VARIANT,
        identifier("node", "Node, counted from 0; leaves first"),
        ColumnSpec("parent", pa.int32(), "id", "Node above it; empty for the top", nullable=True),
        real(
            "length",
            "number",
            "Length of the edge to the node above, in units of 1 - cosine; never negative",
        ),
        text("model", "Model of a leaf; empty for inner nodes"),
    ),
)

MODEL_RELATION_TABLES = (
    MODEL_PAIRS,
    MODEL_PAIR_SCORES,
    MODEL_RELATION_RESULTS,
    MODEL_NEIGHBOURS,
    MODEL_PARENTS,
    MODEL_TREES,
)
"""Tables about relations of models."""
