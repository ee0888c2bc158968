"""The Runs page: provenance, stages, sizes, a check of a cache, broken runs with the reason."""

import json

import pandas as pd
import streamlit as st

from dashboard import data, text, theme
from dashboard.components.facts import Fact, facts, page_head
from dashboard.components.panel import empty_state, panel
from engine import schema, store


def page() -> None:
    """Draw the page; it opens on the run chosen in the sidebar."""
    page_head("Runs", text.RUNS, text.RUNS_HOW)
    refs = data.run_refs()
    if refs:
        _all_runs(refs)
        _run(data.current())
    else:
        empty_state(text.NO_RUNS, text.NO_RUNS_COMMAND, title=text.NO_RUNS_TITLE)
    _broken()


def _all_runs(refs: list[data.RunRef]) -> None:
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


def _run(ref: data.RunRef) -> None:
    """Everything about one run."""
    run = data.run_of(ref)
    manifest = run.manifest
    st.markdown(f"### {ref.name.replace('_', chr(92) + '_')}")
    facts(
        [
            Fact("Kind", text.KINDS.get(run.kind, run.kind)),
            Fact("Made", str(manifest.get("created", "–"))[:16].replace("T", " "), "UTC"),
            Fact("Engine", str(manifest.get("engine_version", "–"))),
            Fact("Schema", str(manifest.get("schema_version", "–"))),
            Fact("Corpus", str(manifest.get("corpus", {}).get("fingerprint", "–")), "fingerprint"),
            Fact("Tokenizer", str(manifest.get("tokenizer", {}).get("fingerprint", "–"))),
            Fact("Model", str(manifest.get("model", {}).get("fingerprint", "–"))),
        ]
    )
    left, right = st.columns(2, gap="large")
    with left:
        _stages(manifest.get("stages", {}))
        _check(ref)
    with right:
        _tables(run)
    with st.expander("Settings and corpus, as run.json keeps them"):
        kept = {k: manifest.get(k) for k in ("config", "corpus", "tokenizer", "model")}
        st.code(json.dumps(kept, indent=2, ensure_ascii=False), language="json", height=320)


def _stages(stages: dict[str, dict[str, object]]) -> None:
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


def _tables(run: store.Run) -> None:
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


@panel
def _check(ref: data.RunRef) -> None:
    """A button that reads the whole run and says whether it is whole."""
    st.markdown("**Check of this run**")
    if not st.button("Check every file and table", icon=":material/fact_check:", key="check"):
        st.caption("Reads every byte of the run; a large run takes a while.")
        return
    with st.spinner("Checking …", show_time=True):
        problems = store.check_run(data.run_of(ref))
    if not problems:
        st.success("The run is whole: files, hashes, tables and references agree.")
    for problem in problems:
        st.text(f"• {problem}")


def _broken() -> None:
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
