"""Token shards: a corpus as memory-mapped token ids with the offsets of its documents.

In a shard every document is preceded by the separator, so that any run of tokens is a training
row as it is. A shard is a run of documents of one domain; shards that are done are kept when a
stopped run is started again.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from engine import store
from engine.corpus.build import Corpus
from engine.corpus.documents import Progress, no_progress
from engine.corpus.tokenizer import plain_encoder, separator_id, tokenizer_fingerprint
from engine.errors import CorpusError
from engine.jobs import map_jobs
from engine.provenance import fingerprint


MANIFEST = "shards.json"
SHARD_BYTES = 8_000_000
"""Text a shard holds."""
_ENCODE_BATCH = 64
_SHARDS_VERSION = 1


@dataclass(frozen=True)
class ShardPlan:
    """One shard: a run of documents of one domain."""

    domain: str
    """Domain of its documents."""
    number: int
    """Its number within the domain."""
    first: int
    """First document."""
    stop: int
    """One past the last document."""

    @property
    def name(self) -> str:
        """Name of its files, without their endings."""
        return f"{self.domain}-{self.number:05d}"


def plan_shards(corpus: Corpus) -> list[ShardPlan]:
    """Cut the domains into runs of about `SHARD_BYTES` of text, in order of document."""
    n_bytes = corpus.documents["n_bytes"].to_numpy()
    plans = []
    for domain, documents in corpus.domains.items():
        sizes = np.cumsum(n_bytes[documents.first : documents.stop])
        numbers = (sizes - 1) // SHARD_BYTES
        for order, number in enumerate(np.unique(numbers)):
            inside = np.flatnonzero(numbers == number) + documents.first
            plans.append(ShardPlan(domain, order, int(inside[0]), int(inside[-1]) + 1))
    return plans


def tokenise_corpus(
    corpus: Corpus,
    tokenizer: Tokenizer,
    progress: Progress = no_progress,
    separator: int | None = None,
) -> "TokenShards":
    """Tokenise what is not tokenised yet and open the shards.

    Args:
        corpus: A built corpus.
        tokenizer: Any tokenizer; what it would add around a text is left out.
        progress: Wraps the documents of each shard.
        separator: Token id put before each document; the tokenizer's end of text if None.
    """
    separator = separator_id(tokenizer) if separator is None else separator
    tokenizer = plain_encoder(tokenizer)
    identity = fingerprint([_SHARDS_VERSION, tokenizer_fingerprint(tokenizer), separator])
    folder = corpus.path / f"tokens-{identity}"
    dtype = "uint16" if tokenizer.get_vocab_size() <= 2**16 else "uint32"
    plans = plan_shards(corpus)

    def tokenise(plan: ShardPlan) -> dict[str, Any]:
        inputs = fingerprint(
            [plan.number, corpus.documents["doc_id"][plan.first : plan.stop].tolist()]
        )
        record_path = folder / f"{plan.name}.json"
        record = _finished(record_path, inputs)
        if record is None:
            record_path.unlink(missing_ok=True)
            record = _write_shard(corpus, tokenizer, separator, plan, record_path, dtype, progress)
            store.write_json_atomic(record_path, {"inputs": inputs, **record})
        return record

    records = map_jobs(tokenise, plans)
    manifest = {
        "corpus": corpus.fingerprint,
        "tokenizer": tokenizer_fingerprint(tokenizer),
        "vocab_size": tokenizer.get_vocab_size(),
        "separator": separator,
        "dtype": dtype,
        "fingerprint": fingerprint([record["sha256"] for record in records]),
        "shards": [
            {"file": p.name, "domain": p.domain, "first": p.first, "stop": p.stop} for p in plans
        ],
    }
    if not (folder / MANIFEST).is_file() or store.read_json(folder / MANIFEST) != manifest:
        store.write_json_atomic(folder / MANIFEST, manifest)
    return TokenShards(folder, corpus)


def _finished(record_path: Path, inputs: str) -> dict[str, Any] | None:
    tokens = record_path.with_suffix(".tokens")
    if not (record_path.is_file() and tokens.is_file()):
        return None
    record = store.read_json(record_path)
    whole = record["inputs"] == inputs and record["size"] == tokens.stat().st_size
    return record if whole else None


def _write_shard(
    corpus: Corpus,
    tokenizer: Tokenizer,
    separator: int,
    plan: ShardPlan,
    record_path: Path,
    dtype: str,
    progress: Progress,
) -> dict[str, Any]:
    """Write one shard's tokens; returns its lengths, separators included, and digest."""
    digest = hashlib.sha256()
    lengths: list[int] = []
    starts = range(plan.first, plan.stop, _ENCODE_BATCH)
    label = f"Tokenising {plan.domain}"
    with store.atomic_file(record_path.with_suffix(".tokens")) as file:
        for start in progress(starts, label=label, total=len(starts)):
            stop = min(start + _ENCODE_BATCH, plan.stop)
            texts = [corpus.text(i) for i in range(start, stop)]
            for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False):
                content = np.array([separator, *encoding.ids], dtype=dtype).tobytes()
                file.write(content)
                digest.update(content)
                lengths.append(len(encoding.ids) + 1)
    size = sum(lengths) * np.dtype(dtype).itemsize
    return {"sha256": digest.hexdigest(), "size": size, "lengths": lengths}


