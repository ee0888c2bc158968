"""The map of the Models page, how true it is, and the same models as a table."""

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dashboard import data, service_models as service, state, text_models as text, theme
from dashboard.components.chart import chart
from dashboard.components.distance_lens import MOST, distance_lens, reach_of
from dashboard.components.export import export_buttons
from dashboard.components.facts import Fact, facts
from dashboard.components.models_controls import ModelsView, choose
from dashboard.components.panel import empty_state
from dashboard.data import RunRef
from dashboard.figures import model_marks as marks, models_map as figures
from dashboard.figures.model_marks import Shades
from dashboard.figures.models_map import DrawnEdges, OnMap, Said
from dashboard.text import no_fit


EXPORTED = [
    "model", "family", "relation", "parents", "roots", "evidence", "architecture", "tokenizer",
    "data", "size", "target", "n_parameters", "accuracy", "held_out", "x", "y", "kept", "cosine",
]  # fmt: skip
"""Columns of an export."""


def place_of(frame: pd.DataFrame, model: str) -> int:
    """Place of a model among the cards."""
    return int(frame["place"][frame["model"] == model].iloc[0])


def rows_of(ref: RunRef, frame: pd.DataFrame, view: ModelsView) -> pd.DataFrame:
    """Cards with x, y, added, kept, `cosine` to the chosen model and what a mark says."""
    if view.layout:
        drawn = service.plane(ref, view.variant, view.layout)
        found = frame.assign(**{str(name): drawn[name] for name in drawn})
    else:
        found = frame.assign(x=np.nan, y=np.nan, added=False, kept=np.nan)
    near = service.cosines(ref, view.variant)[place_of(frame, view.chosen)]
    found = found.assign(cosine=near)
    return found.assign(hover=[_hover(row, view.chosen) for row in found.to_dict("records")])


def _hover(row: Mapping[Any, Any], chosen: str) -> str:
    """What a mark says under the pointer; lines apart by newlines, escaped by the figure."""
    size = marks.parameters_text(float(row["n_parameters"]))
    made = str(row["relation"]).replace("_", " ") or "derivation unknown"
    of = f" of {' and '.join(row['parents'])}" if row["parents"] else ""
    labels = [str(row[name]) for name in ("tokenizer", "data") if row[name]]
    lines = [
        str(row["model"]),
        f"{row['family'] or 'no family stated'} · {size} parameters",
        f"{made}{of}",
        " · ".join(labels),
        "" if row["model"] == chosen else f"cosine to {chosen}: {float(row['cosine']):.3f}",
        "placed later beside its nearest models" if row["added"] else "",
    ]
    return "\n".join(line for line in lines if line)


def shades_of(ref: RunRef, rows: pd.DataFrame, view: ModelsView, *, dark: bool) -> Shades:
    """Colours of the models by what is asked for."""
    colours = theme.palette(dark)
    column = view.colour
    if column == text.NEAR:
        reach = reach_of(service.cosines(ref, view.variant))
        own = rows["cosine"].where(rows["model"] != view.chosen, reach[1])
        scale = marks.ramp(colours)
        return marks.by_number(own, f"cosine to {view.chosen}", colours, scale=scale, reach=reach)
    if column == "n_parameters":
        return marks.by_number(rows[column], "parameters (log)", colours, log=True)
    if column in text.NUMBERS:
        return marks.by_number(rows[column], text.NUMBERS[column], colours)
    shown = rows[column].str.replace("_", " ") if column == "relation" else rows[column]
    return marks.by_group(shown, colours)


