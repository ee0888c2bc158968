"""Names, sentences, units and signs of the pages Heads and Emergence."""

HEADS = "Every attention head of a model, what it attends to, and the training samples behind it."
HEADS_HOW = """
- **Atlas.** A cell is a head; its shade is how much of its attention lies where a head of the
  chosen kind should look, from 0 to 1, at the chosen step. A click opens the head.
- **Prefix matching** (induction): from a repeated token to the one after its first occurrence.
  **Previous token**: to the token before. **Duplicate token**: to earlier copies of the same token.
- **Influence** of a training sample on a head: how the head's score would move, to first order, if
  training weighted the sample more: −∇L(z)ᵀ H⁻¹ ∇f over the head's own weights, with EK-FAC
  curvature H and the probe f of the kind chosen. **Positive (blue): raises the head's score.
  Negative (orange): lowers it.** The numbers compare within one head, probe and seed.
- **Scale.** Influence is heavy-tailed, so its axis is symmetric-logarithmic: linear near zero,
  logarithmic beyond, mirrored for the negative side.
- **Tail.** The fitted power law p(x) ∝ x^−α starts at x_min; a log-likelihood ratio below 0 says
  that a log-normal fits the tail better. The curve of shares says how much of a side's sum its
  largest samples carry.
- **A seed** is an initialisation and a data order of its own, with its own heads and samples.
"""
EMERGENCE = "How heads of a kind form while training, and what changing their samples does to it."
EMERGENCE_HOW = """
- **Arms** are one run with its data changed in one way and in no other: influential samples deleted
  (their gradient masked) or copied, as many random ones instead, replaced by samples of a later
  interval, or generated rows inserted. All arms of a seed are the same run until they branch.
- **Window.** The shaded steps are those whose samples were scored and changed. Each seed's window
  opens before its own onset, so seeds are aligned at the branch.
- **Bands.** The line is the mean over seeds, the band its 95 % t-interval.
- **Random arms** change as many samples as the others. An effect that they share is an effect of
  the amount, not of the choice.
- **Effects.** Mean of an arm minus mean of the baseline over the window; a filled mark has an
  interval that leaves out 0.
- **Scores** are shares of attention in [0, 1]; **copy loss** is in nats per token, lower is better;
  **ICL** is the loss of a row's last tokens minus that of its first, in nats: more negative is more
  in-context learning.
"""

SIGN = "blue + raises the head's score, orange − lowers it"
"""The legend of every influence."""
UNIT = "first-order change of the probe per unit of weight on the sample"

UNITS = {
    "induction": "Induction",
    "previous_token": "Previous token",
    "duplicate_token": "Duplicate token",
}
"""Kinds of heads."""
METRICS = {
    "prefix_matching": "Prefix matching",
    "previous_token": "Previous token",
    "duplicate_token": "Duplicate token",
}
"""Scores of heads, each a share of attention."""
METRIC_OF = {
    "induction": "prefix_matching",
    "previous_token": "previous_token",
    "duplicate_token": "duplicate_token",
}
"""Score that shows a kind of head."""
METRIC_HELP = "Share of a head's attention that lies where a head of this kind should look."
UNIT_HELP = "Kind of head whose probe the influence was computed for."
TAILS = {
    "top10_share": "Top 10 % share",
    "gini": "Gini coefficient",
    "exponent": "Exponent α",
    "n": "Helpful samples",
}
"""Measures of the positive side of a head's influence, in short."""
TAIL_TITLES = {
    "Top 10 % share": "influence carried by the top 10 % (share)",
    "Gini coefficient": "Gini coefficient of positive influence",
    "Exponent α": "power-law exponent α of the tail",
    "Helpful samples": "samples that raise the score",
}
"""The same as titles of an axis."""
ARMS = {
    "baseline": "baseline",
    "delete_top": "delete top",
    "augment_top": "augment top",
    "delete_random": "delete random",
    "augment_random": "augment random",
    "replace_top": "replace by later top",
    "replace_random": "replace by later random",
    "synthetic": "insert synthetic",
    "synthetic_control": "insert control",
}
"""Arms in words, in the order they are listed."""
SHOWN_FIRST = ("baseline", "delete_top", "augment_top", "delete_random", "augment_random")
"""Arms drawn until others are asked for."""
ARMS_HELP = (
    "Top: the samples with the largest influence on the chosen head. Later: from the interval "
    "after the window. Synthetic: generated from motifs of the top samples; control: the same "
    "tokens without the motifs."
)
PANELS = {
    "copy_loss": "Copy loss (nats)",
    "icl": "ICL (nats)",
    "loss": "Held-out loss (nats)",
}
"""Rows below the scores of the kinds."""
MEASURES = {
    "score": ("Score", "share, mean over the window"),
    "final_score": ("Score at the end", "share"),
    "delay": ("Delay", "steps later to half score"),
    "copy_loss": ("Copy loss", "nats per token"),
    "icl": ("ICL", "nats; − is more"),
    "loss": ("Held-out loss", "nats per token"),
    "same_kind": ("Other heads, same kind", "share"),
    "other_kind": ("Heads of the other kind", "share"),
}
"""Measures of an effect: name and unit."""
EFFECT_PANELS = ("score", "final_score", "delay", "copy_loss", "icl", "loss")
"""Measures of the effects figure, in order."""
TABS = ("Transfer", "Catalysts", "Augmentation", "Mixtures")

