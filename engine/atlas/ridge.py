"""Ridge regression that tells values of models that were left out, penalties chosen within.

Penalties are chosen for every target by leaving out again, within the training models, what the
regime leaves out: single models by scikit-learn's `RidgeCV`, groups by a path over all penalties
from one decomposition a split (fitting each penalty anew takes ten times as long).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from sklearn.linear_model import RidgeCV

from engine.atlas.folds import grouped_folds


PENALTIES = np.logspace(-3, 5, 17)
"""For features with a mean square of 1 in all, whatever their number."""
_INNER_FOLDS = 5

Features = Float[np.ndarray, "models features"]
Targets = Float[np.ndarray, "models targets"]


def ridge_left_out(
    features: Features, targets: Targets, groups: Int[np.ndarray, " models"]
) -> Targets:
    """Values of every model by a ridge regression on the models of all other groups.

    Args:
        features: Of each model; they are centred and brought to one scale, not each by itself.
        targets: Values that are told.
        groups: Models of one group are left out together.

    Returns:
        What is told, in the unit of the targets.
    """
    features = fewer_columns(features)
    single = len(np.unique(groups)) == len(groups)
    told = np.zeros_like(targets)
    for group in np.unique(groups):
        left = groups == group
        told[left] = _fitted(features[~left], targets[~left], None if single else groups[~left])(
            features[left]
        )
    return told


def fewer_columns(features: Features) -> Float[np.ndarray, "models coordinates"]:
    """As many columns as models at most, with the same products of models with one another.

    A ridge regression depends on these products alone, so nothing it tells changes.
    """
    if features.shape[1] <= len(features):
        return features
    values, directions = np.linalg.eigh(features @ features.T)
    return directions * np.sqrt(np.maximum(values, 0))


@dataclass(frozen=True)
class _Scaled:
    """Centre and scale of training values; of features one scale, of targets one each."""

    centre: np.ndarray
    scale: np.ndarray | float

    @classmethod
    def of(cls, values: np.ndarray, *, each: bool) -> "_Scaled":
        centre = values.mean(0)
        away = values - centre
        scale = away.std(0) if each else np.sqrt((away**2).sum(1).mean())
        return cls(centre, np.where(scale > 0, scale, 1.0))

    def apply(self, values: np.ndarray) -> np.ndarray:
        return (values - self.centre) / self.scale


class _Ridge:
    """Ridge fits of all penalties by one decomposition: X = U S V'."""

    def __init__(self, features: Features, targets: Targets) -> None:
        self._x, self._y = _Scaled.of(features, each=False), _Scaled.of(targets, each=True)
        left, self._values, self._right = np.linalg.svd(
            self._x.apply(features), full_matrices=False
        )
        self._projected = left.T @ self._y.apply(targets)

    def predict(self, features: Features, penalties: Float[np.ndarray, " targets"]) -> Targets:
        """Values with a penalty for every target."""
        shrunk = self._values[:, None] / (self._values[:, None] ** 2 + penalties)
        told = self._x.apply(features) @ (self._right.T @ (shrunk * self._projected))
        return told * self._y.scale + self._y.centre


def _fitted(
    features: Features, targets: Targets, groups: Int[np.ndarray, " models"] | None
) -> "_Predictor":
    penalties = (
        _single_penalties(features, targets)
        if groups is None or len(np.unique(groups)) < 2
        else _group_penalties(features, targets, groups)
    )
    return _Predictor(_Ridge(features, targets), penalties)


@dataclass(frozen=True)
class _Predictor:
    ridge: _Ridge
    penalties: Float[np.ndarray, " targets"]

    def __call__(self, features: Features) -> Targets:
        return self.ridge.predict(features, self.penalties)


def _single_penalties(features: Features, targets: Targets) -> Float[np.ndarray, " targets"]:
    """The best penalties where each model is left out by itself."""
    x, y = _Scaled.of(features, each=False), _Scaled.of(targets, each=True)
    found = RidgeCV(PENALTIES, alpha_per_target=True).fit(x.apply(features), y.apply(targets))
    return np.atleast_1d(np.asarray(found.alpha_, dtype=np.float64))


def _group_penalties(
    features: Features, targets: Targets, groups: Int[np.ndarray, " models"]
) -> Float[np.ndarray, " targets"]:
    """The best penalties where whole groups are left out, a fifth of them at a time."""
    n_folds = min(_INNER_FOLDS, len(np.unique(groups)))
    fold = grouped_folds(groups.tolist(), n_folds)
    errors = np.zeros((len(PENALTIES), targets.shape[1]))
    for number in range(n_folds):
        held = fold == number
        ridge = _Ridge(features[~held], targets[~held])
        for place, penalty in enumerate(PENALTIES):
            told = ridge.predict(features[held], np.full(targets.shape[1], penalty))
            errors[place] += ((told - targets[held]) ** 2).sum(0)
    return PENALTIES[errors.argmin(0)]
