"""Sparse linear controllers over features of options, trained by softmax cross-entropy with L1.

    score(option) = log-likelihood(option) + sum_i c_i f_i(option)
    minimise over c:  mean over questions of -log softmax(tau * score)[answer]  +  l1 * sum_i |c_i|

c_i is added to the feature's own gain of 1: -1 takes the feature out of the score, +1 counts it
twice. tau, fitted on the training questions before any c, is a temperature of the training alone
and moves no choice. The path of falling l1 is solved by accelerated proximal gradient steps
(FISTA: Beck and Teboulle 2009) with restarts, each solution the start of the next.
"""

from dataclasses import dataclass
from typing import cast

import numpy as np
from jaxtyping import Float, Int
from scipy import optimize, sparse


N_PENALTIES = 25
"""Penalties of a path."""
SMALLEST_SHARE = 0.01
"""Last penalty of a path over its first, at which every weight is 0."""
_TAU_BOUNDS = (0.05, 1.0)
_MAX_STEPS = 1000
_SLACK = 1e-3
"""How far, as a share of the penalty, a gradient may pass it before its feature is let in."""
_TOLERANCE = 1e-5
"""Largest step of a weight, over the largest weight, at which a solution counts as found."""


@dataclass(frozen=True)
class Choices:
    """Options of some questions as a controller sees them; options of a question are adjacent."""

    base: Float[np.ndarray, " options"]
    """Log-likelihood of each option, nats."""
    features: sparse.csr_array
    """f, [options x features], logits."""
    start: Int[np.ndarray, " questions"]
    """First option of each question."""
    answer: Int[np.ndarray, " questions"]
    """Right option of each question, counted within it."""

    @property
    def size(self) -> Int[np.ndarray, " questions"]:
        """Options of each question."""
        return np.diff(np.append(self.start, len(self.base)))

    @property
    def question(self) -> Int[np.ndarray, " options"]:
        """Question of each option."""
        return np.repeat(np.arange(len(self.start)), self.size)

    @property
    def width(self) -> int:
        """Features in all."""
        return cast("tuple[int, int]", self.features.shape)[1]

    def part(self, questions: Int[np.ndarray, " chosen"]) -> "Choices":
        """Some of the questions, in the order given."""
        size = self.size[questions]
        start = np.cumsum(size) - size
        own = np.arange(size.sum()) - np.repeat(start - self.start[questions], size)
        return Choices(self.base[own], self.features[own], start, self.answer[questions])

    def scores(self, weights: Float[np.ndarray, " features"]) -> Float[np.ndarray, " options"]:
        """Score of every option under a controller."""
        return self.base + self.features @ weights

    def choose(self, scores: Float[np.ndarray, " options"]) -> Int[np.ndarray, " questions"]:
        """Option with the highest score, counted within its question; the first of equals."""
        best = np.maximum.reduceat(scores, self.start)
        hit = np.where(scores == np.repeat(best, self.size), np.arange(len(scores)), len(scores))
        return np.minimum.reduceat(hit, self.start) - self.start

    def log_softmax(self, scores: Float[np.ndarray, " options"]) -> Float[np.ndarray, " options"]:
        """Log of the softmax over the options of each question."""
        shifted = scores - np.repeat(np.maximum.reduceat(scores, self.start), self.size)
        total = np.add.reduceat(np.exp(shifted), self.start)
        return shifted - np.repeat(np.log(total), self.size)

    def cross_entropy(self, scores: Float[np.ndarray, " options"]) -> float:
        """Mean over questions of -log softmax at the right option, nats."""
        return float(-self.log_softmax(scores)[self.start + self.answer].mean())


@dataclass(frozen=True)
class Controller:
    """A trained controller and what it was chosen by."""

    weights: Float[np.ndarray, " features"]
    """c: 0 for all but a few features."""
    l1: float
    """Penalty chosen on validation."""
    tau: float
    """Temperature of its training."""

    @property
    def nonzeros(self) -> int:
        """Weights that are not 0."""
        return int(np.count_nonzero(self.weights))


