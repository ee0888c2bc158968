"""A catalogue run over models made here: relatives come out nearest, and a kill loses nothing."""

import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from transformers import LlamaForCausalLM

from engine.able.files import read_facts
from engine.able.model import AttributionSettings
from engine.able.probe_sources import read_probes
from engine.config import PROJECT_ROOT
from engine.lm.packaged import PACKAGED
from engine.pipeline.models_catalogue import read_catalogue
from engine.pipeline.models_embed import MODELS, EmbedStudy, embed_catalogue
from engine.pipeline.models_local import (
    ARCHITECTURES,
    TUNED,
    LocalSettings,
    make_local_models,
    relatives_found,
    small_plan,
)
from engine.pipeline.models_neighbours import neighbours
from engine.pipeline.synthetic_map import write_synthetic_models
from engine.store import open_run, read_table
from engine.zoo.training import Schedule
from tests.engine.tiny_models import llama_config, tiny_tokenizer


STUDY = EmbedStudy(attribution=AttributionSettings(device="cpu", dtype="float32"))
SMOLLM2 = PROJECT_ROOT / "cache" / "models" / PACKAGED["smollm2"].folder
MINUTES = 10 * 60


def embedded(run, catalogue, n_questions):
    """A map over generated facts."""
    probes = read_probes(f"facts:{n_questions}", style="texts", sources=None)
    report = embed_catalogue(run, read_catalogue(catalogue), probes, STUDY)
    assert report.failed == {}
    return open_run(run)


def of_origin(run, origin):
    """Whether each derivative of a model is among its as many nearest models."""
    cards = read_table(run, "model_cards")
    family = cards.loc[cards["family"] == origin, "model"].tolist()
    assert len(family) == 8
    found = neighbours(run.path, origin, "contrast", len(family) - 1)["neighbours"]
    near = {each["model"] for each in found}
    return [name in near for name in family if name != origin]


def test_the_plan_has_nine_architectures_with_two_derivatives_each():
    """Eight at least are asked for."""
    plan = small_plan()
    assert len(plan.roots) == len(ARCHITECTURES) == 9
    assert len(plan.models) == 27
    assert {spec.derivation for spec in plan.models} == {"root", "quantised", "pruned"}


def test_relatives_among_the_nearest_are_counted(tmp_path):
    """The synthetic map keeps each root's models close together: all are found."""
    run = open_run(write_synthetic_models(tmp_path / "map"))
    family = ["root-0", "root-0-mild_sft", "root-0-quantised", "root-0-distilled"]
    found = relatives_found(run, family).set_index("model")
    assert found["of"].tolist() == [3] * 4
    assert (found["found"] <= 3).all()
    mixed = relatives_found(run, ["root-0", "root-1"]).set_index("model")
    assert mixed.loc["root-0", "outsider_rank"] == 1


@pytest.mark.slow
def test_derivatives_made_here_come_out_as_nearest_relatives(tmp_path):
    """Rounded, pruned, fine-tuned, merged and reordered copies of one model, among 27 others."""
    place = tmp_path / "origin-model"
    torch.manual_seed(5)
    LlamaForCausalLM(llama_config(max_position_embeddings=211)).eval().save_pretrained(place)
    tiny_tokenizer().save(str(place / "tokenizer.json"))
    settings = LocalSettings(
        small_steps=12, tuning=Schedule(steps=4, learning_rate=1e-4, warmup=1), tuning_context=27
    )
    catalogue = make_local_models(tmp_path / "made", "mine", place, settings)
    assert len(read_catalogue(catalogue).entries) == 27 + 1 + 7
    run = embedded(tmp_path / "map", catalogue, 12)
    assert all(of_origin(run, "mine"))
    cards = read_table(run, "model_cards")
    merged = cards.set_index("model").loc["mine-merged"]
    assert list(merged["parents"]) == [f"mine-{name}" for name in TUNED]


@pytest.mark.slow
def test_a_catalogue_run_killed_and_resumed_gives_the_same_embeddings(tmp_path):
    """Killed without warning while it works, by the system's own signal."""
    make_local_models(tmp_path / "made", None, settings=LocalSettings(small_steps=4))
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    command = [
        *(sys.executable, "-m", "engine", "models", "embed", "--dtype", "float32"),
        *("--catalogue", str(tmp_path / "made" / "catalogue.csv"), "--probes", "facts:12"),
    ]
    subprocess.run([*command, "--run", str(whole)], check=True, cwd=PROJECT_ROOT, timeout=MINUTES)
    process = subprocess.Popen([*command, "--run", str(killed)], cwd=PROJECT_ROOT)
    deadline = time.monotonic() + MINUTES
    while not any(killed.glob(f"{MODELS}/*/facts.json")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    finished = [path for path in (killed / MODELS).iterdir() if read_facts(path)]
    assert 0 < len(finished) < 27
    subprocess.run([*command, "--run", str(killed)], check=True, cwd=PROJECT_ROOT, timeout=MINUTES)
    tables = ("model_embeddings", "model_words", "model_options")
    for table in tables:
        assert (killed / f"{table}.parquet").read_bytes() == (
            whole / f"{table}.parquet"
        ).read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(not SMOLLM2.is_dir(), reason="SmolLM2 is a package of 90 MB")
def test_derivatives_of_smollm2_come_out_as_its_nearest_relatives(tmp_path):
    """A real model of 135 million parameters, among nine architectures made here."""
    settings = LocalSettings(small_steps=40)
    catalogue = make_local_models(tmp_path / "made", "real", SMOLLM2, settings)
    run = embedded(tmp_path / "map", catalogue, 16)
    assert all(of_origin(run, "real"))
