"""Map coordinates of the bank, computed once in a process of their own."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from jaxtyping import Float

from engine.errors import EngineError


LEAST_FOR_UMAP = 32
"""Below this many prototypes the map shows their first two principal components."""


class BankMap:
    """UMAP of prototype directions under way.

    It runs in its own process, which keeps the compilation's memory out of this one, has one
    thread, and so gives the same map for the same seed on the same machine and versions. Several
    banks of one size may lie in a stack; each has a map of its own.
    """

    def __init__(
        self,
        directions: Float[np.ndarray, "*banks prototypes d_model"],
        seed: int,
        least: int = LEAST_FOR_UMAP,
    ) -> None:
        self._directions = directions
        self._process: subprocess.Popen[bytes] | None = None
        if directions.shape[-2] < least:
            return
        self._scratch = tempfile.TemporaryDirectory(prefix="headwater-map-")
        self._folder = Path(self._scratch.name)
        np.save(self._folder / "directions.npy", directions.astype(np.float32))
        one_thread = dict.fromkeys(
            ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"
        )
        command = [sys.executable, "-m", "engine.pipeline.map_worker", str(self._folder), str(seed)]
        root = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = subprocess.Popen(
            command,
            env={**os.environ, **one_thread, "PYTHONPATH": path},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def coordinates(self) -> Float[np.ndarray, "*banks prototypes 2"]:
        """Wait for the map; both axes are centred and without a unit.

        Raises:
            EngineError: The process that computes it failed.
        """
        if self._process is None:
            return principal_plane(self._directions)  # one bank: a stack is never so small
        _, messages = self._process.communicate()
        target = self._folder / "coordinates.npy"
        if self._process.returncode != 0 or not target.is_file():
            reason = messages.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
            raise EngineError(
                f"The map could not be computed ({reason[0]}); run the same command again."
            )
        found = np.load(target)
        self._scratch.cleanup()
        return found - found.mean(axis=-2, keepdims=True)

    def stop(self) -> None:
        """End the process, if it still runs."""
        if self._process is not None:
            if self._process.poll() is None:
                self._process.kill()
                self._process.communicate()
            self._scratch.cleanup()


def principal_plane(
    vectors: Float[np.ndarray, "n d_model"],
) -> Float[np.ndarray, "n 2"]:
    """First two principal components, with signs fixed by the largest entry."""
    centred = vectors.astype(np.float64) - vectors.mean(axis=0)
    left, scale, _ = np.linalg.svd(centred, full_matrices=False)
    plane = np.zeros((len(vectors), 2))
    n = min(2, left.shape[1])
    plane[:, :n] = left[:, :n] * scale[:n]
    for axis in range(2):
        largest = np.abs(plane[:, axis]).argmax()
        plane[:, axis] *= -1.0 if plane[largest, axis] < 0 else 1.0
    return plane.astype(np.float32)
