"""Lower part of the Emergence page: samples shared between heads, structures and timing."""

import pandas as pd
import streamlit as st

from dashboard import data, head_rows, service_heads as service, state, text_heads as text, theme
from dashboard.components.chart import chart
from dashboard.components.doors import door
from dashboard.components.emergence_curves import Comparison, arms_table
from dashboard.components.export import export_buttons
from dashboard.components.facts import Fact, facts
from dashboard.components.heads_samples import SHOWN, sample_list
from dashboard.components.ledger import verdicts
from dashboard.components.panel import empty_state
from dashboard.data import RunRef
from dashboard.figures import heads_emergence, heads_panels as figures


PARTS = 20
"""Parts of the window that timing is counted over."""
TOP_SHARE = 0.1
"""Share of the samples that counts as top where a study does not say."""
OVERLAPS = {"Top samples shared": "overlap", "Rank correlation": "spearman"}


def transfer(ref: RunRef, compared: Comparison) -> None:
    """How far heads share their samples, and what an arm does to the other heads."""
    left, right = st.columns(2, gap="large")
    with left:
        _overlaps(ref, compared)
    with right:
        _kinds(ref, compared)
    verdicts(ref, ("transfer",))


def _overlaps(ref: RunRef, compared: Comparison) -> None:
    if not data.has(ref, "head_overlaps"):
        empty_state(text.NO_OVERLAPS, data.run_of(ref).command_for("head_overlaps"))
        return
    rows = data.table(ref, "head_overlaps", where=(("unit", compared.unit),))
    rows = rows[rows["seed"].isin(compared.seeds)]
    if rows.empty:
        st.caption(text.NO_OVERLAPS)
        return
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        seed = _seed(sorted(int(s) for s in rows["seed"].unique()), "pairs_seed")
        state.read_choice("pairs", OVERLAPS, next(iter(OVERLAPS)))
        shown = st.segmented_control(
            "Cells show", list(OVERLAPS), default=next(iter(OVERLAPS)), required=True,
            key="pairs", bind="query-params",
        )  # fmt: skip
    measure = OVERLAPS[str(shown)]
    own = head_rows.with_names(rows[rows["seed"] == seed])
    others = zip(own["other_layer"], own["other_head"], strict=True)
    own = own.assign(other=[head_rows.head_name(int(x), int(y)) for x, y in others])
    chart(
        figures.overlap_matrix(
            own,
            measure,
            _kinds_of(ref, seed),
            dark=theme.is_dark(),
            subtitle=f"seed {seed}, {text.unit_name(compared.unit).lower()} probe, "
            f"{own['name'].nunique()} heads; ◆ induction, ■ previous token",
        ),
        key=f"overlaps_{measure}",
        alt=figures.overlap_alt(own, measure),
        file_name=f"{ref.name}-overlaps-{compared.unit}",
    )
    export_buttons(rows, name=f"{ref.name}-overlaps-{compared.unit}", key="overlaps_file")


def _kinds_of(ref: RunRef, seed: int) -> dict[str, str]:
    traced = service.traced(ref)
    own = head_rows.with_names(traced[traced["seed"] == seed])
    return dict(zip(own["name"], own["unit"], strict=True))


def _seed(seeds: list[int], key: str) -> int:
    names = [str(s) for s in seeds]
    state.read_choice(key, names, names[0])
    return int(st.selectbox("Seed", names, key=key, bind="query-params", width=90) or names[0])


def _kinds(ref: RunRef, compared: Comparison) -> None:
    if not data.has(ref, "head_effects"):
        empty_state(text.NO_EFFECTS, data.run_of(ref).command_for("head_effects"))
        return
    rows = data.table(ref, "head_effects", where=(("unit", compared.unit),))
    own = rows[rows["measure"].isin(["score", "same_kind", "other_kind"])]
    own = own[own["arm"].isin(compared.arms)]
    if own.empty:
        st.caption(text.EMPTY_ARMS)
        return
    facts(
        [
            Fact(
                f"Same kind ÷ other kind, {text.arm_name(arm)}",
                theme.number(ratio, 2),
                "",
                "Size of the effect on other heads of the same kind over that on heads of the "
                "other kind.",
            )
            for arm in ("delete_top", "augment_top")
            if (ratio := head_rows.ratio_of_kinds(own, arm)) is not None
        ]
    )
    chart(
        figures.kinds_dots(
            own,
            dark=theme.is_dark(),
            subtitle=f"samples of the {text.unit_name(compared.unit).lower()} head changed; "
            "bars: 95 % t-interval over seeds",
        ),
        key="kinds",
        alt=heads_emergence.effects_alt(own, "score"),
        file_name=f"{ref.name}-transfer-{compared.unit}",
    )
    export_buttons(own, name=f"{ref.name}-transfer-{compared.unit}", key="kinds_file")