def edges_of(ref: RunRef, frame: pd.DataFrame, view: ModelsView) -> DrawnEdges:
    """Edges that are asked for."""
    found = service.edges(ref, view.method)
    documented, predicted = found.documented, found.predicted
    copies, right = found.copies, found.right
    if view.edges == "own":
        place = place_of(frame, view.chosen)
        own, told = (documented == place).any(1), (predicted == place).any(1)
        documented, copies = documented[own], copies[own]
        predicted, right = predicted[told], right[told]
    if view.edges in ("none", "predicted"):
        documented, copies = documented[:0], copies[:0]
    if view.edges in ("none", "documented"):
        predicted, right = predicted[:0], right[:0]
    near, told = _in_view(documented, view), _in_view(predicted, view)
    return DrawnEdges(
        documented[near & copies], documented[near & ~copies],
        predicted[told & right], predicted[told & ~right],
    )  # fmt: skip


def _in_view(ends: np.ndarray, view: ModelsView) -> np.ndarray:
    """Edges between models that the filters leave, and with a lasso those that touch it."""
    seen = view.kept.shown[ends[:, 0]] & view.kept.shown[ends[:, 1]]
    if not view.picked:
        return seen
    own = np.isin(ends, view.picked)
    return seen & (own[:, 0] | own[:, 1])


def missed_of(ref: RunRef, frame: pd.DataFrame, view: ModelsView) -> int:
    """Models of the same selection as the edges whose documented base was not predicted."""
    if view.edges in ("none", "documented"):
        return 0
    missed = service.edges(ref, view.method).missed
    kept = view.kept.shown[missed]
    if view.edges == "own":
        kept = kept & (missed == place_of(frame, view.chosen))
    if view.picked:
        kept = kept & np.isin(missed, view.picked)
    return int(kept.sum())


def map_panel(ref: RunRef, frame: pd.DataFrame, rows: pd.DataFrame, view: ModelsView) -> None:
    """The map with the line that recolours it, and how true it is."""
    if not view.layout:
        empty_state(text.NO_LAYOUTS, data.run_of(ref).command_for("model_layouts"))
        return
    edges = edges_of(ref, frame, view)
    name, nonce = text.LAYOUTS[view.layout], st.session_state.setdefault("models_nonce", 0)
    key = f"models_map_{nonce}"
    pca = view.layout == "pca"
    drawn = rows["x"].notna()
    ids = chart(
        figures.models_map(
            rows,
            shades_of(ref, rows, view, dark=theme.is_dark()),
            edges,
            OnMap(place_of(frame, view.chosen), view.kept.shown, view.picked, view.marked),
            dark=theme.is_dark(),
            said=Said(
                f"{name} of {view.variant} embeddings",
                f"n = {int(drawn.sum())} models. {text.PCA_SAID if pca else text.MAP_SAID}",
                ("first principal component", "second") if pca else None,
            ),
        ),
        key=key,
        alt=figures.map_alt(rows, edges, name),
        file_name=f"{ref.name}-{view.variant}-{view.layout}",
        select=("points", "box", "lasso"),
    )
    if len(frame) <= MOST:
        names = [str(m) for m in frame["model"]]
        distance_lens(
            service.cosines(ref, view.variant), names, [int(p) for p in rows["place"][drawn]],
            chart=key, idle=text.IDLE, key="models_lens", on_click=lambda k: choose(names[k]),
        )  # fmt: skip
    _quality(ref, view, edges, missed_of(ref, frame, view))
    _take(ids, key, frame, view)


def _quality(ref: RunRef, view: ModelsView, edges: DrawnEdges, missed: int) -> None:
    """What the picture keeps, and how many edges are right."""
    found = service.quality(ref, view.variant, view.layout)
    items = []
    if found is not None:
        note = f"of {int(found['n_neighbours'])} nearest"
        items = [
            Fact(words, theme.number(float(found[column])), note, said)
            for column, (words, said) in text.QUALITY.items()
        ]
    if len(edges.right) + len(edges.wrong) + missed:
        items.append(
            Fact("Predicted bases", f"{len(edges.right)} right", f"{len(edges.wrong)} wrong"
                 + (f", {missed} missed" if missed else ""), text.PREDICTED)
        )  # fmt: skip
    if items:
        facts(items)


