"""Questions as vectors, without a model: words and pairs of words, weighted and compressed.

EmbedLLM (arXiv 2410.02223) encodes questions by all-mpnet-base-v2 (768 dimensions). Here it is
TF-IDF and a truncated SVD, so that nothing has to be fetched; vectors have length 1.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Float32
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from engine.config import require


N_DIMENSIONS = 128
"""Dimensions of a question's vector, where there are as many questions and words."""
_ASKED = re.compile(r"^Question: (?P<asked>.*?)(?=\nChoices:|\nAnswer:|\Z)", re.DOTALL | re.M)
_WORDS = r"(?u)\b\w+\b"


def question_text(prompt: str) -> str:
    """What is asked in a prompt, without instruction, choices and `Answer:`."""
    found = _ASKED.search(prompt)
    return found["asked"].strip() if found else prompt.strip()


@dataclass(frozen=True)
class QuestionEncoder:
    """Turns questions into vectors; fitted on texts alone, never on answers."""

    terms: tuple[str, ...]
    """Words, and pairs of words that follow one another, by place."""
    weights: Float[np.ndarray, " terms"]
    """Inverse document frequency of each."""
    components: Float32[np.ndarray, "dimensions terms"]
    """Right singular vectors of the weighted texts."""

    @classmethod
    def fit(
        cls, texts: Sequence[str], n_dimensions: int = N_DIMENSIONS, seed: int = 0
    ) -> "QuestionEncoder":
        """Learn terms, weights and components.

        Args:
            texts: Questions as asked.
            n_dimensions: Dimensions at most; fewer where there are fewer texts or terms.
            seed: Seed of the decomposition.

        Raises:
            ConfigError: There are fewer than three texts or terms.
        """
        vectoriser = _vectoriser()
        require(len(texts) > 2, f"{len(texts)} questions cannot fit an encoder; three can.")
        weighted = vectoriser.fit_transform(texts)
        terms = vectoriser.get_feature_names_out()
        require(len(terms) > 2, f"The questions have {len(terms)} different words; name others.")
        size = min(n_dimensions, len(texts) - 1, len(terms) - 1)
        svd = TruncatedSVD(size, random_state=seed).fit(weighted)
        components = np.asarray(svd.components_, dtype=np.float32)
        return cls(tuple(map(str, terms)), np.asarray(vectoriser.idf_), components)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "QuestionEncoder":
        """The encoder that `arrays` was taken of."""
        terms = tuple(map(str, arrays["terms"]))
        return cls(terms, np.asarray(arrays["weights"]), np.asarray(arrays["components"]))

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All it knows, as arrays."""
        terms = np.array(self.terms, dtype=np.str_)
        return {"terms": terms, "weights": self.weights, "components": self.components}

    def encode(self, texts: Sequence[str]) -> Float32[np.ndarray, "texts dimensions"]:
        """Vectors of length 1; of a text without any known term a vector of zeros."""
        found = self._fitted.transform(texts) @ self.components.T
        return np.asarray(normalize(np.asarray(found)), dtype=np.float32)

    def unknown_words(self, text: str) -> tuple[str, ...]:
        """Words of a text that it never met, in order of appearance."""
        words = dict.fromkeys(re.findall(_WORDS, text.lower()))
        return tuple(word for word in words if word not in self._places)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {term: place for place, term in enumerate(self.terms)}

    @cached_property
    def _fitted(self) -> TfidfVectorizer:
        vectoriser = _vectoriser(self._places)
        vectoriser.idf_ = self.weights
        return vectoriser


def _vectoriser(vocabulary: Mapping[str, int] | None = None) -> TfidfVectorizer:
    return TfidfVectorizer(
        ngram_range=(1, 2), sublinear_tf=True, token_pattern=_WORDS, vocabulary=vocabulary
    )


def similarities(
    questions: Float[np.ndarray, "questions dimensions"],
    others: Float[np.ndarray, "others dimensions"],
) -> Float[np.ndarray, "questions others"]:
    """Cosines of encoded questions."""
    return questions @ others.T
