"""Enrichment of structures among influential samples, counted by hand."""

import math

import numpy as np
import pytest

from engine.mda.enrichment import Scored, enrichment_over_seeds, tag_rows


def scored(shift: int = 0) -> Scored:
    """Twenty samples and a skipped one: the two largest repeat, as do two of the others."""
    influence = np.arange(-9.0, 11.0)
    tags = ["prose"] * 20
    for place in (19, 18, 3, 4 + shift):
        tags[place] = "repeat code"
    domain = ["planted" if place in (19, 3) else "code" for place in range(20)]
    return Scored(np.append(influence, np.nan), [*tags, "repeat"], [*domain, "web"])


def test_enrichment_by_hand():
    """Top tenth of 20: both repeat, 4 of 20 do: five times as many."""
    rows = {(row["tag"], row["sign"]): row for row in tag_rows("induction", [scored(), scored(1)])}
    found = rows["repeat", "positive"]
    assert (found["share"], found["base"], found["enrichment"]) == (1, 0.2, 5)
    assert (found["low"], found["high"], found["n_seeds"]) == (5, 5, 2)
    assert rows["domain:planted", "positive"]["enrichment"] == pytest.approx(0.5 / 0.1)
    assert rows["repeat", "negative"]["share"] == 0
    assert rows["prose", "negative"]["enrichment"] == pytest.approx(1 / 0.8)
    assert ("domain:web", "positive") not in rows  # its only sample was skipped


def test_enrichment_has_a_t_interval_over_seeds():
    """Ratios of 5 and 10/3: mean 25/6, t(1) = 12.7062 times an error of 5/6."""
    seed = scored()
    tags = ["repeat" if place in (8, 13) else own for place, own in enumerate(seed.tags)]
    other = Scored(seed.influence, tags, seed.domain)
    rows = {(row["tag"], row["sign"]): row for row in tag_rows("induction", [seed, other])}
    found = rows["repeat", "positive"]
    assert found["enrichment"] == pytest.approx(25 / 6)
    assert found["base"] == pytest.approx(0.25)
    assert found["high"] - found["enrichment"] == pytest.approx(12.7062 * 5 / 6, rel=1e-4)


def test_the_top_never_holds_the_other_sign():
    """One of thirty raises the head, although a tenth of them would be three."""
    influence = -np.arange(1.0, 31.0)
    influence[7] = 1.0
    own = Scored(influence, ["repeat"] * 30, ["code"] * 30)
    assert own.tops()["positive"].nonzero()[0].tolist() == [7]
    assert own.tops()["negative"].sum() == 3


def test_enrichment_can_leave_a_domain_out():
    """Without the planted rows 18 remain: of the two on top one repeats, of all two."""
    over, share, base = enrichment_over_seeds([scored()], ["repeat"], without="planted")
    assert share == pytest.approx(1 / 2)
    assert base == pytest.approx(2 / 18)
    assert over.mean == pytest.approx(4.5)
    assert math.isnan(enrichment_over_seeds([scored()], ["table"])[0].mean)
