"""Sentences of the Control page."""

CONTROL = "Does re-weighting a few prototypes answer more questions, and through which ones?"
CONTROL_HOW = """
**A controller** gives a few prototypes a weight. Each option of a multiple-choice question is
scored by its log-likelihood plus weight × slice, summed over the option's tokens; the backbone is
not touched. Weights are learnt on training questions with an L1 penalty chosen on validation
questions; every figure here is of questions held out from both.

**The SAE controller** is the same over the features of a sparse autoencoder that was trained on the
same states, with the same splits and the same budget of weights.

**Signs.** A weight above 0 (blue) amplifies a prototype's slices, below 0 (orange) damps them. A
contribution above 0 speaks for the option chosen *with* the controller, below 0 for the one chosen
without, in logits.

**Intervals** are 95 %, by bootstrap over questions, and paired: both conditions answer the same
questions. **Chance** is the accuracy of guessing. A difference whose interval covers 0 is not shown
to be one.

**Corrections** go both ways: questions turned right and questions turned wrong are both listed.
"""
NO_CONTROL = (
    "This run has no controllers yet. The command trains them on packaged question sets, beside "
    "controllers over the features of a sparse autoencoder."
)
NO_CORRECTIONS = (
    "No test question of this set and split was turned right or wrong by the controller."
)
CORRECTIONS_HINT = "Click a row to read the question and what moved its answer."
CONTRIBUTION = "Logits: + speaks for the new answer, − for the old one."
TWIN = (
    "The same questions, answered by option log-likelihood alone, by this run and by the model of "
    "the same shape, data and seeds without prototypes."
)
NO_DOWNSTREAM = "This run has not been compared with its dense twin on questions yet."
NO_QUESTION_TEXT = "The questions' text is not on this machine; numbers and ids need none."
OTHER_QUESTIONS = "The question set on this machine holds no question of this id."
AT_CHANCE = (
    "At chance, not comparable at this scale: on no set does the interval of either model lie "
    "above the accuracy of guessing."
)
SOME_AT_CHANCE = "At chance, so no comparison: {}."
WEIGHTS_AXIS = "weight, added to a gain of 1<br>blue + amplifies, orange − damps"
CONTRIBUTION_AXIS = "logits<br>blue + new answer, orange − old"
NONZERO = (
    "Weights of a controller that are not 0, mean over sets and splits: its sparsity budget. "
    "Beside it those of the controller over SAE features."
)
GAIN = "Accuracy with the controller minus without, in percentage points; mean over the sets."
AGAINST_SAE = "Accuracy with the prototype controller minus with the SAE controller."
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Options as they are written on screen."""
