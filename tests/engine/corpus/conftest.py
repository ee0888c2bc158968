"""A tiny corpus of the standard library, and fake package archives, built without a network."""

import hashlib
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tiny_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of corpora with `tiny` built; read-only."""
    from engine.config import CorpusConfig
    from engine.corpus.build import build_corpus

    root = tmp_path_factory.mktemp("corpora")
    build_corpus(CorpusConfig(preset="tiny"), root)
    return root


@pytest.fixture(scope="session")
def tiny(tiny_root: Path):
    """The built `tiny` corpus; read-only."""
    from engine.corpus.build import open_corpus

    return open_corpus(tiny_root / "tiny")


@pytest.fixture(scope="session")
def tokenizer(tiny):
    """A tokenizer of 401 tokens trained on `tiny`."""
    from engine.corpus.tokenizer import train_tokenizer

    return train_tokenizer(tiny, 401, seed=0)


@pytest.fixture(scope="session")
def shards(tiny, tokenizer):
    """`tiny` as tokens; read-only."""
    from engine.corpus.shards import tokenise_corpus

    return tokenise_corpus(tiny, tokenizer)


@pytest.fixture
def write_folder(tmp_path: Path) -> Callable[[dict[str, str]], Path]:
    """Writes files into a folder of texts and returns it."""

    def write(files: dict[str, str]) -> Path:
        folder = tmp_path / "texts"
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return folder

    return write


@pytest.fixture
def fake_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Puts an archive with the given files in a folder and pins it in the package table."""
    from engine.corpus.packages import PACKAGES, TextPackage

    folder = tmp_path / "packages"
    folder.mkdir()

    def make(name: str, filename: str, files: dict[str, str], *, pin: str | None = None) -> Path:
        path = folder / filename
        if filename.endswith(".whl"):
            with zipfile.ZipFile(path, "w") as archive:
                for inside, text in files.items():
                    archive.writestr(inside, text)
        else:
            with tarfile.open(path, "w:gz") as archive:
                for inside, text in files.items():
                    source = tmp_path / "member"
                    source.write_text(text, encoding="utf-8")
                    archive.add(source, arcname=f"{name}-1.0/{inside}")
        digest = pin or hashlib.sha256(path.read_bytes()).hexdigest()
        monkeypatch.setitem(PACKAGES, name, TextPackage(name, "1.0", filename, digest, "MIT"))
        return folder

    return make
