"""Batches that halve when the memory is full."""

import logging
from collections.abc import Callable
from typing import TypeVar

import torch

from engine.errors import ConfigError


logger = logging.getLogger(__name__)
Result = TypeVar("Result")

_WORDS = ("out of memory", "allocate memory", "not enough memory")
"""What torch says of memory, on a GPU and on CPUs; on CPUs it raises a plain RuntimeError."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that the memory of the device or of the machine is full."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _WORDS)


class BatchSize:
    """Samples at once: halved, and kept halved, whenever the memory is full."""

    def __init__(self, size: int) -> None:
        self.size = size

    def run(self, action: Callable[[int], Result]) -> Result:
        """Call `action` with the present size, again with half of it where the memory is full.

        Raises:
            ConfigError: one sample alone is too much.
        """
        while True:
            if (result := self._tried(action)) is not None:
                return result[0]
            if self.size == 1:
                raise ConfigError(
                    "The memory is full even with one sample at once; lower the context, name "
                    "fewer heads, or use a machine with more memory."
                )
            logger.warning(
                "The memory is full with %d samples at once; going on with %d.",
                self.size,
                self.size // 2,
            )
            self.size //= 2

    def _tried(self, action: Callable[[int], Result]) -> tuple[Result] | None:
        """The result, or None where the memory was full; what was held is let go."""
        try:
            return (action(self.size),)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return None
