"""One model of a map: what is documented and predicted of it, and the models most like it."""

import pandas as pd
import streamlit as st

from dashboard import data, service_models as service, text_models as text, theme
from dashboard.components.catalogue_card import pick_relative
from dashboard.components.doors import escape_markdown
from dashboard.components.export import export_buttons
from dashboard.components.facts import Fact, facts
from dashboard.components.models_controls import ModelsView, choose
from dashboard.components.pair_controls import pair_door
from dashboard.components.panel import empty_state
from dashboard.data import RunRef
from dashboard.figures.model_marks import parameters_text
from dashboard.lineage import Lineage
from engine.atlas.verdicts import CAVEAT


MOST = 8
"""Relatives that get a button."""
_PICKER = "models_picker"


def _picked() -> None:
    choose(str(st.session_state[_PICKER]))


def card(ref: RunRef, frame: pd.DataFrame, view: ModelsView) -> None:
    """What is known of the chosen model; another is chosen by name as well as on the map."""
    names = [str(name) for name in frame["model"]]
    st.session_state[_PICKER] = view.chosen
    st.selectbox("Model", names, key=_PICKER, on_change=_picked)
    row = frame[frame["model"] == view.chosen].iloc[0]
    _facts(row)
    _lineage(ref, frame, row, view)


def _facts(row: pd.Series) -> None:
    share = {"accuracy": "Probes right", "held_out": "Other questions right"}
    items = [
        Fact("Family", str(row["family"]) or "–", "", "Label it is published under; no lineage."),
        Fact("Parameters", parameters_text(float(row["n_parameters"]))),
        *(Fact(words, str(row[column]) or "–") for words, column in
          (("Architecture", "architecture"), ("Tokenizer", "tokenizer"), ("Data", "data"))),
        *(Fact(words, theme.percent(float(row[c]))) for c, words in share.items()
          if pd.notna(row[c])),
    ]  # fmt: skip
    if "hook" in row and row["hook"] == "norm":
        items.append(Fact("Attributed at", "norm", "", "Behind the norm on its embedding."))
    facts(items)


def _lineage(ref: RunRef, frame: pd.DataFrame, row: pd.Series, view: ModelsView) -> None:
    """Documented parents and what speaks for them; the predicted base beside."""
    st.markdown("##### Lineage")
    made = str(row["relation"]).replace("_", " ")
    parents = " and ".join(row["parents"])
    if parents:
        how = made if row["copies_weights"] else f"{made} (no weights copied)"
        st.caption(
            f"Documented: {how} of {parents}; goes back to {row['root'] or 'an unknown root'}. "
            f"Evidence: {row['evidence'] or 'none named'}."
        )
    elif row["root"] == row["model"]:
        st.caption(f"Documented: a root. Evidence: {row['evidence'] or 'none named'}.")
    else:
        st.caption(text.UNKNOWN_LINEAGE)
    lineage = Lineage(dict(zip(frame["model"], frame["parents"], strict=True)))
    _buttons("Made of", lineage.ancestors(view.chosen), frame, view.chosen)
    _buttons("Made of it", lineage.descendants(view.chosen), frame, view.chosen)
    _predicted(ref, view)


def _buttons(words: str, names: list[str], frame: pd.DataFrame, own: str) -> None:
    known = [name for name in names if name in set(frame["model"])]
    if not known:
        return
    shown = {name: name for name in known[:MOST]}
    more = f", {len(known) - MOST} not shown" if len(known) > MOST else ""
    pick_relative(f"{words} ({len(known)}{more})", shown, f"models_{words}_{own}")


def _predicted(ref: RunRef, view: ModelsView) -> None:
    rows = service.parents(ref, view.method)
    own = rows[rows["model"] == view.chosen]
    if own.empty:
        return
    row = own.iloc[0]
    said = f"goes back to {row['predicted']}" if row["predicted"] else "goes back to no base here"
    right = "as documented" if row["correct"] else "which is wrong by the documents"
    rank = row["rank_of_parent"]
    more = "" if pd.isna(rank) else f" Its parent is number {int(rank)} among the models like it."
    st.caption(
        f"Predicted by {text.method_name(view.method)}: it {said}, {right} "
        f"(p = {theme.number(float(row['p_value']), 2)}).{more}",
        help=text.PREDICTED,
    )


def neighbours_panel(ref: RunRef, frame: pd.DataFrame, view: ModelsView) -> None:
    """Nearest models with percentile and verdict; a row click leads to the pair."""
    st.markdown(f"##### Most like {escape_markdown(view.chosen)}")
    row = frame[frame["model"] == view.chosen].iloc[0]
    rows = service.neighbours(ref, view.variant, view.chosen)
    if rows.empty:
        empty_state(text.NO_NEIGHBOURS, data.run_of(ref).command_for("model_neighbours"))
        return
    table = neighbours_table(rows, frame, row)
    event = st.dataframe(
        table,
        key=f"models_neighbours_{view.variant}",
        hide_index=True,
        height=theme.table_height(len(table), 380),
        row_height=30,
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "Neighbour": st.column_config.TextColumn(width=186, pinned=True),
            "Cosine": st.column_config.NumberColumn(format="%.3f", width=66, help=text.COSINE),
            "Percentile": st.column_config.NumberColumn(
                format="%.1f", width=76, help=text.PERCENTILE
            ),
            "Verdict": st.column_config.TextColumn(width=76),
            "Documented": st.column_config.TextColumn(width=90, help=text.KNOWN),
            "Tokenizer": st.column_config.TextColumn(width=78, help=text.SAME_TOKENIZER),
        },
        alt=f"{len(table)} models most like {view.chosen}.",
    )
    st.caption(CAVEAT)
    chosen = list(getattr(getattr(event, "selection", None), "rows", None) or [0])
    other = str(rows["neighbour"].iloc[min(chosen[0], len(rows) - 1)])
    pair_door(view.chosen, other, f"Compare with {other}, question by question")
    export_buttons(
        rows, name=f"{ref.name}-{view.chosen}-neighbours".replace("/", "-"), key="neighbours_file"
    )


def neighbours_table(rows: pd.DataFrame, frame: pd.DataFrame, row: pd.Series) -> pd.DataFrame:
    """Rows of `model_neighbours` in words, with whether the tokenizer is the same."""
    tokenizers = dict(zip(frame["model"], frame["tokenizer"], strict=True))
    own = str(row["tokenizer"])
    same = [tokenizers.get(str(name), "") for name in rows["neighbour"]]
    return pd.DataFrame(
        {
            "Neighbour": rows["neighbour"],
            "Cosine": rows["cosine"],
            "Percentile": rows["percentile_unrelated"],
            "Verdict": rows["verdict"],
            "Documented": rows["known_relation"],
            "Tokenizer": [
                "not known" if not (own and other) else "same" if own == other else "differs"
                for other in same
            ],
        }
    )
