"""Sentences, names and commands of the Attribution page."""

SENTENCE = "Which training texts made a prediction likelier, and which less likely."
HOW = """
- **Query.** The prediction that is traced: one next token, or the tokens of a span of the text. Its
  loss is the sum of −log p over these tokens.
- **Score.** The inner product of two gradients with respect to the prototypes: that of the query's
  loss and that of a training sequence's loss. **Positive (blue): weighting that text up would lower
  the query's loss. Negative (orange, dotted): it would raise it.** Without curvature its size is
  the fall of the query's loss, in nats and to first order, for a step of size 1 down the gradient
  of the text's loss; scores compare within one query only.
- **Tokens.** A sequence's score is the sum over its tokens, and each token's over the prototypes
  active at it. Nothing is left over: what the strips and the bars show adds up to the score.
- **Methods.** `errors` holds activations constant, `path` follows the gradient through them,
  `activations` compares activations alone. `+diagonal` and `+coupled` divide the query's gradient
  by the curvature of the bank's own losses; `+unit` divides by the length of the text's gradient,
  so that long or surprising texts do not win by size. *full* computes the same gradients anew,
  unquantised. *knn*, *tfidf* and *bm25* compare states or words and know nothing of the loss.
- **Trust.** Scores are worth what retraining says they are: the badge gives the correlation with
  models that were really retrained (LDS), and names the model it was measured on.
- **Pool.** What is searched is a bounded set of training sequences, not the whole corpus.
"""

STATISTICS = {
    "activations": "activations alone",
    "errors": "output errors, activations constant",
    "path": "output errors, with the path through the activations",
}
CONDITIONINGS = {
    "diagonal": "curvature on the diagonal",
    "coupled": "curvature between prototypes",
}
OTHERS = {
    "full": "full gradient of the bank, unquantised",
    "ekfac": "EK-FAC over all layers",
    "projected": "projected gradients of all layers",
    "gradient-dot": "gradients of the whole network",
    "knn": "nearest hidden states",
    "tfidf": "words (TF-IDF)",
    "bm25": "words (BM25)",
    "random": "random order",
}
"""Methods that are no cached variant, in words."""
NEEDS_TEXT = ("full", "knn", "tfidf", "bm25")
"""Methods of the page that read the pool's text anew."""
NEEDS_MODEL = ("full", "knn")
"""Those of them that run the model over every text."""
TIMES = {
    "pass": "The model reads the query and its output error is formed.",
    "preparation": "The query's gradient is formed and divided by the curvature.",
    "search": "Every text of the pool that shares a prototype with the query is scored.",
}
"""What each part of a query's time goes into."""
UNIT = (
    "Nats without curvature: the fall of the query's loss, to first order, for a step of size 1 "
    "down the gradient of the text's loss. Scores of one query compare, those of two do not."
)
LOSS = "Sum of −log p over the traced tokens; a score says how a text moves it."


def method_words(name: str) -> str:
    """A method's name in words."""
    if name in OTHERS:
        return OTHERS[name]
    statistic, *options = name.split("+")
    if statistic not in STATISTICS:
        return name
    parts = [STATISTICS[statistic]]
    parts += [CONDITIONINGS[o] for o in options if o in CONDITIONINGS]
    parts += ["per unit of gradient"] if "unit" in options else []
    return ", ".join(parts)


BOUNDED = (
    "A bounded pool of training sequences, equal shares of every domain; it is not the corpus. A "
    "larger pool is indexed locally:"
)
BOUNDED_SHORT = "A bounded pool of training sequences, not the whole corpus."
SIGN = "Blue: weighting the text up lowers the query's loss. Orange, dotted: it raises it."
LIKENESSES = ("knn", "knn-last", "tfidf", "bm25")
"""Methods whose scores are likenesses, which no text can have against the query."""
LIKENESS = (
    "Scores of this method are likenesses: the first texts are most like the query, the last "
    "least; that says nothing of help or harm."
)
NOT_VALIDATED = "not validated for this model"
METHOD_NOT_VALIDATED = "not validated for this method"
VALIDATED = "validated by retraining this model"
NO_VALIDITY = (
    "No study by retraining is on this machine, so no number says how far scores can be trusted."
)
LDS_HELP = (
    "Linear datamodeling score: rank correlation, over retrained subsets of a pool, of the loss "
    "that summed scores predict with the loss measured; mean over queries. 1 is perfect, 0 is "
    "chance. The noise ceiling is one seed's losses against another's; scores are held against the "
    "mean of the seeds, which is less noisy, so a method may pass it."
)
RETRAIN_COMMAND = "headwater retrain-check"
EVERY = "Also the variants and references that tell little new."
VALIDITY_TITLE = "How far these scores can be trusted"
VALIDITY_LDS = "Prediction of retraining (LDS)"
VALIDITY_REMOVAL = "Removal of what a method ranks first and last"
VALIDITY_RECALL = "Planted documents found"
VALIDITY_AGREEMENT = "Agreement of rankings"
NO_AGREEMENT = "Methods have not been held against each other on one pool of this run yet."
NO_REFERENCE = "The agreement study of this run scored neither the full gradient nor EK-FAC."
PANELS = {
    "full": "with the full gradient,<br>same curvature (share)",
    "ekfac": "with EK-FAC (share)",
    "all": "LDS, all sequences",
    "domain": "LDS, the query's domain",
    "top": "most helpful removed<br>(nats a query; + they helped)",
    "bottom": "most harmful removed<br>(nats a query; − they harmed)",
    "repeated": "asked in its own words<br>(share found)",
    "rephrased": "asked in other words<br>(share found)",
}
"""What the axis of each panel of the validity section measures."""
UNREAD = "Scores, ids and places need no text; the words of these documents do."
NOTHING = (
    "No sequence of the pool has an active prototype in common with the query: every score is zero."
)


def other_detail(method: str, cached: str) -> str:
    """Why the shades are another method's: this one scores texts whole."""
    return (
        f"{method} scores each text whole; shades and prototypes are those of the cached method "
        f"{cached}."
    )


def sign_of(method: str) -> str:
    """What the sign of a method's scores means."""
    return LIKENESS if method in LIKENESSES else SIGN


def beyond_ceiling(ceiling: float, n_seeds: int, most: float) -> str:
    """What the dotted line of the LDS figure is, and what could be reached."""
    return (
        f"The dotted line is one seed's losses against another's ({ceiling:.2f}). Methods are held "
        f"against the mean of {n_seeds} seeds, with which all that a subset determines would "
        f"correlate at about {most:.2f}; so a method may pass the line."
    )


def chosen_beside(chosen: str, taken: str, lds: dict[str, float]) -> str:
    """Why the marked variant is not the one that the page takes where none is named.

    Args:
        chosen: variant that the study chose.
        taken: variant that is taken here.
        lds: LDS of each.
    """
    return (
        f"Marked is the variant that the study chose, {chosen} (LDS {lds[chosen]:.3f}). This page "
        f"takes {taken} ({lds[taken]:.3f}) where none is named: it reads only the tokens that "
        "share a prototype with the query, and needs no system of all prototypes solved."
    )


def not_in_corpus(n: int, listed: int) -> str:
    """Why some texts show boxes in place of words."""
    return (
        f"{n:,} of {listed:,} texts are not in the corpus on this machine; ▯ stands for each of "
        "their tokens."
    )
