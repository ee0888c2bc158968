"""Which sequences of a pool are listed, and where two methods place them; pure.

A scored pool has one row a sequence: sequence, document, doc_id, domain, position (of its first
token in the document), n_tokens and score (positive: the text lowers the query's loss).
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd


TAILS = {"helpful": "most helpful", "harmful": "most harmful"}
"""Either end of the scores: what lowers the query's loss most, and what raises it most."""
SIZES = (10, 20, 50, 100)
"""How many sequences may be listed."""


@dataclass(frozen=True)
class Listing:
    """The sequences on screen and what a filter keeps from it."""

    rows: pd.DataFrame
    """Rows of the scored pool with `place`, 1 for the first of the whole tail; best first."""
    tail: str
    domain: str
    """Domain kept; empty keeps all."""
    n_hidden: int
    """Sequences among the first `n` of the tail that the filter hides."""
    n: int
    """Sequences asked for."""
    n_pool: int
    n_domain: int
    """Sequences of the pool in the domain kept; the whole pool without a filter."""

    @property
    def sentence(self) -> str:
        """What is listed, and what is not."""
        word = TAILS[self.tail]
        if not self.domain:
            return f"The {len(self.rows):,} {word} of {self.n_pool:,} sequences{self._idle}."
        return (
            f"The {len(self.rows):,} {word} of {self.n_domain:,} sequences of {self.domain}; "
            f"{self.n_hidden:,} of the {min(self.n, self.n_pool):,} {word} of the whole pool lie "
            f"in other domains and are hidden{self._idle}."
        )

    @property
    def _idle(self) -> str:
        """How many of the listed do not what the tail is named for; empty where all do."""
        scores = self.rows["score"]
        n = int(((scores <= 0) if self.tail == "helpful" else (scores >= 0)).sum())
        beyond = "less" if self.tail == "helpful" else "more"
        return f"; {n:,} of those listed score 0 or {beyond}" if n else ""


def listing(scored: pd.DataFrame, tail: str, n: int, domain: str = "") -> Listing:
    """The first `n` sequences of one tail, of one domain if `domain` is not empty.

    Args:
        scored: The scored pool.
        tail: One of `TAILS`.
        n: Sequences listed at most.
        domain: Domain kept.
    """
    ordered = placed(scored, tail)
    kept = ordered if not domain else ordered[ordered["domain"] == domain]
    hidden = int((ordered.head(n)["domain"] != domain).sum()) if domain else 0
    return Listing(
        rows=kept.head(n).reset_index(drop=True),
        tail=tail,
        domain=domain,
        n_hidden=hidden,
        n=n,
        n_pool=len(scored),
        n_domain=len(kept),
    )


def placed(scored: pd.DataFrame, tail: str) -> pd.DataFrame:
    """The pool from one end to the other with the `place` of each sequence, 1 first."""
    ordered = scored.sort_values(
        ["score", "sequence"], ascending=[tail == "harmful", True], kind="stable"
    )
    return ordered.assign(place=np.arange(1, len(ordered) + 1))


@dataclass(frozen=True)
class Comparison:
    """Two methods over the same pool and query."""

    ranks: pd.DataFrame
    """sequence, name, rank_first and rank_second (1 is the most helpful; equal scores share the
    mean of their places), n_tops (of how many methods it is among the first n)."""
    n: int
    shared: int
    """Sequences among the first `n` of both."""
    expected: float
    """How many two random orders share, on average."""
    correlation: float
    """Spearman's rank correlation over the whole pool; NaN where one method ties all."""


def compare(first: pd.DataFrame, second: pd.DataFrame, n: int) -> Comparison:
    """Places of the sequences that both methods scored, most helpful first."""
    both = first[["sequence", "domain", "doc_id", "score"]].merge(
        second[["sequence", "score"]], on="sequence", suffixes=("_first", "_second")
    )
    top = min(n, len(both))
    first_top, second_top = (_among(both[f"score_{which}"], top) for which in ("first", "second"))
    ranks = pd.DataFrame(
        {
            "sequence": both["sequence"],
            "name": both["domain"].astype(str) + " · " + both["doc_id"].astype(str),
            "rank_first": both["score_first"].rank(ascending=False),
            "rank_second": both["score_second"].rank(ascending=False),
            "n_tops": first_top.astype(int) + second_top.astype(int),
        }
    )
    varied = (
        len(both) > 1 and both["score_first"].nunique() > 1 and both["score_second"].nunique() > 1
    )
    return Comparison(
        ranks=ranks,
        n=top,
        shared=int((first_top & second_top).sum()),
        expected=top * top / max(1, len(ranks)),
        correlation=(
            float(both["score_first"].corr(both["score_second"], method="spearman"))
            if varied
            else float("nan")
        ),
    )


def _among(scores: pd.Series, n: int) -> np.ndarray:
    """Which are the first `n` by falling score; of equal ones the earlier in the pool."""
    chosen = np.zeros(len(scores), bool)
    chosen[np.argsort(-scores.to_numpy(dtype=np.float64), kind="stable")[:n]] = True
    return chosen


def parse_span(raw: str, n_tokens: int) -> tuple[int, int] | None:
    """First and last token of a span written `4-9`; None where it names no such tokens.

    Token 0 cannot be in it: nothing stands before it, so nothing predicts it.
    """
    first, _, last = raw.partition("-")
    last = last or first
    if not (first.isdecimal() and last.isdecimal() and len(raw) < 16):
        return None
    span = int(first), int(last)
    return span if 1 <= span[0] <= span[1] < n_tokens else None
