"""Ways to the Attribution page: from a prediction, and from generated text."""

from collections.abc import Sequence

import numpy as np

from dashboard import service
from dashboard.components.doors import door
from dashboard.components.panel import attempt
from dashboard.data import RunRef


ICON = ":material/travel_explore:"


def trace_token(prompt: str, position: int, target: int) -> None:
    """A door from one predicted token to the training texts that made it likelier."""
    door(
        "attribution",
        "Trace to training text",
        ICON,
        prompt=prompt,
        position=str(position),
        target=str(target),
    )


def trace_text(ref: RunRef, prompt: str, written: str) -> None:
    """A door from a generated text: its own tokens are traced, the prompt is what they follow."""
    whole, _ = attempt(service.tokens, ref, prompt + written)
    if not whole or len(whole) < 2 or not written:
        return
    first = max(1, first_written([token.text for token in whole], len(prompt)))
    door(
        "attribution",
        "Trace to training text",
        ICON,
        prompt=prompt + written,
        span=f"{first}-{len(whole) - 1}",
    )


def first_written(texts: Sequence[str], n_prompt: int) -> int:
    """First token of a text that reaches beyond its first `n_prompt` characters.

    A token that joins the last characters of the prompt with the first ones after it counts; so do
    the empty tokens before it, which are the first bytes of its character.
    """
    ends = np.cumsum([len(text) for text in texts])
    first = int(np.searchsorted(ends, n_prompt, side="right"))
    while first > 0 and not texts[first - 1]:
        first -= 1
    return first
