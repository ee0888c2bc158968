"""Which prototypes the table and the map show, and what each filter hides; pure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pandas as pd


SORTS = {
    "label_score": ("Label score", False),
    "firing_rate": ("Firing rate", False),
    "max_activation": ("Largest activation", False),
    "unwanted_share": ("Share in unwanted text", False),
    "top_domain_share": ("Share in its domain", False),
    "norm": ("Norm", False),
    "prototype": ("Number", True),
}
"""Columns the table sorts by: name on screen, and whether it starts from the smallest."""


@dataclass(frozen=True)
class Filters:
    """What the reader asked for; an empty value filters nothing."""

    query: str = ""
    """Words that label, role or signature must contain."""
    category: str = ""
    domain: str = ""
    density_low: float = 0.0
    """Lowest firing rate, share of tokens."""
    density_high: float = 1.0
    """Highest firing rate, share of tokens."""
    score: float = 0.0
    """Lowest label score; prototypes whose label could not be scored are hidden above 0."""
    dead: bool = False
    """Show prototypes that never fire."""
    picked: tuple[int, ...] = ()
    """Set lassoed on the map."""
    firing: tuple[int, ...] | None = None
    """Prototypes active on a sentence; None when no sentence was given."""


@dataclass(frozen=True)
class Filtered:
    """Rows that pass, and the reasons why others do not."""

    shown: pd.DataFrame
    on_map: pd.DataFrame
    """Rows that pass everything but the lasso."""
    hidden: pd.DataFrame
    """Rows the map draws grey."""
    reasons: list[tuple[str, int]]
    """Each filter with the number of prototypes it alone would hide."""

    def sentence(self, total: int) -> str:
        """How many are shown, and which filter hides how many."""
        if len(self.shown) == total:
            return f"All {total:,} prototypes shown."
        by = ", ".join(f"{name} ({n:,})" for name, n in self.reasons if n)
        return f"{total - len(self.shown):,} of {total:,} hidden by {by}."


def label(category: str, role: str) -> str:
    """The two levels of a label in one line."""
    return f"{category} · {role}" if role and role != category else category


def apply(frame: pd.DataFrame, filters: Filters, texts: pd.Series) -> Filtered:
    """Split prototypes into shown and hidden.

    Args:
        frame: Rows of `prototypes` with a `label` column.
        filters: What to keep.
        texts: Lower-case text searched, aligned with `frame`.
    """
    keeps = _keeps(frame, filters, texts)
    reasons = [(name, int((~keep).sum())) for name, keep in keeps]
    everything = pd.Series(True, index=frame.index)
    before_lasso = everything.copy()
    for name, keep in keeps:
        if name != "the lasso":
            before_lasso &= keep
    passing = before_lasso.copy()
    for _, keep in keeps:
        passing &= keep
    return Filtered(
        shown=frame[passing],
        on_map=frame[before_lasso],
        hidden=frame[~before_lasso],
        reasons=reasons,
    )


def _keeps(frame: pd.DataFrame, filters: Filters, texts: pd.Series) -> list[tuple[str, pd.Series]]:
    """One mask of what is kept for each filter in use."""
    rate = frame["firing_rate"]
    keeps: list[tuple[str, pd.Series]] = []
    if not filters.dead:
        keeps.append(("never firing", frame["n_active_tokens"] > 0))
    if filters.density_low > 0 or filters.density_high < 1:
        inside = (rate >= filters.density_low) & (rate <= filters.density_high)
        keeps.append(("firing rate", inside | (frame["n_active_tokens"] == 0)))
    if filters.score > 0:
        keeps.append(("label score", frame["label_score"].fillna(-1) >= filters.score))
    if filters.category:
        keeps.append(("category", frame["category"] == filters.category))
    if filters.domain:
        keeps.append(("domain", frame["top_domain"] == filters.domain))
    words = filters.query.lower().split()
    if words:
        hit = pd.Series(True, index=frame.index)
        for word in words:
            hit &= texts.str.contains(word, regex=False)
        keeps.append(("search", hit))
    if filters.firing is not None:
        keeps.append(("the sentence", frame["prototype"].isin(filters.firing)))
    if filters.picked:
        keeps.append(("the lasso", frame["prototype"].isin(filters.picked)))
    return keeps


def ordered(frame: pd.DataFrame, sort: str, firing: Sequence[int] | None = None) -> pd.DataFrame:
    """Rows in the table's order: by a sentence's activation first, else by `sort`."""
    if firing:
        place = {p: i for i, p in enumerate(firing)}
        return frame.sort_values("prototype", key=lambda s: s.map(place), kind="stable")
    ascending = SORTS[sort][1]
    by = [sort] if sort == "prototype" else [sort, "prototype"]
    order = [ascending] if sort == "prototype" else [ascending, True]
    return frame.sort_values(by, ascending=order, kind="stable", na_position="last")


def step(order: Collection[int], current: int | None, by: int) -> int | None:
    """The prototype `by` places on in the table's order, round the end; the first when absent."""
    ids = list(order)
    if not ids:
        return current
    if current not in ids:
        return ids[0]
    return ids[(ids.index(current) + by) % len(ids)]
