"""Left part of the Catalogue page: the graph of documented lineage and the same rows as a table."""

import zlib
from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import service_catalogue as service, state, text_catalogue as text, theme
from dashboard.components.catalogue_controls import CatalogueView, choose
from dashboard.components.chart import chart
from dashboard.components.clicked import new_click
from dashboard.components.export import export_buttons
from dashboard.figures import lineage as figures, model_marks as marks
from dashboard.figures.lineage import Shown
from dashboard.figures.model_marks import Shades
from dashboard.lineage import Lineage
from dashboard.service_catalogue import Held
from dashboard.text import no_fit


EXPORTED = {
    "model": "hub_id", "family": "family", "params_b": "params_b", "parent": "parent_hub_id",
    "relation": "relation", "source": "source",
}  # fmt: skip
"""Columns of an export, named as a catalogue's, so that the command that embeds can read it."""


def shades_of(frame: pd.DataFrame, colour: str, held: dict[str, Held], *, dark: bool) -> Shades:
    """Colours of the models by a column."""
    colours = theme.palette(dark)
    if colour == "n_parameters":
        return marks.by_number(frame["n_parameters"], "parameters (log)", colours, log=True)
    if colour in text.SCORES:
        return marks.by_number(frame[colour], f"{text.SCORES[colour]} (share of 1)", colours)
    if colour == "embedded":
        found = [held[str(m)].status if str(m) in held else "no" for m in frame["model"]]
        return marks.by_group([text.EMBEDDED[status] for status in found], colours)
    names = {"relation": text.RELATIONS, "evidence": text.EVIDENCE}.get(colour, {})
    column = frame["label" if colour == "family" else colour]
    return marks.by_group([names.get(str(v), str(v)) for v in column], colours)


def graph_panel(frame: pd.DataFrame, held: dict[str, Held], view: CatalogueView) -> None:
    """The graph; a click on a model opens its card."""
    lineage = service.lineage_of(frame)
    own_map = service.map_places(frame) if view.on_map else None
    layout = own_map.layout if own_map else service.places(frame)
    embedded = frozenset(m for m, found in held.items() if found.status == "embedded")
    said = text.PLACES_SAID
    title = "Documented lineage"
    if own_map is not None:
        said = text.MAP_SAID.format(run=own_map.run, layout=own_map.name, variant=own_map.variant)
        title = "Map of the embedded models, with documented lineage"
    rows = frame.assign(hover=[_hover(row, held) for row in frame.to_dict("records")])
    edges = sum(len(parents) for parents in lineage.parents.values())
    clicked = chart(
        figures.lineage_graph(
            rows,
            lineage,
            layout,
            shades_of(frame, view.colour, held, dark=theme.is_dark()),
            Shown(view.chosen, view.hidden, embedded),
            dark=theme.is_dark(),
            title=title,
            subtitle=f"{len(frame)} models, {edges} edges, {len(embedded)} embedded here",
        ),
        key="catalogue_graph",
        alt=figures.lineage_alt(frame, lineage, layout),
        file_name="catalogue-lineage",
        select=("points",),
    )
    st.caption(f"{view.said} {said}")
    place = new_click("catalogue_graph", clicked)
    if place is not None and 0 <= place < len(frame):
        model = str(frame["model"].iloc[place])
        if model != view.chosen:
            choose(model)
            st.rerun()


def _hover(row: Mapping[Any, Any], held: dict[str, Held]) -> str:
    """What a mark says under the pointer; lines apart by newlines, escaped by the figure."""
    model = str(row["model"])
    status = text.EMBEDDED[held[model].status if model in held else "no"]
    parent = str(row["parent"])
    made = text.RELATIONS.get(str(row["relation"]), str(row["relation"]))
    of = f" of {parent}" if parent else ""
    return "\n".join(
        (
            model,
            f"{row['label']} · {marks.parameters_text(float(row['n_parameters']))} parameters",
            f"{made}{of}",
            f"{text.EVIDENCE[str(row['evidence'])]} · {status}",
        )
    )


def table_of(frame: pd.DataFrame, held: dict[str, Held], lineage: Lineage) -> pd.DataFrame:
    """The catalogue as a table, a row a model, in words."""
    status = [held[str(m)].status if str(m) in held else "no" for m in frame["model"]]
    return pd.DataFrame(
        {
            "Model": frame["model"],
            "Family": frame["label"],
            "Parameters (B)": frame["n_parameters"].where(frame["n_parameters"] > 0) / 1e9,
            "How it was made": [text.RELATIONS.get(r, r) for r in frame["relation"]],
            "Of": frame["parent"],
            "Evidence": [text.EVIDENCE[e] for e in frame["evidence"]],
            "Source": frame["source"],
            "Derived from it": [len(lineage.descendants(str(m))) for m in frame["model"]],
            "Embedded": [text.EMBEDDED[s] for s in status],
            "Leaderboard": [
                text.DECLARED[d] if p else "not listed"
                for d, p in zip(frame["declared"], frame["published"], strict=True)
            ],
            **{words: frame[score] for score, words in text.SCORES.items()},
        }
    )


def table_panel(frame: pd.DataFrame, held: dict[str, Held], view: CatalogueView) -> None:
    """The rows that the filters leave; a row click opens the card."""
    shown = frame[~frame["model"].isin(view.hidden)]
    if shown.empty:
        st.info(no_fit(view.filters.split(", ")), icon=":material/filter_alt_off:")
        return
    rows = table_of(shown, held, service.lineage_of(frame))
    models = [str(model) for model in shown["model"]]
    signature = zlib.crc32("\n".join(models).encode())
    numbers = {
        w: st.column_config.NumberColumn(format="%.3f", width=80) for w in text.SCORES.values()
    }
    event = st.dataframe(
        rows,
        key=f"catalogue_table_{signature:08x}",
        hide_index=True,
        height=340,
        row_height=30,
        lazy=False,
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "Model": st.column_config.TextColumn(width=230, pinned=True),
            "Parameters (B)": st.column_config.NumberColumn(format="%.2f", width=86),
            "Evidence": st.column_config.TextColumn(help=text.EVIDENCE_HELP),
            "Derived from it": st.column_config.NumberColumn(width=80),
            **numbers,
        },
        alt=f"Table of {len(rows)} models of the catalogue.",
    )
    _take(state.selected_rows(event), models, view)
    export_buttons(catalogue_rows(shown), name="catalogue", key="catalogue_file")
    st.caption(text.EMBEDS_SHOWN)


def catalogue_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows as a catalogue that the command reads, with the published scores behind."""
    known = frame.assign(params_b=frame["n_parameters"].where(frame["n_parameters"] > 0) / 1e9)
    columns = [*EXPORTED, "evidence", "declared_base", *text.SCORES, "score_source"]
    return known[columns].rename(columns=EXPORTED)


def _take(places: tuple[int, ...], models: list[str], view: CatalogueView) -> None:
    """Turn a new row selection into the model of the card."""
    picked = next((models[place] for place in places if place < len(models)), None)
    before = st.session_state.get("catalogue_row")
    st.session_state["catalogue_row"] = picked
    if picked is not None and picked not in (before, view.chosen):
        choose(picked)
        st.rerun()
