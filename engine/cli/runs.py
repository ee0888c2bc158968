"""`headwater info` and `headwater check`: what a run holds, and whether it is whole."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli.console import digits, duration, say, say_json, say_table, size
from engine.cli.failures import EXIT_PROBLEM
from engine.cli.parameters import DEMO, JsonOption, RunOption


if TYPE_CHECKING:
    from engine.store import Run


def info(
    *,
    run: RunOption = DEMO,
    all_runs: Annotated[bool, typer.Option("--all", help="List every run there is.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Describe a run: its kind, corpus, stages, tables and sizes."""
    from engine.store import open_run

    if all_runs:
        _list_runs(as_json=as_json)
        return
    found = open_run(run)
    if as_json:
        say_json({"path": str(found.path), **found.manifest})
    else:
        _describe(found)


def _list_runs(*, as_json: bool) -> None:
    from engine.store import list_broken, list_runs

    runs, broken = list_runs(), list_broken()
    if as_json:
        rows = [{"name": r.name, "path": str(r.path), "kind": r.kind} for r in runs]
        say_json({"runs": rows, "unreadable": broken})
        return
    headings = {"run": "left", "kind": "left", "created": "left", "folder": "left"}
    rows = [(r.name, r.kind, r.manifest["created"][:16], str(r.path)) for r in runs]
    say_table(headings, rows)
    for entry in broken:
        say(f"{entry.name} cannot be opened: {entry.reason}")


def _describe(run: "Run") -> None:
    manifest = run.manifest
    say(f"{run.name}: {run.kind}, made {manifest['created'][:16]}")
    corpus, model = manifest.get("corpus", {}), manifest.get("model", {})
    if corpus:
        domains = ", ".join(corpus.get("domains", {}))
        say(f"corpus {corpus.get('name')} ({corpus.get('fingerprint')}): {domains}")
    if "n_parameters" in model:
        say(f"model {model.get('fingerprint')}: {model['n_parameters']:,} parameters")
    for name, facts in manifest["stages"].items():
        say(f"stage {name}: {duration(facts.get('seconds', 0.0))}")
    headings = {"table": "left", "rows": "right", "size": "right"}
    say_table(headings, [_table_row(name, facts) for name, facts in manifest["tables"].items()])
    say(str(run.path))


def _table_row(name: str, facts: dict[str, Any]) -> tuple[str, str, str]:
    n_bytes = sum(file["bytes"] for file in facts["files"])
    return name, digits(facts["rows"]), size(n_bytes)


def check(
    *,
    run: RunOption = DEMO,
    quick: Annotated[
        bool, typer.Option("--quick", help="Compare names and sizes only, read no table.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check that a run is whole: every file, digest, table and range. Code 0 only if it is."""
    from engine.store import check_run, open_run
    from engine.store.pools import pool_beside

    found = open_run(run)
    problems = check_run(found, deep=not quick)
    beside = pool_beside(found)
    if beside is not None:
        own = check_run(beside, deep=not quick)
        problems += [f"Attribution pool in {beside.path}: {problem}" for problem in own]
    if as_json:
        say_json(
            {
                "run": found.name,
                "path": str(found.path),
                "whole": not problems,
                "problems": problems,
            }
        )
    elif problems:
        for problem in problems:
            say(problem)
    else:
        say(f"{found.name} is whole: {len(found.tables)} tables.")
    if problems:
        raise typer.Exit(EXIT_PROBLEM)
