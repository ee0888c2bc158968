"""Routing of a map: tables, the router that is kept, and what is refused."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from engine.atlas.factorisation import HeadSettings
from engine.cli.app import app
from engine.errors import CacheMissing, ConfigError, PromptError
from engine.live.routing import QuestionRouter
from engine.pipeline.models_routing import RoutingSettings, route_models
from engine.pipeline.synthetic_map import write_synthetic_models
from engine.pipeline.synthetic_models import SyntheticMap
from engine.store import RunWriter, check_run, open_run, read_table


SHAPE = SyntheticMap(n_questions=37)
QUICK = RoutingSettings(
    seeds=2,
    rates=(0.01,),
    neighbours=(3,),
    new_groups=2,
    head=HeadSettings(n_dimensions=5, batch=4096, epochs=1),
)


@pytest.fixture(scope="module")
def routed(tmp_path_factory):
    """A synthetic map with routes of its own in place of made-up ones."""
    path = tmp_path_factory.mktemp("map") / "map"
    write_synthetic_models(path, shape=SHAPE)
    return route_models(path, QUICK)


def test_every_question_is_tested_once_by_every_router(routed):
    """Answers are those of the map, and a question has one fold."""
    rows = read_table(routed, "model_routes")
    assert len(rows) == 3 * 37 * len(SHAPE.names)
    assert rows.groupby("question")["fold"].nunique().eq(1).all()
    answers = read_table(routed, "model_answers").set_index("model")["correct"]
    for row in rows.sample(53, random_state=0).to_dict("records"):
        assert row["correct"] == answers[row["model"]][row["question"]]


def test_results_follow_from_the_routes(routed):
    """Accuracy of the nearest neighbours, which have one seed, counted again from the table."""
    rows = read_table(routed, "model_routes", where={"router": "knn"})
    table = rows.pivot_table("predicted", "model", "question").loc[SHAPE.names]
    right = rows.pivot_table("correct", "model", "question", aggfunc="first").loc[SHAPE.names]
    chosen = table.to_numpy().argmax(0)
    results = read_table(routed, "model_routing_results").set_index(["router", "group", "metric"])
    accuracy = right.to_numpy()[chosen, np.arange(37)].mean()
    assert results.loc[("knn", "all", "accuracy"), "value"] == pytest.approx(accuracy, abs=1e-6)
    groups = {group for _, group, _ in results.index}
    assert {"all", "probe", "held_out", "unseen", "domain:jobs", "new_models:k=20"} <= groups
    assert ("able", "new_lineages:retrained", "correctness") in results.index
    assert check_run(open_run(routed.path)) == []


def test_a_second_call_has_nothing_to_do(routed):
    """The stage is known by its inputs and settings."""
    before = routed.stamp
    assert route_models(routed.path, QUICK).stamp == before


def test_a_typed_question_is_ranked(routed):
    """Every model once, the likeliest first, with an interval and the questions that back it."""
    router = QuestionRouter.open(routed.path)
    found = router.rank("Which number 5?")
    models = found.models
    assert sorted(models["model"]) == sorted(SHAPE.names)
    assert (models["predicted"].diff().dropna() <= 0).all()
    assert (models["low"] <= models["predicted"]).all()
    assert (models["predicted"] <= models["high"]).all()
    assert found.neighbours["prompt"].iloc[0] == "number 5?"
    assert found.answers.shape == (len(models), len(found.neighbours))
    assert found.unknown_words == ("which",)
    np.testing.assert_allclose(models["backing"], found.answers.mean(1))
    assert found.single_best == models.loc[models["accuracy"].idxmax(), "model"]


def test_a_model_that_came_later_is_ranked_too(routed, tmp_path):
    """By its embedding alone; the others' predictions do not move."""
    write_synthetic_models(tmp_path / "grown", shape=SHAPE)
    grown = route_models(tmp_path / "grown", QUICK)
    before = QuestionRouter(grown).rank("number 5?").models.set_index("model")
    writer = RunWriter.resume(grown.path)
    rows = read_table(grown, "model_embeddings")
    own = rows[rows["model"] == "root-1"].assign(model="newcomer")
    writer.begin_stage("embed", {"synthetic": True, "seed": 0})
    writer.write_table("model_embeddings", pd.concat([rows, own], ignore_index=True))
    writer.finish_stage("embed", {})
    after = QuestionRouter.open(grown.path).rank("number 5?").models.set_index("model")
    assert after.loc["newcomer", "predicted"] == pytest.approx(before.loc["root-1", "predicted"])
    np.testing.assert_allclose(after.loc[before.index, "predicted"], before["predicted"])
    assert np.isnan(after.loc["newcomer", "accuracy"])


def test_a_budget_leaves_large_models_out(routed):
    """And a budget below the smallest is said to be so."""
    router = QuestionRouter.open(routed.path)
    assert (router.rank("number 5?", max_parameters=1500).models["n_parameters"] <= 1500).all()
    with pytest.raises(PromptError, match="the smallest has 1,000"):
        router.rank("number 5?", max_parameters=3)


@pytest.mark.parametrize("text", ["", "  \n ", "x" * 4_001])
def test_a_text_that_is_no_question_is_refused(routed, text):
    """In a sentence, before anything is computed."""
    with pytest.raises(PromptError):
        QuestionRouter.open(routed.path).rank(text)


def test_nothing_known_is_no_neighbour(routed):
    """A text of unknown words alone is backed by nothing."""
    found = QuestionRouter.open(routed.path).rank("quo vadis")
    assert found.neighbours.empty
    assert found.models["backing"].isna().all()


def test_a_map_without_a_router_says_which_command_makes_one(tmp_path):
    """Synthetic maps hold routes and keep no router."""
    write_synthetic_models(tmp_path / "bare")
    with pytest.raises(CacheMissing, match="models route"):
        QuestionRouter.open(tmp_path / "bare")


def test_unknown_embeddings_are_refused(routed):
    """With the variants that there are."""
    with pytest.raises(ConfigError, match="able"):
        route_models(routed.path, RoutingSettings(variant="nothing"))


def test_the_command_ranks_models_for_a_question(routed):
    """As JSON, and as a table."""
    call = ["models", "route", "--run", str(routed.path), "--question", "number 5?", "--top", "3"]
    done = CliRunner().invoke(app, [*call, "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert len(found["models"]) == 3
    assert set(found["single_best"]) == {"model", "predicted"}
    shown = CliRunner().invoke(app, call)
    assert found["models"][0]["model"] in shown.stdout
