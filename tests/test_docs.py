"""Documents that cannot rot: each is compared with what it speaks of."""

import ast
import re
from pathlib import Path

import typer

from scripts.make_data_page import PAGE, page


ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_page_of_tables_is_current():
    """It is generated from the contract; `make docs` renews it."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_the_readme_is_short_and_names_every_command_and_page():
    """A newcomer finds everything from one page."""
    from engine.cli.app import app

    assert len(README.splitlines()) <= 150
    group = typer.main.get_command(app)
    commands = set(group.commands)
    assert {name for name in commands if f"`{name}" not in README} == set()
    views = {p.stem for p in (ROOT / "dashboard" / "views").glob("*.py") if p.stem != "__init__"}
    assert {view for view in views if view.capitalize() not in README} == set()


def test_every_make_target_that_is_named_exists():
    """Two documents and the CI speak of targets."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.M))
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    named = set(
        re.findall(r"(?:^\s*|`)make ([a-z-]+)", "\n".join([README, CONTRIBUTING, ci]), re.M)
    )
    assert named - targets == set()
    assert "make test" in ci


def test_every_setting_says_what_it_is():
    """The string under a field is its help, on the command line and in the code."""
    tree = ast.parse((ROOT / "engine" / "config.py").read_text(encoding="utf-8"))
    silent = []
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        for field, after in zip(node.body, [*node.body[1:], None], strict=True):
            helped = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            if isinstance(field, ast.AnnAssign) and not helped:
                silent.append(f"{node.name}.{ast.unparse(field.target)}")
    assert silent == []


def test_decisions_are_numbered_and_say_context_choice_and_consequence():
    """A decision without its reason cannot be revised."""
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [int(p.name[:4]) for p in pages] == list(range(1, len(pages) + 1))
    for path in pages:
        text = path.read_text(encoding="utf-8")
        for part in ("Context", "Choice", "Consequence"):
            assert f"**{part}.**" in text, f"{path.name} lacks {part}"


def test_every_skip_has_its_row():
    """A skip nobody remembers hides the next defect."""
    quarantine = (ROOT / "tests" / "QUARANTINE.md").read_text(encoding="utf-8")
    marks = re.compile(r"pytest\.(mark\.)?(skip|skipif|xfail|importorskip)\b")
    files = [
        p for p in (ROOT / "tests").rglob("*.py") if marks.search(p.read_text(encoding="utf-8"))
    ]
    named = {p.relative_to(ROOT).as_posix() for p in files if p != Path(__file__)}
    assert {name for name in named if name not in quarantine} == set()
