"""Effects of arms that were made up, so that each is known."""

import math

import numpy as np
import pandas as pd
import pytest

from engine.errors import ConfigError
from engine.mda.effects import crossing, effect_rows, paired_difference, seed_effects
from engine.mda.intervals import log_t_interval, t_interval
from tests.engine.mda.small_study import BRANCH, CHOSEN, END, EVERY, LEVELS, rising, small_study


TOP = ("delete_top", "induction")
LATE = (4.0, 6.0, 11.0)
STEPS = np.arange(BRANCH + EVERY, END + 1, EVERY)


def late(seed, head, steps):
    return rising(LATE[seed])(seed, head, steps)


def row(table: pd.DataFrame, measure: str, arm: str = "delete_top") -> pd.Series:
    return table[(table["arm"] == arm) & (table["measure"] == measure)].iloc[0]


def test_a_made_up_delay_has_its_t_interval():
    """Delays of 4, 6 and 11 steps: mean 7, standard deviation sqrt(13), t(2) = 4.3027."""
    found = row(effect_rows(seed_effects(small_study({TOP: late}))), "delay")
    assert found["n_seeds"] == 3
    assert found["effect"] == pytest.approx(7)
    assert found["high"] - 7 == pytest.approx(4.302653 * math.sqrt(13 / 3), rel=1e-5)
    assert 7 - found["low"] == pytest.approx(found["high"] - 7)


def test_scores_and_losses_are_means_over_the_window():
    """Against a loop over its steps; the baseline's earlier steps count for nothing."""
    frames = small_study({TOP: late}, seeds=[2])
    table = effect_rows(seed_effects(frames))
    changes = [max(0.0, (step - BRANCH - LATE[2]) / 50) - (step - BRANCH) / 50 for step in STEPS]
    mean = sum(changes) / len(changes)
    assert row(table, "score")["effect"] == pytest.approx(mean)
    assert row(table, "same_kind")["effect"] == pytest.approx(0.6 * mean)
    others = [LEVELS[head] for head in LEVELS if head not in (CHOSEN, (1, 2))]
    assert row(table, "other_kind")["effect"] == pytest.approx(mean * np.mean(others))
    assert row(table, "final_score")["effect"] == pytest.approx(-LATE[2] / 50)
    assert row(table, "copy_loss")["effect"] == pytest.approx(-3 * mean)
    assert row(table, "icl")["effect"] == pytest.approx(-0.5 * mean)
    assert row(table, "loss")["effect"] == pytest.approx(0)
    assert math.isnan(row(table, "score")["low"])


def test_a_head_that_never_forms_is_counted_at_the_end_of_the_window():
    """Half is reached 25 steps into 50, so the delay is at least 25."""
    frames = small_study({TOP: lambda seed, head, steps: np.zeros(len(steps))})
    effects = seed_effects(frames)
    found = effects[effects["measure"] == "delay"]
    assert found["effect"].tolist() == [END - 75] * 3
    assert found["censored"].all()
    assert not effects.loc[effects["measure"] != "delay", "censored"].any()


def test_a_head_that_had_formed_before_the_window_has_no_delay():
    """Nothing in the window can move what came before it."""
    frames = small_study({TOP: late})
    before = frames.scores["step"] <= BRANCH
    frames.scores.loc[before, "prefix_matching"] = 0.6
    effects = seed_effects(frames)
    assert effects.loc[effects["measure"] == "delay", "effect"].isna().all()
    assert "delay" not in set(effect_rows(effects)["measure"])


def test_earlier_heads_have_negative_delays():
    """An arm that is ahead by ten steps of 25."""
    frames = small_study({("augment_top", "induction"): rising(-10)})
    found = row(effect_rows(seed_effects(frames)), "delay", "augment_top")
    assert found["effect"] == pytest.approx(-10)
    assert found["low"] == found["high"] == pytest.approx(-10)


def test_random_arms_belong_to_every_kind_and_top_arms_to_their_own():
    """Two kinds of heads: the arm on one kind's samples has no row for the other."""
    frames = small_study({TOP: late, ("delete_random", ""): rising(1)})
    second = frames.choices.assign(unit="previous_token", layer=0, head=2)
    both = type(frames)(
        frames.scores,
        frames.losses,
        frames.arms,
        pd.concat([frames.choices, second]),
        {"induction": "prefix_matching", "previous_token": "previous_token"},
    )
    table = effect_rows(seed_effects(both))
    named = set(table[["arm", "unit"]].itertuples(index=False, name=None))
    assert named == {
        ("delete_top", "induction"),
        ("delete_random", "induction"),
        ("delete_random", "previous_token"),
    }


def test_arms_of_a_seed_are_compared_in_pairs():
    """Two delaying arms, of which the seeds differ far more than the arms do."""
    frames = small_study({TOP: late, ("delete_random", ""): lambda s, h, x: late(s, h, x + 2)})
    effects = seed_effects(frames)
    paired = paired_difference(effects, "induction", "delay", ("delete_top", "delete_random"))
    assert paired == pytest.approx([2, 2, 2])
    missing = paired_difference(effects, "induction", "delay", ("delete_top", "replace_top"))
    assert len(missing) == 0


def test_a_level_is_reached_between_two_steps():
    """By straight lines; at once where the first value is above."""
    steps = np.array([10, 20, 40])
    values = np.array([0.0, 0.2, 0.6])
    assert crossing(steps, values, 0.3) == pytest.approx(25)
    assert crossing(steps, values + 1, 0.3) == 10
    assert math.isnan(crossing(steps, values, 0.7))


def test_a_window_without_measurements_is_refused():
    """A sentence, not a mean of nothing."""
    frames = small_study({TOP: late})
    frames.arms["end_step"] = BRANCH + 1
    with pytest.raises(ConfigError, match="delete_top of seed 0"):
        seed_effects(frames)


def test_intervals_leave_out_what_is_missing():
    """One value has a mean alone; a geometric mean is that of the logarithms."""
    assert t_interval(np.array([np.nan, 3.0])).mean == 3
    assert math.isnan(t_interval(np.array([3.0])).low)
    assert t_interval(np.array([np.nan])).n == 0
    one, other = log_t_interval(np.array([2.0, 8.0])), t_interval(np.log([2.0, 8.0]))
    assert one.mean == pytest.approx(4)
    assert one.high == pytest.approx(math.exp(other.high))
