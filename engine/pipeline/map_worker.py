"""Process that computes one map: `python -m engine.pipeline.map_worker FOLDER SEED`."""

import sys
import warnings
from pathlib import Path

import numpy as np


N_NEIGHBOURS = 15
MIN_DIST = 0.1


def main(folder: Path, seed: int) -> None:
    """Read `directions.npy` of the folder and write `coordinates.npy`, [n, 2] float32.

    Of a stack of banks, [banks, n, d], each is laid out by itself; compiling takes longer.
    """
    directions = np.load(folder / "directions.npy")
    banks = directions if directions.ndim == 3 else directions[None]
    found = np.stack([_coordinates(bank, seed) for bank in banks])
    if not np.isfinite(found).all():
        raise SystemExit("UMAP gave coordinates that are not finite")
    scratch = folder / "coordinates.part.npy"
    np.save(scratch, found if directions.ndim == 3 else found[0])
    scratch.replace(folder / "coordinates.npy")


def _coordinates(directions: np.ndarray, seed: int) -> np.ndarray:
    """UMAP of directions, [n, d] to [n, 2] float32."""
    # Its import compiles kernels for seconds; nobody else should pay for that.
    from umap import UMAP

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = UMAP(
            n_neighbors=min(N_NEIGHBOURS, len(directions) - 1),
            min_dist=MIN_DIST,
            metric="cosine",
            random_state=seed,
            init="pca",
            n_jobs=1,
        ).fit_transform(directions)
    return np.asarray(found, np.float32)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
