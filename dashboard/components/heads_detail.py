"""One head: its numbers, the influence of every sample on it, and how heavy its tail is."""

import numpy as np
import pandas as pd
import streamlit as st

from dashboard import (
    data,
    head_tails,
    service_heads as service,
    state,
    text_heads as text,
    theme,
)
from dashboard.components.chart import chart
from dashboard.components.clicked import new_click
from dashboard.components.export import export_buttons
from dashboard.components.facts import Fact, facts
from dashboard.components.heads_controls import HeadView, forget
from dashboard.components.ledger import verdicts
from dashboard.data import RunRef
from dashboard.figures import heads_influence as figures
from dashboard.figures.heads import Marks


def head_facts(ref: RunRef, scores: pd.DataFrame, view: HeadView, marks: Marks) -> None:
    """Scores of the head at the step shown and at the end, and what its samples say."""
    own = scores[(scores["seed"] == view.seed) & (scores["name"] == view.head)]
    kind = marks.kinds.get(view.head)
    items = [Fact("Head", view.head, f"{text.unit_name(kind).lower()} head" if kind else "")]
    if len(own):
        here = own[own["step"] == view.step].iloc[0]
        last = own[own["step"] == own["step"].max()].iloc[0]
        items += [
            Fact(words, theme.number(float(here[m])), f"end {float(last[m]):.2f}", text.METRIC_HELP)
            for m, words in text.METRICS.items()
        ]
    facts([*items, *_influence_facts(ref, view)])


def traced_heads(ref: RunRef, view: HeadView) -> list[str]:
    """Heads that the influence was computed for; none of a run without any."""
    if not view.unit:
        return []
    return [str(name) for name in service.choice_of(ref, view.seed, view.unit)["heads"]]


def _influence_facts(ref: RunRef, view: HeadView) -> list[Fact]:
    if not view.unit:
        return []
    choice = service.choice_of(ref, view.seed, view.unit)
    skipped = int(choice["n_skipped"])
    note = f"{skipped:,} skipped" if skipped else ""
    items = [
        Fact("Samples scored", theme.count(int(choice["n_samples"])), note),
        Fact(
            "With the weights of",
            f"step {int(choice['checkpoint_step']):,}",
            f"probe: {text.unit_name(view.unit).lower()}",
            text.UNIT_HELP,
        ),
    ]
    whose = f"{int(choice['layer'])}.{int(choice['head'])}"
    if whose == view.head and int(choice["n_planted"]) and int(choice["n_selected"]):
        share = choice["n_planted_selected"] / choice["n_selected"]
        base = choice["n_planted"] / max(1, choice["n_samples"])
        items.append(
            Fact(
                f"Generated repeats among the top of {whose}",
                theme.percent(share),
                f"of all samples {theme.percent(base)}",
                "Share of the selected samples that hold a planted repeat: a positive control.",
            )
        )
    return items


def values_of(ref: RunRef, view: HeadView, *, natural: bool = False) -> np.ndarray:
    """Influence of every sample of the window on the head looked at; NaN where it is left out."""
    return service.values_of(ref, view.seed, view.unit, view.head, natural=natural)


def natural_only(ref: RunRef, view: HeadView) -> bool:
    """Whether generated samples are left out; asked for where there are some."""
    hidden = int(service.generated(ref, view.seed).sum())
    if not hidden:
        return False
    return st.toggle(
        f"Natural text only (hides {hidden:,} generated samples)",
        key="natural",
        bind="query-params",
        on_change=forget,
        help=text.NATURAL_HELP,
    )


