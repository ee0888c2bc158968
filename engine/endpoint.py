"""Questions to an OpenAI-compatible endpoint; nothing is sent unless an address is named."""

import json
import urllib.request
from dataclasses import dataclass, field
from typing import Any

from engine.errors import ConfigError, EngineError


KEY = "HEADWATER_ENDPOINT_KEY"
"""Environment variable that holds the endpoint's key."""
LONGEST_ANSWER = 100_000


class EndpointError(EngineError):
    """The endpoint cannot be reached or answers something that cannot be used."""


@dataclass(frozen=True)
class Endpoint:
    """Where to ask."""

    url: str
    """Base address, to which `/chat/completions` is added; http or https."""
    model: str
    """Name of the model there."""
    key: str | None = field(default=None, repr=False)
    """Bearer token, if one is needed."""
    timeout: float = 60.0
    """Seconds to wait for an answer."""

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise ConfigError(f"The endpoint {self.url!r} must start with http:// or https://.")

    def ask(self, prompt: str, text: str) -> dict[str, Any]:
        """One question; the JSON object in the answer.

        Raises:
            EndpointError: No answer, or none that holds a JSON object.
        """
        messages = [{"role": "system", "content": prompt}, {"role": "user", "content": text}]
        body = {"model": self.model, "messages": messages, "temperature": 0}
        headers = {"Content-Type": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        request = urllib.request.Request(
            f"{self.url.rstrip('/')}/chat/completions", json.dumps(body).encode(), headers
        )
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                content = json.loads(answer.read(LONGEST_ANSWER))
            return _object_in(content["choices"][0]["message"]["content"])
        except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
            raise EndpointError(
                f"The endpoint {self.url} gave no usable answer: {error}"
            ) from error


def _object_in(text: str) -> dict[str, Any]:
    """The JSON object in a text that may have words or a fence around it."""
    found = json.loads(text[text.index("{") : text.rindex("}") + 1])
    if not isinstance(found, dict):
        raise TypeError("not a JSON object")
    return found
