"""Building: the same inputs give the same bytes, whatever happens in between."""

import dataclasses
import hashlib
import json
from pathlib import Path

import pytest

from engine.config import CorpusConfig
from engine.corpus import presets
from engine.corpus.build import Corpus, build_corpus, open_corpus
from engine.corpus.documents import document_id
from engine.corpus.plans import keep_within
from engine.corpus.presets import Domain, Part
from engine.errors import CorpusError, PackageMissing


def bytes_of(folder: Path) -> dict[str, str]:
    files = [*folder.glob("*.*"), *folder.glob("domains/*")]
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if path.is_file()
    }


def two_domains(monkeypatch: pytest.MonkeyPatch) -> None:
    """`full` becomes two domains of two fake packages."""
    table = tuple(
        Domain(name, "", (Part(name, "*.txt", "plain"),), {"full": 997}) for name in ("one", "two")
    )
    monkeypatch.setattr(presets, "_DOMAINS", table)


def test_building_twice_gives_identical_bytes(tiny_root: Path, tmp_path: Path) -> None:
    """Indexes name documents by id, so a corpus rebuilt elsewhere must be the same."""
    build_corpus(CorpusConfig(preset="tiny"), tmp_path)
    assert bytes_of(tmp_path / "tiny") == bytes_of(tiny_root / "tiny")


def test_a_finished_corpus_is_not_written_again(tiny_root: Path, tmp_path: Path) -> None:
    """Asking for a corpus that is there must cost nothing and disturb no reader."""
    build_corpus(CorpusConfig(preset="tiny"), tmp_path)
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "tiny").rglob("*")}
    build_corpus(CorpusConfig(preset="tiny"), tmp_path)
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "tiny").rglob("*")} == before


def test_texts_are_read_back_by_number_and_id(tiny: Corpus) -> None:
    """Every id is the hash of the text that comes back, in every domain."""
    for document in [0, 1, len(tiny) // 2, len(tiny) - 1]:
        row = tiny.documents.iloc[document]
        text = tiny.text(document)
        assert row["doc_id"] == document_id(row["domain"], text)
        assert row["n_bytes"] == len(text.encode())
        assert tiny.position_of(row["doc_id"]) == document
        assert tiny.domain_of(document) == row["domain"]
    assert tiny.position_of("0" * 16) is None


def test_every_domain_of_tiny_has_both_splits(tiny: Corpus) -> None:
    """Validation by domain needs held-out documents in each."""
    groups = tiny.documents.groupby("domain")["split"].unique()
    assert all(set(splits) == {"train", "validation"} for splits in groups)


def test_a_missing_package_voids_its_own_domain_alone(fake_package, monkeypatch, tmp_path) -> None:
    """The others are built, and the manifest says what is missing and what to run."""
    two_domains(monkeypatch)
    folder = fake_package("one", "one-1.0.tar.gz", {"a.txt": "alpha", "b.txt": "beta"})
    fake_package("two", "two-1.0.tar.gz", {"c.txt": "gamma"})
    archive = (folder / "two-1.0.tar.gz").read_bytes()
    (folder / "two-1.0.tar.gz").unlink()
    partial = build_corpus(CorpusConfig(preset="full"), tmp_path / "corpora", folder)
    assert list(partial.domains) == ["one"]
    assert "headwater corpus fetch" in partial.missing["two"]
    (folder / "two-1.0.tar.gz").write_bytes(archive)
    whole = build_corpus(CorpusConfig(preset="full"), tmp_path / "corpora", folder)
    assert list(whole.domains) == ["one", "two"]
    assert whole.domain_fingerprints["one"] == partial.domain_fingerprints["one"]
    assert whole.fingerprint != partial.fingerprint
    assert whole.missing == {}


def test_a_built_domain_outlives_its_package(fake_package, monkeypatch, tmp_path) -> None:
    """Archives may be deleted to save space once the texts are there."""
    two_domains(monkeypatch)
    folder = fake_package("one", "one-1.0.tar.gz", {"a.txt": "alpha"})
    fake_package("two", "two-1.0.tar.gz", {"c.txt": "gamma"})
    before = build_corpus(CorpusConfig(preset="full"), tmp_path / "corpora", folder)
    for archive in folder.iterdir():
        archive.unlink()
    after = build_corpus(CorpusConfig(preset="full"), tmp_path / "corpora", folder)
    assert after.manifest == before.manifest


def test_without_any_package_there_is_one_sentence(tmp_path: Path) -> None:
    """A newcomer who forgot to fetch is told the command."""
    with pytest.raises(PackageMissing, match="headwater corpus fetch"):
        build_corpus(CorpusConfig(preset="full"), tmp_path, tmp_path / "no packages")


def test_a_stopped_build_resumes_by_domain_with_the_same_bytes(tiny_root, tmp_path) -> None:
    """What is done stays, what was half done is done again, and the result is the same."""

    def stop_at_docs(items, *, label="", total=None):
        for number, item in enumerate(items):
            if "docs" in label and number == 5:
                raise KeyboardInterrupt
            yield item

    with pytest.raises(KeyboardInterrupt):
        build_corpus(CorpusConfig(preset="tiny"), tmp_path, progress=stop_at_docs)
    code = tmp_path / "tiny" / "domains" / "code.utf8"
    written = code.stat().st_mtime_ns
    with pytest.raises(CorpusError, match="headwater corpus build tiny"):
        open_corpus(tmp_path / "tiny")
    build_corpus(CorpusConfig(preset="tiny"), tmp_path)
    assert code.stat().st_mtime_ns == written
    assert bytes_of(tmp_path / "tiny") == bytes_of(tiny_root / "tiny")


def test_texts_cut_short_are_noticed_and_built_again(tiny_root, tmp_path) -> None:
    """A truncated file must never be served as the text."""
    corpus = build_corpus(CorpusConfig(preset="tiny"), tmp_path)
    path = tmp_path / "tiny" / "domains" / "docs.utf8"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorpusError, match="headwater corpus build tiny"):
        Corpus(tmp_path / "tiny").text(len(corpus) - 1)
    build_corpus(CorpusConfig(preset="tiny"), tmp_path)
    assert bytes_of(tmp_path / "tiny") == bytes_of(tiny_root / "tiny")