class TokenShards:
    """The tokens of a corpus, memory-mapped."""

    def __init__(self, path: Path, corpus: Corpus) -> None:
        self.path = path
        self.corpus = corpus
        self.manifest: dict[str, Any] = _read_manifest(path)
        if self.manifest["corpus"] != corpus.fingerprint:
            raise CorpusError(
                f"The token shards in {path} were made from another state of the corpus "
                f"{corpus.name}; tokenise it again."
            )
        self.fingerprint: str = self.manifest["fingerprint"]
        self.separator: int = self.manifest["separator"]
        self.vocab_size: int = self.manifest["vocab_size"]
        self.domains: list[str] = list(corpus.domains)
        self._maps: list[NDArray[Any]] = []
        lengths: list[int] = []
        for shard in self.manifest["shards"]:
            record = store.read_json(path / f"{shard['file']}.json")
            tokens = path / f"{shard['file']}.tokens"
            if not tokens.is_file() or tokens.stat().st_size != record["size"]:
                raise CorpusError(f"{tokens} is missing or cut short; tokenise the corpus again.")
            self._maps.append(np.memmap(tokens, dtype=self.manifest["dtype"], mode="r"))
            lengths += record["lengths"]
        self.offsets: NDArray[np.int64] = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        self._firsts = np.array([shard["first"] for shard in self.manifest["shards"]])

    @property
    def n_tokens(self) -> int:
        """Tokens in all, separators included."""
        return int(self.offsets[-1])

    def length(self, document: int) -> int:
        """Tokens of a document, without its separator."""
        return int(self.offsets[document + 1] - self.offsets[document]) - 1

    def document_tokens(self, document: int) -> NDArray[Any]:
        """Token ids of a document, without its separator: [n_tokens], a view of the file."""
        return self.run(document)[1:]

    def run(self, document: int) -> NDArray[Any]:
        """Token ids of a document with its separator in front: [1 + n_tokens]."""
        shard = int(np.searchsorted(self._firsts, document, side="right")) - 1
        base = self.offsets[self._firsts[shard]]
        start, stop = self.offsets[document] - base, self.offsets[document + 1] - base
        return self._maps[shard][int(start) : int(stop)]


def _read_manifest(path: Path) -> dict[str, Any]:
    if not (path / MANIFEST).is_file():
        raise CorpusError(
            f"{path} holds no token shards; `headwater train` and `headwater index` make them."
        )
    return store.read_json(path / MANIFEST)


def open_shards(path: Path) -> TokenShards:
    """Open the shards in a folder made by `tokenise_corpus`, inside their corpus's folder."""
    return TokenShards(path, Corpus(path.parent))
