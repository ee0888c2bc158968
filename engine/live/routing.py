"""A typed question in, models ranked by how likely they are to answer it right out. No torch."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from scipy import stats
from scipy.special import expit

from engine.atlas.question_encoder import QuestionEncoder, question_text
from engine.errors import CacheMissing, PromptError
from engine.store import Run, open_array, open_run, read_table


MOST_CHARACTERS = 4_000
"""Longest question that is read."""
N_NEIGHBOURS = 10
"""Known questions that back a ranking."""
_ARRAYS = ("terms", "weights", "components", "heads", "centre", "scale")
_GROUP = "routing"
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class RankedModels:
    """Models for one question, the likeliest to be right first.

    models: model, predicted, low and high (probability of a right answer with its 95 % interval
        over heads), backing (share of the nearest known questions it answers right; NaN where its
        answers are not known), accuracy (share of all questions; NaN likewise), n_parameters.
    neighbours: question, domain, prompt, similarity (cosine) and share_right (share of all models
        that answer it right) of the known questions that are most alike, nearest first; empty where
        no word is known.
    answers: whether each model (row, in the order of `models`) answers each neighbour (column)
        right; NaN where that is not known.
    unknown_words: words that no known question has.
    single_best: the model of highest accuracy among those ranked.
    expected_best: what the router expects of that one.
    expected_random: what it expects of a model drawn at random.
    """

    models: pd.DataFrame
    neighbours: pd.DataFrame
    answers: Float[np.ndarray, "models neighbours"]
    unknown_words: tuple[str, ...]
    single_best: str
    expected_best: float
    expected_random: float


class QuestionRouter:
    """The router that a map keeps; every method is a pure function, so sessions never mix.

    Attributes:
        names: models that it ranks.
    """

    def __init__(self, run: Run) -> None:
        arrays = {name: np.asarray(open_array(run, _GROUP, name)) for name in _ARRAYS}
        self._encoder = QuestionEncoder.from_arrays(arrays)
        self._heads = arrays["heads"].astype(np.float64)
        facts = run.manifest["stages"][_GROUP]
        rows = read_table(run, "model_embeddings", where={"variant": facts["variant"]})
        self.names = tuple(rows["model"])
        vectors = np.stack(rows["vector"].tolist()).astype(np.float64)
        scaled = (vectors - arrays["centre"]) / arrays["scale"]
        self._models = np.hstack([scaled, np.ones((len(scaled), 1))])
        self._questions = read_table(run, "model_questions", order_by="question")
        self._encoded = self._encoder.encode([question_text(p) for p in self._questions["prompt"]])
        self._right = _known_answers(run, self.names, len(self._questions))
        sizes = read_table(run, "model_catalogue", columns=["model", "n_parameters"])
        known = dict(zip(sizes["model"], sizes["n_parameters"], strict=True))
        self._sizes = np.array([known.get(name, 0) for name in self.names], dtype=np.int64)

    @classmethod
    def open(cls, run: str | Path) -> "QuestionRouter":
        """Read the router of a map.

        Raises:
            CacheMissing: the run keeps none.
            CacheStale: its files are damaged.
        """
        return cls(open_run(run))

    def rank(
        self, text: str, *, max_parameters: int | None = None, n_neighbours: int = N_NEIGHBOURS
    ) -> RankedModels:
        """Rank models for a question.

        Predictions are means over heads, on the scale of logits; the interval is the jackknife's
        over the folds that each head was trained without, with Student's t.

        Args:
            text: The question.
            max_parameters: Models of at most so many alone; all unless given.
            n_neighbours: Known questions that back the ranking.

        Raises:
            PromptError: The text is empty or too long, or no model is that small.
        """
        asked = self._checked(text)
        allowed = self._allowed(max_parameters)
        question = self._encoder.encode([asked])
        logits = np.append(question[0], 1.0) @ self._heads @ self._models[allowed].T
        centre, half = _jackknife(logits)
        nearest, cosines = self._nearest(question[0], n_neighbours)
        right = self._right[allowed]
        places = np.arange(len(self.names))[allowed]
        frame = pd.DataFrame(
            {
                "model": [self.names[place] for place in places],
                "predicted": expit(centre),
                "low": expit(centre - half),
                "high": expit(centre + half),
                "backing": _row_means(right[:, nearest]),
                "accuracy": _row_means(right),
                "n_parameters": self._sizes[allowed],
            }
        )
        order = np.argsort(-centre, kind="stable")
        best = _best(frame)
        return RankedModels(
            models=frame.iloc[order].reset_index(drop=True),
            neighbours=self._neighbours(nearest, cosines),
            answers=right[order][:, nearest],
            unknown_words=self._encoder.unknown_words(asked),
            single_best=str(frame["model"].iloc[best]),
            expected_best=float(frame["predicted"].iloc[best]),
            expected_random=float(frame["predicted"].mean()),
        )

    def _checked(self, text: str) -> str:
        asked = question_text(text)
        if not asked:
            raise PromptError("There is no question to route; type one.")
        if len(asked) > MOST_CHARACTERS:
            raise PromptError(
                f"The question has {len(asked):,} characters; {MOST_CHARACTERS:,} are read at most."
            )
        return asked

    def _allowed(self, max_parameters: int | None) -> Bool[np.ndarray, " models"]:
        if max_parameters is None:
            return np.ones(len(self.names), dtype=bool)
        allowed = (self._sizes > 0) & (self._sizes <= max_parameters)
        if not allowed.any():
            least = int(self._sizes[self._sizes > 0].min(initial=np.iinfo(np.int64).max))
            raise PromptError(
                f"No model has {max_parameters:,} parameters or fewer; the smallest has {least:,}."
            )
        return allowed

    def _nearest(
        self, question: Float[np.ndarray, " dimensions"], n: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Places of the most similar known questions, and their cosines; none of cosine 0."""
        cosines = self._encoded @ question
        order = np.argsort(-cosines, kind="stable")[:n]
        order = order[cosines[order] > 0]
        return order, cosines[order]

    def _neighbours(self, nearest: np.ndarray, cosines: np.ndarray) -> pd.DataFrame:
        own = self._questions.iloc[nearest]
        return pd.DataFrame(
            {
                "question": own["question"].to_numpy(),
                "domain": own["domain"].to_numpy(),
                "prompt": [question_text(prompt) for prompt in own["prompt"]],
                "similarity": np.minimum(cosines, 1.0),
                "share_right": _row_means(self._right[:, nearest].T),
            }
        )


