"""Adapting roots, and telling beforehand which is worth it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from engine.errors import CacheMissing, ConfigError
from engine.pipeline import models_selection
from engine.pipeline.models_adapting import (
    Adaptation,
    AdaptJob,
    AdaptSettings,
    adapt_roots,
    reopened_zoo,
)
from engine.pipeline.models_relations_reading import open_map_data
from engine.pipeline.models_selection import (
    adapted_of,
    result_frame,
    select_models,
    told_candidates,
)
from engine.pipeline.models_zoo import build_zoo, open_zoo
from engine.pipeline.synthetic_map import write_synthetic_models
from engine.store import check_run, open_run, read_table
from engine.zoo.planning import make_plan
from engine.zoo.schedules import Schedules
from engine.zoo.training import Schedule


ROOTS = ("opt-d-xs-1", "gpt2-b-s-1")
QUICK = AdaptSettings(targets=("animals", "jobs"), schedule=Schedule(steps=2, learning_rate=1e-3))


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    """Two roots, trained for one step and asked 29 questions."""
    plan = make_plan().part(ROOTS, "roots")
    found = open_zoo(
        tmp_path_factory.mktemp("zoo"),
        plan=plan,
        schedules=Schedules().shortened(1),
        n_questions=29,
    )
    build_zoo(found)
    return found


@pytest.fixture(scope="module")
def rows():
    """Made-up scores of the synthetic map's roots: the third is best at every target."""
    generator = np.random.default_rng(0)
    listed = []
    for number in range(5):
        for target in ("animals", "calendar", "jobs"):
            before = float(generator.uniform(0.2, 0.3))
            after = 0.9 if number == 2 else float(generator.uniform(0.3, 0.6))
            key = {"model": f"root-{number}", "target": target, "seed": 0}
            listed.append({**key, "before": before, "after": after})
    return pd.DataFrame(listed)


def test_every_root_is_adapted_to_every_target_once(zoo, tmp_path):
    """The same numbers again, and nothing is trained twice."""
    first = adapt_roots(zoo, tmp_path, QUICK)
    assert [tuple(row) for row in first[["model", "target"]].to_numpy()] == [
        (spec.id, target) for spec in zoo.plan.roots for target in QUICK.targets
    ]
    assert first["after"].between(0, 1).all()
    files = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(files) == 4
    next(iter(files)).unlink()
    again = adapt_roots(zoo, tmp_path, QUICK)
    pd.testing.assert_frame_equal(first, again)
    assert sum(path.stat().st_mtime_ns == files[path] for path in files) == 3


def test_an_adaptation_of_other_training_is_done_anew(zoo, tmp_path):
    """What was kept names the training it came from."""
    item = Adaptation(ROOTS[0], "jobs", 0)
    job = AdaptJob(zoo, tmp_path, QUICK.schedule)
    job.run(item)
    assert job.is_done(item)
    assert not AdaptJob(zoo, tmp_path, Schedule(steps=3, learning_rate=1e-3)).is_done(item)
    assert not job.is_done(item._replace(seed=1))


def test_unknown_targets_and_unfinished_zoos_are_refused(zoo, tmp_path):
    """With what there is, and the command that helps."""
    with pytest.raises(ConfigError, match="no target 'poetry'"):
        adapt_roots(zoo, tmp_path, AdaptSettings(targets=("poetry",)))
    empty = open_zoo(tmp_path / "empty", plan=zoo.plan, n_questions=29)
    with pytest.raises(CacheMissing, match="lacks 2 of its roots"):
        adapt_roots(empty, tmp_path, QUICK)
    with pytest.raises(CacheMissing, match="holds no zoo"):
        reopened_zoo(tmp_path)


def test_candidates_are_told_by_every_method_without_themselves(rows, tmp_path):
    """And the tables hold each of them, means and chance beside."""
    write_synthetic_models(tmp_path / "map")
    data = open_map_data(tmp_path / "map")
    adapted = adapted_of(rows, data.names)
    predicted = dict(told_candidates(data, adapted))
    methods = {method for _, _, method in predicted}
    assert methods >= {"able", "paper", "options", "before", "neighbours", "log_parameters"}
    assert {outcome for outcome, _, _ in predicted} == {"after", "gain"}
    np.testing.assert_array_equal(predicted["gain", "one_root_out", "before"], -adapted.before)
    frame = result_frame(adapted, predicted)
    keys = ["target", "outcome", "regime", "method", "metric"]
    assert not frame.duplicated(keys).any()
    found = frame.set_index(keys)["value"]
    assert found["jobs", "after", "one_root_out", "random", "regret@1"] > 0
    means = frame[(frame["target"] == "mean") & (frame["metric"] == "ndcg@10")]
    assert means["n"].eq(3).all()
    changed = rows.assign(after=np.where(rows["model"] == "root-0", 0.0, rows["after"]))
    other = adapted_of(changed, data.names)
    again = dict(told_candidates(data, other))
    for key, told in predicted.items():
        outcome, _, method = key
        # the mean of all is laid under every root alike; what is told of a root is the rest
        shift = other.outcome(outcome).mean(0) - adapted.outcome(outcome).mean(0)
        own = again[key][0] - (0 if method == "before" else shift)
        np.testing.assert_allclose(told[0], own, atol=1e-9, err_msg=str(key))


def test_the_stage_is_written_and_known(rows, tmp_path, monkeypatch):
    """From adaptations to tables of the run; a second call has nothing to do."""
    write_synthetic_models(tmp_path / "map")
    monkeypatch.setattr(models_selection, "adapt_roots", lambda *_, **__: rows)
    monkeypatch.setattr(models_selection, "reopened_zoo", lambda path: path)
    done = select_models(tmp_path / "map", Path("anywhere"))
    assert len(read_table(done, "model_adaptations")) == 15
    assert check_run(open_run(done.path)) == []
    assert select_models(tmp_path / "map", Path("anywhere")).stamp == done.stamp


def test_a_map_of_no_zoo_asks_for_its_folder(tmp_path):
    """Where the catalogue's places are no zoo's, --zoo names it."""
    write_synthetic_models(tmp_path / "map")
    with pytest.raises(CacheMissing, match=r"holds no zoo|--zoo"):
        select_models(tmp_path / "map")


def test_too_few_roots_are_refused(rows):
    """Nothing can be told of four from three."""
    with pytest.raises(ConfigError, match="4 adapted roots"):
        adapted_of(rows[rows["model"] != "root-0"], ("root-1", "root-2", "root-3", "root-4"))
