"""Entry file: page settings, navigation, the run picker; nothing else."""

from pathlib import Path

import streamlit as st
from streamlit.errors import StreamlitAPIException
from streamlit.navigation.page import StreamlitPage

from dashboard import data, state, text
from dashboard.components.chart import format_picker
from dashboard.components.doors import HANDED_RUN
from dashboard.components.elsewhere import no_prototypes
from dashboard.components.facts import page_style
from dashboard.components.panel import empty_state, plain_errors
from dashboard.views import PAGES, Entry


# A file of our own: a named icon would be fetched from the network.
ICON = Path(__file__).parent / "components" / "assets" / "icon.svg"


def pick_run() -> None:
    """Choose the run in the sidebar; its name is the `run` parameter of every link."""
    refs = {ref.name: ref for ref in data.run_refs()}
    st.session_state.pop("headwater_run", None)
    if not refs:
        return
    handed = st.query_params.pop(HANDED_RUN, None)
    if handed in refs:
        take_over(handed)
    wanted = st.query_params.get("run")
    if wanted is not None and wanted not in refs:
        state.read_choice("run", refs, next(iter(refs)))
    name = st.sidebar.selectbox("Run", list(refs), key="run", bind="query-params")
    st.session_state["headwater_run"] = refs[name]


def take_over(run: str) -> None:
    """Choose the run that a door of another page hands over, against the one in the address."""
    st.session_state["run"] = run  # wins over the address once the picker has been drawn
    try:
        st.query_params.pop("run", None)
    except StreamlitAPIException:  # it has: the parameter is the picker's, who writes it anew
        return
    st.rerun()  # in a new tab the address as it was opened would win


def shows_nothing(entry: Entry) -> bool:
    """Whether the page is about prototypes and the chosen run about something else."""
    ref = st.session_state.get("headwater_run")
    return ref is not None and entry.prototypes and data.run_of(ref).kind in text.NO_PROTOTYPES


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
    sections: dict[str, list[StreamlitPage]] = {}
    for entry, shown in zip(PAGES, pages, strict=True):
        sections.setdefault(entry.section, []).append(shown)
    current = st.navigation(sections, expanded=True)
    notes = st.container()
    with plain_errors():
        pick_run()
        entry = next(e for e in PAGES if e.path == (current.url_path or default))
        if shows_nothing(entry):
            no_prototypes(entry.title, data.run_of(data.current()).kind)
        elif "headwater_run" in st.session_state or not entry.needs_run:
            current.run()
        else:
            empty_state(text.NO_RUNS, text.NO_RUNS_COMMAND, title=text.NO_RUNS_TITLE)
    with st.sidebar:
        format_picker()
    for sentence in state.warnings():
        notes.warning(sentence, icon=":material/link_off:")


if __name__ == "__main__":
    main()