NO_HEADS = "This run holds no attention heads."
NO_HEADS_ANYWHERE = (
    "No run on this machine holds attention heads yet. A study trains small models until heads "
    "form; a model of your own is monitored instead."
)
NO_HEADS_COMMANDS = (
    "headwater heads study --run my-heads\n"
    "headwater heads monitor --model MODEL --run my-model-heads"
)
HOLDS_HEADS = "These do; a click switches to one:"
NO_INFLUENCE = "The influence of samples on these heads has not been computed for this run."
NO_TAIL = "No tail was fitted to this side; it has too few samples or none was asked for."
NO_ARMS = (
    "This run has no arms: nothing was changed in it, so it shows how heads form and no cause."
)
NO_EFFECTS = "The effects of the arms have not been computed yet."
NO_OVERLAPS = "How far heads share their samples has not been computed yet."
NO_TAGS = "The structures of the top samples have not been counted yet."
NO_MOTIFS = "No motifs were taken from the top samples of this run yet."
NO_SYNTHETIC = "This run has no arm that inserts synthetic samples."
NO_MIXTURES = "Emergence was not compared over mixtures in this run."
NO_TEXT = "Numbers and places need no text; the words of these samples do."
NOTHING_IN_BIN = "No sample lies in this bin; click another bar."
EMPTY_ARMS = "Choose at least one arm and one seed above."
NOT_VALIDATED = "not validated for this model"
VALIDATED = "measured on this run"
BADGE_HELP = (
    "Influence is a first-order estimate. What speaks for it is what deleting and copying the "
    "samples really did; that was measured on the model and corpus named here and on no other."
)
REPEATS = (
    "Shaded: spans of the sample that stand in it once more; hover for their place and length."
)
NATURAL_HELP = (
    "Leaves out the rows in which a random segment repeats, which a study plants as a positive "
    "control: what is left is text of the corpus. Fits and ranks stay those of all samples."
)
TOKENS = (
    "What each token adds to the influence: blue raises the head's score, orange, dotted, lowers "
    "it; a token stands for what the head reads and writes there. They add up to the whole."
)
NO_SCORES = "This run traced heads and did not score them along checkpoints."
NOT_TRACED = "The influence on head {head} was not computed; it was for {heads}."
CATALYST_GALLERY = "Show the top samples of the chosen head"
NO_LIVE = "Attention is computed live from the weights that the run ships."
EXAMPLE_TEXTS = {
    "Key and value": '{"name": "amber", "size": 12}\n{"name": "amber", "size": 12}\n',
    "Markup": "<li><a href='north'>North</a></li>\n<li><a href='south'>South</a></li>\n",
    "Code": "def area(w, h):\n    return w * h\n\ndef area(w, h):\n    return w * h\n",
    "Prose": "The boat left the quay, and the boat came back before the tide.",
}
"""Texts of our own to look at attention on; repeats give an induction head something to match."""


def unit_name(unit: str) -> str:
    """A kind of head in words."""
    return UNITS.get(unit, unit.replace("_", " ").capitalize())


def arm_name(arm: str) -> str:
    """An arm in words."""
    return ARMS.get(arm, arm.replace("_", " "))


def metric_of(unit: str) -> str:
    """The score that shows a kind of head; prefix matching where it has none of its own."""
    return METRIC_OF.get(unit, "prefix_matching")


def tag_name(tag: str) -> str:
    """A structure tag or a domain in words."""
    kind, colon, name = tag.partition(":")
    return f"domain: {name}" if colon else kind.replace("_", " ")
