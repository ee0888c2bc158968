"""What a loaded model reads of a prompt, and the checks of what a user asks of it."""

import threading
from collections.abc import Sequence

import torch

from engine.errors import PromptError, UnsupportedModel
from engine.live.memory import Memory
from engine.live.model import LiveModel, Pass
from engine.live.results import Suppression
from engine.live.text import Codec


_PROMPTS_KEPT = 6


class Reader:
    """A model, its tokenizer and the lock that guards it."""

    def __init__(self, name: str, model: LiveModel, codec: Codec) -> None:
        self.name = name
        self.model = model
        self.codec = codec
        self.lock = threading.RLock()
        self._passes: Memory[Pass] = Memory(_PROMPTS_KEPT)

    def ids(self, prompt: str, what: str = "prompt") -> list[int]:
        """Token ids of a text a user typed."""
        return self.checked(self.codec.encode(prompt, what))

    def checked(self, ids: list[int]) -> list[int]:
        """Refuse ids without a row in the model's embedding."""
        if not ids:
            raise PromptError("There are no tokens to read; pass at least one.")
        outside = next((i for i in ids if not 0 <= i < self.model.vocab_size), None)
        if outside is not None:
            raise PromptError(
                f"Token {outside} is not in the vocabulary of {self.name}; ids run from 0 to "
                f"{self.model.vocab_size - 1}."
            )
        return ids

    def row(self, ids: list[int], position: int) -> tuple[int, int]:
        """A position counted from the start of the prompt, and its row in what the model reads."""
        here = position + len(ids) if position < 0 else position
        if not 0 <= here < len(ids):
            raise PromptError(
                f"Position {position} lies outside the prompt; its tokens are 0 to {len(ids) - 1}."
            )
        first = max(0, len(ids) - self.model.context)
        if here < first:
            raise PromptError(
                f"Position {here} lies before the last {self.model.context:,} tokens, which are "
                f"all that {self.name} reads of a prompt of {len(ids):,}; choose a position "
                f"from {first:,} on or shorten the prompt."
            )
        return here, here - first

    def read(self, ids: list[int]) -> Pass:
        """States and active prototypes of the tokens in context; the caller holds the lock."""
        window = ids[-self.model.context :]
        return self._passes.get(
            tuple(window), lambda: self.model.run(torch.tensor([window], device=self.model.device))
        )

    def require_bank(self, what: str) -> None:
        """Refuse a dense model, where prototypes are asked for."""
        if self.model.n_prototypes == 0:
            raise UnsupportedModel(
                f"{self.name} is a dense model without prototypes, so nothing can be {what}; "
                "choose a PRISM run, or fit a bank to it with `headwater retrofit`."
            )

    def check_prototypes(self, prototypes: Sequence[int]) -> None:
        """Refuse a prototype that the bank does not have."""
        outside = next((i for i in prototypes if not 0 <= i < self.model.n_prototypes), None)
        if outside is not None:
            raise PromptError(
                f"Prototype {outside} does not exist; {self.name} has prototypes 0 to "
                f"{self.model.n_prototypes - 1}."
            )

    def check_suppression(self, suppression: Suppression | None) -> None:
        """Refuse to suppress what is not there."""
        if suppression is not None and suppression.prototypes:
            self.require_bank("suppressed")
            self.check_prototypes(suppression.prototypes)
