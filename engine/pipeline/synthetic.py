"""A run of random but valid numbers: every table filled, no model, no text behind it.

Pages, their tests and the speed bench use it at any size. It is marked `synthetic` in its manifest
and is never a result.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from engine.pipeline.synthetic_tables import Columns, Tally, prototype_tables, training_tables
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
    domain_of = documents["domain_code"]

    def active_of(document: np.ndarray) -> np.ndarray:
        return _active(generator, domain_of[document], n_prototypes, n_active)

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
        tally.add(rows[2], rows[3], domain_of[rows[0]])
        examples = examples or rows
    writer.write_table("documents", {k: v for k, v in documents.items() if k != "domain_code"})
    for table, columns in prototype_tables(generator, tally, examples, n_tokens, DOMAINS).items():
        writer.write_table(table, columns)
    _write_tokenizer(path / "model")
    writer.finish_stage("index", {"seconds": 0.0, "n_tokens": n_tokens, "synthetic": True})
    return path


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


def _write_tokenizer(folder: Path) -> None:
    """A tokenizer of single bytes, so that token ids have texts."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate(["<|endoftext|>", *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