def _take(ids: tuple[int, ...], key: str, frame: pd.DataFrame, view: ModelsView) -> None:
    """Turn a new selection of the map into the URL: one mark opens, many filter the table."""
    if not ids:
        st.session_state.pop("models_taken", None)
        return
    if st.session_state.get("models_taken") == (key, ids):
        return
    st.session_state["models_taken"] = (key, ids)
    if len(ids) == 1 and ids[0] < len(frame):
        model = str(frame["model"].iloc[ids[0]])
        if model != view.chosen:
            choose(model)
            st.rerun()
    if len(ids) > 1 and tuple(sorted(ids)) != view.picked:
        state.write(picked=ids, marked=None)
        st.rerun()


def _clear() -> None:
    state.write(picked=None, marked=None)
    st.session_state["models_nonce"] = st.session_state.get("models_nonce", 0) + 1


def table_panel(ref: RunRef, rows: pd.DataFrame, view: ModelsView) -> None:
    """Models that filters and lasso leave, nearest to the chosen one first."""
    st.markdown("##### Models")
    keep = view.kept.shown.copy()
    if view.picked:
        keep &= np.isin(np.arange(len(rows)), view.picked)
    shown = rows[keep].sort_values(["cosine", "model"], ascending=[False, True], kind="stable")
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.caption(f"{view.kept.said} {text.TABLE_SAID.format(model=view.chosen)}")
        if view.picked or view.marked:
            n = len(view.picked) or len(view.marked)
            st.button(f"Clear selection ({n:,})", on_click=_clear, icon=":material/close:")
    if shown.empty:
        used = [*view.filters.split(", ")] if view.filters else []
        lasso = ["the lasso"] if view.picked else []
        st.info(no_fit([*used, *lasso]), icon=":material/filter_alt_off:")
        return
    places = shown["place"].tolist()
    event = _table(shown, view)
    _take_rows(tuple(places[k] for k in state.selected_rows(event) if k < len(places)), view)
    export_buttons(
        shown[[column for column in EXPORTED if column in shown]],
        name=f"{ref.name}-models-{view.variant}",
        key="models_file",
    )


def _table(shown: pd.DataFrame, view: ModelsView) -> Any:
    """The table itself; returns its selection."""
    columns = {
        "model": "Model",
        "cosine": "Cosine",
        "family": "Family",
        "relation": "Derivation",
        "of": "Of",
        "root": "Root",
        "n_parameters": "Parameters",
        "tokenizer": "Tokenizer",
        "data": "Data",
        "accuracy": "Probes right",
        "held_out": "Others right",
        "kept": "Kept by the picture",
    }
    given = shown.assign(of=[", ".join(parents) for parents in shown["parents"]])
    said = [c for c in columns if not (given[c].isna() | given[c].eq("")).all()]
    signature = zlib.crc32((view.chosen + "\n".join(shown["model"])).encode())
    share = st.column_config.NumberColumn(format="percent", width=92)
    return st.dataframe(
        given[said].rename(columns=columns),
        key=f"models_table_{signature:08x}",
        hide_index=True,
        height=theme.table_height(len(given), 330),
        row_height=30,
        lazy=False,
        on_select="rerun",
        selection_mode="multi-row",
        column_config={
            "Model": st.column_config.TextColumn(width=190, pinned=True),
            "Cosine": st.column_config.NumberColumn(format="%.3f", width=76, help=text.COSINE),
            "Parameters": st.column_config.NumberColumn(format="compact", width=88),
            "Probes right": share,
            "Others right": share,
            "Kept by the picture": share,
        },
        alt=f"Table of {len(given)} models, nearest to {view.chosen} first.",
    )


def _take_rows(places: tuple[int, ...], view: ModelsView) -> None:
    """Ticked rows become rings on the map."""
    before = st.session_state.get("models_rows", ())
    st.session_state["models_rows"] = places
    if places != before and tuple(sorted(places)) != view.marked:
        state.write(marked=places or None)
        st.rerun()