def train_controller(train: Choices, validation: Choices, *, max_nonzeros: int) -> Controller:
    """Train along a path of penalties and keep the solution of lowest validation cross-entropy.

    The path begins where every weight is 0, so no controller at all is one of the candidates. It
    ends before the first solution with more than `max_nonzeros` weights.

    Args:
        train: Questions the weights are fitted to.
        validation: Questions the penalty is chosen on.
        max_nonzeros: Sparsity budget, the same for every kind of feature.
    """
    tau = fit_temperature(train)
    path = _Path.of(train, tau)
    weights, first = np.zeros(train.width), path.largest_penalty
    best = Controller(weights, first, tau)
    lowest = validation.cross_entropy(tau * validation.scores(weights))
    for l1 in first * np.geomspace(1, SMALLEST_SHARE, N_PENALTIES)[1:]:
        weights = path.solve(weights, float(l1))
        if np.count_nonzero(weights) > max_nonzeros:
            break
        loss = validation.cross_entropy(tau * validation.scores(weights))
        if loss < lowest:
            best, lowest = Controller(weights, float(l1), tau), loss
    return best


def fit_temperature(train: Choices) -> float:
    """Tau at which the bare log-likelihoods have the lowest cross-entropy, within fixed bounds."""

    def loss(tau: float) -> float:
        return train.cross_entropy(tau * train.base)

    found = optimize.minimize_scalar(loss, bounds=_TAU_BOUNDS, method="bounded")
    return float(found.x)


@dataclass(frozen=True)
class _Path:
    """Solutions along falling penalties, each found among the few features that matter to it.

    A feature is let in when its gradient passes the penalty; that is checked on all features after
    every solution, so the last one is that of the whole problem.
    """

    choices: Choices
    transposed: sparse.csr_array
    columns: sparse.csc_array
    tau: float

    @classmethod
    def of(cls, train: Choices, tau: float) -> "_Path":
        """The problem of some training questions."""
        features = train.features
        return cls(train, sparse.csr_array(features.T), sparse.csc_array(features), tau)

    def gradient(self, weights: Float[np.ndarray, " features"]) -> Float[np.ndarray, " features"]:
        """Gradient of the mean cross-entropy."""
        return self.transposed @ self._error(self.choices.scores(weights))

    def _error(self, scores: Float[np.ndarray, " options"]) -> Float[np.ndarray, " options"]:
        """Derivative of the mean cross-entropy by each score."""
        error = np.exp(self.choices.log_softmax(self.tau * scores))
        error[self.choices.start + self.choices.answer] -= 1
        return self.tau * error / len(self.choices.start)

    @property
    def largest_penalty(self) -> float:
        """Smallest penalty at which every weight is 0."""
        gradient = self.gradient(np.zeros(self.choices.width))
        return float(np.abs(gradient).max(initial=0.0))

    def solve(
        self, start: Float[np.ndarray, " features"], l1: float
    ) -> Float[np.ndarray, " features"]:
        """Weights that minimise the objective at one penalty.

        Args:
            start: Where to begin: the solution at the penalty before.
            l1: Penalty.
        """
        weights, working = start, start != 0
        while True:
            missed = (np.abs(self.gradient(weights)) > l1 * (1 + _SLACK)) & ~working
            if not missed.any() and weights is not start:
                return weights
            working = working | missed
            weights = self._descend(weights, np.flatnonzero(working), l1)

    def _descend(
        self, start: Float[np.ndarray, " features"], own: Int[np.ndarray, " own"], l1: float
    ) -> Float[np.ndarray, " features"]:
        """The solution among some features, from a start that is 0 elsewhere."""
        dense = self.columns[:, own].toarray()
        # the Hessian of log-sum-exp is 1/2 at most, that of the mean over questions X'X / 2n
        largest = np.linalg.eigvalsh(dense.T @ dense)[-1] if len(own) else 0.0
        bound = self.tau**2 * largest / (2 * len(self.choices.start))
        step = 1 / max(bound, np.finfo(np.float64).tiny)
        weights = point = start[own]
        momentum = 1.0
        for _ in range(_MAX_STEPS if largest > 0 else 0):
            slope = dense.T @ self._error(self.choices.base + dense @ point)
            moved = point - step * slope
            new = np.sign(moved) * np.maximum(np.abs(moved) - step * l1, 0)
            change = new - weights
            if (point - new) @ change > 0:  # the momentum points uphill: start it anew
                momentum = 1.0
            following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            point = new + (momentum - 1) / following * change
            weights, momentum = new, following
            if np.abs(change).max(initial=0.0) <= _TOLERANCE * np.abs(new).max(initial=0.0):
                break
        found = np.zeros_like(start)
        found[own] = weights
        return found
