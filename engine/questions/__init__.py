"""Multiple-choice questions: packaged sets, files of one's own, sets of a hub; only ever read.

A set is named by a short name (`mmlu`), by a JSONL file, or by `hub:OWNER/NAME[/CONFIG][@SPLIT]`.
"""

from engine.questions.packaged import PACKAGED_SETS, packages_of
from engine.questions.question import Question, QuestionSet, choose_items
from engine.questions.reading import parse_sets, read_set, read_sets


__all__ = [
    "PACKAGED_SETS",
    "Question",
    "QuestionSet",
    "choose_items",
    "packages_of",
    "parse_sets",
    "read_set",
    "read_sets",
]
