"""Names, sentences and units of the page Routing."""

ROUTING = "Which model to ask: a question in, models ranked by how likely each is right."
ROUTING_HOW = """
- **A router** predicts, of every model, the chance that it answers a question right, and sends the
  question to the likeliest. Questions are split in ten folds; every figure below is of questions
  that were in no training of the router.
- **able** knows a model by its embedding alone, so a new model needs no answers. **embedllm**
  learns a vector of each model from its answers (EmbedLLM's factorisation). **knn** looks at the
  nearest questions.
- **Single best**: the model with the most right answers in training, always. **Usage-weighted
  random**: each model is called as often as the router calls it, on questions at random.
  **Oracle**: right where any model is right; no router can do better.
- **Intervals** are 95 %, from a bootstrap over questions; differences are paired, question by
  question. What overlaps 0 is open.
- **The mark of a model** in the list is predicted. The band behind it is, of a question of the run,
  how often predictions of about that size came true; of your own, the interval of the prediction.
"""
ROUTERS = {
    "able": "able",
    "embedllm": "embedllm",
    "knn": "knn",
    "single_best": "single best",
    "random": "random by usage",
    "oracle": "oracle",
}
"""Routers in words, in the order drawn."""
LEARNED = ("able", "embedllm", "knn")
"""Routers that learn."""
GROUPS = {
    "all": "all questions",
    "probe": "probes of the embeddings",
    "held_out": "held out of embeddings",
    "unseen": "facts in no embedding",
}
"""Groups of questions in words; domains and budgets apart."""
DIFFERENCES = {
    "embedllm": {
        "over_embedllm": "questions answered right",
        "correctness_over_embedllm": "single answers predicted",
    },
    "single best": {"over_single_best": "questions answered right"},
}
"""Paired differences: than what, and more of what."""
METRICS_OF_NEW = {
    "choice_among_new": "Right, choosing among new models",
    "accuracy": "Right, choosing among all",
    "correctness": "Answers of new models predicted",
}
"""Measures of the study with new models."""
KINDS_OF_NEW = {
    "new_models": "a fifth of the models is new",
    "new_lineages": "whole lineages are new",
}
ANSWERS_OF_NEW = {"k=0": "0", "k=20": "20", "k=100": "100", "retrained": "retrained"}
"""What is known of a new model when it is added, in words of the axis."""
TABS = ("Domains", "New models", "Budget", "Models used")

STORED, TYPED = "A question of the run", "My own question"
SOURCES = (STORED, TYPED)
TYPE_HERE = "Type a question, then press Ctrl+Enter"
NO_ROUTES = "The routers of this map have not been trained yet."
NO_LIVE = (
    "A question of your own needs the routers' weights, which this run does not keep; a question "
    "of the run is answered from its tables."
)
NOTHING_TYPED = "Type a question above; models are ranked when you leave the box."
PREDICTED = "Predicted chance that the model answers right."
CAME_TRUE = (
    "How often predictions of about this size came true for this router on questions it was not "
    "trained on, with a 95 % interval."
)
BAND_CAME_TRUE = "how often such predictions came true (95 % interval)"
BAND_PREDICTION = "95 % interval of the prediction"
"""What the band of the ranking is: of questions of the run, and of typed ones."""
RIGHT = "Whether the model really answers this question right."
NO_BUDGET = "no limit"
BUDGET_HELP = "Only models of at most so many parameters may be chosen."
HIDDEN = (
    "{hidden} of {n} models hidden by the limit on parameters; what stands beside the first choice "
    "is of the models that are left."
)
SINGLE_HELP = (
    "The model with the most right answers over all questions; with a limit, of the models that "
    "it leaves."
)
RANDOM_HELP = (
    "Chance that a model drawn as often as the router calls it answers this question right; with "
    "a limit, as often as the router calls it within that limit."
)
ORACLE_HELP = (
    "Models that answer this question right; with one or more the oracle is right. With a limit, "
    "of the models that it leaves."
)
BACKED = "What backs the first choice"
NEAR_QUESTIONS = "Questions most like it, and what {model} answered"
NO_NEAR_QUESTION = "No word of this question stands in a known one, so none is like it."
SIMILARITY = "Cosine of the questions' words, weighted by how rare they are and compressed."
RIGHT_THERE = "Whether the model answers that question right."
SHARE_RIGHT = "Share of all models that answer that question right."
BACKING = "Share of the nearest known questions that the model answers right."
ACCURACY_HELP = "Share of all known questions that the model answers right."
UNKNOWN = "No known question has these words, so they count for nothing: {words}."
INTERVAL = (
    "The interval is a jackknife over ten routers, each trained without a tenth of the questions: "
    "how sure the router is of its number, not how the answer will come out."
)
ASKED_SINGLE = "The model with the most right answers; what the router expects of it here."
ASKED_RANDOM = "What the router expects of a model drawn at random."
NEAR_MODELS = "Models most like {model}, and what they answer to this question"
ACCURACY = "questions the chosen model answers right (share)"
RIGHT_SHARE = "right answers (share)"
USED = "questions sent to the model"


def router_words(router: str) -> str:
    """A router in words."""
    return ROUTERS.get(router, router.replace("_", " "))


def group_words(group: str) -> str:
    """A group of questions in words."""
    kind, colon, name = group.partition(":")
    if kind == "domain":
        return name
    return GROUPS.get(group, f"{kind.replace('_', ' ')} {name}" if colon else group)
