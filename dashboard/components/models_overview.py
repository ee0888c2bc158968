"""The Overview page on a map of models: what it holds, its map and relations at a glance."""

import pandas as pd
import streamlit as st

from dashboard import (
    data,
    model_rows,
    models_report,
    service_models as service,
    text_models as text,
    theme,
)
from dashboard.components.chart import chart
from dashboard.components.facts import Fact, facts
from dashboard.data import RunRef
from dashboard.figures import model_marks as marks, models_map, models_results
from dashboard.figures.models_map import DrawnEdges, OnMap, Said


def models_hold(ref: RunRef) -> None:
    """What this map is made of, in one line of numbers."""
    frame = service.cards(ref)
    manifest = data.run_of(ref).manifest
    failed = service.n_failed(ref)
    edges, _ = model_rows.documented_edges(frame)
    sizes = frame["n_parameters"][frame["n_parameters"] > 0]
    reach = "–"
    if len(sizes):
        reach = " to ".join(marks.parameters_text(float(n)) for n in (sizes.min(), sizes.max()))
    probes = data.run_of(ref).tables.get("model_probes", {}).get("rows")
    facts(
        [
            Fact("Run", models_report.title_of(ref, frame), "",
                 text.SYNTHETIC_HELP if model_rows.is_synthetic(frame) else ""),
            Fact("Models embedded", theme.count(len(frame)),
                 f"{failed} failed" if failed else ""),
            Fact("Families", theme.count(frame["family"].replace("", pd.NA).nunique()),
                 f"{frame['root'].replace('', pd.NA).nunique()} roots"),
            Fact("Documented edges", theme.count(len(edges))),
            Fact("Parameters", reach),
            Fact("Probes", theme.count(probes)),
            Fact("Made", str(manifest.get("created", ""))[:10]),
        ]
    )  # fmt: skip


def models_at_a_glance(ref: RunRef) -> None:
    """The map, and how well related models are told from others."""
    left, right = st.columns(2, gap="large")
    with left:
        _map(ref)
    with right:
        _relations(ref)


def _map(ref: RunRef) -> None:
    drawn = service.layouts(ref)
    if not drawn:
        st.caption(text.NO_LAYOUTS)
        st.code(data.run_of(ref).command_for("model_layouts"), language="bash")
        return
    variant = "able" if "able" in drawn else next(iter(drawn))
    layout = next(name for name in (*text.LAYOUTS, *drawn[variant]) if name in drawn[variant])
    frame = service.cards(ref)
    places = service.plane(ref, variant, layout)
    rows = frame.assign(**{str(n): places[n] for n in places}, hover=frame["model"])
    found = service.edges(ref, "")
    edges = DrawnEdges(found.documented[found.copies], found.documented[~found.copies])
    everything = OnMap(None, pd.Series(True, index=frame.index).to_numpy(bool))
    chart(
        models_map.models_map(
            rows, marks.by_group(frame["family"], theme.palette()), edges, everything,
            dark=theme.is_dark(),
            said=Said(
                f"{text.LAYOUTS[layout]} of {variant} embeddings",
                f"n = {len(rows)} models. {text.MAP_SAID}", across=(3, 3, 2),
            ),
        ),
        key="overview_models_map",
        alt=models_map.map_alt(rows, edges, text.LAYOUTS[layout]),
        file_name=f"{ref.name}-map",
    )  # fmt: skip


def _relations(ref: RunRef) -> None:
    if not data.has(ref, "model_relation_results"):
        st.caption(text.NO_RELATIONS)
        st.code(data.run_of(ref).command_for("model_relation_results"), language="bash")
        return
    rows = data.table(ref, "model_relation_results")
    own = rows[(rows["classifier"] == "threshold") & (rows["metric"] == "auc")]
    for group in ("all", "twin"):
        shown = own[(own["group"] == group) & own["value"].notna()]
        if shown.empty:
            continue
        best = shown.sort_values("value", ascending=False).head(9)
        chart(
            models_results.method_bars(
                best, "auc", dark=theme.is_dark(),
                title=f"AUC: {text.group_name(group)}",
                subtitle=f"the best {len(best)} of {len(shown)} methods; bars: one sd over splits",
            ),
            key=f"overview_relations_{group}",
            alt=models_results.bars_alt(best, "auc", group),
            file_name=f"{ref.name}-relations-{group}",
        )  # fmt: skip
