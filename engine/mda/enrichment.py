"""Which structures are more frequent among a head's most influential samples than among all."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from engine.mda.intervals import Interval, t_interval
from engine.mda.overlaps import top_mask
from engine.mda.tails import SIGNS, TOP_SHARE


DOMAIN = "domain:"
"""Prefix under which a sample's domain stands among its tags."""


@dataclass(frozen=True)
class Scored:
    """The samples of one seed with their influence on one head.

    influence: positive where the sample raises the head's score; NaN where it was skipped.
    tags: structures of each sample, separated by spaces.
    domain: domain of each sample.
    """

    influence: Float[np.ndarray, " samples"]
    tags: Sequence[str]
    domain: Sequence[str]

    def __post_init__(self) -> None:
        assert len(self.influence) == len(self.tags) == len(self.domain)

    def marks(self) -> dict[str, Bool[np.ndarray, " samples"]]:
        """Which samples have each tag, domains among them."""
        named = [
            {*tags.split(), f"{DOMAIN}{domain}"}
            for tags, domain in zip(self.tags, self.domain, strict=True)
        ]
        every = sorted(set[str]().union(*named))
        return {tag: np.array([tag in own for own in named]) for tag in every}

    def tops(self, share: float = TOP_SHARE) -> dict[str, Bool[np.ndarray, " samples"]]:
        """The samples of each sign with the largest influence.

        A share of all that were scored, as the arms of a study take it; fewer where fewer are of
        the sign.
        """
        found = {}
        for sign in SIGNS:
            values = self.influence if sign == "positive" else -self.influence
            ordered = np.where(np.isfinite(values), values, -np.inf).astype(np.float64)
            scored = np.isfinite(values)
            top = np.zeros(len(values), bool)
            top[scored] = top_mask(ordered[scored][:, None], share)[:, 0]
            found[sign] = top & (ordered > 0)
        return found


def enrichment(
    top: Bool[np.ndarray, " samples"],
    mark: Bool[np.ndarray, " samples"],
    among: Bool[np.ndarray, " samples"],
) -> tuple[float, float, float]:
    """Share of the top samples with a mark, share of all with it, and the one over the other.

    Args:
        top: the most influential samples.
        mark: samples that have what is asked for.
        among: samples that count at all.

    Returns:
        NaN where there is nothing to divide by.
    """
    share = _share(mark[top & among])
    base = _share(mark[among])
    return share, base, share / base if base > 0 else float("nan")


def _share(marks: Bool[np.ndarray, " samples"]) -> float:
    return float(marks.mean()) if len(marks) else float("nan")


def tag_rows(unit: str, seeds: Iterable[Scored]) -> list[dict[str, object]]:
    """Rows of `head_tags` of one kind of head: means over seeds.

    The enrichment is the mean over seeds of each seed's, with its t-interval; a seed in which no
    sample has a tag does not count for it.

    Args:
        unit: the kind.
        seeds: each seed's samples with their influence on its chosen head.
    """
    found: list[dict[str, object]] = []
    for scored in seeds:
        among = np.isfinite(scored.influence)
        tops = scored.tops()
        for tag, mark in scored.marks().items():
            for sign, top in tops.items():
                share, base, ratio = enrichment(top, mark, among)
                found.append(
                    {"tag": tag, "sign": sign, "share": share, "base": base, "ratio": ratio}
                )
    frame = pd.DataFrame(found, columns=["tag", "sign", "share", "base", "ratio"]).dropna()
    rows = []
    for (tag, sign), own in frame.groupby(["tag", "sign"]):
        over = t_interval(own["ratio"].to_numpy(np.float64))
        shares = {"share": own["share"].mean(), "base": own["base"].mean()}
        ratio = {"enrichment": over.mean, "low": over.low, "high": over.high}
        rows.append({"unit": unit, "tag": tag, "sign": sign, "n_seeds": over.n, **shares, **ratio})
    return rows


def enrichment_over_seeds(
    seeds: Iterable[Scored], tags: Iterable[str], *, without: str = ""
) -> tuple[Interval, float, float]:
    """Enrichment, among the samples that raise a head most, of those with any of some tags.

    Args:
        seeds: each seed's samples.
        tags: tags of which one is enough.
        without: domain whose samples do not count, neither among the top ones nor among all.

    Returns:
        The mean over seeds with its t-interval, the mean share among the top ones and among all.
    """
    wanted, found = set(tags), []
    for scored in seeds:
        marks = np.array([not wanted.isdisjoint(own.split()) for own in scored.tags])
        among = np.isfinite(scored.influence) & (np.asarray(scored.domain, str) != without)
        kept = Scored(np.where(among, scored.influence, np.nan), scored.tags, scored.domain)
        found.append(enrichment(kept.tops()["positive"], marks, among))
    values = np.array(found, np.float64).reshape(-1, 3)
    shares = [t_interval(values[:, place]).mean for place in (0, 1)]
    return t_interval(values[:, 2]), shares[0], shares[1]