def catalysts(ref: RunRef, compared: Comparison) -> None:
    """Which structures the top samples have, when they come, and what they look like."""
    left, right = st.columns(2, gap="large")
    with left:
        _structures(ref, compared)
    with right:
        _timing(ref, compared)
    verdicts(ref, ("structure", "planted", "timing"))
    _gallery(ref, compared)


def _structures(ref: RunRef, compared: Comparison) -> None:
    if not data.has(ref, "head_tags"):
        empty_state(text.NO_TAGS, data.run_of(ref).command_for("head_tags"))
        return
    rows = data.table(ref, "head_tags", where=(("unit", compared.unit),))
    if rows.empty:
        st.caption(text.NO_TAGS)
        return
    chart(
        figures.enrichment(
            rows,
            dark=theme.is_dark(),
            subtitle=f"n = {int(rows['n_seeds'].max())} seeds; bars: 95 % interval; 1: as common "
            "as among all samples",
        ),
        key="enrichment",
        alt=figures.enrichment_alt(rows),
        file_name=f"{ref.name}-structures-{compared.unit}",
    )
    export_buttons(rows, name=f"{ref.name}-structures-{compared.unit}", key="enrichment_file")


def _timing(ref: RunRef, compared: Comparison) -> None:
    traced = service.traced(ref)
    own = traced[(traced["unit"] == compared.unit) & traced["seed"].isin(compared.seeds)]
    windows = head_rows.branches(arms_table(ref))
    own = own[own["seed"].isin(windows.index)]
    if own.empty:
        empty_state(text.NO_INFLUENCE, data.run_of(ref).command_for("head_influence"))
        return
    share = float(service.study_of(ref).get("top_share") or TOP_SHARE)
    starts = windows["branch_step"].to_dict()
    parts = []
    for choice in own.to_dict("records"):
        seed = int(choice["seed"])
        head = head_rows.head_name(int(choice["layer"]), int(choice["head"]))
        found = service.influence(ref, seed, compared.unit)
        part = head_rows.timing(found, head, int(starts[seed]), share, PARTS)
        parts.append(part.assign(seed=seed))
    frame = pd.concat(parts, ignore_index=True)
    scores = data.table(ref, "head_scores", where=(("arm", "baseline"),))
    curves = head_rows.score_curves(
        scores[scores["seed"].isin(own["seed"])], own, compared.unit, windows
    )
    means = head_rows.bands(curves)
    chart(
        figures.timing(
            frame,
            means[means["x"].between(0, float(frame["x"].max()) * (1 + 1 / PARTS))],
            dark=theme.is_dark(),
            subtitle=f"top {share:.0%} of the samples of {len(own)} seeds; 1: spread evenly; thin: "
            "a seed",
            unit=compared.unit,
        ),
        key="timing",
        alt=f"Density of the top samples over {PARTS} parts of the window, from "
        f"{frame['density'].min():.2f} to {frame['density'].max():.2f} times even.",
        file_name=f"{ref.name}-timing-{compared.unit}",
    )
    export_buttons(frame, name=f"{ref.name}-timing-{compared.unit}", key="timing_file")


def _gallery(ref: RunRef, compared: Comparison) -> None:
    traced = service.traced(ref)
    own = traced[(traced["unit"] == compared.unit) & traced["seed"].isin(compared.seeds)]
    if own.empty or not st.toggle(text.CATALYST_GALLERY, key="gallery", bind="query-params"):
        return
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        seed = _seed(sorted(int(s) for s in own["seed"]), "gallery_seed")
        natural = st.toggle(
            "Natural text only", key="natural", bind="query-params", help=text.NATURAL_HELP
        )
    choice = own[own["seed"] == seed].iloc[0]
    head = head_rows.head_name(int(choice["layer"]), int(choice["head"]))
    rows = service.top_samples(ref, seed, compared.unit, head, SHOWN, natural=natural)
    which = "natural samples" if natural else "samples"
    st.caption(
        f"The {len(rows)} {which} that raise the score of head {head} of seed {seed} most. "
        f"{text.REPEATS}"
    )
    sample_list(ref, rows, "", key="gallery_samples", link="open on Heads")
    asked = state.read_text("sample")
    if asked:
        door(
            "heads",
            f"Open sample {asked} on the Heads page",
            ":material/visibility:",
            seed=str(seed),
            head=head,
            probe=text.unit_name(compared.unit),
            sample=asked,
        )
