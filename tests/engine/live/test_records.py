import numpy as np
import pandas as pd
import pytest

from engine.errors import PromptError
from engine.live.records import NEAREST, label, matched_random


RATES = pd.DataFrame({"prototype": range(101), "firing_rate": np.geomspace(1e-5, 0.5, 101)})


def test_each_member_gets_a_partner_of_its_own_rate():
    """At 101 rates over five decades a partner lies within a few steps."""
    chosen = (3, 50, 97)
    found = matched_random(RATES, chosen, seed=1)
    distance = np.abs(np.sort(found) - np.sort(chosen))
    assert (distance <= NEAREST + 1).all()
    assert not set(found) & set(chosen)


def test_partners_are_drawn_without_replacement():
    """A crowded neighbourhood still gives different prototypes."""
    chosen = tuple(range(40, 80))
    found = matched_random(RATES, chosen, seed=2)
    assert len(set(found)) == len(chosen)
    assert matched_random(RATES, chosen, seed=2) == found
    assert matched_random(RATES, chosen, seed=3) != found


def test_prototypes_that_never_fire_are_matched_with_each_other():
    """A rate of 0 has no logarithm, but a place below the smallest."""
    rates = pd.DataFrame({"prototype": range(40), "firing_rate": [0.0] * 20 + [0.1] * 20})
    assert set(matched_random(rates, (0, 5), seed=0)) <= set(range(20))


def test_more_than_half_of_the_bank_has_no_control():
    """The sentence says how many may be chosen."""
    with pytest.raises(PromptError, match="at most half"):
        matched_random(RATES, range(60), seed=0)


def test_a_label_joins_its_two_levels():
    """Either may be empty."""
    assert label("grammar", "article") == "grammar · article"
    assert label("", "article") == "article"
    assert label("", "") == ""
