"""Labels from an OpenAI-compatible endpoint, scored by letting it predict held-out snippets.

Nothing is sent anywhere unless an address is named. What comes back is text from outside: it is
shortened, stripped of control characters and used as text alone.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.corpus.documents import Progress, no_progress
from engine.endpoint import Endpoint, EndpointError
from engine.prism.labels.label import Label
from engine.prism.labels.predicates import balanced_accuracy


logger = logging.getLogger(__name__)

FAILED_CATEGORY, FAILED_ROLE = "Unlabelled", "label failed"
LONGEST_CATEGORY, LONGEST_ROLE = 40, 120
GIVE_UP_AFTER = 3
"""Consecutive failures after which the endpoint is not asked again."""

_NAME_PROMPT = (
    "A unit of a language model is active at the token between ⟦ and ⟧ in each snippet below. "
    'Say what the snippets share, as JSON: {"category": "one or two words", '
    '"role": "one short phrase"}. Never quote offensive words.'
)
_TEST_PROMPT = (
    "A unit of a language model is described as: %s. In which of the numbered snippets is it "
    'active at the token between ⟦ and ⟧? Answer as JSON: {"active": [numbers]}.'
)


@dataclass(frozen=True)
class Snippets:
    """Snippets of one prototype, the token in question between ⟦ and ⟧."""

    shown: tuple[str, ...]
    """Active ones the label is made from."""
    held_out: tuple[str, ...]
    """Others, active and inactive mixed."""
    active: tuple[bool, ...]
    """Whether the prototype is active in each of those."""


def label_by_endpoint(
    endpoint: Endpoint,
    snippets: Sequence[Snippets],
    *,
    seed: int = 0,
    progress: Progress = no_progress,
) -> list[Label]:
    """A label of every prototype; a failed one says so and has no score.

    The score is the balanced accuracy with which the endpoint, given the label alone, tells active
    from inactive held-out snippets; the random score is the same given another label.
    """
    numbers = range(len(snippets))
    names: list[tuple[str, str] | None] = []
    failures = 0
    wrapped = progress(numbers, label="Labels", total=len(numbers))
    for number in wrapped:
        name = None
        if failures < GIVE_UP_AFTER and snippets[number].shown:
            name = _try(lambda n=number: _name(endpoint, snippets[n]))
            failures = 0 if name is not None else failures + 1
        names.append(name)
    others = np.random.default_rng(seed).permutation(len(names))
    labels = []
    for number, name in enumerate(names):
        other = names[int(others[number])] if others[number] != number else None
        labels.append(_scored(endpoint, snippets[number], name, other))
    return labels


def _name(endpoint: Endpoint, snippets: Snippets) -> tuple[str, str]:
    answer = endpoint.ask(_NAME_PROMPT, "\n---\n".join(snippets.shown))
    category = _plain(answer.get("category"), LONGEST_CATEGORY)
    role = _plain(answer.get("role"), LONGEST_ROLE)
    if not category or not role:
        raise EndpointError(f"The endpoint {endpoint.url} named no category and role.")
    return category, role


def _plain(value: Any, longest: int) -> str:
    text = value if isinstance(value, str) else ""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:longest]


def _scored(
    endpoint: Endpoint,
    snippets: Snippets,
    name: tuple[str, str] | None,
    other: tuple[str, str] | None,
) -> Label:
    if name is None:
        return Label(FAILED_CATEGORY, FAILED_ROLE, (), None, None)
    score = _try(lambda: _predict(endpoint, snippets, name[1]))
    if score is None:
        return Label(FAILED_CATEGORY, FAILED_ROLE, (), None, None)
    control = None if other is None else _try(lambda: _predict(endpoint, snippets, other[1]))
    return Label(*name, (), score, control)


def _predict(endpoint: Endpoint, snippets: Snippets, role: str) -> float:
    active = np.array(snippets.active, bool)
    if active.all() or not active.any():
        raise EndpointError("There are no held-out snippets to test a label on.")
    numbered = [f"{i + 1}. {text}" for i, text in enumerate(snippets.held_out)]
    answer = endpoint.ask(_TEST_PROMPT % role, "\n".join(numbered))
    chosen = answer.get("active")
    if not isinstance(chosen, list):
        raise EndpointError(f"The endpoint {endpoint.url} answered no list of numbers.")
    called = np.array([i + 1 in chosen for i in range(len(active))])
    return balanced_accuracy(called[active], called[~active])


def _try(question: Callable[[], Any]) -> Any:
    """The answer, or None when the endpoint failed, which is logged."""
    try:
        return question()
    except EndpointError as error:
        logger.warning("%s", error)
        return None
