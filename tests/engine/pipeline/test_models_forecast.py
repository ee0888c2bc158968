"""Forecasts of a map: scores, regimes, baselines, and what is refused."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from engine.cli.app import app
from engine.errors import ConfigError
from engine.pipeline.models_forecast import forecast_scores
from engine.pipeline.models_forecast_reading import open_forecast_map
from engine.pipeline.synthetic_map import write_synthetic_models
from engine.store import check_run, open_run, read_table


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A synthetic map with forecasts of its own."""
    path = tmp_path_factory.mktemp("map") / "map"
    write_synthetic_models(path)
    return forecast_scores(path)


@pytest.mark.slow
def test_scores_are_accuracies_on_questions_that_are_no_probes(told):
    """Counted again from the answers."""
    questions = read_table(told, "model_questions", order_by="question")
    kept = ~questions["is_probe"].to_numpy() & (questions["domain"] == "jobs").to_numpy()
    answers = read_table(told, "model_answers").set_index("model")["correct"]
    rows = read_table(told, "model_forecasts", where={"target": "jobs", "method": "able"})
    for row in rows.to_dict("records"):
        right = np.asarray(answers[row["model"]])[kept]
        assert row["true"] == pytest.approx(right.mean(), abs=1e-6)


@pytest.mark.slow
def test_every_method_is_told_under_every_regime(told):
    """And what is left out together grows from regime to regime."""
    rows = read_table(told, "model_forecasts")
    assert set(rows["regime"]) == {"one_model_out", "one_root_out", "one_family_out"}
    methods = {"able", "paper", "square_root", "options", "log_likelihood", "probe_accuracy"}
    methods |= {"log_parameters", "relatives", "neighbours", "mean", "other_domains"}
    methods |= {"able_whole", "contrast_whole"}
    assert set(rows["method"]) >= methods
    regimes = open_forecast_map(told.path).regimes()
    assert [len(set(groups)) for groups in regimes.values()] == [20, 5, 3]
    assert check_run(open_run(told.path)) == []


@pytest.mark.slow
def test_relatives_of_a_left_out_root_are_no_help(told):
    """So they tell the mean, and their correlation is not reported."""
    rows = read_table(told, "model_forecast_results", where={"method": "relatives"})
    metrics = {r: set(own["metric"]) for r, own in rows.groupby("regime")}
    assert "spearman" in metrics["one_model_out"]
    assert metrics["one_root_out"] == {"mae"}


@pytest.mark.slow
def test_results_follow_from_the_forecasts(told):
    """The mean absolute error of one row, counted again."""
    where = {"target": "jobs", "method": "options", "regime": "one_root_out"}
    rows = read_table(told, "model_forecasts", where=where)
    found = read_table(told, "model_forecast_results", where=where | {"metric": "mae"})
    error = (rows["true"] - rows["predicted"]).abs().mean()
    assert found["value"].iloc[0] == pytest.approx(error, abs=1e-6)


@pytest.mark.slow
def test_a_domain_s_probes_are_left_out_of_embeddings(told):
    """Its columns count for nothing, and a set that is no domain changes nothing."""
    found = open_forecast_map(told.path)
    without = found.without_domain("jobs")
    assert without.shape == found.embeddings.shape
    assert found.without_domain("poetry") is None
    words = found._words
    columns = found.data.columns
    jobs = [p for p, probe in enumerate(columns.probes.probes) if probe.source == "jobs"]
    assert jobs
    assert any(words[:, columns.block(p)].any() for p in jobs)


@pytest.mark.slow
def test_scores_of_a_file_are_told(told, tmp_path):
    """Models without a number in every column are left out; sizes are no scores."""
    lines = ["hub_id,params_b,musr,bbh", *(f"root-{i},1.5,{0.1 * i},{0.2}" for i in range(5))]
    lines += ["root-0-mild_sft,2,0.4,", "stranger,3,0.5,0.6"]
    (tmp_path / "scores.csv").write_text("\n".join(lines))
    found = open_forecast_map(told.path, tmp_path / "scores.csv")
    assert found.scores.targets == ("musr", "bbh")
    assert found.scores.names == tuple(f"root-{i}" for i in range(5))
    chosen = open_forecast_map(told.path, tmp_path / "scores.csv", ["musr"])
    assert len(chosen.scores.names) == 6


@pytest.mark.parametrize(
    ("text", "columns", "sentence"),
    [
        ("a,b\n1,2\n", (), "no column model"),
        ("model,musr\nroot-0,0.5\n", (), "know 1 models"),
        ("model,musr\nroot-0,0.5\n", ("gpqa",), "no column of numbers gpqa"),
        ("model,note\nroot-0,good\n", (), "no column of numbers; write one"),
    ],
)
@pytest.mark.slow
def test_files_that_are_no_scores_are_refused(told, tmp_path, text, columns, sentence):
    """With what is missing."""
    (tmp_path / "scores.csv").write_text(text)
    with pytest.raises(ConfigError, match=sentence):
        open_forecast_map(told.path, tmp_path / "scores.csv", columns)


@pytest.mark.slow
def test_the_command_prints_means_over_targets(told):
    """As a table and as JSON; what is there is not computed again."""
    done = CliRunner().invoke(app, ["models", "forecast", "--run", str(told.path)])
    assert done.exit_code == 0, done.output
    assert "one_root_out" in done.stdout
    done = CliRunner().invoke(app, ["models", "forecast", "--run", str(told.path), "--json"])
    assert json.loads(done.stdout)["results"][0]["target"] == "animals"