def bin_of_link(ref: RunRef, view: HeadView, *, natural: bool) -> int:
    """The bin of the link or of its sample, else the most positive one that has some samples."""
    asked = state.read_int("bin", None, high=head_tails.BINS - 1)
    if asked is not None:
        return asked
    scale = service.scale(ref, view.seed, view.unit, view.head)
    values = values_of(ref, view, natural=natural)
    found = service.influence(ref, view.seed, view.unit)
    names = found["step"].astype(str) + "-" + found["row"].astype(str)
    own = scale.bin_of(values[(names == state.read_text("sample")).to_numpy()])
    if len(own) and own[0] >= 0:
        return int(own[0])
    return head_tails.opening_bin(values, scale)


def histogram_panel(ref: RunRef, view: HeadView, chosen: int, *, natural: bool) -> None:
    """Histogram of the influence; a click on a bar lists its samples."""
    values = values_of(ref, view, natural=natural)
    key = f"heads_histogram_{view.seed}_{view.unit}_{view.head}_{natural}"
    clicked = chart(
        figures.histogram(
            values,
            service.scale(ref, view.seed, view.unit, view.head),
            view.head,
            dark=theme.is_dark(),
            chosen=chosen,
        ),
        key=key,
        alt=figures.histogram_alt(values, view.head),
        file_name=f"{ref.name}-head-{view.head}-influence",
        select=("points",),
    )
    wanted = new_click(key, clicked)
    if wanted is not None and wanted != chosen:
        state.write(bin=wanted, sample=None, read=None)
        st.rerun()


def tail_panels(ref: RunRef, view: HeadView) -> None:
    """Tail with its fit, ranks and shares of the head's influence."""
    values, fits = values_of(ref, view), fits_of(ref, view)
    dark = theme.is_dark()
    name = f"{ref.name}-head-{view.head}"
    chart(
        figures.tail_plot(values, fits, dark=dark),
        key="heads_tail",
        alt=figures.tail_alt(fits),
        file_name=f"{name}-tail",
    )
    _rival(fits)
    verdicts(ref, ("top-share", "exponent"))
    chart(
        figures.rank_plot(values, dark=dark),
        key="heads_ranks",
        alt=f"Influence on head {view.head} by rank, a line a sign.",
        file_name=f"{name}-ranks",
    )
    chart(
        figures.share_curve(values, dark=dark),
        key="heads_shares",
        alt=f"Lorenz curve of the influence on head {view.head}, a line a sign.",
        file_name=f"{name}-lorenz",
    )
    found = service.influence(ref, view.seed, view.unit)
    rows = found[["step", "row", view.head]].rename(columns={view.head: "influence"})
    export_buttons(
        rows.assign(seed=view.seed, unit=view.unit, head=view.head),
        name=f"{name}-influence",
        key="heads_influence_file",
    )


def fits_of(ref: RunRef, view: HeadView) -> pd.DataFrame:
    """Rows of `head_tails` of the head; none where no tail was fitted."""
    if not data.has(ref, "head_tails"):
        return pd.DataFrame(columns=["sign", "exponent", "xmin", "n_tail", "low", "high"])
    layer, head = view.place
    where = (("seed", view.seed), ("unit", view.unit), ("layer", layer), ("head", head))
    return data.table(ref, "head_tails", where=where)


def _rival(fits: pd.DataFrame) -> None:
    """Whether a log-normal fits the positive tail better."""
    own = fits[fits["sign"] == "positive"] if len(fits) else fits
    if own.empty:
        st.caption(text.NO_TAIL)
        return
    row = own.iloc[0]
    ratio, p = float(row["lognormal_ratio"]), float(row["lognormal_p"])
    if not np.isfinite(ratio):
        return
    better = "log-normal" if ratio < 0 else "power law"
    clear = "clearly" if p < 0.05 else "not clearly"
    st.caption(
        f"Dashed: the fit from x_min on. Of what raises, the {better} fits better, {clear}: "
        f"log-likelihood ratio {theme.signed(ratio)}, p = {theme.number(p, 2)}; "
        f"Kolmogorov–Smirnov distance {theme.number(float(row['ks']), 2)}, Gini coefficient "
        f"{theme.number(float(row['gini']), 2)}."
    )