def _known_answers(
    run: Run, names: tuple[str, ...], n_questions: int
) -> Float[np.ndarray, "models questions"]:
    """1 where a model answers right, 0 where not, NaN where that is not known."""
    rows = read_table(run, "model_answers")
    known = dict(zip(rows["model"], rows["correct"], strict=True))
    found = np.full((len(names), n_questions), np.nan)
    for place, name in enumerate(names):
        if name in known:
            found[place] = known[name]
    if np.isnan(found).all():
        raise CacheMissing(f"Run {run.name} knows no answers of its models, so none can be ranked.")
    return found


def _jackknife(
    logits: Float[np.ndarray, "heads models"],
) -> tuple[Float[np.ndarray, " models"], Float[np.ndarray, " models"]]:
    """Mean over heads and half the width of its interval: se^2 = (g - 1) / g sum (x - mean)^2."""
    n = len(logits)
    centre = logits.mean(0)
    error = np.sqrt((n - 1) / n * ((logits - centre) ** 2).sum(0))
    return centre, error * float(stats.t.ppf((1 + _CONFIDENCE) / 2, n - 1))


def _row_means(values: Float[np.ndarray, "rows columns"]) -> Float[np.ndarray, " rows"]:
    """Means of what is known in each row; NaN where nothing is."""
    known = ~np.isnan(values)
    counts = known.sum(1)
    sums = np.where(known, values, 0.0).sum(1)
    return np.divide(sums, counts, out=np.full(len(values), np.nan), where=counts > 0)


def _best(frame: pd.DataFrame) -> int:
    accuracy = frame["accuracy"].to_numpy()
    return int(np.where(np.isnan(accuracy), -1.0, accuracy).argmax())
