"""Tables of the Runs page: all runs, the stages and tables of one, those that cannot be opened."""

import pandas as pd
import streamlit as st

from dashboard import data, text, theme
from engine import schema, store


def all_runs(refs: list[data.RunRef]) -> None:
    """One row a run."""
    rows = []
    for ref in refs:
        run = data.run_of(ref)
        rows.append(
            {
                "Run": run.name,
                "Kind": text.KINDS.get(run.kind, run.kind),
                "Corpus": str(run.manifest.get("corpus", {}).get("name", "–")),
                "Tables": len(run.tables),
                "Size (MB)": _bytes_of(run) / 1e6,
                "Made": str(run.manifest.get("created", ""))[:16].replace("T", " "),
                "Folder": str(run.path),
            }
        )
    st.dataframe(
        pd.DataFrame(rows),
        key="runs_table",
        hide_index=True,
        height=theme.table_height(len(rows), 240),
        column_config={"Size (MB)": st.column_config.NumberColumn(format="%.1f")},
        alt=f"{len(rows)} runs.",
    )


def _bytes_of(run: store.Run) -> int:
    return sum(f["bytes"] for entry in run.tables.values() for f in entry["files"])


def stage_table(stages: dict[str, dict[str, object]]) -> None:
    """Each stage with its duration and what it noted."""
    st.markdown("**Stages**")
    rows = [
        {
            "Stage": name,
            "Took": theme.seconds_text(float(str(entry.get("seconds", "nan")))),
            "Finished": str(entry.get("finished", ""))[:16].replace("T", " "),
            "Facts": ", ".join(
                f"{name} {_fact(value)}"
                for name, value in entry.items()
                if name not in _PLAIN and isinstance(value, int | float | str)
            ),
        }
        for name, entry in stages.items()
    ]
    st.dataframe(pd.DataFrame(rows), key="stages", hide_index=True, alt=f"{len(rows)} stages.")


def _fact(value: float | str) -> str:
    """A stage's fact: whole numbers whole, others with three digits."""
    if isinstance(value, bool | str):
        return str(value)
    return theme.count(value) if float(value).is_integer() else theme.number(value)


_PLAIN = ("seconds", "finished", "started", "identity")


def table_sizes(run: store.Run) -> None:
    """Each table with its rows, size, files and grain."""
    st.markdown("**Tables**")
    rows = [
        {
            "Table": name,
            "Rows": entry["rows"],
            "Size (kB)": sum(f["bytes"] for f in entry["files"]) / 1e3,
            "Files": len(entry["files"]),
            "Grain": schema.TABLES[name].grain if name in schema.TABLES else "",
        }
        for name, entry in run.tables.items()
    ]
    st.dataframe(
        pd.DataFrame(rows),
        key="tables",
        hide_index=True,
        height=theme.table_height(len(rows), 420),
        column_config={
            "Rows": st.column_config.NumberColumn(format="localized", width=90),
            "Size (kB)": st.column_config.NumberColumn(format="%.1f"),
        },
        alt=f"{len(rows)} tables.",
    )


def broken_runs() -> None:
    """Folders that look like runs and cannot be opened, with the reason."""
    broken = store.list_broken()
    if not broken:
        return
    st.markdown("### Runs that cannot be opened")
    st.dataframe(
        pd.DataFrame(
            [
                {"Run": b.name, "Reason": b.reason.replace("`", ""), "Folder": str(b.path)}
                for b in broken
            ]
        ),
        key="broken",
        hide_index=True,
        column_config={"Reason": st.column_config.TextColumn(width="large")},
        alt=f"{len(broken)} runs that cannot be opened.",
    )
