"""What is attributed so far of a model that takes long, so that a stopped call goes on from there.

Batches are the same for the same model, probes and settings, and each fills places of its own. So
arrays that were kept after some batches, filled up by the others, are bit for bit those of a call
that was never stopped.
"""

import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np

from engine.errors import CacheMissing, CacheStale
from engine.provenance import fingerprint
from engine.store import atomic_folder, read_json, write_array_atomic, write_json_atomic


_FACTS = "batches.json"
Arrays = dict[str, np.ndarray]


class PartialWork:
    """Arrays of a model under way, kept in a folder from time to time."""

    def __init__(self, folder: Path, mark: str, seconds: float = 20.0) -> None:
        """Prepare to keep arrays.

        Args:
            folder: Where; replaced each time.
            mark: What determines the arrays: weights, probes, settings.
            seconds: Time between two times they are kept.
        """
        self.folder = folder
        self._mark = mark
        self._seconds = seconds
        self._last = time.monotonic()
        self._unkept: tuple[int, Arrays] | None = None
        self._plan = ""

    def begin(self, plan: Any, arrays: Arrays) -> int:
        """Fill the arrays with what was kept.

        Args:
            plan: The batches, as anything that can be hashed; others than those kept start anew.
            arrays: Arrays to be filled in place.

        Returns:
            Batches that are done.
        """
        self._plan = fingerprint([self._mark, plan])
        try:
            facts = read_json(self.folder / _FACTS)
            if facts["plan"] != self._plan:
                return 0
            kept = {n: np.load(self.folder / f"{n}.npy", allow_pickle=False) for n in arrays}
        except (CacheMissing, CacheStale, OSError, ValueError, KeyError, TypeError):
            return 0
        if any(kept[name].shape != array.shape for name, array in arrays.items()):
            return 0
        for name, array in arrays.items():
            array[...] = kept[name]
        return int(facts["batches"])

    def note(self, n_batches: int, arrays: Arrays) -> None:
        """Say that so many batches are done; they are kept if the last time is long ago."""
        self._unkept = (n_batches, arrays)
        if time.monotonic() - self._last >= self._seconds:
            self.keep()

    def keep(self) -> None:
        """Keep what is done now."""
        if self._unkept is None:
            return
        n_batches, arrays = self._unkept
        with atomic_folder(self.folder) as made:
            for name, array in arrays.items():
                write_array_atomic(made / f"{name}.npy", array)
            write_json_atomic(made / _FACTS, {"plan": self._plan, "batches": n_batches})
        self._unkept = None
        self._last = time.monotonic()

    def drop(self) -> None:
        """Remove what was kept: the model is finished."""
        self._unkept = None
        shutil.rmtree(self.folder, ignore_errors=True)
