"""Entry file: page settings, navigation, the run picker; nothing else."""

from pathlib import Path

import streamlit as st

from dashboard import data, state, text
from dashboard.components.chart import format_picker
from dashboard.components.facts import page_style
from dashboard.components.panel import empty_state, plain_errors
from dashboard.views import PAGES


# A file of our own: a named icon would be fetched from the network.
ICON = Path(__file__).parent / "components" / "assets" / "icon.svg"


def pick_run() -> None:
    """Choose the run in the sidebar; its name is the `run` parameter of every link."""
    refs = {ref.name: ref for ref in data.run_refs()}
    st.session_state.pop("headwater_run", None)
    if not refs:
        return
    wanted = st.query_params.get("run")
    if wanted is not None and wanted not in refs:
        state.read_choice("run", refs, next(iter(refs)))
    name = st.sidebar.selectbox("Run", list(refs), key="run", bind="query-params")
    st.session_state["headwater_run"] = refs[name]


def main(default: str = "overview") -> None:
    """Draw the page of the URL; tests name another default page."""
    st.set_page_config(
        page_title="Headwater",
        page_icon=str(ICON),
        layout="wide",
        initial_sidebar_state=210,
    )
    pages = [
        st.Page(
            entry.page,
            title=entry.title,
            icon=entry.icon,
            url_path=entry.path,
            default=entry.path == default,
        )
        for entry in PAGES
    ]
    page_style()
    st.session_state["headwater_pages"] = {e.path: p for e, p in zip(PAGES, pages, strict=True)}
    current = st.navigation(pages)
    notes = st.container()
    with plain_errors():
        pick_run()
        if "headwater_run" in st.session_state or current.url_path == "runs":
            current.run()
        else:
            empty_state(text.NO_RUNS, text.NO_RUNS_COMMAND, title=text.NO_RUNS_TITLE)
    with st.sidebar:
        format_picker()
    for sentence in state.warnings():
        notes.warning(sentence, icon=":material/link_off:")


if __name__ == "__main__":
    main()
