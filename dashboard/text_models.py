"""Explanations, units and empty-state sentences of the Models page."""

MODELS = "Models near one another give answers that depend on the same words."
HOW = """
- **Place.** Each model's answers to the probes were attributed to the words of the questions; the
  embedding is that long vector, projected. The picture lays embeddings out in two dimensions: near
  is alike, **gaps and densities mean nothing**, and no picture keeps every distance. What it keeps
  is written below it.
- **Point at a mark**: all others take the colour of their true cosine to it, before any picture.
  Where colour and place disagree, the picture is wrong. **Click** a mark to keep it (colour:
  likeness to the chosen model) and to open its card. **Lasso** marks to see them in the table;
  tick rows of the table to ring them on the map.
- **Edges.** Solid: documented lineage, weights were copied. Dashed: a student of a teacher, no
  weights. Dotted: the base that a method predicts, blue where it is documented, orange and crossed
  where it is another.
- **Verdict.** A word for the percentile of a cosine among pairs documented as unrelated: from 99.9
  strong, from 99 moderate, from 95 weak, else none. It is evidence, not proof.
- **Tree.** Neighbour joining on 1 − cosine. A clade has a colour where all its models go back to
  one root. A cross marks an edge that puts a clade apart from a larger one of its lineage.
- **Relations.** Every way of comparing models is judged on pairs whose lineage is documented, split
  by root, beside baselines that know labels alone. The pairs that matter are the hard negatives:
  models alike in architecture, tokenizer and data that share no weights.
"""
SYNTHETIC = "Headwater {name}, synthetic"
NAMED = "Models of {name}"
SYNTHETIC_HELP = (
    "Small models made for this map; their lineage is known because it was made. What holds of "
    "them need not hold of large public models."
)

NO_MODELS = "This run holds no map of models."
HOLDS_MODELS = "These do; a click switches to one:"
NO_MODELS_ANYWHERE = (
    "No run on this machine holds a map of models yet. One is made from a catalogue: folders of "
    "your own, the zoo of small models whose lineage is known, or public models."
)
NO_MODELS_COMMANDS = (
    "headwater models zoo --to zoo\n"
    "headwater models embed --catalogue zoo/catalogue.csv --run my-models\n"
    "headwater models map --run my-models"
)
NO_LAYOUTS = "The pictures of this map have not been computed; everything below needs none."
NO_NEIGHBOURS = "Neighbours with percentiles and verdicts have not been computed for this run."
NO_RELATIONS = "How well methods tell related models from others has not been measured here."
NO_PARENTS = "No base was predicted for the models of this run."
NO_TREE = "No tree was made of these embeddings."
NO_STABILITY = "How firm the embeddings of this run are has not been measured."
UNKNOWN_LINEAGE = "No lineage is documented for this model."

LAYOUTS = {"umap": "UMAP", "tsne": "t-SNE", "pca": "PCA"}
LAYOUT_HELP = (
    "UMAP and t-SNE keep near models near and tell nothing of far ones; PCA is a projection of the "
    "embeddings. Computed beforehand, with a fixed seed."
)
VARIANTS = {
    "able": "words as they are",
    "paper": "the paper's rule for spaces",
    "square_root": "signed square roots",
    "per_probe": "every question at length 1",
    "correct_only": "right options alone",
    "contrast": "differences between options, signed square roots",
}
NEAR = "near"
"""Colour by likeness to the chosen model."""
COLOURS = {
    "family": "Family",
    "root": "Root (documented)",
    "relation": "Derivation",
    "n_parameters": "Parameters (log)",
    "architecture": "Architecture",
    "tokenizer": "Tokenizer",
    "data": "Data of its root",
    "accuracy": "Score on the probes",
    "held_out": "Score on other questions",
    NEAR: "Likeness to the chosen model",
    "kept": "Neighbours this picture keeps",
}
NUMBERS = {
    "accuracy": "right answers (share)",
    "held_out": "right answers (share)",
    "kept": "nearest models kept (share)",
    NEAR: "cosine",
}
"""Titles of colour bars, with units."""
EDGES = {
    "both": "Both",
    "documented": "Documented",
    "predicted": "Predicted",
    "own": "Of the chosen model",
    "none": "None",
}
EDGES_HELP = (
    "Documented: from the catalogue. Predicted: the base that a method says a model goes back to; "
    "wrong ones are orange and crossed."
)
METHOD_HELP = "What the base of each model was predicted by."
IDLE = "Point at a mark: all others take the colour of their true cosine to it."
MAP_SAID = "Near means alike; gaps and densities mean nothing."
PCA_SAID = "A projection of the embeddings: the directions with most spread."
QUALITY = {
    "trustworthiness": (
        "Trustworthiness",
        "1 less a penalty for models that are near on the picture and not by cosine; 1 is best.",
    ),
    "continuity": (
        "Continuity",
        "1 less a penalty for models that are near by cosine and not on the picture; 1 is best.",
    ),
    "neighbours_kept": (
        "Neighbours kept",
        "Share of the nearest models by cosine that are nearest on the picture.",
    ),
}
TABLE_SAID = "Nearest to {model} first, by cosine. Tick rows to ring them on the map."
COSINE = "Cosine of the embeddings, before any picture."
PERCENTILE = "Percent of the pairs documented as unrelated that are less alike than this one."
KNOWN = "What the neighbour is to the model by the documents."
SAME_TOKENIZER = "Models that share a tokenizer are more alike for that alone."
PREDICTED = (
    "Base that the method says it goes back to, with Holm's correction over all bases; p is the "
    "chance of so alike a base among unrelated ones."
)
TABS = ("Tree", "Heat map", "Relations", "Bases", "Stability", "Export")
TREE_SAID = (
    "Near the top nothing is certain: neighbour joining makes a tree of any distances, related or "
    "not. Click a leaf to open its card."
)

