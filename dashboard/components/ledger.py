"""The claims ledger: what the papers report, what was measured here, and whether it holds."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import data, text, theme
from dashboard.data import RunRef


def ledger() -> None:
    """Draw the table of `docs/claims.json`; the setting of each figure stands beside it."""
    rows = data.claims()
    st.markdown("### Claims ledger")
    if not rows:
        st.caption(text.NO_CLAIMS)
        return
    held = sum(r.get("holds") is True for r in rows)
    failed = sum(r.get("holds") is False for r in rows)
    st.caption(
        f"{len(rows)} claims: {held} hold, {failed} do not, {len(rows) - held - failed} are not "
        "measured or not comparable at this scale. Criteria were written before measuring, "
        "except where a row says otherwise."
    )
    frame = pd.DataFrame([claim_row(r) for r in rows])
    st.dataframe(
        frame,
        key="ledger",
        hide_index=True,
        height=theme.table_height(len(frame), 460),
        column_config={
            "Holds": st.column_config.TextColumn(width=186, pinned=True),
            "Claim": st.column_config.TextColumn(width=330),
            "Ours": st.column_config.TextColumn(width=150, help="With its 95 % interval."),
            "Paper": st.column_config.TextColumn(width=70),
            "Control": st.column_config.TextColumn(width=150),
            "Criterion": st.column_config.TextColumn(width=170),
            "Setting": st.column_config.TextColumn(width=330),
            "Command": st.column_config.TextColumn(width=260),
        },
        alt=f"Claims ledger: {held} of {len(rows)} claims hold.",
    )


def verdicts(ref: RunRef, topics: tuple[str, ...]) -> None:
    """What the ledger says of the claims that rest on this run and speak of these topics."""
    own = claims_of(data.claims(), ref.name, topics)
    if not own:
        return
    held = sum(claim.get("holds") is True for claim in own)
    name = f"What the ledger says of this: {held} of {len(own)} claims hold"
    with st.expander(name, icon=":material/fact_check:"):
        rows = pd.DataFrame([claim_row(claim) for claim in own])
        st.dataframe(
            rows[["Holds", "Claim", "Ours", "Unit", "Criterion"]],
            key=f"verdicts_{topics[0]}",
            hide_index=True,
            height="content",
            column_config={
                "Holds": st.column_config.TextColumn(width=88),
                "Claim": st.column_config.TextColumn(width=380),
                "Ours": st.column_config.TextColumn(width=170, help="With its 95 % interval."),
            },
            alt=f"{held} of {len(own)} claims hold.",
        )


def claims_of(
    claims: Iterable[Mapping[str, Any]], run: str, topics: tuple[str, ...]
) -> list[dict[str, Any]]:
    """Claims with a figure that was measured on a run and speaks of one of some topics.

    Args:
        claims: Rows of the ledger. An id is `method.topic`, or `method.study-topic` where a study
            beside the main one repeats the claim.
        run: Name of a run.
        topics: Beginnings of what follows the method or the study; an empty one fits all.
    """
    wanted = tuple(joint + topic for topic in topics for joint in (".", "-"))
    return [
        dict(claim)
        for claim in claims
        if f"/{run}/" in str(claim.get("evidence", ""))
        and isinstance(claim.get("value"), int | float)
        and any(words in str(claim.get("id", "")) for words in wanted)
    ]


def claim_row(claim: dict[str, Any]) -> dict[str, str]:
    """A claim as a table shows it."""
    unit = str(claim.get("unit") or "")
    return {
        "Holds": _holds(claim.get("holds")),
        "Id": str(claim.get("id", "")),
        "Claim": str(claim.get("claim", "")),
        "Ours": _value(claim.get("value"), claim.get("interval")),
        "Paper": _value(claim.get("paper_value"), None),
        "Unit": unit,
        "Control": _control(claim.get("control")),
        "Criterion": str(claim.get("criterion", "")),
        "Setting": str(claim.get("setting", "")),
        "Command": str(claim.get("command", "")),
    }


def _holds(value: object) -> str:
    if value is True:
        return "✓ holds"
    if value is False:
        return "✗ fails"
    return "· " + str(value or "not measured")


def _value(value: object, interval: object) -> str:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return "–"
    shown = theme.number(float(value))
    if isinstance(interval, list | tuple) and len(interval) == 2:
        low, high = (theme.number(float(v)) for v in interval)
        return f"{shown} [{low}, {high}]"
    return shown


def _control(control: object) -> str:
    if not isinstance(control, dict):
        return "–"
    parts = [f"{k} {_value(v, None)}" for k, v in control.items()]
    return ", ".join(parts) or "–"
