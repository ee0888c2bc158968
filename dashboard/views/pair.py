"""The Pair page: two models, the questions that part them, and the words each answer rests on."""

import streamlit as st

from dashboard import data, service_pair as service, state, text_pair as text, theme
from dashboard.components.clicked import new_click
from dashboard.components.elsewhere import no_models
from dashboard.components.facts import page_head
from dashboard.components.pair_answers import answers_panel
from dashboard.components.pair_controls import WANTED, PairView, controls, relation_facts
from dashboard.components.pair_distance import distance_panel, probe_of_link, ranked
from dashboard.components.pair_words import reading, words_panel
from dashboard.components.panel import empty_state, panel
from dashboard.data import RunRef


NEAREST = 10
"""Neighbours listed."""


def page() -> None:
    """Draw the page; it opens on a model and the one it was made of, at what parts them most."""
    ref = data.current()
    page_head("Pair", text.PAIR, text.PAIR_HOW)
    if not data.has(ref, "model_words") or not data.has(ref, "model_embeddings"):
        no_models("model_words")
        return
    known = service.models(ref)
    if len(known) < 2:
        empty_state(text.NO_PAIR, data.run_of(ref).command_for("model_embeddings"))
        return
    view = controls(ref, known)
    if view.a == view.b:
        st.info(text.SAME, icon=":material/compare:")
        return
    _pair(ref, view)


@panel
def _pair(ref: RunRef, view: PairView) -> None:
    relation_facts(ref, view)
    rows = ranked(ref, view)
    if rows.empty:
        st.caption(text.NO_WORDS)
        return
    chosen = probe_of_link(rows)
    n = len(service.probes(ref))
    if len(rows) < n:
        st.caption(text.SOME_WORDS.format(kept=len(rows), n=n))
    _question(ref, view, chosen, sorted(int(probe) for probe in rows["probe"]))
    distance_panel(ref, view, rows, chosen)
    _neighbours(ref, view)


def _question(ref: RunRef, view: PairView, probe: int, places: list[int]) -> None:
    """The question looked at, its words in both models, and the answers."""
    with st.container(border=True):
        with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
            _question_head(ref, probe, places)
            against, alike = _shading()
        read = reading(ref, view, probe, against=against)
        words_panel(read, alike=alike)
        answers_panel(ref.name, read, service.style_of(ref))


def _shading() -> tuple[bool, bool]:
    """Whether words are held against the other options, and whether one scale shades both."""
    chosen = [
        _either(label, key, options, help_text)
        for label, key, options, help_text in (
            ("Words of", "words", text.AGAINST, text.AGAINST_HELP),
            ("Full colour is the largest word of", "scale", text.SCALES, text.SCALE_HELP),
        )
    ]
    return chosen[0] == text.AGAINST[1], chosen[1] == text.SCALES[1]


def _either(label: str, key: str, options: tuple[str, str], help_text: str) -> str:
    state.read_choice(key, options, options[0])
    chosen = st.segmented_control(
        label, options, default=options[0], required=True, key=key, bind="query-params",
        help=help_text,
    )  # fmt: skip
    return str(chosen or options[0])


def _question_head(ref: RunRef, probe: int, places: list[int]) -> None:
    """Number, domain and steps to the questions beside."""
    source = service.probes(ref).set_index("probe").loc[probe, "source"]
    at = places.index(probe)
    st.markdown(f"**Question {probe}**, {source}; {at + 1} of {len(places)}", width=250)
    for label, icon, step in (
        ("Previous", ":material/chevron_left:", -1),
        ("Next", ":material/chevron_right:", 1),
    ):
        wanted = places[(at + step) % len(places)]
        st.button(
            label, key=f"pair_{label.lower()}", icon=icon, on_click=_go, args=(wanted,),
            type="tertiary",
        )  # fmt: skip


def _go(probe: int) -> None:
    state.write(probe=probe)


def _neighbours(ref: RunRef, view: PairView) -> None:
    """The nearest of the first model; a click makes one the second."""
    if not data.has(ref, "model_neighbours"):
        return
    where = (("variant", view.variant), ("model", view.a))
    rows = data.table(ref, "model_neighbours", where=where, order_by="rank").head(NEAREST)
    if rows.empty:
        return
    with st.expander(text.NEIGHBOURS.format(model=view.a), icon=":material/near_me:"):
        key = f"pair_neighbours_{view.a}_{view.variant}"
        st.dataframe(
            rows[["neighbour", "cosine", "percentile_unrelated", "verdict", "known_relation"]],
            key=key,
            hide_index=True,
            height=theme.table_height(len(rows), 400),
            on_select="rerun",
            selection_mode="single-row",
            column_config={
                "neighbour": st.column_config.TextColumn("Model"),
                "cosine": st.column_config.NumberColumn("Cosine", format="%.3f"),
                "percentile_unrelated": st.column_config.NumberColumn(
                    "Percentile", format="%.1f", help=text.PERCENTILE
                ),
                "verdict": st.column_config.TextColumn("Verdict", help=text.VERDICT),
                "known_relation": st.column_config.TextColumn("Documented", help=text.KNOWN),
            },
            alt=f"{len(rows)} models most like {view.a}.",
        )
        picked = new_click(key, state.selected_rows(st.session_state.get(key)))
        if picked is not None and picked < len(rows):
            st.session_state[WANTED] = str(rows["neighbour"].iloc[picked])
            st.rerun(scope="app")
