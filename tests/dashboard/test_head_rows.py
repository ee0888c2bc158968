"""Head tables as rows: chosen heads, curves aligned at the branch, bands, timing."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dashboard import head_rows as rows


def scores() -> pd.DataFrame:
    """Two seeds whose windows open at steps 20 and 30; head 1.0 induces, 0.1 looks back."""
    found = []
    for seed, branch in ((0, 20), (1, 30)):
        for arm, unit, first in (("baseline", "", 10), ("delete_top", "induction", branch + 10)):
            for step in range(first, branch + 31, 10):
                for layer, head in ((0, 0), (0, 1), (1, 0)):
                    induces, looks = (layer, head) == (1, 0), (layer, head) == (0, 1)
                    late = 0.0 if arm == "baseline" else -0.1
                    found.append(
                        {
                            "seed": seed,
                            "arm": arm,
                            "unit": unit,
                            "step": step,
                            "layer": layer,
                            "head": head,
                            "prefix_matching": 0.01 * (step - branch) * induces + late + 0.3,
                            "previous_token": 0.5 * looks,
                            "duplicate_token": 0.0,
                        }
                    )
    return pd.DataFrame(found)


def windows() -> pd.DataFrame:
    arms = pd.DataFrame(
        {"seed": [0, 1], "branch_step": [20, 30], "end_step": [50, 60], "arm": "baseline"}
    )
    return rows.branches(arms)


NONE = pd.DataFrame(columns=["seed", "unit", "layer", "head"])


def test_the_head_of_a_kind_is_the_chosen_one_else_the_highest_of_the_baseline():
    """A seed without arms for a kind has a curve of that kind all the same."""
    baseline = scores()[scores()["arm"] == "baseline"]
    choices = pd.DataFrame([{"seed": 1, "unit": "induction", "layer": 0, "head": 0}])
    found = rows.chosen_heads(baseline, choices, ["induction", "previous_token"])
    names = {
        (r["seed"], r["unit"]): rows.head_name(r["layer"], r["head"])
        for r in found.to_dict("records")
    }
    assert names == {
        (0, "induction"): "1.0",
        (0, "previous_token"): "0.1",
        (1, "induction"): "0.0",
        (1, "previous_token"): "0.1",
    }


def curves() -> pd.DataFrame:
    everything = scores()
    chosen = rows.chosen_heads(everything[everything["arm"] == "baseline"], NONE, ["induction"])
    return rows.score_curves(everything, chosen, "induction", windows())


def test_seeds_are_aligned_at_their_branch_and_arms_begin_there():
    """At step 0 an arm has the baseline's value: it is the same run until then."""
    found = rows.from_the_branch(curves())
    arm = found[(found["arm"] == "delete_top") & (found["seed"] == 1)]
    base = found[(found["arm"] == "baseline") & (found["seed"] == 1)].set_index("x")["value"]
    assert arm["x"].tolist() == [0, 10, 20, 30]
    assert arm["step"].tolist() == [30, 40, 50, 60]
    assert arm["value"].iloc[0] == base[0]
    assert arm["value"].iloc[1] == pytest.approx(base[10] - 0.1)
    assert not found.duplicated(["panel", "seed", "arm", "x"]).any()
    assert len(rows.from_the_branch(found)) == len(found)


def test_a_band_is_the_t_interval_where_every_seed_has_a_value():
    """A mean of seeds that come and go would jump by itself."""
    found = rows.bands(curves().assign(value=lambda f: f["value"] + f["seed"]))
    base = found[found["arm"] == "baseline"].set_index("x")
    assert base.index.min() == -10  # seed 0 has no step before its tenth from the branch
    values = np.array([0.3, 1.3])
    half = stats.t.ppf(0.975, 1) * values.std(ddof=1) / np.sqrt(2)
    assert base.loc[0, "mean"] == pytest.approx(values.mean())
    assert base.loc[0, "high"] - base.loc[0, "mean"] == pytest.approx(half)
    one = rows.bands(curves()[lambda f: f["seed"] == 0])
    assert one["low"].isna().all()


def test_influence_is_read_by_head_and_a_skipped_sample_is_nan():
    """The store gives lists, with their empty places masked."""
    frame = pd.DataFrame(
        {
            "step": [3, 3],
            "row": [0, 1],
            "influence": [
                np.array([1.0, -2.0], np.float32),
                np.ma.masked_array(np.zeros(2, np.float32), mask=[True, True]),
            ],
        }
    )
    found = rows.influence_matrix(frame, ["0.0", "0.1"])
    assert found.loc[0, "0.1"] == -2
    assert found.loc[1, ["0.0", "0.1"]].isna().all()
    assert rows.influence_matrix(frame.iloc[:0], ["0.0"]).columns.tolist() == ["step", "row", "0.0"]


def test_timing_finds_where_the_top_samples_lie():
    """Even influence is 1 everywhere; what lies in one of four parts is four times as dense."""
    steps = np.repeat(np.arange(100, 140), 5)
    late = np.where(steps >= 130, 2.0, 1e-9)
    found = rows.timing(pd.DataFrame({"step": steps, "row": 0, "0.0": late}), "0.0", 100, 0.25, 4)
    assert found["density"].tolist() == [0, 0, 0, 4]
    assert found["mass"].iloc[-1] == pytest.approx(4, rel=1e-6)
    even = pd.DataFrame({"step": steps, "row": 0, "0.0": 1.0})
    assert rows.timing(even, "0.0", 100, 1.0, 4)["mass"].tolist() == pytest.approx([1, 1, 1, 1])


def test_the_ratio_of_kinds_is_of_sizes():
    """Without an effect on the other kind there is none."""
    effects = pd.DataFrame(
        {
            "arm": ["delete_top"] * 2,
            "measure": ["same_kind", "other_kind"],
            "effect": [-0.5, 0.05],
        }
    )
    assert rows.ratio_of_kinds(effects, "delete_top") == pytest.approx(10)
    assert rows.ratio_of_kinds(effects, "augment_top") is None
    assert rows.ratio_of_kinds(effects.assign(effect=[1.0, 0.0]), "delete_top") is None


def test_the_nearest_checkpoint_is_taken():
    """A link may name a step of another seed."""
    assert rows.nearest_step([25, 50, 75], 61) == 50
    assert rows.nearest_step([25, 50, 75], None) == 75
