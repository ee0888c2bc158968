"""Models that were added: their nearest neighbours, and their place among models that stay."""

import pandas as pd
import streamlit as st

from dashboard import data, service_add as service, service_pair, state, text_add as text, theme
from dashboard.components.chart import chart
from dashboard.components.doors import door
from dashboard.components.export import export_buttons
from dashboard.components.facts import Fact, facts
from dashboard.components.pair_controls import pair_door
from dashboard.components.panel import empty_state
from dashboard.data import RunRef
from dashboard.figures import placed as figures
from engine.atlas.verdicts import CAVEAT


CHOSEN = "add_chosen"
"""State in which a model that has just been added is named."""
NEAREST = 10
"""Neighbours listed."""


def placed_panel(ref: RunRef) -> None:
    """One added model with its neighbours and its place; the newest unless the link names one."""
    known = service.added(ref)
    st.markdown(f"### {text.ADDED}")
    if not known:
        st.caption(text.NONE_ADDED)
        return
    newest = service.newest(ref)
    wanted = st.session_state.get(CHOSEN)
    if wanted in known:
        st.session_state["model"] = st.session_state.pop(CHOSEN)
    state.read_choice("model", known, newest)
    model = st.selectbox(
        "Model", known, known.index(newest), key="model", bind="query-params", width=320
    )
    _placed(ref, str(model or newest))


def _placed(ref: RunRef, model: str) -> None:
    held = service_pair.variants(ref)
    variant = "able" if "able" in held else held[0]
    rows = service.neighbours(ref, variant, model).head(NEAREST)
    if rows.empty:
        rows = nearest(ref, variant, model)
    _facts(ref, model, rows)
    left, right = st.columns([3, 2], gap="large")
    with left:
        _picture(ref, variant, model, [str(name) for name in rows["neighbour"]])
    with right:
        _table(ref, model, rows)


def nearest(ref: RunRef, variant: str, model: str) -> pd.DataFrame:
    """Neighbours by cosine, for a map that lists none: neighbour and cosine."""
    vectors = service_pair.vectors(ref, variant)
    others = vectors.drop(index=model)
    cosines = others.to_numpy() @ vectors.loc[model].to_numpy()
    found = pd.DataFrame({"neighbour": others.index.astype(str), "cosine": cosines})
    return found.sort_values("cosine", ascending=False, ignore_index=True).head(NEAREST)


def _facts(ref: RunRef, model: str, rows: pd.DataFrame) -> None:
    own = data.table(ref, "model_catalogue", where=(("model", model),))
    first = rows.iloc[0].to_dict() if len(rows) else {}
    items = [Fact("Model", model)]
    if len(own):
        row = own.iloc[0].to_dict()
        items += [
            Fact("Architecture", str(row["architecture"]), f"{int(row['n_parameters']):,} weights"),
            Fact("Right", theme.percent(row["accuracy"]), f"of {int(row['n_probes']):,} questions"),
            Fact("Took", theme.seconds_text(row["seconds"])),
        ]
    if first:
        items.append(Fact("Most like", str(first["neighbour"]), f"cosine {first['cosine']:.3f}"))
        if first.get("verdict"):
            items.append(Fact("Verdict", str(first["verdict"])))
    facts(items)
    st.caption(CAVEAT)


def _picture(ref: RunRef, variant: str, model: str, near: list[str]) -> None:
    names = service.pictures(ref, variant)
    if not names:
        empty_state(text.NO_PICTURE, data.run_of(ref).command_for("model_layouts"))
        return
    state.read_choice("layout", names, names[0])
    layout = st.segmented_control(
        "Picture", names, default=names[0], required=True, key="layout", bind="query-params",
        label_visibility="collapsed",
    )  # fmt: skip
    rows = service.places(ref, variant, str(layout or names[0]))
    chart(
        figures.placed(
            rows,
            model,
            near,
            dark=theme.is_dark(),
            title=f"Its place: {text.PICTURES.get(str(layout), str(layout))}",
            subtitle=f"n = {len(rows):,} models, embedding {variant}",
        ),
        key="add_placed",
        alt=figures.placed_alt(rows, model, near),
        file_name=f"{ref.name}-placed",
    )
    st.caption(text.UNMOVED.format(n=f"{max(0, len(rows) - 1):,}"))


def _table(ref: RunRef, model: str, rows: pd.DataFrame) -> None:
    names = ("neighbour", "cosine", "percentile_unrelated", "verdict")
    shown = rows[[name for name in names if name in rows]]
    st.markdown("**Most like it**")
    st.dataframe(
        shown,
        key="add_neighbours",
        hide_index=True,
        height="content",
        column_config={
            "neighbour": st.column_config.TextColumn("Model"),
            "cosine": st.column_config.NumberColumn("Cosine", format="%.3f"),
            "percentile_unrelated": st.column_config.NumberColumn("Percentile", format="%.1f"),
            "verdict": st.column_config.TextColumn("Verdict"),
        },
        alt=f"{len(shown)} models most like {model}.",
    )
    if len(rows):
        other = str(rows["neighbour"].iloc[0])
        pair_door(model, other, f"Compare with {other}, question by question")
    door("models", "See it on the whole map", ":material/hub:")
    export_buttons(rows, name=f"{ref.name}-added-neighbours", key="add_neighbours_file")
