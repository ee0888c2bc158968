"""Left half of the Prototypes page: map and table over the same filtered rows."""

import zlib

import numpy as np
import pandas as pd
import streamlit as st

from dashboard import data, filters, state, text, theme
from dashboard.components.chart import chart
from dashboard.components.export import export_buttons
from dashboard.components.facts import chips
from dashboard.components.point_click import point_click
from dashboard.figures.map import COLOURS, legend, prototype_map


EXPORTED = [
    "prototype", "category", "role", "label_score", "random_label_score", "firing_rate",
    "n_active_tokens", "mean_activation", "max_activation", "norm", "top_domain",
    "top_domain_share", "n_documents", "unwanted_share", "x", "y",
]  # fmt: skip
"""Columns of an export, as the schema names them."""


def map_panel(found: filters.Filtered, chosen: int, picked: tuple[int, ...]) -> None:
    """The map; a click opens a prototype, a lasso filters the table."""
    colour = st.session_state.get("colour")
    nonce = st.session_state.setdefault("headwater_map", 0)
    key = f"map_{nonce}"
    ids = chart(
        prototype_map(
            found.on_map,
            found.hidden,
            colour=colour if colour in COLOURS else "category",
            chosen=chosen,
            picked=picked,
            dark=theme.is_dark(),
        ),
        key=key,
        alt=f"Map of {len(found.on_map):,} prototypes by similarity of direction.",
        file_name="prototype-map",
        select=("points", "box", "lasso"),
    )
    on_map = frozenset(found.on_map["prototype"].tolist())
    point_click(chart=key, trace="prototypes", key="map_click", on_click=lambda k: _open(k, on_map))
    chips(legend(found.on_map, colour if colour in COLOURS else "category", dark=theme.is_dark()))
    _take(ids, key, chosen, picked)


def _open(prototype: int, on_map: frozenset[int]) -> None:
    """Open a prototype that was clicked, if it is on the map still."""
    if prototype in on_map:
        state.write(prototype=prototype, mark=None)


def _take(ids: tuple[int, ...], key: str, chosen: int, picked: tuple[int, ...]) -> None:
    """Turn a new selection of the map into the URL: one point opens, many filter."""
    if not ids:
        st.session_state.pop("headwater_taken", None)
        return
    if st.session_state.get("headwater_taken") == (key, ids):
        return
    st.session_state["headwater_taken"] = (key, ids)
    if len(ids) == 1 and ids[0] != chosen:
        state.write(prototype=ids[0], mark=None)
        st.rerun()
    if len(ids) > 1 and tuple(sorted(ids)) != picked:
        state.write(picked=ids)
        st.rerun()


def _clear() -> None:
    state.write(picked=None)
    st.session_state["headwater_map"] = st.session_state.get("headwater_map", 0) + 1


def selection_bar(ref: data.RunRef, found: filters.Filtered, picked: tuple[int, ...]) -> None:
    """What can be done with the rows shown: switch them off, save them, clear the lasso."""
    shown = found.shown
    total = len(found.on_map) + len(found.hidden)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        if picked:
            st.button(f"Clear lasso ({len(picked):,})", on_click=_clear, icon=":material/close:")
        send = st.button(
            f"Send {len(shown):,} to Suppression",
            key="send",
            icon=":material/toggle_off:",
            disabled=shown.empty or len(shown) == total,
            help="Opens the Suppression page with these prototypes switched off; lasso or filter "
            "first.",
        )
        export_buttons(shown[EXPORTED], name=f"{ref.name}-prototypes", key="rows")
    if send:
        page = st.session_state["headwater_pages"]["suppression"]
        ids = state.encode_ids(shown["prototype"])
        st.switch_page(page, query_params={"run": ref.name, "set": ids})


def table_panel(rows: pd.DataFrame, chosen: int) -> None:
    """The table; a row click chooses the prototype of the card.

    Args:
        rows: Rows in order.
        chosen: Prototype of the card.
    """
    extra = ["fires"] if "fires" in rows else []
    columns = [
        "prototype",
        "role",
        *extra,
        "firing_rate",
        "label_score",
        "top_domain",
        "category",
        "max_activation",
    ]
    shown = rows[columns].assign(firing_rate=rows["firing_rate"] * 100)
    ids = shown["prototype"].tolist()
    # The key changes whenever rows or order do, so that no old selection is read.
    signature = zlib.crc32(shown["prototype"].to_numpy(np.int32).tobytes())
    event = st.dataframe(
        shown,
        key=f"table_{signature:08x}",
        hide_index=True,
        height=304,
        row_height=30,
        lazy=False,
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "prototype": st.column_config.NumberColumn("#", format="%d", width=46, pinned=True),
            "role": st.column_config.TextColumn("Label", width=190),
            "category": st.column_config.TextColumn("Category", width=110),
            "fires": st.column_config.NumberColumn(
                "On the sentence", format="%.3f", help=text.FIRES
            ),
            "firing_rate": st.column_config.NumberColumn("Fires on (%)", format="%.3f", width=70),
            "label_score": st.column_config.ProgressColumn(
                "Label score", format="%.2f", min_value=0, max_value=1, width=86, color="gray"
            ),
            "top_domain": st.column_config.TextColumn("Domain", width=78),
            "max_activation": st.column_config.NumberColumn(
                "Max (cosine)", format="%.3f", width=80
            ),
        },
        alt=f"Table of {len(shown):,} prototypes.",
    )
    places = [place for place in state.selected_rows(event) if place < len(ids)]
    picked = ids[places[0]] if places else None
    before = st.session_state.get("headwater_row")
    st.session_state["headwater_row"] = picked
    if picked is not None and picked not in (before, chosen):
        state.write(prototype=picked, mark=None)
        st.rerun()