METHODS = {
    "able": "ABLE",
    "paper": "ABLE, paper's space rule",
    "square_root": "ABLE, square roots",
    "per_probe": "ABLE, per probe",
    "correct_only": "ABLE, right options",
    "contrast": "ABLE, contrasts, square roots",
    "contrast_plain": "ABLE, contrasts, no roots",
    "log_likelihoods": "Log-likelihoods, centred",
    "option_probabilities": "Option probabilities",
    "phylolm": "PhyloLM, from samples",
    "weights": "Weight cosine",
    "tokenizer": "Tokenizer label",
    "architecture_size": "Architecture + size label",
    "architecture_tokenizer": "Architecture + tokenizer label",
    "random": "Random",
}
"""Methods in words, in the order they are listed; `NAME_whole` is NAME without projection."""
KINDS_OF_METHOD = ("Embeddings", "Outputs and weights", "Labels alone")
METRICS = {
    "auc": "AUC",
    "accuracy": "Accuracy",
    "precision": "Precision",
    "recall": "Recall",
    "f1": "F1",
}
GROUPS = {
    "all": "all pairs, balanced",
    "hard": "hard negatives",
    "twin": "twin roots: same architecture, tokenizer and data",
    "held_out": "held-out roots, once",
    "held_out:twin": "held-out twins, once",
    "dev": "development roots",
    "dev:twin": "twins of the development roots",
}
CLASSIFIERS = {"threshold": "one threshold", "logistic": "logistic regression"}
CLASSIFIER_HELP = (
    "Threshold: one score, its threshold from the training roots. Logistic: regression on the "
    "difference and the product of both vectors."
)
RESULTS_SAID = (
    "Bars: mean over splits by root with one standard deviation; where pairs were judged once, the "
    "95 % bootstrap interval over roots. Dashed: chance."
)
HARD = {
    "twin": "twin roots",
    "distilled": "student and teacher's family",
    "convergence": "same small domain",
    "architecture": "same tokenizer and data",
    "data": "same tokenizer, other data",
    "size": "same family, other size",
    "name": "same name only",
}
PARENT_METRICS = {
    "recall_at_1": "nearest model is a parent",
    "mean_reciprocal_rank": "mean reciprocal rank of the parent",
    "precision": "predicted bases that are right",
    "recall": "bases found",
    "no_parent_recall": "bases recognised as such",
}
TREE_METRICS = {
    "triplets": "triplets resolved as documented",
    "splits_found": "documented clades found",
    "robinson_foulds": "Robinson–Foulds distance, normalised (0 best)",
    "cophenetic": "correlation with documented distances",
    "kept_distances": "correlation with the cosines",
}
STUDIES = {
    "probe_count": "Probes asked",
    "convergence": "Two disjoint sets of probes",
    "dimension": "Dimensions of the projection",
    "noise": "Noise added to the weights",
    "projector_seed": "Seed of the projection",
    "dtype": "Number format",
    "batch": "One row at a time",
    "option_order": "Order of the options",
    "template": "Wording of the prompt",
    "hook": "Where it is attributed",
    "space_rule": "Rule for spaces",
    "copy": "Loaded again",
    "rewrite": "Other weights, same function",
}
CURVED = ("probe_count", "convergence", "dimension", "noise")
"""Studies whose settings are numbers along which something grows or falls."""
MEASURES = {
    "cosine": "cosine with the usual vector",
    "distance": "distance to the usual vector",
    "finds_itself": "models whose usual vector is the nearest (share)",
    "agreement": "correlation of all cosines with the usual ones",
    "neighbours_kept": "ten nearest models kept (share)",
    "relative_error": "relative error of squared distances",
    "expected": "relative error expected of the projection",
    "half_gap": "gap between cosines of both halves",
    "lineage_auc": "AUC for lineage",
    "quotient": "distance per unit of noise",
    "homogeneity": "|x·g| / (‖x‖‖g‖)",
}
EXPORT_SAID = (
    "Rows as tables; every figure has a camera that saves it as SVG or PNG with its legend."
)

FIGURES_OF = (
    "The shipped figures on maps of models belong to the run {runs}, not to this one; "
    "the Overview lists them in its claims ledger."
)


def method_name(method: str) -> str:
    """A method in words."""
    if method in METHODS:
        return METHODS[method]
    base = method.removesuffix("_whole")
    return f"{METHODS.get(base, base.replace('_', ' '))}, unprojected"


def group_name(group: str) -> str:
    """Pairs that are judged, in words."""
    kind, _, name = group.partition(":")
    if kind == "hard" and name:
        return HARD.get(name, name.replace("_", " "))
    if kind == "derivation":
        return name.replace("_", " ")
    return GROUPS.get(group, group.replace("_", " "))
