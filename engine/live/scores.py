"""Both scorers of unwanted text, each opened when it is first needed."""

import threading
from collections.abc import Sequence
from functools import cached_property

from engine.errors import EngineError
from engine.live.results import Scores
from engine.scoring import ProfanityClassifier, WordList


class Scorers:
    """The classifier's process and the word list; safe across threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    @cached_property
    def classifier(self) -> ProfanityClassifier:
        """The offline classifier; `PackageMissing` where it is not here."""
        return ProfanityClassifier()

    @cached_property
    def wordlist(self) -> WordList:
        """The word list; `PackageMissing` where it is not here."""
        return WordList.from_package()

    def score(self, texts: Sequence[str]) -> Scores:
        """Both scores of each text; a scorer that is not on this machine says so in `missing`."""
        values: dict[str, tuple[float, ...] | None] = {}
        missing: list[str] = []
        for name in ("classifier", "wordlist"):
            try:
                with self._lock:
                    scorer = self.classifier if name == "classifier" else self.wordlist
                values[name] = tuple(scorer.score(texts))
            except EngineError as error:
                values[name] = None
                missing.append(str(error))
        return Scores(values["classifier"], values["wordlist"], tuple(missing))
