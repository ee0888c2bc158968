"""The Runs page: provenance, stages, sizes, a check of a cache, broken runs with the reason."""

import json

import streamlit as st

from dashboard import data, text
from dashboard.components.facts import Fact, facts, page_head
from dashboard.components.panel import empty_state, panel
from dashboard.components.run_tables import all_runs, broken_runs, stage_table, table_sizes
from engine import store


def page() -> None:
    """Draw the page; it opens on the run chosen in the sidebar."""
    page_head("Runs", text.RUNS, text.RUNS_HOW)
    refs = data.run_refs()
    if refs:
        all_runs(refs)
        _run(data.current())
    else:
        empty_state(text.NO_RUNS, text.NO_RUNS_COMMAND, title=text.NO_RUNS_TITLE)
    broken_runs()


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
        stage_table(manifest.get("stages", {}))
        _check(ref)
    with right:
        table_sizes(run)
    with st.expander("Settings and corpus, as run.json keeps them"):
        kept = {k: manifest.get(k) for k in ("config", "corpus", "tokenizer", "model")}
        st.code(json.dumps(kept, indent=2, ensure_ascii=False), language="json", height=320)


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
