"""Numeric arrays beside the tables of a run: .npy files, appended to, published whole, mapped.

Tables answer questions by row and column; a loop over millions of tokens needs plain memory. An
array file is begun with its final shape in its header and filled row by row, so a stopped stage
goes on behind the last rows that were known to be written, and ends with the same bytes.
"""

import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from engine.errors import CacheMissing, CacheStale
from engine.store.files import storage_error
from engine.store.runs import Run


@dataclass(frozen=True)
class ArraySpec:
    """Type and final shape of an array file."""

    dtype: DTypeLike
    shape: tuple[int, ...]

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return int(np.prod(self.shape[1:], dtype=np.int64)) * np.dtype(self.dtype).itemsize

    @property
    def header(self) -> bytes:
        """What stands before the rows in the file."""
        buffer = io.BytesIO()
        described = {
            "descr": np.lib.format.dtype_to_descr(np.dtype(self.dtype)),
            "fortran_order": False,
            "shape": self.shape,
        }
        np.lib.format.write_array_header_1_0(buffer, described)
        return buffer.getvalue()


class ArrayFiles:
    """Array files under way in a folder, one a name; rows are added behind each other.

    Nothing names these files before the stage registers them, so readers never see them half.
    """

    def __init__(self, folder: Path, specs: Mapping[str, ArraySpec]) -> None:
        self.folder = folder
        self.specs = dict(specs)

    def path(self, name: str) -> Path:
        """File of an array."""
        return self.folder / f"{name}.npy"

    def keep(self, rows: Mapping[str, int]) -> bool:
        """Cut every file to its first rows, and begin those that are not there.

        Returns:
            False if a file has fewer rows or another header than it should; then all are begun
            anew, with no row.

        Raises:
            StorageError: The disk is full or the folder is closed to us.
        """
        sound = all(self._holds(name, count) for name, count in rows.items())
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for name, spec in self.specs.items():
                kept = rows.get(name, 0) if sound else 0
                if kept == 0:
                    self.path(name).unlink(missing_ok=True)  # whoever maps an older one keeps it
                    self.path(name).write_bytes(spec.header)
                os.truncate(self.path(name), len(spec.header) + kept * spec.row_bytes)
        except OSError as error:
            raise storage_error(self.folder, error) from error
        return sound

    def _holds(self, name: str, rows: int) -> bool:
        path, header = self.path(name), self.specs[name].header
        if rows == 0:
            return True
        if not path.is_file():
            return False
        with path.open("rb") as file:
            same = file.read(len(header)) == header
        return same and path.stat().st_size >= len(header) + rows * self.specs[name].row_bytes

    def append(self, rows: Mapping[str, np.ndarray]) -> None:
        """Add rows to some arrays; they are on the disk when this returns.

        Raises:
            StorageError: The disk is full or the folder is closed to us.
        """
        for name, values in rows.items():
            spec = self.specs[name]
            if values.dtype != spec.dtype or values.shape[1:] != spec.shape[1:]:
                raise ValueError(f"rows of {name} are {values.dtype} {values.shape[1:]}")
            try:
                with self.path(name).open("ab") as file:
                    file.write(np.ascontiguousarray(values).tobytes())
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                raise storage_error(self.path(name), error) from error


def open_array(run: Run, group: str, name: str) -> np.ndarray:
    """An array of a run, mapped read-only from its file.

    Raises:
        CacheMissing: The run does not hold it.
        CacheStale: The file is missing, cut short or no array.
    """
    entry = run.arrays.get(group)
    files = {Path(file["path"]).stem: file for file in entry["files"]} if entry else {}
    if entry is None or name not in files:
        raise CacheMissing(
            f"Run {run.name} has no array {name} of {group}; make it with "
            f"`{run.command_of_stage(group)}`."
        )
    path, size = run.inside(files[name]["path"]), files[name]["bytes"]
    again = f"Make it again with `{run.command_of_stage(entry['stage'])}`."
    if not path.is_file() or path.stat().st_size != size:
        raise CacheStale(f"{path} is missing or has not its {size} bytes. {again}")
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise CacheStale(f"{path} is no array file ({error}). {again}") from error
