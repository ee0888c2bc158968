"""The prototype card: what one prototype is, where it fires and what it writes."""

import pandas as pd
import streamlit as st

from dashboard import data, state, text, theme
from dashboard.components.chart import chart
from dashboard.components.doors import escape_markdown
from dashboard.components.facts import Fact, facts
from dashboard.components.neighbours import mark_value, neighbours, sensitive
from dashboard.components.panel import attempt
from dashboard.figures import prototype as figures


def card_head(prototype: pd.Series, *, level: str = "###") -> None:
    """Number, label and the numbers that qualify it."""
    number = int(prototype["prototype"])
    st.markdown(f"{level} #{number}&ensp;{escape_markdown(prototype['label'])}")
    facts(card_facts(prototype))


def card_facts(prototype: pd.Series) -> list[Fact]:
    """The numbers of a card."""
    row = prototype
    score = row["label_score"]
    random = row["random_label_score"]
    domain = row["top_domain"] if isinstance(row["top_domain"], str) else "–"
    return [
        Fact(
            "Label score",
            "not measured" if pd.isna(score) else theme.number(score),
            "" if pd.isna(random) else f"random label {theme.number(random)}",
            text.LABEL_SCORE,
        ),
        Fact(
            "Firing rate",
            theme.percent(row["firing_rate"]),
            f"{theme.count(row['n_active_tokens'])} tokens",
            "Share of scanned tokens on which it is among the active prototypes.",
        ),
        Fact(
            "Activation",
            theme.number(row["max_activation"]),
            f"max · mean {theme.number(row['mean_activation'])}",
            "Cosine of state and prototype after ReLU and top-k, where it is active.",
        ),
        Fact("Documents", theme.count(row["n_documents"]), "", "Documents in which it is active."),
        Fact("Prefers", domain, theme.percent(row["top_domain_share"], 2), text.PREFERS),
        Fact(
            "In unwanted text",
            theme.percent(row["unwanted_share"], 2),
            "",
            "Share of its active tokens that lie in the unwanted domain.",
        ),
        Fact("Norm", theme.number(row["norm"]), "", "Euclidean norm of the prototype vector."),
    ]


def card_figures(ref: data.RunRef, prototype: pd.Series, *, key: str) -> None:
    """Histogram and domains on the left, token-logit signature on the right."""
    number = int(prototype["prototype"])
    left, right = st.columns(2)
    with left:
        histogram_chart(ref, number, key=key)
        domain_chart(ref, number, key=key)
    with right:
        signature_chart(ref, prototype, key=key)


def histogram_chart(ref: data.RunRef, number: int, *, key: str, marked: bool = True) -> None:
    """Activation histogram; the hovered token's bin is marked, the clicked one's if `marked`."""
    rows = data.one(ref, "prototype_histograms", number)
    if rows.empty:
        st.caption(text.missing_table("prototype_histograms", ref.name))
        return
    value = mark_value(rows) if marked else None
    with st.container(key=f"{key}_histogram"):
        chart(
            figures.activation_histogram(rows, dark=theme.is_dark(), value=value),
            key=f"{key}_histogram_chart",
            alt=_histogram_alt(number, rows),
            file_name=f"prototype-{number}-activations",
        )


def _histogram_alt(number: int, rows: pd.DataFrame) -> str:
    filled = rows[rows["count"] > 0]
    if filled.empty:
        return f"Prototype {number} is active on no scanned token."
    return (
        f"Histogram of prototype {number}'s activations: {int(filled['count'].sum()):,} tokens "
        f"between {filled['low'].min():.2f} and {filled['high'].max():.2f}."
    )


def domain_chart(ref: data.RunRef, number: int, *, key: str) -> None:
    """Share of its tokens by domain."""
    rows = data.one(ref, "prototype_domains", number)
    if rows.empty:
        return
    first = rows.sort_values("share", ascending=False).iloc[0]
    chart(
        figures.domain_bars(rows, dark=theme.is_dark()),
        key=f"{key}_domains_chart",
        alt=f"Prototype {number} by domain: {first['domain']} leads with {first['share']:.0%}.",
        file_name=f"prototype-{number}-domains",
    )


def signature_chart(ref: data.RunRef, prototype: pd.Series, *, key: str, n: int = 8) -> None:
    """Tokens it raises and lowers; behind a button where it fires on unwanted text."""
    number = int(prototype["prototype"])
    rows, problem = attempt(data.signature, ref, number)
    if rows is None:
        st.caption(problem or "")
        return
    if rows.empty:
        st.caption(text.missing_table("prototype_signatures", ref.name))
        return
    if sensitive("", prototype) and not _revealed(f"{key}_{number}_signature"):
        return
    raised = " ".join(rows[rows["side"] == "top"].sort_values("rank")["token"].head(3))
    chart(
        figures.signature_bars(rows, dark=theme.is_dark(), n=n),
        key=f"{key}_signature_chart",
        alt=f"Signature of prototype {number}: raises most {raised}.",
        file_name=f"prototype-{number}-signature",
    )


def _revealed(name: str) -> bool:
    """Whether the reader has asked to see this; draws the button when not."""
    shown: set[str] = st.session_state.setdefault("headwater_revealed", set())
    if name in shown:
        return True
    with st.container(border=True):
        st.caption("The tokens of this signature may be offensive and are hidden.")
        st.button("Reveal the signature", on_click=shown.add, args=(name,), key=f"{name}_reveal")
    return False


def nearest_table(ref: data.RunRef, number: int, *, key: str) -> None:
    """Nearest prototypes; a row click opens the comparison."""
    near = data.one(ref, "prototype_neighbours", number)
    if near.empty:
        st.caption(text.missing_table("prototype_neighbours", ref.name))
        return
    known = data.prototypes(ref)[["prototype", "label", "label_score", "firing_rate"]]
    rows = near.sort_values("rank").merge(known, left_on="neighbour", right_on="prototype")
    shown = rows[["neighbour", "label", "cosine", "label_score"]]
    st.markdown("**Nearest prototypes**")
    event = st.dataframe(
        shown,
        key=f"{key}_{number}_nearest",
        hide_index=True,
        height=theme.table_height(len(shown), 247),
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "neighbour": st.column_config.NumberColumn("#", format="%d", width=52),
            "label": st.column_config.TextColumn("Label", width="medium"),
            "cosine": st.column_config.ProgressColumn(
                "Cosine", format="%.2f", min_value=0, max_value=1, color="gray"
            ),
            "label_score": st.column_config.NumberColumn("Label score", format="%.2f"),
        },
        alt=f"Prototypes nearest to {number} by cosine of their directions.",
    )
    picked = state.selected_rows(event)
    other = int(shown.iloc[picked[0]]["neighbour"]) if picked and picked[0] < len(shown) else None
    with st.container(horizontal=True, gap="small"):
        name = "the row above" if other is None else f"#{other}"
        if st.button(f"Open {name}", key=f"{key}_open", disabled=other is None):
            state.write(prototype=other, mark=None)
            st.rerun()
        if st.button(f"Compare with {name}", key=f"{key}_compare", disabled=other is None):
            state.write(compare=other)
            st.rerun()


def small_card(ref: data.RunRef, prototype: pd.Series, *, key: str) -> None:
    """Half of a comparison: head, histogram, signature, three neighbours."""
    number = int(prototype["prototype"])
    card_head(prototype, level="####")
    histogram_chart(ref, number, key=key, marked=False)
    signature_chart(ref, prototype, key=key, n=5)
    neighbours(ref, prototype, key=key, n_top=4, quantiles=False, links=False)
