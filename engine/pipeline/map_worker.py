"""Process that computes one map: `python -m engine.pipeline.map_worker FOLDER SEED`."""

import sys
import warnings
from pathlib import Path

import numpy as np


N_NEIGHBOURS = 15
MIN_DIST = 0.1


def main(folder: Path, seed: int) -> None:
    """Read `directions.npy` of the folder and write `coordinates.npy`, [n, 2] float32."""
    # Its import compiles kernels for seconds; nobody else should pay for that.
    from umap import UMAP

    directions = np.load(folder / "directions.npy")
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
    found = np.asarray(found, np.float32)
    if not np.isfinite(found).all():
        raise SystemExit("UMAP gave coordinates that are not finite")
    scratch = folder / "coordinates.part.npy"
    np.save(scratch, found)
    scratch.replace(folder / "coordinates.npy")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
