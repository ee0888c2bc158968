"""From any causal LM's folder to a run whose logits are the model's own, bit for bit."""

import dataclasses
from pathlib import Path

import pytest
import torch
from transformers import LlamaForCausalLM

from engine.config import CorpusConfig, RetrofitConfig
from engine.corpus.build import build_corpus
from engine.corpus.tokenizer import save_tokenizer
from engine.errors import CacheStale, ConfigError, UnsupportedModel
from engine.pipeline import retrofit
from engine.pipeline.coverage import measure_coverage
from engine.pipeline.retrofit import retrofit_run
from engine.prism.checkpoints import load_prism
from engine.store import check_run, read_table
from tests.engine.tiny_models import CONTEXT, TEXTS, llama_config, tiny_tokenizer


@pytest.fixture
def config(house: Path) -> RetrofitConfig:
    """A tiny model with its tokenizer, and a corpus of thirty short files."""
    texts = house / "texts"
    texts.mkdir()
    for number in range(30):
        (texts / f"{number:02d}.txt").write_text(f"{number} " + TEXTS[number % 3] * (2 + number))
    built = build_corpus(CorpusConfig(preset=None, path=str(texts), validation_share=0.2))
    LlamaForCausalLM(llama_config()).save_pretrained(house / "base")
    save_tokenizer(tiny_tokenizer(), house / "base")
    return RetrofitConfig(
        model=str(house / "base"),
        corpus=str(built.path),
        n_prototypes=31,
        n_active=5,
        fit_tokens=700,
        context=17,
        steps=9,
        batch_tokens=128,
        device="cpu",
    )


def test_the_run_emits_the_models_own_logits(config: RetrofitConfig):
    """Only a bank was added, and the folder holds nothing else of the model."""
    run = retrofit_run(config, "fitted")
    assert check_run(run) == []
    assert run.manifest["kind"] == "retrofit"
    assert sorted(p.name for p in run.model_path.iterdir()) == [
        "bank.safetensors",
        "config.json",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    model, _ = load_prism(run.model_path)
    base = LlamaForCausalLM.from_pretrained(config.model).eval()
    ids = torch.arange(11)[None]
    assert torch.equal(model(input_ids=ids).logits, base(input_ids=ids).logits)
    log = read_table(run, "training_log")
    assert len(log) == config.steps
    assert log["learning_rate"].iloc[0] == pytest.approx(config.learning_rate)
    assert log["learning_rate"].is_monotonic_decreasing
    assert not (run.path / "states.partial").exists()
    facts = run.manifest["stages"]["retrofit"]
    assert facts["final"]["residual_share"] < facts["kmeans"]["residual_share"]


def test_an_interrupted_run_reads_no_state_twice_and_ends_the_same(
    config: RetrofitConfig, monkeypatch: pytest.MonkeyPatch
):
    """A long pass over a large model must survive a kill."""
    monkeypatch.setattr(retrofit, "ROWS", 4)
    whole, _ = load_prism(retrofit_run(config, "whole").model_path)
    read: list[int] = []

    def killed(items, *, label="", total=None):
        del total
        for number, item in enumerate(items):
            if label == "Reading states":
                if not read and number == 3:
                    raise KeyboardInterrupt
                yield item
                continue
            yield item

    with pytest.raises(KeyboardInterrupt):
        retrofit_run(config, "killed", progress=killed)

    def counted(items, *, label="", total=None):
        if label == "Reading states":
            read.append(int(total or 0))
        return items

    resumed, _ = load_prism(retrofit_run(config, "killed", progress=counted).model_path)
    assert read == [-(-(700 // 17) // 4) - 3]
    assert torch.equal(resumed.prototypes, whole.prototypes)


def test_a_finished_run_is_not_fitted_again(config: RetrofitConfig, monkeypatch):
    """The same command opens it; other settings under its name are refused."""
    retrofit_run(config, "fitted")
    monkeypatch.setattr(retrofit, "fit_bank", lambda *_: pytest.fail("fitted again"))
    assert retrofit_run(config, "fitted").name == "fitted"

    with pytest.raises(CacheStale, match="other settings"):
        retrofit_run(dataclasses.replace(config, seed=1), "fitted")


def test_coverage_is_measured_beside_random_and_k_means_banks(config: RetrofitConfig):
    """On held-out tokens, like any other run."""
    retrofit_run(config, "fitted")
    coverage = read_table(measure_coverage("fitted"), "coverage").set_index("bank")
    assert set(coverage.index) == {"trained", "kmeans", "random"}
    found = coverage["coverage_r2"].to_dict()
    assert found["trained"] > found["random"]


def test_a_context_beyond_the_models_is_refused(config: RetrofitConfig):
    """The sentence names the limit."""

    with pytest.raises(ConfigError, match=f"at most {CONTEXT} tokens"):
        retrofit_run(dataclasses.replace(config, context=31), "long")


def test_a_model_without_a_tokenizer_is_refused(config: RetrofitConfig):
    """Its ids would mean nothing."""
    for file in Path(config.model).glob("tokenizer*"):
        file.unlink()
    with pytest.raises(UnsupportedModel, match="tokenizer"):
        retrofit_run(config, "mute")
