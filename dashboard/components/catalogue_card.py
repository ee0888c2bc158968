"""Right part of the Catalogue page: one model with its lineage, scores, sources and command."""

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from dashboard import service_catalogue as service, text_catalogue as text, theme
from dashboard.components.catalogue_controls import choose
from dashboard.components.doors import door, escape_markdown
from dashboard.components.facts import Fact, facts
from dashboard.figures.model_marks import parameters_text
from dashboard.lineage import Lineage
from dashboard.service_catalogue import Held


MOST = 8
"""Relatives that are named; the others are counted."""
BYTES_OF_PARAMETER = 2


def card(frame: pd.DataFrame, held: dict[str, Held], model: str) -> None:
    """All that is documented of a model."""
    lineage = service.lineage_of(frame)
    st.subheader(model.replace("_", "\\_"), anchor=False)
    found = frame[frame["model"] == model]
    if found.empty:
        st.text(text.OUTSIDE.format(model=model))
        _relatives("Listed models that go back to it", lineage.descendants(model), lineage, model)
        return
    row = found.iloc[0]
    _facts(row)
    _lineage(frame, row, lineage)
    _scores(frame, row)
    _embedding(held.get(model), model, float(row["n_parameters"]))


def _facts(row: pd.Series) -> None:
    n = float(row["n_parameters"])
    weights = theme.bytes_text(n * BYTES_OF_PARAMETER) if n else "unknown"
    items = [
        Fact("Family", str(row["label"]), "", "Label of the paper's public table; no lineage."),
        Fact("Parameters", parameters_text(n)),
        Fact("Weights", weights, "in bfloat16", text.WEIGHTS_HELP),
        Fact("How it was made", text.RELATIONS.get(str(row["relation"]), str(row["relation"]))),
    ]
    published = {"Architecture": "architecture", "Type": "type", "Uploaded": "uploaded"}
    items += [
        Fact(name, _plain(str(row[column]))) for name, column in published.items() if row[column]
    ]
    facts(items)


def _plain(words: str) -> str:
    """A published type without the sign before it."""
    first, _, rest = words.partition(" ")
    return rest if rest and not first.isascii() else words


def _lineage(frame: pd.DataFrame, row: pd.Series, lineage: Lineage) -> None:
    """Stated ancestors with the evidence of each, and what goes back to the model."""
    model = str(row["model"])
    st.markdown("##### Lineage")
    steps = lineage_steps(frame, lineage, model)
    for step in steps:
        st.text(f"{step['of']} ← {step['model']}")
        st.caption(escape_markdown(f"{step['evidence']} · {step['source']}"))
    if not steps:
        st.caption(
            escape_markdown(f"{text.EVIDENCE['missing'].capitalize()}. Listed by: {row['source']}.")
        )
    if row["published"]:
        declared = str(row["declared_base"])
        st.caption(
            f"Its entry on the leaderboard {text.DECLARED[str(row['declared'])]}"
            + (f": {declared}." if declared else ".")
        )
    _relatives("Goes back to", lineage.ancestors(model), lineage, model)
    _relatives("Listed models that go back to it", lineage.descendants(model), lineage, model)


def lineage_steps(frame: pd.DataFrame, lineage: Lineage, model: str) -> list[dict[str, str]]:
    """Every documented step back from a model, with what speaks for it."""
    known = frame.set_index("model")
    return [
        {
            "model": child,
            "of": parent,
            "evidence": text.EVIDENCE[str(known.loc[child, "evidence"])],
            "source": str(known.loc[child, "source"]),
        }
        for child in [model, *lineage.ancestors(model)]
        for parent in lineage.parents.get(child, ())
    ]


def _relatives(words: str, names: Sequence[str], lineage: Lineage, own: str) -> None:
    """A pill for each relative; a click opens its card."""
    if not names:
        return
    short = {name: name.rpartition("/")[2] + ("" if name in lineage.parents else " (not listed)")
             for name in names[:MOST]}  # fmt: skip
    pick_relative(f"{words} ({len(names)})", short, f"catalogue_{words}_{own}")
    if len(names) > MOST:
        st.caption(f"and {len(names) - MOST} more; the table lists them")


def pick_relative(label: str, names: Mapping[str, str], key: str) -> None:
    """Names as pills; a click opens the card of one.

    Args:
        label: What they are.
        names: What is shown of each model.
        key: Widget key, another one for every card.
    """

    def picked() -> None:
        if st.session_state.get(key):
            choose(str(st.session_state[key]))

    st.pills(
        label, list(names), format_func=lambda name: names[str(name)], key=key, on_change=picked
    )


def _scores(frame: pd.DataFrame, row: pd.Series) -> None:
    """Published scores beside the median of those listed."""
    st.markdown("##### Published scores")
    if not row["published"]:
        st.caption(text.NOT_LISTED)
        return
    listed = frame[frame["published"]]
    rows = pd.DataFrame(
        {
            "Score": list(text.SCORES.values()),
            "Here": [float(row[score]) for score in text.SCORES],
            "Median": [float(listed[score].median()) for score in text.SCORES],
            "Below it": [float((listed[score] < row[score]).mean()) for score in text.SCORES],
        }
    )
    column = st.column_config.NumberColumn
    st.dataframe(
        rows,
        key="catalogue_scores",
        hide_index=True,
        height="content",
        column_config={
            "Here": column(format="%.3f", width=60),
            "Median": column(format="%.3f", width=66, help=f"Of the {len(listed)} listed models."),
            "Below it": column(format="percent", width=70, help="Share of the listed models."),
        },
        alt="Six published scores of the model beside the median of the models listed.",
    )
    st.caption(f"Shares of 1. Source: {row['score_source']}.")


def _embedding(found: Held | None, model: str, n_parameters: float) -> None:
    """Whether a run holds it, and the command that embeds it."""
    st.markdown("##### Embedding")
    if found is not None and found.status == "embedded":
        st.caption(f"Embedded in run {found.run.name}.")
        door(
            "models", f"See it on the map of {found.run.name}", ":material/hub:",
            run=found.run.name, model=found.model,
        )  # fmt: skip
        return
    if found is not None:
        st.caption(f"Run {found.run.name} could not embed it: {found.reason}")
    size = (
        theme.bytes_text(n_parameters * BYTES_OF_PARAMETER) if n_parameters else "an unknown size"
    )
    st.caption(f"Not embedded on this machine; its weights are about {size}. {text.GATED}")
    st.caption(text.EMBEDS_ALL)
    st.code(service.command_for_all(), language="bash", wrap_lines=True)
    st.caption(text.EMBEDS_ONE)
    st.code(service.command_for(model), language="bash", wrap_lines=True)
