"""Shards of an index: written from what was scanned, read back as dense arrays."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from engine import schema, store
from engine.pipeline.index_scan import Scanned, ShardWindows


ACTIVATIONS = "prototype_activations"
RESIDUALS = "token_residuals"


@dataclass(frozen=True)
class Shard:
    """Tokens of one shard in order of document and position."""

    document: Int[np.ndarray, " n"]
    position: Int[np.ndarray, " n"]
    predicted: Int[np.ndarray, " n"]
    prototypes: Int[np.ndarray, "n k"]
    """Active prototypes, strongest first; -1 where fewer than k are active."""
    activations: Float[np.ndarray, "n k"]
    """Their activations, float16; 0 there."""

    def entries(self) -> "Entries":
        """The active pairs of token and prototype, token by token."""
        token, rank = np.nonzero(self.prototypes >= 0)
        return Entries(token, self.prototypes[token, rank], self.activations[token, rank])


@dataclass(frozen=True)
class Entries:
    """Active pairs of token and prototype."""

    token: Int[np.ndarray, " entries"]
    """Row of the token in its shard, rising."""
    prototype: Int[np.ndarray, " entries"]
    activation: Float[np.ndarray, " entries"]
    """float16."""


def shard_frames(windows: ShardWindows, found: Scanned) -> tuple[dict[str, Any], dict[str, Any]]:
    """Columns of the activation shard and of the residual shard."""
    document = np.repeat(windows.document, windows.length).astype(np.int32)
    position = windows.positions.astype(np.int32)
    token, rank = np.nonzero(found.activations > 0)
    activations = {
        "document": document[token],
        "position": position[token],
        "rank": rank.astype(np.int8),
        "prototype": found.prototypes[token, rank],
        "activation": found.activations[token, rank],
    }
    residuals = {
        "document": document,
        "position": position,
        "residual_share": found.residual_share,
        "loss": found.loss,
        "predicted": found.predicted,
    }
    return activations, residuals


def shard_paths(manifest: Any, folder: Path) -> list[tuple[Path, Path]]:
    """Files of the activations and of the residuals, shard by shard."""
    files = [
        [folder / entry["path"] for entry in manifest["tables"][table]["files"]]
        for table in (ACTIVATIONS, RESIDUALS)
    ]
    return list(zip(*files, strict=True))


def read_shard(paths: tuple[Path, Path], n_active: int) -> Shard:
    """Read one shard as dense arrays."""
    entries = store.read_parquet(paths[0], schema.PROTOTYPE_ACTIVATIONS)
    tokens = store.read_parquet(paths[1], schema.TOKEN_RESIDUALS)
    document, position = tokens["document"].to_numpy(), tokens["position"].to_numpy()
    keys = token_key(document, position)
    own = token_key(entries["document"].to_numpy(), entries["position"].to_numpy())
    row = np.searchsorted(keys, own)
    rank = entries["rank"].to_numpy()
    prototypes = np.full((len(keys), n_active), -1, np.int32)
    activations = np.zeros((len(keys), n_active), np.float16)
    prototypes[row, rank] = entries["prototype"].to_numpy()
    activations[row, rank] = entries["activation"].to_numpy()
    return Shard(document, position, tokens["predicted"].to_numpy(), prototypes, activations)


class ShardReader:
    """Reads shards by number; as many as fit into `budget` bytes are kept for the next pass."""

    def __init__(self, paths: list[tuple[Path, Path]], n_active: int, budget: int = 2**29) -> None:
        self._paths = paths
        self._n_active = n_active
        self._left = budget
        self._kept: dict[int, Shard] = {}

    def __len__(self) -> int:
        return len(self._paths)

    def read(self, index: int) -> Shard:
        """Shard `index`, from memory if an earlier pass left it there."""
        if index in self._kept:
            return self._kept[index]
        shard = read_shard(self._paths[index], self._n_active)
        size = shard.prototypes.nbytes + shard.activations.nbytes + 3 * shard.document.nbytes
        if size <= self._left:
            self._left -= size
            self._kept[index] = shard
        return shard


def token_key(
    document: Int[np.ndarray, " n"], position: Int[np.ndarray, " n"]
) -> Int[np.ndarray, " n"]:
    """One number per token that rises with document, then position."""
    return (document.astype(np.int64) << 32) | position.astype(np.int64)
