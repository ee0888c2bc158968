"""What an attribution pool holds beside its tokens, and copies of it small enough to ship."""

from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int

from engine.errors import ConfigError
from engine.prism.attribution.index import INVERTED
from engine.prism.attribution.pool import TokenArrays, lengths_to_offsets
from engine.prism.attribution.preconditioner import LocalTerms
from engine.prism.attribution.quantise import activation_step
from engine.prism.attribution.search import invert
from engine.store import ArrayFiles, ArraySpec, Run, RunWriter, open_array, read_table
from engine.store.pools import POOL


SEQUENCES = "attribution_sequences"
CHUNK = 2**16
"""Tokens read at once."""
_SEED = 0


def finish_pool(
    writer: RunWriter,
    files: ArrayFiles,
    n_prototypes: int,
    *,
    inverted: bool,
) -> None:
    """Write what follows from the stored tokens alone, and name the arrays.

    Args:
        writer: In the stage.
        files: The token arrays, whole.
        n_prototypes: Prototypes of the bank.
        inverted: Store an inverted index too.
    """
    arrays = TokenArrays(
        *(np.load(files.path(name), mmap_mode="r") for name in TokenArrays._fields)
    )
    writer.write_table("attribution_prototypes", prototype_columns(arrays, n_prototypes))
    names = list(TokenArrays._fields)
    if inverted:
        found = invert(arrays, n_prototypes)
        columns = dict(zip(INVERTED, found, strict=True))
        specs = {name: ArraySpec(column.dtype, column.shape) for name, column in columns.items()}
        more = ArrayFiles(files.folder, specs)
        more.keep({})
        more.append(columns)
        names += INVERTED
    writer.register_arrays(POOL, names)


def prototype_columns(arrays: TokenArrays, n_prototypes: int) -> dict[str, Any]:
    """Columns of `attribution_prototypes`."""
    usage, active = np.zeros(n_prototypes), np.zeros(n_prototypes, np.int64)
    local = LocalTerms.none(n_prototypes)
    step = activation_step(arrays.activations)
    for start in range(0, len(arrays.activations), CHUNK):
        part = arrays.at(slice(start, start + CHUNK))
        prototypes, activations = part.prototypes.astype(np.int64), part.activations * step
        flat = prototypes.ravel()
        usage += np.bincount(flat, np.square(activations).ravel(), minlength=n_prototypes)
        active += np.bincount(flat[(activations > 0).ravel()], minlength=n_prototypes)
        local = local.add(prototypes, activations)
    return {
        "prototype": np.arange(n_prototypes),
        "n_active_tokens": active,
        "usage": usage,
        "largest": local.largest,
        "nearest": local.nearest,
    }


def copy_pool(pool: Run, writer: RunWriter, *, sequences: int | None) -> None:
    """Copy a pool into another run, whole or a draw from it that is spread over the domains.

    The inverted index stays behind: it is made when the copy is opened.

    Args:
        pool: Folder that holds the pool.
        writer: Of the run that gets it.
        sequences: How many sequences to keep; all if None or if there are fewer.

    Raises:
        ConfigError: Fewer than one.
    """
    if sequences is not None and sequences < 1:
        raise ConfigError(f"A pool of {sequences} sequences was asked for; keep 1 or more.")
    table = read_table(pool, SEQUENCES)
    chosen = _spread(table["domain"], len(table) if sequences is None else sequences)
    facts = pool.manifest["stages"][POOL]
    writer.begin_stage(POOL, {"of": facts["identity"], "chosen": chosen.tolist()})
    offsets = lengths_to_offsets(table["n_tokens"])
    tokens = np.concatenate([np.arange(*offsets[s : s + 2].tolist()) for s in chosen])
    columns = {n: open_array(pool, POOL, n)[tokens] for n in TokenArrays._fields}
    specs = {n: ArraySpec(column.dtype, column.shape) for n, column in columns.items()}
    files = ArrayFiles(writer.array_folder(POOL), specs)
    files.keep({})
    files.append(columns)
    kept = table.iloc[chosen].assign(sequence=np.arange(len(chosen)))
    writer.write_shard(SEQUENCES, 0, kept)
    finish_pool(writer, files, facts["n_prototypes"], inverted=False)
    own = {k: v for k, v in facts.items() if k not in {"identity", "started", "finished"}}
    drawn_from = facts.get("drawn_from", len(table))  # of a copy, what that one was drawn from
    sizes = {"sequences": len(chosen), "tokens": len(tokens), "drawn_from": drawn_from}
    writer.finish_stage(POOL, own | sizes)


def _spread(domain: pd.Series, n: int) -> Int[np.ndarray, " chosen"]:
    """Rows of up to `n` sequences, rising; the domains take turns, each in a shuffled order."""
    shuffled = domain.iloc[np.random.default_rng(_SEED).permutation(len(domain))]
    turn = shuffled.groupby(shuffled, sort=False).cumcount().to_numpy()
    return np.sort(shuffled.index.to_numpy()[np.argsort(turn, kind="stable")[:n]])
