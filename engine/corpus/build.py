"""Build a corpus folder, domain by domain, and open it again.

A corpus folder holds `corpus.json` (written last), `documents.parquet` (ids and sizes) and, for
each domain, `domains/<domain>.utf8` (texts, end to end) with `domains/<domain>.json` (their ids).
A domain whose record names the same inputs is kept, so a stopped build resumes there, and a domain
whose package is missing is noted while the others are built.
"""

import hashlib
import mmap
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from engine import schema, store
from engine.config import CorpusConfig, cache_root
from engine.corpus.documents import Document, Progress, no_progress
from engine.corpus.plans import DomainPlan, corpus_name, domain_plans
from engine.errors import CorpusError, PackageMissing
from engine.provenance import fingerprint


MANIFEST = "corpus.json"
_LEFTOVER_SECONDS = 3600
_RECORD_COLUMNS = ("doc_id", "source", "split", "n_bytes")


def corpora_root() -> Path:
    """Folder of built corpora."""
    return cache_root() / "corpus"


def build_corpus(
    config: CorpusConfig,
    root: Path | None = None,
    packages: Path | None = None,
    progress: Progress = no_progress,
) -> "Corpus":
    """Build what is not built yet of a corpus and open it.

    Args:
        config: What it is made of.
        root: Folder of corpora; each corpus is a folder inside it.
        packages: Folder of fetched package archives.
        progress: Wraps the documents of each domain that is built.

    Raises:
        PackageMissing: When not a single domain can be built.
        CorpusError: When a source is not there or holds no text.
    """
    path = (root or corpora_root()) / corpus_name(config)
    plans = domain_plans(config, packages)
    store.remove_leftovers(path / "domains")
    records: dict[str, dict[str, Any]] = {}
    missing: dict[str, str] = {}
    for plan in plans:
        try:
            records[plan.name] = _build_domain(path, plan, progress)
        except PackageMissing as error:
            missing[plan.name] = str(error)
    if not records:
        raise PackageMissing(next(iter(missing.values()), "The corpus has no domain."))
    _assemble(path, config, records, missing)
    return Corpus(path)


def _build_domain(path: Path, plan: DomainPlan, progress: Progress) -> dict[str, Any]:
    """The record of a domain, from its file when the inputs are the same."""
    record_path, text_path = _domain_paths(path, plan.name)
    inputs = fingerprint(plan.inputs())
    if record_path.is_file() and text_path.is_file():
        record = store.read_json(record_path)
        if record.get("inputs") == inputs and record.get("size") == text_path.stat().st_size:
            return record
    record_path.unlink(missing_ok=True)
    _remove_old_leftovers(text_path.parent)
    documents = progress(plan.documents(), label=f"Building {plan.name}", total=None)
    record = {"inputs": inputs, **_write_texts(text_path, documents)}
    if not record["doc_id"]:
        raise CorpusError(f"The domain {plan.name} of {path.name} holds no text; check its source.")
    store.write_json_atomic(record_path, record)
    return record


def _remove_old_leftovers(folder: Path) -> None:
    """Remove what killed builds left; young files may belong to a build that runs beside this."""
    for path in folder.glob(".*") if folder.is_dir() else ():
        if time.time() - path.stat().st_mtime > _LEFTOVER_SECONDS:
            path.unlink(missing_ok=True)


def _domain_paths(path: Path, domain: str) -> tuple[Path, Path]:
    folder = path / "domains"
    return folder / f"{domain}.json", folder / f"{domain}.utf8"


def _write_texts(path: Path, documents: Iterable[Document]) -> dict[str, Any]:
    """Write texts end to end, then move the file into place; returns the record's columns."""
    columns: dict[str, list[Any]] = {name: [] for name in _RECORD_COLUMNS}
    digest, ids = hashlib.sha256(), hashlib.sha256()
    size = 0
    with store.atomic_file(path) as file:
        for document in documents:
            content = document.text.encode()
            file.write(content)
            digest.update(content)
            ids.update(f"{document.doc_id} {document.split}\n".encode())
            values = (document.doc_id, document.source, document.split, len(content))
            for name, value in zip(_RECORD_COLUMNS, values, strict=True):
                columns[name].append(value)
            size += len(content)
    content_ids = {"fingerprint": ids.hexdigest()[:16], "sha256": digest.hexdigest()}
    return {**content_ids, "size": size, **columns}


