"""Names, sentences and units of the page Forecast."""

FORECAST = "Scores of models told without them, and which base to adapt to a task."
FORECAST_HOW = """
- **Forecast.** A model's share of right answers in a domain, on questions no embedding was made
  with, is told from its embedding by ridge regression fitted on other models.
- **Leakage.** Left out one model at a time, its siblings stay in: much of what looks like a
  forecast is the family's score. Left out with all that share a root, nothing of the family
  helps. Both stand side by side; what is lost between them was leakage.
- **Baselines** know less or other things: the size, the score on the probes, probabilities of
  options, the mean of documented relatives, the mean of all models.
- **Spearman** compares orders: 1 the same order, 0 none. It is taken of what a method says beyond
  the mean of the models it was fitted on: that mean falls when a high score is left out, so alone
  it would order models backwards. Intervals are 95 %, from a bootstrap over
  models (over lineages where lineages are left out).
- **Candidates.** Every base was really trained on a target, for the same short while. Ranked
  before that, the first ten are judged by **NDCG@10** against the random order's mean, and by
  **regret**: what the best of the first 1 or 5 falls short of the best of all.
"""
REGIMES = {
    "one_model_out": "one model out",
    "one_root_out": "one root out",
    "one_family_out": "one family out",
}
"""What is left out together, in words, in the order shown."""
REGIME_NOTES = {
    "one_model_out": "siblings stay in the fit",
    "one_root_out": "no model of its root stays in the fit",
    "one_family_out": "no model of its family stays in the fit",
}
METHODS = {
    "able": "able",
    "able_whole": "able, unprojected",
    "square_root": "able, signed square roots",
    "contrast": "differences between options",
    "contrast_whole": "differences between options, unprojected",
    "paper": "able, the paper's rule for spaces",
    "other_domains": "able, without the target's probes",
    "options": "probabilities of options",
    "log_likelihood": "log-likelihoods of options",
    "probe_accuracy": "score on the probes",
    "log_parameters": "size",
    "relatives": "mean of documented relatives",
    "neighbours": "mean of nearest embeddings",
    "before": "score before adaptation",
    "mean": "mean of all models",
    "random": "random order",
}
"""Ways of telling in words."""
METRICS = {
    "spearman": "Spearman",
    "pearson": "Pearson",
    "mae": "Mean absolute error",
    "best_rank": "Rank of the best model",
}
METRIC_AXES = {
    "spearman": "Spearman's ρ",
    "pearson": "Pearson's r",
    "mae": "mean absolute error (share)",
    "best_rank": "rank that the best model has among predictions (1 is best)",
}
GROUPS = ("Family", "Root")
GROUP_HELP = (
    "What colours the points and groups the residuals; the twelve largest groups have a colour."
)
OVER_ALL = "mean"
"""Target under which results over all targets stand."""
OUTCOMES = {"after": "score after adaptation", "gain": "gain by adaptation"}
SELECTION_METRICS = {
    "ndcg@10": "NDCG@10",
    "regret@1": "regret, first",
    "regret@5": "regret, five",
}
BEYOND = (
    "Drawn is the prediction; Spearman is of what it says beyond the mean of the models fitted on."
)
UNBOUNDED = "Predictions are not held within 0 to 100 %: a regression may go below or above."
UNDEFINED = "not defined"
SAME_OF_ALL = "it says the same of every model"
NO_ORDER = (
    "Spearman is not defined where a way of telling says the same of every model beyond the mean: "
    "there is no order to compare."
)
LOST = {"one_root_out": "Lost with the root", "one_family_out": "Lost with the family"}
"""What is lost between the first regime and one of these, in words."""
RESIDUALS = "Residual: predicted less true. A group off to one side is told too high or too low."
NO_FORECASTS = "No scores have been told for this map yet."
NO_CANDIDATES = "No bases were adapted and ranked for this map yet."
TRUE = "true score (share of questions)"
PREDICTED = "predicted score"
RANDOM = "A random order of the same bases has this NDCG@10 on average; with few bases it is high."


def method_words(method: str) -> str:
    """A way of telling in words."""
    return METHODS.get(method, method.replace("_", " "))


def lost_words(regime: str) -> str:
    """What is lost between the first regime and another, in words."""
    return LOST.get(regime, f"Lost with {regime_words(regime)}")


def regime_words(regime: str) -> str:
    """What is left out together, in words."""
    return REGIMES.get(regime, regime.replace("_", " "))
