"""The stage `attribution`: statistics of training sequences, stored for search.

One pass of the model over the sequences, a shard of them at a time: rows are added to array files
and the shard's ids to a table, so that a stopped pass goes on at the next shard and ends with the
same files. What follows from the stored numbers alone is computed from them at the end.
"""

import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Shaped

from engine.corpus.build import open_corpus
from engine.corpus.documents import Progress, no_progress
from engine.corpus.shards import TokenShards, tokenise_corpus
from engine.corpus.tokenizer import load_tokenizer
from engine.devices import resolve_device
from engine.errors import CacheMissing, UnsupportedModel
from engine.influence.frame import Sequences
from engine.pipeline.attribution_finish import SEQUENCES, finish_pool
from engine.pipeline.attribution_rows import PoolSettings, pool_rows
from engine.prism.attribution.index import INVERT_BELOW
from engine.prism.attribution.pool import TokenArrays, TokenPool, lengths_to_offsets
from engine.prism.attribution.quantise import Bits
from engine.prism.attribution.search import gradient_norms
from engine.prism.attribution.statistics import TokenStatistics, row_statistics
from engine.prism.checkpoints import load_prism
from engine.prism.model import PrismForCausalLM
from engine.provenance import fingerprint, fingerprint_model
from engine.store import ArrayFiles, ArraySpec, Run, RunWriter, open_run
from engine.store.pools import POOL, pool_home


logger = logging.getLogger(__name__)

SHARD = 256
"""Sequences of a shard."""
VERSION = 1
"""Counts changes in what is stored; a pool of another version is made again."""


@dataclass(frozen=True)
class Gathering:
    """One pool under way."""

    model: PrismForCausalLM
    rows: Sequences
    doc_ids: Shaped[np.ndarray, " n"]
    bits: Bits
    writer: RunWriter
    files: ArrayFiles
    progress: Progress


def build_pool(
    run_name: str | Path,
    settings: PoolSettings | None = None,
    progress: Progress = no_progress,
    *,
    rows: Sequences | None = None,
    doc_ids: Shaped[np.ndarray, " n"] | None = None,
    in_place: bool = False,
) -> Run:
    """Store the statistics of training sequences of a run.

    Args:
        run_name: Name or folder of a run with a bank. The pool of a shipped run is kept in the
            cache and comes before the one that ships.
        settings: What the pool holds.
        progress: Wraps the shards.
        rows: Sequences to store in place of drawn ones; `doc_ids` names the document of each.
        doc_ids: See `rows`.
        in_place: Write into the run's own folder even where it is a shipped one.

    Returns:
        The folder that holds the pool, opened.

    Raises:
        UnsupportedModel: The run has no bank.
        CacheMissing: It holds no model, or does not say its corpus.
        CorpusError: The corpus is missing or holds too few sequences.
    """
    settings = settings or PoolSettings()
    run = open_run(run_name)
    _require_bank(run)
    device = resolve_device(settings.device)
    model, tokenizer = load_prism(run.model_path, dtype=device.dtype, device=device.device)
    if rows is None or doc_ids is None:
        rows, doc_ids = pool_rows(_tokens(run, tokenizer, progress), settings, model)
    source = fingerprint_model(run.model_path)
    writer = _writer(run, in_place=in_place)
    ids = fingerprint([list(doc_ids), rows.start.tolist()])
    identity = {"version": VERSION, "model": source, "rows": rows.fingerprint, "ids": ids}
    identity["bits"] = settings.bits
    if writer.begin_stage(POOL, identity):
        return open_run(writer.path)
    started = time.perf_counter()
    logger.info("pool of %s: %d sequences; %s", run.name, len(rows), device.reason)
    files = ArrayFiles(writer.array_folder(POOL), _specs(model, rows, settings.bits))
    work = Gathering(model, rows, doc_ids, settings.bits, writer, files, progress)
    _gather(work)
    n_tokens = int(rows.predicted.sum())
    finish_pool(writer, files, len(model.prototypes), inverted=n_tokens > INVERT_BELOW)
    facts = {
        "seconds": round(time.perf_counter() - started, 2),
        "tokens": n_tokens,
        **_setting(work, settings),
        "model": source,
        "corpus": run.manifest.get("corpus", {}).get("name"),
        "device": str(device.device),
    }
    writer.finish_stage(POOL, facts)
    return open_run(writer.path)