def _assemble(
    path: Path, config: CorpusConfig, records: dict[str, dict[str, Any]], missing: dict[str, str]
) -> None:
    """Write `documents.parquet`, then the manifest, unless they already say the same."""
    manifest = {
        "schema_version": schema.SCHEMA_VERSION,
        "name": path.name,
        "config": asdict(config),
        "fingerprint": fingerprint({d: r["fingerprint"] for d, r in records.items()}),
        "domains": {
            domain: {
                "fingerprint": record["fingerprint"],
                "sha256": record["sha256"],
                "n_documents": len(record["doc_id"]),
                "n_validation": record["split"].count("validation"),
                "n_bytes": record["size"],
            }
            for domain, record in records.items()
        },
        "missing": missing,
    }
    target = path / MANIFEST
    if target.is_file() and store.read_json(target) == manifest:
        return
    target.unlink(missing_ok=True)
    frames = [
        pd.DataFrame({name: record[name] for name in _RECORD_COLUMNS}).assign(domain=domain)
        for domain, record in records.items()
    ]
    frame = pd.concat(frames, ignore_index=True)
    frame.insert(0, "document", np.arange(len(frame), dtype=np.int32))
    store.write_parquet(path / "documents.parquet", frame, schema.DOCUMENTS)
    store.write_json_atomic(target, manifest)


@dataclass(frozen=True)
class DomainRange:
    """Where a domain's documents lie in the numbering of its corpus."""

    first: int
    """Its first document."""
    stop: int
    """One past its last document."""


class Corpus:
    """A built corpus: ids and sizes as a table, texts read on demand.

    Documents are numbered from 0, the documents of a domain one after another.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not (path / MANIFEST).is_file():
            raise CorpusError(
                f"{path} is not a built corpus; run `headwater corpus build {path.name}`."
            )
        self.manifest: dict[str, Any] = store.read_json(path / MANIFEST)
        self.documents: pd.DataFrame = store.read_parquet(
            path / "documents.parquet", schema.DOCUMENTS
        )
        self.fingerprint: str = self.manifest["fingerprint"]
        self.domain_fingerprints: dict[str, str] = {
            name: facts["fingerprint"] for name, facts in self.manifest["domains"].items()
        }
        self.missing: dict[str, str] = self.manifest["missing"]
        self.domains: dict[str, DomainRange] = {}
        self._domain_names = list(self.manifest["domains"])
        first = 0
        for name, facts in self.manifest["domains"].items():
            self.domains[name] = DomainRange(first, first + facts["n_documents"])
            first += facts["n_documents"]
        if first != len(self.documents):
            raise CorpusError(
                f"{path} is damaged: its table has {len(self.documents)} documents and its "
                f"manifest {first}; run `headwater corpus build {path.name}` again."
            )
        self._firsts = np.array([r.first for r in self.domains.values()])
        self._offsets = np.concatenate([[0], np.cumsum(self.documents["n_bytes"].to_numpy())])
        self._maps: dict[str, mmap.mmap] = {}
        self._positions: dict[str, int] | None = None

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def name(self) -> str:
        """Name of its folder."""
        return self.path.name

    def domain_of(self, document: int) -> str:
        """Domain of a document."""
        return self._domain_names[int(np.searchsorted(self._firsts, document, side="right")) - 1]

    def text(self, document: int) -> str:
        """Text of a document."""
        if not 0 <= document < len(self):
            raise CorpusError(
                f"Document {document} does not exist; {self.name} holds documents 0 to "
                f"{len(self) - 1}."
            )
        domain = self.domain_of(document)
        base = self._offsets[self.domains[domain].first]
        start, stop = self._offsets[document] - base, self._offsets[document + 1] - base
        return self._map(domain)[int(start) : int(stop)].decode()

    def _map(self, domain: str) -> mmap.mmap:
        if domain not in self._maps:
            path = _domain_paths(self.path, domain)[1]
            expected = self.manifest["domains"][domain]["n_bytes"]
            if not path.is_file() or path.stat().st_size != expected:
                raise CorpusError(
                    f"The texts of domain {domain} are missing or cut short in {self.path}; "
                    f"run `headwater corpus build {self.name}` again."
                )
            with path.open("rb") as file:
                self._maps[domain] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return self._maps[domain]

    def position_of(self, doc_id: str) -> int | None:
        """Number of the document with this id; None when the corpus does not hold it."""
        if self._positions is None:
            ids = self.documents["doc_id"].tolist()
            self._positions = dict(zip(ids, range(len(ids)), strict=True))
        return self._positions.get(doc_id)

    def check(self) -> list[str]:
        """Problems found by reading every text; empty when the corpus is whole."""
        problems = []
        for domain, facts in self.manifest["domains"].items():
            try:
                digest = hashlib.sha256(self._map(domain)).hexdigest()
            except CorpusError as error:
                problems.append(str(error))
                continue
            if digest != facts["sha256"]:
                problems.append(
                    f"The texts of domain {domain} differ from their fingerprint; run "
                    f"`headwater corpus build {self.name}` after deleting its folder domains."
                )
        return problems


def open_corpus(name_or_path: str | Path) -> Corpus:
    """Open a built corpus by name (in the cache) or by folder."""
    path = Path(name_or_path)
    if not path.is_dir():
        path = corpora_root() / str(name_or_path)
    if not (path / MANIFEST).is_file():
        raise CorpusError(
            f"No corpus called {name_or_path} has been built; "
            f"run `headwater corpus build {Path(name_or_path).name}`."
        )
    return Corpus(path)
