"""Twins of the map: the tree of neighbour joining and the heat-map of every pair."""

import numpy as np
import pandas as pd
import streamlit as st

from dashboard import data, service_models as service, state, text_models as text, theme
from dashboard.components.chart import chart
from dashboard.components.clicked import new_click
from dashboard.components.export import export_buttons
from dashboard.components.models_controls import ModelsView, choose
from dashboard.components.panel import empty_state
from dashboard.data import RunRef
from dashboard.figures import models_tree as figures
from dashboard.model_trees import ModelTree, clustered


def tree_panel(ref: RunRef, frame: pd.DataFrame, view: ModelsView) -> None:
    """The tree; a click on a leaf opens its card."""
    tree = service.tree(ref, view.variant)
    if tree is None:
        empty_state(text.NO_TREE, data.run_of(ref).command_for("model_trees"))
        return
    n, wrong = sum(bool(name) for name in tree.models), int(tree.wrong.sum())
    relations = dict(zip(frame["model"], frame["relation"], strict=True))
    with st.container(height=860, border=False):
        clicked = chart(
            figures.models_tree(
                tree, relations, view.chosen, dark=theme.is_dark(),
                subtitle=f"n = {n} models, {view.variant}; {wrong} wrong edges, crossed",
            ),
            key="models_tree",
            alt=figures.tree_alt(tree),
            file_name=f"{ref.name}-{view.variant}-tree",
            select=("points",),
        )  # fmt: skip
    node = new_click("models_tree", clicked)
    model = tree.models[node] if node is not None and node < len(tree.models) else ""
    if model and model != view.chosen:
        choose(model)
        st.rerun()
    st.caption(text.TREE_SAID)
    rows = tree_table(tree)
    with st.expander("The tree as a table", icon=":material/table_rows:"):
        st.dataframe(
            rows, key="models_tree_table", hide_index=True, height=300,
            alt=f"{len(rows)} models in the order of the tree's leaves.",
        )  # fmt: skip
    export_buttons(rows, name=f"{ref.name}-{view.variant}-tree", key="models_tree_file")


def tree_table(tree: ModelTree) -> pd.DataFrame:
    """Leaves in order with their clade, and whether the edge above that is wrong."""
    rows = []
    for leaf in sorted((k for k, n in enumerate(tree.models) if n), key=lambda k: tree.line[k]):
        node = leaf
        while (
            tree.parent[node] >= 0 and tree.lineage[tree.parent[node]] == tree.lineage[leaf] != ""
        ):
            node = int(tree.parent[node])
        rows.append(
            {
                "Model": tree.models[leaf],
                "Root": tree.lineage[leaf] or "unknown",
                "Way from the top": float(tree.height[leaf]),
                "Clade of its root": node if node != leaf else leaf,
                "Apart from a larger clade": bool(tree.wrong[node]),
            }
        )
    return pd.DataFrame(rows)


def heatmap_panel(ref: RunRef, frame: pd.DataFrame, view: ModelsView) -> None:
    """The heat-map, ordered as the tree's leaves, or by average linkage where there is none."""
    cosines = service.cosines(ref, view.variant)
    tree = service.tree(ref, view.variant)
    places = dict(zip(frame["model"], frame["place"], strict=True))
    if tree is not None and set(tree.order) == set(places):
        order, how = [int(places[name]) for name in tree.order], "the tree's leaves"
    else:
        order, how = clustered(cosines), "average linkage"
    names = [str(frame["model"].iloc[k]) for k in order]
    roots = [str(frame["root"].iloc[k]) for k in order]
    ordered = cosines[np.ix_(order, order)]
    chart(
        figures.heatmap(
            ordered, names, roots, dark=theme.is_dark(),
            subtitle=f"n = {len(names)} models, {view.variant}, in the order of {how}; boxes: "
            "models of one documented root that stand together",
        ),
        key="models_heatmap",
        alt=f"Cosines of all pairs of {len(names)} models in the order of {how}.",
        file_name=f"{ref.name}-{view.variant}-cosines",
    )  # fmt: skip
    rows = pd.DataFrame(ordered, index=pd.Index(names, name="model"), columns=names).reset_index()
    with st.expander("The cosines as a table", icon=":material/table_rows:"):
        st.dataframe(rows, key="models_heatmap_table", hide_index=True, height=300, lazy=False,
                     alt=f"Cosines of {len(names)} models.")  # fmt: skip
    export_buttons(rows, name=f"{ref.name}-{view.variant}-cosines", key="models_heatmap_file")


def bases_panel(ref: RunRef, frame: pd.DataFrame, view: ModelsView) -> None:
    """The base every model is taken to go back to, wrong ones first."""
    rows = service.parents(ref, view.method)
    if rows.empty:
        empty_state(text.NO_PARENTS, data.run_of(ref).command_for("model_parents"))
        return
    wrong_only = st.toggle("Wrong ones only", key="wrong", bind="query-params")
    shown = rows.sort_values(["correct", "p_value"], kind="stable")
    shown = shown[~shown["correct"].astype(bool)] if wrong_only else shown
    relations = dict(zip(frame["model"], frame["relation"], strict=True))
    table = pd.DataFrame(
        {
            "Model": shown["model"],
            "Derivation": [relations.get(str(m), "").replace("_", " ") for m in shown["model"]],
            "Predicted base": [b or "none" for b in shown["predicted"]],
            "Documented": [", ".join(map(str, roots)) for roots in shown["roots"]],
            "By the documents": ["right" if right else "wrong" for right in shown["correct"]],
            "p": shown["p_value"],
            "Rank of its parent": shown["rank_of_parent"],
        }
    )
    right = int(rows["correct"].sum())
    st.caption(
        f"{text.method_name(view.method)}: {right:,} of {len(rows):,} right. {text.PREDICTED}"
    )
    event = st.dataframe(
        table, key=f"models_bases_{view.method}_{wrong_only}", hide_index=True, height=420,
        on_select="rerun", selection_mode="single-row",
        column_config={"p": st.column_config.NumberColumn(format="%.2g", width=80)},
        alt=f"Predicted and documented bases of {len(table)} models.",
    )  # fmt: skip
    places = state.selected_rows(event)
    picked = str(table["Model"].iloc[places[0]]) if places and places[0] < len(table) else None
    before = st.session_state.get("models_base_row")
    st.session_state["models_base_row"] = picked
    if picked is not None and picked not in (before, view.chosen):
        choose(picked)
        st.rerun()
    export_buttons(
        rows.assign(method=view.method), name=f"{ref.name}-bases-{view.method}", key="bases_file"
    )