def _setting(work: Gathering, settings: PoolSettings) -> dict[str, Any]:
    """What a reader of a pool needs of its making, sizes of the model among them."""
    config = work.model.config
    return {
        "sequences": len(work.rows),
        "length": work.rows.tokens.shape[1],
        "bits": work.bits,
        "every_window": settings.sequences is None,
        "seed": settings.seed,
        "n_prototypes": config.n_prototypes,
        "n_active": config.n_active,
        "d_model": config.d_model,
    }


def _require_bank(run: Run) -> None:
    if run.kind == "dense":
        raise UnsupportedModel(
            f"Run {run.name} is a dense model without prototypes, which attribution compares by; "
            "choose a PRISM run, or fit a bank to it with `headwater retrofit`."
        )
    if not (run.model_path / "config.json").is_file():
        raise CacheMissing(f"Run {run.name} holds no model; train it first.")


def _tokens(run: Run, tokenizer: Path, progress: Progress) -> TokenShards:
    name = (run.manifest.get("corpus") or {}).get("name")
    if not name:
        raise CacheMissing(
            f"Run {run.name} does not say which corpus it was made from; "
            "train it again with `headwater train`."
        )
    return tokenise_corpus(
        open_corpus(str(name)), load_tokenizer(Path(tokenizer) / "tokenizer.json"), progress
    )


def _writer(run: Run, *, in_place: bool) -> RunWriter:
    home = run.path if in_place else pool_home(run)
    if home == run.path:
        return RunWriter.resume(home)
    return RunWriter.create(home, name=run.name, kind="pool", identity={"pool_of": run.name})


def _specs(model: PrismForCausalLM, rows: Sequences, bits: Bits) -> dict[str, ArraySpec]:
    """Types and final shapes of the token arrays."""
    k, d_model = model.config.n_active, model.config.d_model
    empty = TokenStatistics(
        row=torch.zeros(0, dtype=torch.long),
        position=torch.zeros(0, dtype=torch.long),
        activations=torch.zeros(0, k),
        indices=torch.zeros(0, k, dtype=torch.long),
        errors=torch.zeros(0, d_model),
        unit_states=torch.zeros(0, d_model),
        square_norm=torch.zeros(0),
        loss=torch.zeros(0),
    )
    stored = TokenArrays.of(empty, model.prototypes.detach().cpu(), bits)
    n = int(rows.predicted.sum())
    return {
        name: ArraySpec(column.dtype, (n, column.shape[1]))
        for name, column in zip(stored._fields, stored, strict=True)
    }


def _gather(work: Gathering) -> None:
    """Store the shards that are not there yet."""
    starts = range(0, len(work.rows), SHARD)
    done = 0
    while done < len(starts) and work.writer.shard_done(SEQUENCES, done):
        done += 1
    kept = int(work.rows.predicted[: done * SHARD].sum())
    if not work.files.keep(dict.fromkeys(work.files.specs, kept)):
        done = 0
    for index, start in work.progress(
        list(enumerate(starts)), label="Storing statistics", total=len(starts)
    ):
        if index >= done:
            _store_shard(work, index, slice(start, start + SHARD))


def _store_shard(work: Gathering, index: int, own: slice) -> None:
    """Add a shard's tokens to the arrays, then its sequences to the table."""
    rows = work.rows[own]
    found = row_statistics(work.model, rows)
    bank = work.model.prototypes.detach()
    arrays = TokenArrays.of(found, bank, work.bits)
    lengths = rows.predicted.sum(1)
    pool = TokenPool(arrays, lengths_to_offsets(lengths), bank)
    row = found.row.cpu().numpy()
    loss = np.bincount(row, found.loss.double().cpu().numpy(), minlength=len(rows))
    inverse = np.bincount(row, 1 / found.square_norm.double().cpu().numpy(), minlength=len(rows))
    work.files.append(arrays._asdict())
    columns: dict[str, Any] = {
        "sequence": np.arange(len(rows)) + (own.start or 0),
        "doc_id": work.doc_ids[own],
        "domain": rows.domain,
        "corpus_document": rows.document,
        "start": rows.start,
        "n_tokens": lengths,
        "loss": loss,
        "inverse_square_norm": inverse / np.maximum(lengths, 1),
    }
    for statistic in ("activations", "errors", "path"):
        columns[f"{statistic}_norm"] = gradient_norms(pool, statistic)
    work.writer.write_shard(SEQUENCES, index, columns)
