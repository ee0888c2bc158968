"""Heads over checkpoints: each measured once, whatever happens between."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from engine.devices import resolve_device
from engine.errors import CacheStale, UnsupportedModel
from engine.mda.patterns import head_scores
from engine.mda.settings import ProbeConfig
from engine.pipeline import heads_monitor
from engine.pipeline.heads_models import find_source, load_decoder
from engine.pipeline.heads_monitor import monitor_heads
from engine.pipeline.heads_monitor_settings import MonitorConfig
from engine.store import check_run, read_table


CONFIG = MonitorConfig(
    probe=ProbeConfig(sequences=5, length=14), rows=6, context=19, batch_size=3, device="cpu"
)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Calls of the measurement, which still happens."""
    calls = []
    real = heads_monitor.measure

    def counting(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == getattr(counting, "fails_at", 0):
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(heads_monitor, "measure", counting)
    calls.append(counting)  # first entry: the function itself, so that a test can make it fail
    return calls


def tables(run: Any) -> list[pd.DataFrame]:
    return [read_table(run, name) for name in ("head_scores", "head_losses")]


def test_every_head_of_every_checkpoint_has_its_scores(
    foreign_models: Path, heads_corpus: str, tmp_path: Path
):
    """Against the measurement itself, on the frequent tokens of the corpus."""
    source = find_source(str(foreign_models))
    run = monitor_heads(source, CONFIG, run=str(tmp_path / "seen"), corpus=heads_corpus)
    assert check_run(run) == []
    scores, losses = tables(run)
    assert len(scores) == 3 * 2 * 2
    assert losses["checkpoint"].tolist() == ["step-30", "step-100", "step-2000"]
    assert losses[["loss", "icl", "copy_loss"]].notna().all(axis=None)
    (vocabulary,) = (run.path / "monitor").glob("vocabulary-*.npy")
    model = load_decoder(source, source.checkpoints[1], resolve_device("cpu"))
    found = head_scores(model, np.load(vocabulary), CONFIG.probe)
    at = scores[scores["step"] == 100]
    for name, values in found.items():
        np.testing.assert_allclose(at[name], values.flatten(), atol=2e-6)
    facts = run.manifest["stages"]["monitor"]
    assert "mean loss of tokens" in facts["icl"]
    assert facts["probe_tokens"]["from"] == "frequent tokens of the corpus"


def test_a_stopped_call_goes_on_and_a_longer_list_measures_the_new_ones(
    foreign_models: Path, tmp_path: Path, measured: list[Any]
):
    """Three checkpoints: stopped in the second, then one more call, then nothing is left."""
    source, folder = find_source(str(foreign_models)), str(tmp_path / "seen")
    measured[0].fails_at = 3
    with pytest.raises(KeyboardInterrupt):
        monitor_heads(source, CONFIG, run=folder)
    measured[0].fails_at = 0
    first = find_source(str(foreign_models), ["30", "100"])
    assert len(tables(monitor_heads(first, CONFIG, run=folder))[1]) == 2
    assert len(measured) == 4  # the failed call, and step-100; step-30 was kept
    whole = monitor_heads(source, CONFIG, run=folder)
    assert len(measured) == 5
    other = monitor_heads(source, CONFIG, run=str(tmp_path / "other"))
    for one, two in zip(tables(whole), tables(other), strict=True):
        pd.testing.assert_frame_equal(one, two)
    monitor_heads(source, CONFIG, run=folder)
    assert len(measured) == 8


def test_without_a_corpus_the_model_says_what_it_has_seen(foreign_models: Path, tmp_path: Path):
    """There are no held-out rows then, so no loss and no ICL score."""
    source = find_source(str(foreign_models), ["30"])
    run = monitor_heads(source, CONFIG, run=str(tmp_path / "seen"))
    scores, losses = tables(run)
    assert losses[["loss", "icl"]].isna().all(axis=None)
    assert scores["previous_token"].gt(0).all()
    probe_tokens = run.manifest["stages"]["monitor"]["probe_tokens"]
    assert probe_tokens["from"] == "the model's own predictions"


def test_a_run_of_ours_says_how_many_tokens_it_had_seen(heads_run: Path, tmp_path: Path):
    """Two micro-batches of three rows of 17 tokens a step."""
    losses = tables(monitor_heads(find_source(str(heads_run)), CONFIG, run=str(tmp_path / "o")))[1]
    assert losses["tokens_seen"].tolist() == [8 * 102, 11 * 102]


def test_runs_of_other_things_are_not_written_over(
    foreign_models: Path, heads_run: Path, tmp_path: Path
):
    """Neither a trained run nor the heads of another model."""
    source = find_source(str(foreign_models), ["30"])
    with pytest.raises(CacheStale, match="Choose another name with --run"):
        monitor_heads(source, CONFIG, run=str(heads_run))


def test_a_model_without_heads_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Before anything is measured."""
    from tests.engine.tiny_decoders import decoder

    decoder("mamba", num_hidden_layers=1, state_size=4).save_pretrained(tmp_path / "mamba")
    with pytest.raises(UnsupportedModel, match="no attention projections"):
        monitor_heads(find_source(str(tmp_path / "mamba")), CONFIG, run=str(tmp_path / "seen"))
