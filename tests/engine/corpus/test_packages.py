"""Archives are pinned, read in place and fetched one by one."""

import subprocess
from pathlib import Path

import pytest

from engine.corpus import packages as packages_module
from engine.corpus.archives import Archive
from engine.corpus.packages import PACKAGES, TextPackage, fetch_packages, require_archive
from engine.corpus.presets import PRESETS, domains_of, packages_of
from engine.errors import CorpusError, PackageMissing


def test_every_package_of_a_preset_is_pinned() -> None:
    """A name without a digest could not be fetched safely."""
    for preset in PRESETS:
        for name in packages_of(preset, "" if preset == "tiny" else "dictionary,email,spam"):
            assert len(PACKAGES[name].sha256) == 64


def test_tiny_needs_no_package() -> None:
    """Tests and first steps must work without a network."""
    assert packages_of("tiny") == ()


def test_full_holds_nothing_in_copyright() -> None:
    """The design forbids these sources by name."""
    fiction = next(domain for domain in domains_of("full") if domain.name == "fiction")
    assert "*Tarantino*" in fiction.parts[0].exclude
    patterns = [part.pattern for domain in domains_of("full") for part in domain.parts]
    assert not [p for p in patterns for word in ("friends", "XSum", "bbc", "reuters") if word in p]


def test_wheels_and_source_archives_are_read_alike(fake_package) -> None:
    """The leading folder of a source archive is not part of its paths."""
    files = {"docs/b.txt": "B", "docs/deep/a.txt": "A", "docs/c.md": "C"}
    folder = fake_package("one", "one-1.0-py3-none-any.whl", files)
    fake_package("two", "two-1.0.tar.gz", files)
    expected = [("docs/b.txt", b"B"), ("docs/deep/a.txt", b"A")]
    for name in ("one", "two"):
        with Archive(require_archive(PACKAGES[name], folder)) as archive:
            assert list(archive.matching("docs/*.txt")) == expected


def test_another_archive_under_the_same_name_is_refused(fake_package) -> None:
    """A changed archive would silently change the corpus."""
    folder = fake_package("one", "one-1.0.tar.gz", {"a.txt": "A"}, pin="0" * 64)
    with pytest.raises(PackageMissing, match="not the pinned archive"):
        require_archive(PACKAGES["one"], folder)


def test_a_missing_archive_names_the_command_that_fetches_it(tmp_path: Path) -> None:
    """The sentence must say what to do."""
    with pytest.raises(PackageMissing, match="headwater corpus fetch"):
        require_archive(PACKAGES["django"], tmp_path)


def test_a_fetch_keeps_what_is_there(fake_package, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fetching twice must not download twice."""
    folder = fake_package("one", "one-1.0.tar.gz", {"a.txt": "A"})
    monkeypatch.setattr(packages_module.subprocess, "run", _no_network)
    report = fetch_packages(["one", "one"], folder)
    assert (report.present, report.fetched, report.failed) == (("one",), (), {})


def test_one_failure_does_not_stop_the_other_packages(
    fake_package, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One unreachable package must not void the rest; its sentence names a way out."""
    folder = fake_package("one", "one-1.0.tar.gz", {"a.txt": "A"})
    monkeypatch.setitem(PACKAGES, "gone", TextPackage("gone", "9", "gone-9.tar.gz", "0" * 64, ""))
    monkeypatch.setattr(packages_module.subprocess, "run", _no_network)
    report = fetch_packages(["gone", "one"], folder)
    assert report.present == ("one",)
    assert "headwater corpus fetch" in report.failed["gone"]
    assert "no route" in report.failed["gone"]
    assert not list(folder.glob(".fetch-*"))


def test_what_a_killed_fetch_left_goes_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed cannot clean up."""
    (tmp_path / ".fetch-killed").mkdir()
    (tmp_path / ".fetch-killed" / "half.whl").write_bytes(b"half")
    monkeypatch.setitem(PACKAGES, "gone", TextPackage("gone", "9", "gone-9.tar.gz", "0" * 64, ""))
    monkeypatch.setattr(packages_module.subprocess, "run", _no_network)
    assert "gone" in fetch_packages(["gone"], tmp_path).failed
    assert list(tmp_path.iterdir()) == []


def test_a_download_with_another_digest_is_not_kept(
    fake_package, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a registry serves is checked before it is used."""
    folder = fake_package("one", "one-1.0.tar.gz", {"a.txt": "A"}, pin="0" * 64)
    before = (folder / "one-1.0.tar.gz").read_bytes()

    def serve(*_: object, cwd: Path, **__: object) -> subprocess.CompletedProcess[str]:
        (cwd / "one-1.0.tar.gz").write_bytes(b"something else")
        return subprocess.CompletedProcess([], 0, "", "")

    monkeypatch.setattr(packages_module.subprocess, "run", serve)
    report = fetch_packages(["one"], folder)
    assert "not the pinned archive" in report.failed["one"]
    assert (folder / "one-1.0.tar.gz").read_bytes() == before


def test_an_unknown_package_is_refused() -> None:
    """A typing error must not reach a registry."""
    with pytest.raises(CorpusError, match="No text package is called 'djnago'"):
        fetch_packages(["djnago"])


def test_a_damaged_archive_gives_one_sentence(tmp_path: Path) -> None:
    """A truncated download must not end in a traceback."""
    path = tmp_path / "x-1.0-py3-none-any.whl"
    path.write_bytes(b"PK\x03\x04 cut")
    with pytest.raises(CorpusError, match="delete it and fetch again"):
        Archive(path)


def _no_network(*_: object, **__: object) -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess([], 1, "", "WARNING: retrying\nERROR: no route to host\n")