def test_check_finds_changed_texts(tmp_path: Path) -> None:
    """A flipped byte keeps every size and is found by the fingerprint."""
    corpus = build_corpus(CorpusConfig(preset="tiny"), tmp_path)
    assert corpus.check() == []
    path = tmp_path / "tiny" / "domains" / "code.utf8"
    content = bytearray(path.read_bytes())
    content[7] ^= 1
    path.write_bytes(bytes(content))
    assert Corpus(tmp_path / "tiny").check() == [
        "The texts of domain code differ from their fingerprint; run "
        "`headwater corpus build tiny` after deleting its folder domains."
    ]


def test_a_sample_is_spread_over_the_documents_and_grows_with_its_limit(tiny: Corpus) -> None:
    """The first bytes of a domain would be a few files only."""
    from engine.corpus.documents import Document

    documents = [Document(f"{i:016x}", "d", f"s{i % 7}#{i}", "train", "x" * 11) for i in range(501)]
    small = keep_within(documents, 1_111, None)
    large = keep_within(documents, 2_222, None)
    assert len(small) == 101
    assert {d.doc_id for d in small} < {d.doc_id for d in large}
    assert [d.doc_id for d in small] == sorted(d.doc_id for d in small)
    capped = keep_within(documents, 5_511, 33)
    assert len(capped) == 21  # 7 sources of at most 3 documents


def test_the_manifest_can_be_read_by_anyone(tiny: Corpus) -> None:
    """It is plain JSON with a fingerprint for each domain."""
    manifest = json.loads((tiny.path / "corpus.json").read_text())
    assert set(manifest["domains"]) == {"code", "docs"}
    assert all(len(facts["fingerprint"]) == 16 for facts in manifest["domains"].values())
    assert manifest["config"] == dataclasses.asdict(CorpusConfig(preset="tiny"))


@pytest.mark.parametrize("document", [-1, 10_000_000])
def test_a_document_that_does_not_exist_is_named(tiny: Corpus, document: int) -> None:
    """The sentence says which numbers there are."""
    with pytest.raises(CorpusError, match=f"Document {document} does not exist"):
        tiny.text(document)


def test_a_folder_that_is_no_corpus_is_refused(tmp_path: Path) -> None:
    """Opening the wrong folder names the command that makes one."""
    with pytest.raises(CorpusError, match="has been built"):
        open_corpus(tmp_path)
