"""Plans: for each domain of a configuration, its inputs and the documents they give."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from engine.config import CorpusConfig
from engine.corpus.documents import (
    Document,
    clean_text,
    iter_pieces,
    make_document,
    same_text_key,
    unit_hash,
)
from engine.corpus.packages import PACKAGES, packages_root
from engine.corpus.presets import STDLIB, Domain, domains_of, extra_names
from engine.corpus.sources import read_part, stdlib_identity
from engine.corpus.user_sources import file_groups, file_identity, read_dataset, read_files, slug
from engine.provenance import fingerprint


BUILDER_VERSION = 1
"""Raised whenever the same inputs would give other documents."""
_PIECE_BYTES = 8_000


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
    """Folder name of a corpus: its preset, or its source with a hash of the settings."""
    if config.preset is not None:
        return "-".join([config.preset, *extra_names(config.extra_domains)])
    if config.dataset is not None:
        return f"{slug(config.dataset)}-{fingerprint(asdict(config))[:8]}"
    path = Path(str(config.path)).expanduser().resolve()
    return f"{slug(path.stem)}-{fingerprint({**asdict(config), 'path': str(path)})[:8]}"


def domain_plans(config: CorpusConfig, packages: Path | None = None) -> list[DomainPlan]:
    """The plans of a configuration, in the order in which documents are numbered."""
    if config.preset is not None:
        folder = packages or packages_root()
        return [
            DomainPlan(
                domain.name,
                partial(_embedded_inputs, domain, config),
                partial(_embedded_documents, domain, config, folder),
            )
            for domain in domains_of(config.preset, config.extra_domains)
        ]
    if config.dataset is not None:
        return [_dataset_plan(config)]
    return _folder_plans(config, Path(str(config.path)).expanduser())


def _embedded_inputs(domain: Domain, config: CorpusConfig) -> dict[str, Any]:
    library = [part.pattern for part in domain.parts if part.package == STDLIB]
    return {
        "builder": BUILDER_VERSION,
        "domain": {**asdict(domain), "caps": domain.caps[str(config.preset)]},
        "archives": {name: PACKAGES[name].sha256 for name in domain.packages},
        "library": stdlib_identity(library),
        "validation_share": config.validation_share,
    }


def _embedded_documents(domain: Domain, config: CorpusConfig, folder: Path) -> Iterator[Document]:
    texts = (
        (path if part.package == STDLIB else f"{part.package}/{path}", text)
        for part in domain.parts
        for path, text in read_part(part, folder)
    )
    share = domain.validation_share or config.validation_share
    documents = distinct_documents(domain.name, texts, share, domain.piece_bytes)
    limit = domain.caps[str(config.preset)]
    yield from keep_within(list(documents), limit, domain.per_source_bytes)


def distinct_documents(
    domain: str, texts: Iterable[tuple[str, str]], validation_share: float, piece_bytes: int
) -> Iterator[Document]:
    """Documents of cleaned (source, text) pairs: long ones cut, repeated ones dropped."""
    seen: set[bytes] = set()
    for source, text in texts:
        for piece_source, piece in iter_pieces(source, text, piece_bytes):
            key = same_text_key(piece)
            if piece.strip() and key not in seen:
                seen.add(key)
                yield make_document(domain, piece_source, piece, validation_share)


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


def _folder_plans(config: CorpusConfig, root: Path) -> list[DomainPlan]:
    """A plan for each sub-folder; `max_bytes` is divided among them evenly."""
    groups = file_groups(root)
    limit = None if config.max_bytes is None else config.max_bytes // len(groups)
    return [
        DomainPlan(
            name,
            partial(_folder_inputs, paths, root, limit, config),
            partial(_folder_documents, name, paths, root, limit, config),
        )
        for name, paths in groups.items()
    ]


def _folder_inputs(
    paths: list[Path], root: Path, limit: int | None, config: CorpusConfig
) -> dict[str, Any]:
    return {
        "builder": BUILDER_VERSION,
        "files": file_identity(paths, root),
        "column": config.text_column,
        "limit": limit,
        "validation_share": config.validation_share,
    }


def _folder_documents(
    name: str, paths: list[Path], root: Path, limit: int | None, config: CorpusConfig
) -> Iterator[Document]:
    texts = _cleaned(read_files(paths, root, config.text_column))
    documents = distinct_documents(name, texts, config.validation_share, _PIECE_BYTES)
    return _first_bytes(documents, limit)


def _dataset_plan(config: CorpusConfig) -> DomainPlan:
    name = slug(str(config.dataset).rpartition("/")[2])
    return DomainPlan(
        name,
        lambda: {"builder": BUILDER_VERSION, "config": asdict(config)},
        partial(_dataset_documents, name, config),
    )


def _dataset_documents(name: str, config: CorpusConfig) -> Iterator[Document]:
    texts = _cleaned(read_dataset(config))
    documents = distinct_documents(name, texts, config.validation_share, _PIECE_BYTES)
    return _first_bytes(documents, config.max_bytes)


def _cleaned(texts: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    return ((source, clean_text(text)) for source, text in texts)


def _first_bytes(documents: Iterable[Document], limit: int | None) -> Iterator[Document]:
    """Documents until the next would pass the limit; a first one that is too long is kept."""
    total = 0
    for document in documents:
        total += len(document.text.encode())
        if limit is not None and total > limit and total > len(document.text.encode()):
            return
        yield document
