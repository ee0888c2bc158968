"""Upper part of the Emergence page: what is compared, the curves, the badge, the effects."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from dashboard import data, head_rows, service_heads as service, state, text_heads as text, theme
from dashboard.components.chart import chart
from dashboard.components.export import export_buttons
from dashboard.data import RunRef
from dashboard.figures import heads_emergence as figures


ALIGNED, ABSOLUTE = "Steps since the branch", "Training step"
"""Axes of the curves."""
NEAR, WHOLE = "Around the window", "Whole training"
"""How much of the axis is drawn."""
BEFORE = 0.5
"""Windows drawn before the branch."""


@dataclass(frozen=True)
class Comparison:
    """What is compared."""

    unit: str
    arms: tuple[str, ...]
    seeds: tuple[int, ...]
    along: str
    """Column of the step axis: x, steps since the branch, or step."""
    whole: bool
    each_seed: bool


def comparison(ref: RunRef) -> Comparison:
    """Draw the controls: kind of head, arms, seeds, axis, lines of single seeds."""
    known = data.table(ref, "head_losses", ("seed", "arm"))
    arms = [a for a in text.ARMS if a in set(known["arm"])]
    seeds = sorted(int(s) for s in known["seed"].unique())
    units = units_of(ref)
    names = {text.unit_name(u): u for u in units}
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        state.read_choice("kind", names, next(iter(names)))
        shown = st.segmented_control(
            "Kind of head", list(names), default=next(iter(names)), required=True, key="kind",
            bind="query-params",
        )  # fmt: skip
        if data.has(ref, "head_arms"):
            axes = (ALIGNED, ABSOLUTE)
            state.read_choice("axis", axes, ALIGNED)
            axis = st.segmented_control(
                "Axis", axes, default=ALIGNED, required=True, key="axis", bind="query-params"
            )
            reaches = (NEAR, WHOLE)
            state.read_choice("reach", reaches, NEAR)
            reach = st.segmented_control(
                "Draw", reaches, default=NEAR, required=True, key="reach", bind="query-params"
            )
        else:
            axis, reach = ABSOLUTE, WHOLE
    wanted = _several("Arms", "arms", {text.arm_name(a): a for a in arms}, text.SHOWN_FIRST)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        chosen = _several("Seeds", "seeds", {str(s): str(s) for s in seeds}, None)
        each = st.toggle(
            "A line for each seed", key="each", bind="query-params", disabled=axis == ABSOLUTE,
            help="Thin lines; on the axis of training steps they are drawn in any case, because "
            "no two seeds branch at the same step.",
        )  # fmt: skip
    return Comparison(
        names[str(shown)],
        tuple(wanted),
        tuple(int(s) for s in chosen),
        "x" if axis == ALIGNED else "step",
        reach == WHOLE,
        bool(each) or axis == ABSOLUTE,
    )


def units_of(ref: RunRef) -> list[str]:
    """Kinds of heads of a run: those it has arms or influence for, else the two main ones."""
    found: set[str] = set()
    for table in ("head_arms", "head_choices", "head_effects"):
        if data.has(ref, table):
            found |= {str(u) for u in data.table(ref, table, ("unit",))["unit"] if u}
    known = found & set(text.UNITS) or {"induction", "previous_token"}
    return [u for u in text.UNITS if u in known]


def _several(label: str, key: str, names: dict[str, str], first: Sequence[str] | None) -> list[str]:
    """Several of some options, by the words on screen; `first` are chosen at the start."""
    opening = [w for w, name in names.items() if first is None or name in first]
    chosen = st.pills(
        label, list(names), default=opening, selection_mode="multi", key=key, bind="query-params",
        help=text.ARMS_HELP if key == "arms" else None,
    )  # fmt: skip
    return [names[words] for words in chosen or () if words in names]


def panels_of(compared: Comparison, units: Sequence[str], losses: pd.DataFrame) -> list[str]:
    """Rows of the figure: the kind chosen, the other kinds, losses that were measured."""
    others = [u for u in units if u != compared.unit]
    return [compared.unit, *others, *(m for m in text.PANELS if losses[m].notna().any())]


def curves_of(
    ref: RunRef, compared: Comparison, units: Sequence[str]
) -> tuple[pd.DataFrame, list[str]]:
    """Every curve of the comparison, and the rows of the figure."""
    arms = tuple(dict.fromkeys((*compared.arms, "baseline")))
    where = (("seed", compared.seeds), ("arm", arms))
    scores = head_rows.of_kind(data.table(ref, "head_scores", where=where), compared.unit, arms)
    losses = head_rows.of_kind(data.table(ref, "head_losses", where=where), compared.unit, arms)
    baseline = data.table(ref, "head_scores", where=(("arm", "baseline"),))
    chosen = head_rows.chosen_heads(baseline, service.traced(ref), units)
    windows = head_rows.branches(arms_table(ref))
    panels = panels_of(compared, units, losses)
    parts = [head_rows.score_curves(scores, chosen, u, windows) for u in panels if u in units]
    parts += [head_rows.loss_curves(losses, m, windows) for m in panels if m in text.PANELS]
    curves = head_rows.from_the_branch(pd.concat(parts, ignore_index=True))
    return curves[curves["arm"].isin(compared.arms)], panels


def arms_table(ref: RunRef) -> pd.DataFrame:
    """Rows of `head_arms`; none of a run without arms."""
    if data.has(ref, "head_arms"):
        return data.table(ref, "head_arms")
    return pd.DataFrame(columns=["seed", "arm", "unit", "branch_step", "end_step"])


def emergence_figure(ref: RunRef, compared: Comparison, units: Sequence[str]) -> None:
    """Scores and losses by arm with seed bands."""
    if not compared.arms or not compared.seeds:
        st.info(text.EMPTY_ARMS, icon=":material/tune:")
        return
    curves, panels = curves_of(ref, compared, units)
    window = _window(ref, compared)
    shown = curves if compared.whole or window is None else _near(curves, window)
    bands = head_rows.bands(shown)
    if compared.along == "step":
        bands = bands.iloc[:0].rename(columns={"x": "step"})
    _said(compared, curves)
    chart(
        figures.emergence(
            bands,
            shown,
            panels,
            dark=theme.is_dark(),
            along=compared.along,
            axis=axis_title(compared),
            window=window if compared.along == "x" else None,
            each_seed=compared.each_seed,
        ),
        key="emergence",
        alt=figures.emergence_alt(bands, panels),
        file_name=f"{ref.name}-emergence-{compared.unit}",
    )
    export_buttons(
        curves.rename(columns={"x": "steps_since_branch"}),
        name=f"{ref.name}-emergence-{compared.unit}",
        key="emergence_file",
    )


def axis_title(compared: Comparison) -> str:
    """Title of the step axis."""
    if compared.along == "step":
        return "training step"
    return "training steps since the branch (shaded: the window in which samples were changed)"


def _window(ref: RunRef, compared: Comparison) -> tuple[float, float] | None:
    """The window as steps since the branch: its length is the same for every seed."""
    windows = head_rows.branches(arms_table(ref))
    own = windows[windows.index.isin(compared.seeds)]
    if own.empty:
        return None
    return 0.0, float((own["end_step"] - own["branch_step"]).max())


def _near(curves: pd.DataFrame, window: tuple[float, float]) -> pd.DataFrame:
    low = -BEFORE * window[1]
    return curves[curves["x"].between(low, 1.02 * window[1])]


def _said(compared: Comparison, curves: pd.DataFrame) -> None:
    """How many seeds each arm has, and where the lines stop being means."""
    counts = curves.groupby("arm")["seed"].nunique()
    said = ", ".join(f"{text.arm_name(str(a))} {n}" for a, n in counts.items())
    missing = [text.arm_name(a) for a in compared.arms if a not in set(curves["arm"])]
    note = f" Not trained for this kind: {', '.join(missing)}." if missing else ""
    lines = "Each line is a seed."
    if compared.along == "x":
        lines = "Line: mean over seeds; band: 95 % t-interval of the mean."
    st.caption(f"Seeds by arm: {said}. {lines}{note}")
