"""What the Heads page looks at: seed, step, score, kind asked and head, all of them in the URL."""

from dataclasses import dataclass

import pandas as pd
import streamlit as st

from dashboard import data, head_rows, service_heads as service, state, text_heads as text
from dashboard.data import RunRef


DEPENDENT = ("bin", "sample", "read")
"""URL parameters that mean nothing once another head, seed or kind is looked at."""


@dataclass(frozen=True)
class HeadView:
    """What is looked at."""

    seed: int
    step: int
    """Step of the atlas; -1 in a run without scores."""
    metric: str
    unit: str
    """Kind whose probe the influence was computed for; empty where none was."""
    head: str
    """LAYER.HEAD."""
    heads: tuple[str, ...]
    """Every head of the model."""

    @property
    def place(self) -> tuple[int, int]:
        """Layer and head."""
        layer, head = self.head.split(".")
        return int(layer), int(head)


def forget() -> None:
    """Take out of the link what belongs to another head."""
    state.write(**dict.fromkeys(DEPENDENT))


def choose_head(head: str) -> None:
    """Make a head the one looked at."""
    forget()
    state.write(head=head)


def baseline(ref: RunRef) -> pd.DataFrame:
    """Scores of every head along the baselines, with `name`."""
    return head_rows.with_names(data.table(ref, "head_scores", where=(("arm", "baseline"),)))


def controls(ref: RunRef, scores: pd.DataFrame) -> HeadView:
    """Draw the controls of the page.

    Args:
        ref: Run.
        scores: What `baseline` gives.
    """
    seeds = sorted(int(seed) for seed in scores["seed"].unique())
    traced = service.traced(ref)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        seed = int(_choice("Seed", "seed", [str(s) for s in seeds], width=90))
        own = scores[scores["seed"] == seed]
        metric = _named("Score", "score", text.METRICS, text.METRIC_HELP)
        units = [str(u) for u in traced.loc[traced["seed"] == seed, "unit"]]
        unit = _unit(units)
        step = _step(sorted(int(s) for s in own["step"].unique()))
    heads = tuple(dict.fromkeys(own["name"]))
    return HeadView(seed, step, metric, unit, _head(own, traced, seed, unit, metric, heads), heads)


def traced_only(ref: RunRef) -> HeadView:
    """Draw the controls of a run that holds influence and no scores along checkpoints."""
    traced = service.traced(ref)
    seeds = sorted({int(seed) for seed in traced["seed"]})
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        seed = int(_choice("Seed", "seed", [str(s) for s in seeds], width=90))
        unit = _unit([str(u) for u in traced.loc[traced["seed"] == seed, "unit"]])
        choice = service.choice_of(ref, seed, unit)
        heads = tuple(str(name) for name in choice["heads"])
        own = head_rows.head_name(int(choice["layer"]), int(choice["head"]))
        asked = state.read_text("head")
        if asked and asked not in heads:
            state.refuse("head", asked, f"a head that was traced, {heads[0]} to {heads[-1]}")
        start = asked if asked in heads else own
        head = st.selectbox(
            "Head", heads, heads.index(start), key="heads_traced", on_change=_take_head, width=110
        )
    return HeadView(seed, -1, text.metric_of(unit), unit, str(head or start), heads)


def _take_head() -> None:
    choose_head(str(st.session_state["heads_traced"]))


def _choice(label: str, key: str, options: list[str], width: int, help_text: str = "") -> str:
    state.read_choice(key, options, options[0])
    shown = st.selectbox(
        label,
        options,
        key=key,
        bind="query-params",
        width=width,
        help=help_text or None,
        on_change=forget,
    )
    return str(shown or options[0])


def _named(label: str, key: str, names: dict[str, str], help_text: str) -> str:
    shown = _choice(label, key, list(names.values()), 190, help_text)
    return next(name for name, words in names.items() if words == shown)


def _unit(units: list[str]) -> str:
    """The kind whose influence is shown; asked for where there are several."""
    if not units:
        return ""
    ordered = [u for u in text.UNITS if u in units] + [u for u in units if u not in text.UNITS]
    names = {u: text.unit_name(u) for u in ordered}
    return _named("Influence on", "probe", names, text.UNIT_HELP)


def _step(steps: list[int]) -> int:
    """The checkpoint of the atlas."""
    if len(steps) == 1:
        return steps[0]
    state.read_choice("step", [str(s) for s in steps], str(steps[-1]))
    if st.session_state.get("step", steps[-1]) not in steps:
        st.session_state["step"] = head_rows.nearest_step(steps, int(st.session_state["step"]))
    return int(
        st.select_slider(
            "Checkpoint (training step)",
            steps,
            steps[-1],
            format_func=lambda step: f"{step:,}",
            key="step",
            bind="query-params",
            width="stretch",
        )
    )


def _head(
    own: pd.DataFrame,
    traced: pd.DataFrame,
    seed: int,
    unit: str,
    metric: str,
    heads: tuple[str, ...],
) -> str:
    """The head of the link, else the one that the study chose, else the one that scores highest."""
    asked = state.read_text("head")
    if asked in heads:
        return asked
    if asked:
        state.refuse("head", asked, f"a head of this model, {heads[0]} to {heads[-1]}")
    choice = traced[(traced["seed"] == seed) & (traced["unit"] == unit)]
    if len(choice):
        row = choice.iloc[0]
        return head_rows.head_name(int(row["layer"]), int(row["head"]))
    last = own[own["step"] == own["step"].max()]
    return str(last.iloc[int(last[metric].to_numpy().argmax())]["name"])
