"""How a command ends when it cannot go on: one sentence on stderr and an exit code."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
import typer.core
from safetensors import SafetensorError

from engine.cli.console import note
from engine.errors import EngineError


EXIT_PROBLEM = 1
"""What was asked for was found wanting: a damaged run, a failed fetch."""
EXIT_ERROR = 2
"""The command could not be done as typed."""
EXIT_STOPPED = 130
"""Stopped by the user."""
STOPPED = "Stopped; run the same command again to resume."
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_NO_MEMORY = ("out of memory", "allocate memory", "not enough memory")
"""What torch says of memory, on a GPU and on CPUs; it raises a RuntimeError."""
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EIO)


@contextmanager
def one_sentence() -> Iterator[None]:
    """Turn what a user can cause into a sentence and an exit code; let defects surface."""
    try:
        yield
    except KeyboardInterrupt as stop:
        note(STOPPED)
        raise typer.Exit(EXIT_STOPPED) from stop
    except EngineError as error:
        note(f"{error}")
        raise typer.Exit(EXIT_ERROR) from error
    except (OSError, SafetensorError, MemoryError, RuntimeError) as error:
        sentence = system_sentence(error)
        if sentence is None:
            raise
        note(sentence)
        raise typer.Exit(EXIT_ERROR) from error


def system_sentence(error: Exception) -> str | None:
    """What a full disk, full memory or closed folder asks of the user; None for a defect."""
    number, name = getattr(error, "errno", None), getattr(error, "filename", None)
    place = f" ({name})" if name else ""
    if number in _DISK_FULL or "No space left" in str(error):
        return f"The disk is full{place}; free some space and run the same command again to resume."
    if number in _REFUSED:
        return (
            f"The file system allows no access{place}; "
            "mend the permissions, or move the caches with HEADWATER_CACHE."
        )
    if isinstance(error, MemoryError) or any(words in str(error) for words in _NO_MEMORY):
        return (
            "The memory is full; lower the batch size, the context or the number of prototypes "
            "and run the command again."
        )
    return None


class CommandGroup(typer.core.TyperGroup):
    """A group of commands that ends in sentences."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed."""
        with one_sentence():
            return super().invoke(ctx)
