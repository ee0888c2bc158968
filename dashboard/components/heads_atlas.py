"""Upper part of the Heads page: atlas, scores along training, heads over two measures."""

import pandas as pd
import streamlit as st

from dashboard import data, head_rows, service_heads as service, state, text_heads as text, theme
from dashboard.components.chart import chart
from dashboard.components.clicked import new_click
from dashboard.components.export import export_buttons
from dashboard.components.heads_controls import HeadView, choose_head
from dashboard.data import RunRef
from dashboard.figures import heads as figures
from dashboard.figures.heads import Marks


def marks_of(ref: RunRef, scores: pd.DataFrame, view: HeadView) -> Marks:
    """The head looked at, and the heads of each kind of this seed."""
    own = scores[scores["seed"] == view.seed]
    units = [u for u in text.UNITS if own[text.metric_of(u)].max() > 0]
    traced = service.traced(ref)
    known = {str(u) for u in traced["unit"]} or set(units[:2])
    chosen = head_rows.chosen_heads(own, traced, [u for u in units if u in known])
    names = head_rows.with_names(chosen) if len(chosen) else chosen.assign(name=[])
    return Marks(view.head, dict(zip(names["name"], names["unit"], strict=True)))


def atlas_row(ref: RunRef, scores: pd.DataFrame, view: HeadView, marks: Marks) -> None:
    """Three figures side by side; a click in the atlas or the scatter opens a head."""
    own = scores[scores["seed"] == view.seed]
    here = own[own["step"] == view.step].reset_index(drop=True)
    left, middle, right = st.columns([4, 4, 4], gap="medium")
    with left:
        clicked = chart(
            figures.atlas(
                here,
                view.metric,
                marks,
                dark=theme.is_dark(),
                subtitle=f"{len(here)} heads, seed {view.seed}, step {view.step:,}; click a head",
            ),
            key="heads_atlas",
            alt=figures.atlas_alt(here, view.metric),
            file_name=f"{ref.name}-heads-atlas",
            select=("points",),
        )
        _open(new_click("heads_atlas", clicked), here, view)
    with middle:
        chart(
            figures.score_lines(
                own,
                view.metric,
                marks,
                dark=theme.is_dark(),
                step=view.step,
                window=window_of(ref, view.seed),
            ),
            key="heads_lines",
            alt=f"{text.METRICS[view.metric]} of {len(here)} heads along training.",
            file_name=f"{ref.name}-heads-scores",
        )
    with right:
        _scatter(ref, here, view, marks)


def window_of(ref: RunRef, seed: int) -> tuple[int, int] | None:
    """First and last step of a seed's window; None where nothing was changed."""
    if not data.has(ref, "head_arms"):
        return None
    found = data.table(ref, "head_arms", ("branch_step", "end_step"), (("seed", seed),))
    if found.empty:
        return None
    return int(found["branch_step"].max()), int(found["end_step"].max())


def _open(place: int | None, rows: pd.DataFrame, view: HeadView) -> None:
    if place is None or not 0 <= place < len(rows):
        return
    name = str(rows["name"].iloc[place])
    if name != view.head:
        choose_head(name)
        st.rerun()


def measured(ref: RunRef, here: pd.DataFrame, view: HeadView) -> pd.DataFrame:
    """Heads at the step shown with their scores and the measures of their positive tail."""
    rows = here[["layer", "head", "name", *text.METRICS]]
    if not view.unit or not data.has(ref, "head_tails"):
        return rows
    where = (("seed", view.seed), ("unit", view.unit), ("sign", "positive"))
    tails = data.table(ref, "head_tails", ("layer", "head", *text.TAILS), where)
    return rows.merge(tails, on=["layer", "head"], how="left")


def _scatter(ref: RunRef, here: pd.DataFrame, view: HeadView, marks: Marks) -> None:
    rows = measured(ref, here, view)
    axes = {c: words for c, words in {**text.METRICS, **text.TAILS}.items() if c in rows}
    names = list(axes.values())
    picture = st.container()
    x, y = _axes(names)
    columns = {words: column for column, words in axes.items()}
    with picture:
        clicked = chart(
            figures.head_scatter(
                rows, (columns[x], axis_title(x)), (columns[y], axis_title(y)), marks,
                dark=theme.is_dark(),
            ),
            key="heads_scatter",
            alt=f"{len(rows)} heads: {x} across, {y} up.",
            file_name=f"{ref.name}-heads-scatter",
            select=("points",),
        )  # fmt: skip
    _open(new_click("heads_scatter", clicked), rows, view)
    export_buttons(rows, name=f"{ref.name}-heads-step-{view.step}", key="heads_file")


def axis_title(words: str) -> str:
    """A measure's name with its unit."""
    return text.TAIL_TITLES.get(words, f"{words} (share)")


def _axes(names: list[str]) -> tuple[str, str]:
    """What the scatter draws across and up."""
    chosen = []
    with st.container(horizontal=True, gap="small"):
        for label, key, default in (
            ("Across", "across", names[0]),
            ("Up", "up", names[3] if len(names) > 3 else names[1]),
        ):
            state.read_choice(key, names, default)
            shown = st.selectbox(label, names, names.index(default), key=key, bind="query-params")
            chosen.append(str(shown or default))
    return chosen[0], chosen[1]
