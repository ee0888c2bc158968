"""Cosines of weights, where models have matrices of the same name and shape."""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from jaxtyping import Float
from safetensors import SafetensorError, safe_open

from engine.errors import CacheMissing, CacheStale


Key = tuple[str, tuple[int, ...]]


def weight_cosines(folders: Sequence[Path]) -> Float[np.ndarray, "models models"]:
    """Cosine over all matrices that two models have under the same name and in the same shape.

    Vectors are left out: gains of norms are all near 1 and would make every two models alike. Of
    models without a common matrix the cosine is 0. One matrix of all models is held at a time.

    Raises:
        CacheMissing: A folder holds no safetensors file.
        CacheStale: A file is damaged.
    """
    n = len(folders)
    products, squares = np.zeros((n, n)), np.zeros((n, n))
    with ExitStack() as stack:
        try:
            holders = _holders(stack, folders)
            for (name, _), held in holders.items():
                members = np.array(sorted(held))
                if len(members) < 2:
                    continue
                rows = np.stack([_matrix(held[k], name) for k in members])
                dots = rows @ rows.T
                place = np.ix_(members, members)
                products[place] += dots
                squares[place] += np.diag(dots)[:, None]
        except SafetensorError as error:
            raise CacheStale(f"Weights of a model are damaged ({error}).") from error
    lengths = np.sqrt(squares * squares.T)
    found = np.divide(products, lengths, out=np.zeros((n, n)), where=lengths > 0)
    np.fill_diagonal(found, 1.0)
    return np.clip(found, -1, 1)


def _holders(stack: ExitStack, folders: Sequence[Path]) -> "dict[Key, dict[int, safe_open]]":
    """Opened file of each model that has a matrix, by name and shape."""
    found: dict[Key, dict[int, safe_open]] = defaultdict(dict)
    for number, folder in enumerate(folders):
        files = sorted(folder.glob("*.safetensors"))
        if not files:
            raise CacheMissing(
                f"{folder} holds no safetensors file, so its weights cannot be compared."
            )
        for path in files:
            file = stack.enter_context(safe_open(path, framework="pt"))
            for name in file.keys():  # noqa: SIM118 - no mapping
                shape = tuple(file.get_slice(name).get_shape())
                if len(shape) >= 2:
                    found[name, shape][number] = file
    return found


def _matrix(file: safe_open, name: str) -> Float[np.ndarray, " entries"]:
    return file.get_tensor(name).double().numpy().ravel()
