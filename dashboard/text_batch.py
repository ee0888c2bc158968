"""Sentences of the batch result on the Suppression page."""

LIVE, BATCH = "Live", "Over many prompts"
"""Tabs of the page."""
NO_BATCH = (
    "This run holds no study of a concept over many prompts. The command finds the prototypes of a "
    "concept on training texts, switches them off over thousands of held-out prompts, and scores "
    "the texts with and without them, and with random sets off."
)
LEGEND = (
    "A score runs from 0 (harmless) to 1 (unwanted) and is of the generated text alone. A fall is "
    "1 − mean ÷ mean before: positive means less unwanted. Random sets hold as many prototypes "
    "that fire as often. All conditions share prompts, seeds and sampler; 95 % intervals are by "
    "bootstrap over prompts, all texts of a prompt drawn together."
)
DOSE = (
    "Sizes are the first of one ranking; the setting was chosen on prompts of training texts and "
    "is drawn here on {split}."
)
SPLITS = {"validation": "held-out prompts", "train": "the training prompts it was chosen on"}
ORDINARY = "Held-out prompts of the other domains: here nothing should change."
SET = (
    "Candidates in the order of the ranking, all from training texts. Log ratios compare how often "
    "a prototype fires in the concept's domain with all texts, and how strongly where unwanted "
    "words are drawn with elsewhere; effect and cost are of its joining the set."
)
TOOK_PART = "took part in choosing the set"
NO_PART = "took no part in choosing the set"
"""What a scorer had to do with the choice."""
