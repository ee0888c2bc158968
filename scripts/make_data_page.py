"""Write docs/DATA.md from `engine.schema`; a test fails when the page is stale."""

from pathlib import Path

from engine.schema import SCHEMA_VERSION, TABLES, ColumnSpec, TableSpec


PAGE = Path(__file__).resolve().parents[1] / "docs" / "DATA.md"

_HEAD = f"""# The tables

Generated from `engine/schema/` by `make docs`; schema version {SCHEMA_VERSION}. Do not edit.

A run is a folder `cache/<run>/` (or `assets/<run>/` for what ships) with `run.json` and one Parquet
file a table; a sharded table is a folder of parts. `run.json` is written last and names every file
with its rows, bytes and SHA-256; a file it does not name is not part of the run. Rows are sorted by
the key, in groups of 20,000, compressed with zstd. No column may be empty unless it says so, no
number is NaN or infinite. Training texts are never in a run: `document` and `position` point into
the corpus. A map of models holds the questions that its models were asked.
"""


def page() -> str:
    """The whole page."""
    tables = "\n".join(_table(spec) for spec in TABLES.values())
    contents = "\n".join(
        f"- [`{spec.name}`](#{spec.name}): {spec.grain}" for spec in TABLES.values()
    )
    return f"{_HEAD}\n{contents}\n\n{tables}"


def _table(spec: TableSpec) -> str:
    rows = "\n".join(_row(spec, column) for column in spec.columns)
    sharded = " Sharded." if spec.sharded else ""
    return (
        f"## {spec.name}\n\n{spec.meaning}; {spec.grain}.{sharded}\n\n"
        f"| Column | Type | Unit | Range | Meaning |\n|---|---|---|---|---|\n{rows}\n"
    )


def _row(spec: TableSpec, column: ColumnSpec) -> str:
    low, high = column.bounds
    ends = (f"≥ {low:g}" if low is not None else "", f"≤ {high:g}" if high is not None else "")
    limits = ", ".join(end for end in ends if end)
    key = " (key)" if column.name in spec.key else ""
    empty = " May be empty." if column.nullable else ""
    meaning = column.meaning.replace("|", "\\|")
    return (
        f"| `{column.name}`{key} | {column.type} | {column.unit} | {limits} | {meaning}.{empty} |"
    )


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
