"""Scorers of unwanted text: each gives a text a value in [0, 1], higher is more unwanted."""

from engine.scoring.classifier import ProfanityClassifier
from engine.scoring.scorer import Scorer, open_scorer, scorer_name
from engine.scoring.wordlist import WordList


__all__ = ["ProfanityClassifier", "Scorer", "WordList", "open_scorer", "scorer_name"]
