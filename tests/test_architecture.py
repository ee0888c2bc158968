"""The shape of the house: packages, sizes, names, and what an import may load."""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("engine", "dashboard", "scripts")
MAX_FILE, MAX_FUNCTION = 400, 60
ARROW_READERS = ("engine/store/", "engine/schema/")
ARROW_IO = ("duckdb", "pyarrow.parquet", "pyarrow.dataset", "pyarrow.feather", "pyarrow.ipc")
UNNAMED = {"util", "utils", "helper", "helpers", "common", "manager", "misc"}


def sources() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_every_folder_with_python_files_is_a_package():
    """Without `__init__.py` the import checks see nothing and report success."""
    folders = {path.parent for path in sources()}
    assert [relative(f) for f in sorted(folders) if not (f / "__init__.py").is_file()] == []


def test_no_folder_is_called_pages():
    """Streamlit would fall back to its old page mode beside the entry file."""
    assert not (ROOT / "dashboard" / "pages").exists()


def test_no_file_and_no_function_is_too_long():
    """Above the limit, split by concept."""
    files = {relative(p): len(p.read_text(encoding="utf-8").splitlines()) for p in sources()}
    assert {name: lines for name, lines in files.items() if lines > MAX_FILE} == {}
    long = {
        f"{relative(path)}:{node.name}": node.end_lineno - node.lineno + 1
        for path in sources()
        for node in functions(path)
        if node.end_lineno is not None and node.end_lineno - node.lineno + 1 > MAX_FUNCTION
    }
    assert long == {}


def test_files_are_named_after_what_they_hold():
    """A drawer called utils fills with everything."""
    assert [relative(p) for p in sources() if set(p.stem.split("_")) & UNNAMED] == []


def test_only_the_store_reads_and_writes_arrow():
    """The contract is enforced in one place."""
    users = []
    for path in sources():
        if relative(path).startswith(ARROW_READERS):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            if any(name.startswith(ARROW_IO) for name in names):
                users.append(relative(path))
    assert users == []


def test_no_source_speaks_of_a_document_that_is_not_here():
    """A reference the reader cannot follow is worse than none."""
    here = {path.name for path in ROOT.glob("*.md")} | {
        p.name for p in (ROOT / "docs").rglob("*.md")
    }
    here |= {"QUARANTINE.md", "MODEL_CARD.md"}
    lost = []
    for path in sources():
        text = path.read_text(encoding="utf-8")
        words = {word.strip("`'\"(),;:.") for word in text.split() if ".md" in word}
        named = {Path(word).name for word in words if word.endswith(".md") and word[:1].isalpha()}
        lost += [
            f"{relative(path)}: {name}" for name in sorted(named - here) if name[:-3].isidentifier()
        ]
    assert lost == []


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("engine.schema", ("torch", "transformers", "streamlit", "pandas", "sklearn")),
        ("engine.store", ("torch", "transformers", "streamlit", "plotly", "sklearn")),
        ("engine.snippets", ("torch", "transformers", "streamlit")),
        ("engine.corpus.build", ("torch", "transformers", "streamlit")),
        ("engine.claims", ("torch", "transformers", "streamlit")),
        ("dashboard.data", ("torch", "transformers")),
    ],
)
def test_an_import_loads_only_what_it_needs(module: str, unwanted: tuple[str, ...], tmp_path: Path):
    """Pages that only read tables start fast, and importing changes nothing on the disk."""
    code = (
        f"import sys, json, {module}; "
        f"print(json.dumps([name for name in {unwanted!r} if name in sys.modules]))"
    )
    folders = {f"HEADWATER_{name}": str(tmp_path / name) for name in ("CACHE", "ASSETS")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, **folders, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == []
    assert [path.name for path in tmp_path.iterdir()] == []
