"""A run of random but valid numbers: every table filled, no model, no text behind it.

Pages, their tests and the speed bench use it at any size. It is marked `synthetic` in its manifest
and is never a result.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from engine.pipeline.synthetic_attribution import attribution_tables, pool_tables
from engine.pipeline.synthetic_control import control_tables
from engine.pipeline.synthetic_curvature import curvature_tables
from engine.pipeline.synthetic_heads import head_tables, study_facts
from engine.pipeline.synthetic_map import all_map_tables
from engine.pipeline.synthetic_retraining import retraining_tables
from engine.pipeline.synthetic_suppression import suppression_study_tables
from engine.pipeline.synthetic_tables import Columns, Tally, prototype_tables, training_tables
from engine.pipeline.synthetic_tokenizer import write_tokenizer
from engine.store import RunWriter


DOMAINS = ("code", "markup", "prose", "unwanted", "verse")
"""Domains of the documents; `unwanted` has the meaning it has in a real corpus."""
_MEAN_LENGTH = 220


def write_synthetic_run(
    path: Path,
    *,
    n_prototypes: int = 512,
    n_tokens: int = 100_000,
    n_active: int = 16,
    shard_tokens: int = 131_072,
    seed: int = 0,
) -> Path:
    """Fill every table of the contract with random, mutually consistent numbers.

    Args:
        path: Folder of the run.
        n_prototypes: Prototypes in the bank.
        n_tokens: Tokens scanned; `n_tokens * n_active` activation rows are written.
        n_active: Active prototypes a token.
        shard_tokens: Tokens an activation shard holds.
        seed: Seed of every number.

    Returns:
        `path`.
    """
    generator = np.random.default_rng(seed)
    documents, document_of, position_of = _documents(generator, n_tokens)

    def active_of(document: np.ndarray) -> np.ndarray:
        return _active(generator, documents["domain_code"][document], n_prototypes, n_active)

    identity = _identity(documents, n_prototypes, n_active, n_tokens, seed)
    writer = RunWriter.create(path, name="Synthetic", kind="prism", identity=identity)
    if writer.begin_stage("train", identity):
        return path
    for table, columns in training_tables(generator, DOMAINS).items():
        writer.write_table(table, columns)
    writer.finish_stage("train", {"seconds": 0.0, "synthetic": True})

    writer.begin_stage("index", identity)
    tally = Tally(n_prototypes, len(DOMAINS))
    examples: list[np.ndarray] = []
    for shard, start in enumerate(range(0, n_tokens, shard_tokens)):
        own = slice(start, start + shard_tokens)
        rows = _write_shard(writer, shard, document_of[own], position_of[own], active_of)
        tally.add(rows[2], rows[3], documents["domain_code"][rows[0]])
        examples = examples or rows
    writer.write_table("documents", {k: v for k, v in documents.items() if k != "domain_code"})
    indexed = prototype_tables(generator, tally, examples, n_tokens, DOMAINS)
    for table, columns in indexed.items():
        writer.write_table(table, columns)
    studies = suppression_study_tables(generator, n_prototypes)
    studies |= control_tables(generator, n_prototypes)
    studies |= curvature_tables(generator, path.name, indexed["prototypes"], n_active)
    studies |= retraining_tables(generator, list(documents["doc_id"]), DOMAINS)
    studies |= attribution_tables(generator, DOMAINS)
    for table, columns in studies.items():
        writer.write_table(table, columns)
    _write_pool(writer, *pool_tables(generator, documents, n_prototypes))
    write_tokenizer(path / "model")
    writer.finish_stage("index", {"seconds": 0.0, "n_tokens": n_tokens, "synthetic": True})
    _write_others(writer, identity, generator, documents)
    return path


def _write_others(
    writer: RunWriter,
    identity: dict[str, object],
    generator: np.random.Generator,
    documents: Columns,
) -> None:
    """Tables of the kinds of runs that hold no prototypes: heads, and maps of models."""
    heads = ("study", head_tables(generator, documents), study_facts())
    for stage, tables, facts in (heads, ("embed", all_map_tables(generator), {})):
        writer.begin_stage(stage, identity)
        for table, columns in tables.items():
            writer.write_table(table, columns)
        writer.finish_stage(stage, {"seconds": 0.0, **facts})


def _write_pool(writer: RunWriter, sequences: Columns, prototypes: Columns) -> None:
    writer.write_shard("attribution_sequences", 0, sequences)
    writer.write_table("attribution_prototypes", prototypes)


def _write_shard(
    writer: RunWriter,
    shard: int,
    document: np.ndarray,
    position: np.ndarray,
    active_of: Callable[[np.ndarray], np.ndarray],
) -> list[np.ndarray]:
    """Write one shard of activations and residuals.

    Returns:
        Document, position, prototype and activation of every activation row, flat and parallel.
    """
    generator = np.random.default_rng(shard)
    active = active_of(document)
    n_tokens, n_active = active.shape
    activation = np.sort(generator.beta(5, 4, active.shape), axis=1)[:, ::-1]
    activation = activation.astype(np.float16).astype(np.float32).ravel()
    rows = [np.repeat(document, n_active), np.repeat(position, n_active), active.ravel()]
    columns = {
        "document": rows[0],
        "position": rows[1],
        "rank": np.tile(np.arange(n_active), n_tokens),
        "prototype": rows[2],
        "activation": activation,
    }
    writer.write_shard("prototype_activations", shard, columns)
    residuals = {
        "document": document,
        "position": position,
        "residual_share": generator.beta(3, 9, n_tokens),
        "loss": generator.gamma(2.0, 1.5, n_tokens),
        "predicted": generator.integers(1, 257, n_tokens),
    }
    writer.write_shard("token_residuals", shard, residuals)
    return [*rows, activation]


def _documents(
    generator: np.random.Generator, n_tokens: int
) -> tuple[Columns, np.ndarray, np.ndarray]:
    """The documents table, and document and position of every token."""
    lengths = generator.integers(40, 2 * _MEAN_LENGTH - 40, max(1, 2 * n_tokens // _MEAN_LENGTH))
    ends = np.cumsum(lengths)
    count = int(np.searchsorted(ends, n_tokens)) + 1
    document_of = np.repeat(np.arange(count), lengths[:count])[:n_tokens]
    position_of = np.arange(n_tokens) - (ends - lengths)[document_of]
    codes = np.sort(generator.integers(0, len(DOMAINS), count))
    columns = {
        "document": np.arange(count),
        "doc_id": [generator.bytes(8).hex() for _ in range(count)],
        "domain": [DOMAINS[code] for code in codes],
        "source": [f"synthetic/{DOMAINS[code]}/{i:05d}.txt" for i, code in enumerate(codes)],
        "split": np.where(generator.random(count) < 0.05, "validation", "train"),
        "n_bytes": lengths[:count] * 4,
        "domain_code": codes,
    }
    return columns, document_of, position_of


def _active(
    generator: np.random.Generator, domains: np.ndarray, n_prototypes: int, n_active: int
) -> np.ndarray:
    """`n_active` different prototypes a token, [tokens n_active], of very unequal frequency."""
    highest = n_prototypes - n_active + 1
    shape = (len(domains), n_active)
    drawn = (highest * generator.random(shape) ** 2.5).astype(np.int64)
    n_domains = len(DOMAINS)
    own = drawn // n_domains * n_domains + domains[:, None]
    drawn = np.where(generator.random(shape) < 0.6, np.minimum(own, highest - 1), drawn)
    drawn.sort(axis=1)
    steps = np.arange(n_active)
    distinct = np.maximum.accumulate(drawn - steps, axis=1) + steps
    shuffled = np.take_along_axis(distinct, generator.random(shape).argsort(axis=1), axis=1)
    return np.random.default_rng(n_prototypes).permutation(n_prototypes)[shuffled]


def _identity(
    documents: Columns, n_prototypes: int, n_active: int, n_tokens: int, seed: int
) -> dict[str, object]:
    domains = {
        name: {
            "fingerprint": f"{code:016x}",
            "n_documents": int((documents["domain_code"] == code).sum()),
            "n_bytes": int(documents["n_bytes"][documents["domain_code"] == code].sum()),
        }
        for code, name in enumerate(DOMAINS)
    }
    train = {"n_prototypes": n_prototypes, "n_active": n_active, "d_model": 64, "seed": seed}
    return {
        "synthetic": True,
        "config": {"train": train, "index": {"max_tokens": n_tokens, "seed": seed}},
        "corpus": {
            "name": "synthetic",
            "preset": None,
            "fingerprint": f"{seed:016x}",
            "domains": domains,
        },
        "tokenizer": {"fingerprint": f"{seed:016x}", "vocab_size": 257},
        "model": {"n_parameters": 0},
    }
