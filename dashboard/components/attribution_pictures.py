"""The pool as a whole: its scores, the domains of the list, and another method's order beside."""

import numpy as np
import pandas as pd
import streamlit as st

from dashboard import rankings, state, text_attribution as text, theme
from dashboard.components.chart import chart
from dashboard.components.clicked import new_click
from dashboard.components.facts import Fact, facts
from dashboard.figures import attribution, attribution_ranks
from dashboard.rankings import Listing


def scores_chart(scored: pd.DataFrame, found: Listing, *, likeness: bool) -> None:
    """Histogram of every score of the pool."""
    scores = scored["score"].to_numpy(dtype=np.float64)
    chart(
        attribution.score_histogram(scores, dark=theme.is_dark(), n=found.n, likeness=likeness),
        key="attribution_scores",
        alt=attribution.score_alt(scores),
        file_name="attribution-scores",
    )


def domains_chart(scored: pd.DataFrame, found: Listing) -> None:
    """Domains of the first n of the whole tail against the pool, whatever the filter keeps."""
    top = rankings.placed(scored, found.tail).head(found.n)
    shares = attribution_ranks.domain_shares(top, scored)
    chart(
        attribution_ranks.domain_dots(
            shares, dark=theme.is_dark(), listed=f"{len(top):,} {rankings.TAILS[found.tail]}"
        ),
        key="attribution_domains",
        alt=attribution_ranks.domain_alt(shares),
        file_name="attribution-domains",
    )


def comparison_panel(
    first: pd.DataFrame, second: pd.DataFrame, names: tuple[str, str], n: int
) -> None:
    """Overlap and rank agreement of two methods, and the place of every sequence in both.

    Args:
        first: The pool scored by the page's method.
        second: The same by the method compared.
        names: Both methods.
        n: Places counted as the top.
    """
    found = rankings.compare(first, second, n)
    facts(
        [
            Fact(
                f"Top {found.n} shared",
                f"{found.shared} of {found.n}",
                f"by chance {theme.number(found.expected, 2)}",
                "Sequences among the most helpful of both methods.",
            ),
            Fact(
                "Rank correlation",
                theme.signed(found.correlation),
                f"n = {len(found.ranks):,}",
                "Spearman's, over all sequences of the pool, for this query alone.",
            ),
        ]
    )
    key = "attribution_ranks"
    points = chart(
        attribution_ranks.rank_scatter(
            found.ranks, dark=theme.is_dark(), first=names[0], second=names[1], n=found.n
        ),
        key=key,
        alt=attribution_ranks.rank_alt(found.ranks, names[0], names[1], found.n),
        file_name=f"attribution-{names[0]}-{names[1]}",
        select=("points",),
    )
    clicked = new_click(key, points)
    if clicked is not None and clicked != state.read_int("sequence", None):
        state.write(sequence=clicked)
        st.rerun()
    st.caption(
        f"{names[0]}: {text.method_words(names[0])}. {names[1]}: {text.method_words(names[1])}."
    )
