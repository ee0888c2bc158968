"""Explanations, units and empty-state sentences of the Catalogue page."""

CATALOGUE = (
    "239 public language models: what is documented of each, and which of them are embedded."
)
HOW = """
- **Places** are chosen for legibility. Families stand in blocks, a tree of documented edges in each
  box, models without a documented edge in the band below. Near does not mean alike. Once models are
  embedded, **Arranged by** can show the map of their embeddings instead, where near does.
- **Edges** run from a stated ancestor to a model. It may skip generations. Dash: how the model was
  made. Strong: a source is named for it. Faint: general knowledge alone, which nobody has checked.
- **No parent stated** is missing information, not a statement that there is none. Hollow circles
  are ancestors that are named and not on the list.
- **Family** is the label of the paper's public table, word for word. It is no lineage: a family may
  hold models trained independently, and a lineage may cross families.
- **A ring** marks models that a run on this machine holds embedded.
- **Scores** are those of the Open LLM Leaderboard v2, for the models it lists; shares of 1.
"""
POSITIONS = {"lineage": "Documented lineage", "map": "Map of embeddings"}
POSITIONS_HELP = (
    "Lineage: places chosen for legibility, near does not mean alike. Map: places of the embedded "
    "models on the picture of a run; the others stand in the band."
)
PLACES_SAID = (
    "Places are for legibility: near does not mean alike. Click a model for its card. A heading "
    "counts the models of the trees below it, the legend those with the family's label, so the two "
    "may differ."
)
MAP_SAID = (
    "Places of embedded models are those of run {run} ({layout} of {variant}): near means alike, "
    "gaps and densities mean nothing. Models that are not embedded stand in the band."
)
COLOURS = {
    "family": "Family",
    "relation": "How it was made",
    "evidence": "Evidence of its lineage",
    "n_parameters": "Parameters (log)",
    "embedded": "Embedded here",
}
SCORES = {
    "ifeval": "IFEval",
    "bbh": "BBH",
    "math_lvl5": "MATH level 5",
    "gpqa": "GPQA",
    "musr": "MuSR",
    "mmlu_pro": "MMLU-Pro",
}
"""Published scores in words."""
RELATIONS = {
    "base": "base",
    "finetune": "fine-tuned",
    "instruct": "instruction-tuned",
    "continued_pretraining": "trained on",
    "adapter": "low-rank adapter",
    "merge": "merge",
    "conversion": "converted",
    "unknown": "unknown",
}
EVIDENCE = {
    "checked": "a source is named",
    "unchecked": "general knowledge, unchecked",
    "missing": "no parent stated",
}
DECLARED = {
    "agrees": "declares the same base",
    "earlier": "declares an earlier ancestor",
    "unclear": "declares another base; whether the stated parent goes back to it is not listed",
    "differs": "declares another base",
    "missing": "declares none",
}
"""What the leaderboard's entry says of the base model, beside the catalogue's parent."""
EMBEDDED = {"embedded": "embedded here", "failed": "failed here", "no": "not embedded"}
SEARCH = "Model, family or base"
EVIDENCE_HELP = (
    "Checked: a paper, a public table or a model's own page is named. Unchecked: general knowledge."
)
UNLABELLED = "no label"
"""Shown for the one model whose family reads null in the public table."""
NOT_LISTED = "The leaderboard does not list this model, so no score of it was published there."
OUTSIDE = "{model} is named as an ancestor and is not on the list, so nothing else is known of it."
EMBEDS_ALL = "One command embeds all that can be reached and resumes when run again:"
EMBEDS_ONE = "This model alone, into that run:"
EMBEDS_SHOWN = (
    "The CSV of the rows shown is itself a catalogue: pass it as --catalogue to embed these alone."
)
WEIGHTS_HELP = "Two bytes a parameter (bfloat16): what is fetched, and what must fit in memory."
GATED = "Some makers ask for consent before weights can be fetched; such models are named and left."
