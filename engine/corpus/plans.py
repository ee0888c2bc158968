"""Plans: for each domain of a configuration, its inputs and the documents they give."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine.config import CorpusConfig
from engine.corpus.documents import (
    Document,
    iter_pieces,
    make_document,
    same_text_key,
    unit_hash,
)
from engine.corpus.packages import PACKAGES, packages_root, require_archive
from engine.corpus.presets import STDLIB, Domain, domains_of
from engine.corpus.sources import read_part
from engine.errors import CorpusError

BUILDER_VERSION = 1
"""Raised whenever the same inputs would give other documents."""


@dataclass(frozen=True)
class DomainPlan:
    """How one domain is made."""

    name: str
    """Name of the domain."""
    inputs: Callable[[], dict[str, Any]]
    """Everything that determines its documents, as plain values."""
    documents: Callable[[], Iterator[Document]]
    """Makes its documents, in order."""


def corpus_name(config: CorpusConfig) -> str:
    """Folder name of a corpus."""
    if config.preset is not None:
        return config.preset
    raise CorpusError("not yet")


def domain_plans(config: CorpusConfig, packages: Path | None = None) -> list[DomainPlan]:
    """The plans of a configuration, in the order in which documents are numbered."""
    folder = packages or packages_root()
    preset = config.preset or ""
    return [
        DomainPlan(
            domain.name,
            lambda domain=domain: _embedded_inputs(domain, preset, config, folder),
            lambda domain=domain: _embedded_documents(domain, preset, config, folder),
        )
        for domain in domains_of(preset)
    ]


def _embedded_inputs(
    domain: Domain, preset: str, config: CorpusConfig, folder: Path
) -> dict[str, Any]:
    for name in domain.packages:
        require_archive(PACKAGES[name], folder)
    return {
        "builder": BUILDER_VERSION,
        "domain": {**asdict(domain), "caps": domain.caps[preset]},
        "archives": {name: PACKAGES[name].sha256 for name in domain.packages},
        "validation_share": config.validation_share,
    }


def _embedded_documents(
    domain: Domain, preset: str, config: CorpusConfig, folder: Path
) -> Iterator[Document]:
    share = domain.validation_share or config.validation_share
    documents: list[Document] = []
    seen: set[bytes] = set()
    for part in domain.parts:
        for path, text in read_part(part, folder):
            source = path if part.package == STDLIB else f"{part.package}/{path}"
            for piece_source, piece in iter_pieces(source, text, domain.piece_bytes):
                key = same_text_key(piece)
                if key not in seen:
                    seen.add(key)
                    documents.append(make_document(domain.name, piece_source, piece, share))
    yield from keep_within(documents, domain.caps[preset], domain.per_source_bytes)


def keep_within(
    documents: list[Document], max_bytes: int, per_source_bytes: int | None
) -> list[Document]:
    """A sample of at most `max_bytes`, spread evenly over the documents and kept in their order.

    Documents are drawn in the order of a hash of their id, so a larger limit keeps nearly all that
    a smaller one does.
    """
    kept: set[int] = set()
    total = 0
    by_source: dict[str, int] = {}
    order = sorted(range(len(documents)), key=lambda i: unit_hash("draw", documents[i].doc_id))
    for i in order:
        n_bytes = len(documents[i].text.encode())
        source = documents[i].source.partition("#")[0]
        from_source = by_source.get(source, 0) + n_bytes
        over_source = per_source_bytes is not None and from_source > per_source_bytes
        if total + n_bytes > max_bytes or over_source:
            continue
        kept.add(i)
        total += n_bytes
        by_source[source] = from_source
    return [document for i, document in enumerate(documents) if i in kept]
