"""Names, sentences, units and signs of the page Pair."""

PAIR = "Two models, question by question: which words their answers depend on, and where they part."
PAIR_HOW = """
- **Attribution** of a word to an option: how the option's log-probability changes, to first
  order, with the word's embedding (gradient × input, summed over its tokens), in nats. **Blue
  raises the option, orange, dotted, lowers it.** Gold labels play no part.
- **Sums.** The words of an option and what tokens without a character carry (a mark of the
  beginning, say) add up to the whole prompt's attribution. That is no log-probability: gradient ×
  input does not promise to sum to one.
- **Embedding.** All words of all options of all questions are one long vector, brought to length 1;
  a random projection makes it short. The **cosine** of two embeddings is what the map compares.
- **What moves the distance.** The squared difference of the two long unit vectors is 2 − 2 cos, and
  it is a sum over questions: a share says how much of it a question, or a domain, makes up.
- **Percentile.** Of the pairs documented as unrelated, how many are less alike than this one. The
  verdict is a word for it: from 99.9 strong, from 99 moderate, from 95 weak, else none.
"""
VARIANTS = {
    "able": "words as they are",
    "paper": "the paper's rule for spaces",
    "square_root": "signed square roots",
    "per_probe": "every question at length 1",
    "correct_only": "right options alone",
    "contrast": "differences between options, signed square roots",
}
"""Ways of embedding in words."""
VARIANT_HELP = (
    "How the words became an embedding: cosine, percentile and shares follow it; the words shown "
    "are the same."
)
SCALES = ("Each model", "Both alike")
SCALE_HELP = (
    "What full colour stands for: the largest word of this question in each model, or in both. "
    "Attributions of a model grow with the size of its logits, so its pattern compares better than "
    "its numbers."
)
AGAINST = ("Each option", "Against the others")
AGAINST_HELP = (
    "Much of an attribution is common to all options of a question. Against the others: less the "
    "mean over the options, which is what tells them apart. Sums add up either way."
)
DEPENDENT = ("probe",)
"""URL parameters that mean nothing for another pair."""

COSINE = "Cosine of the two embeddings, after the random projection."
UNPROJECTED = "Cosine of the two long vectors, before the projection, from the words that are kept."
PERCENTILE = "Percent of the pairs documented as unrelated that are less alike than this one."
NO_PERCENTILE = "no unrelated pair is documented here"
VERDICT = "A word for the percentile: strong from 99.9, moderate from 99, weak from 95, else none."
KNOWN = "What the second model is to the first by the documents of the catalogue."
TOKENIZER = (
    "Models that share a tokenizer are more alike for that alone, so a high cosine says less."
)
ANSWERS = "Questions on which both choose the same option."
RIGHT = "Share of the questions it answers right."
PAPER_SHARES = (
    "Words by the paper's rule for spaces are not kept; the shares below are those of the words as "
    "they are."
)
DISTANCE = (
    "Share of the squared difference; beside it the share of both lengths the domain takes, what "
    "the share would be were the models equally unlike everywhere."
)
PICK = "Click a bar or a row to open the question."
TEXTS_CHOICE = (
    "Texts of different lengths are scored, so the option with the largest log-probability a byte "
    "is chosen."
)
LETTERS_CHOICE = "The option with the largest log-probability is chosen."
ROUNDED = (
    "Words are kept in 8 bits; here storing has moved none of them by more than {a} nats in the "
    "first model and {b} in the second."
)
ADDS_UP = "raises + lowers = words; words + outside words = the whole prompt, per option, in nats."
NOT_READ = "{model} did not read this question: it is longer than its context."
SOME_WORDS = (
    "This run keeps the words of {kept} of its {n} questions; the shares and the unprojected "
    "cosine are over these, the cosine of the embeddings over all."
)
NO_WORDS = "This run keeps the words of neither model; what is left to compare stands above."
NO_PAIR = "This run holds fewer than two embedded models, so there is no pair to compare."
SAME = "Both sides show the same model; choose another on either side."
NEIGHBOURS = "Most like {model}, by this run's list; click a row to compare."
HIDDEN_TEXT = "The text of this question may not be published, so its words are numbered."
GATED = "gpqa"
"""Source whose text may not be published."""


def variant_help(known: tuple[str, ...]) -> str:
    """What the ways of embedding are, and what they change on the page."""
    lines = [f"- **{name}**: {VARIANTS[name]}" for name in known if name in VARIANTS]
    return "\n".join([VARIANT_HELP, "", *lines])
