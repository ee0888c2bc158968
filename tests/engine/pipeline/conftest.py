"""A small corpus, a run trained on it and a model of other hands, for what looks at heads."""

from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="session")
def heads_corpus(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Forty documents, words and repeated lines, a fifth of them held out."""
    from engine.config import CorpusConfig
    from engine.corpus.build import build_corpus

    root = tmp_path_factory.mktemp("heads-corpus")
    (root / "texts").mkdir()
    generator = np.random.default_rng(0)
    words = [
        "".join(map(chr, generator.integers(97, 107, n))) for n in generator.integers(2, 7, 97)
    ]
    for number in range(40):
        picked = [str(word) for word in generator.choice(words, 61)]
        text = " ".join(picked) if number % 2 else "\n".join([" ".join(picked[:7])] * 9)
        (root / "texts" / f"{number:02d}.txt").write_text(f"{number} {text}", encoding="utf-8")
    config = CorpusConfig(preset=None, path=str(root / "texts"), validation_share=0.2)
    return str(build_corpus(config, root).path)


@pytest.fixture(scope="session")
def heads_run(heads_corpus: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a dense run of ours, trained for eleven steps with two micro-batches each."""
    from engine.config import TrainConfig
    from engine.pipeline.training import train_run

    config = TrainConfig(
        corpus=heads_corpus,
        n_layers=2,
        d_model=24,
        n_heads=3,
        vocab_size=300,
        context=17,
        n_prototypes=19,
        n_active=4,
        dense=True,
        batch_size=3,
        accumulate=2,
        steps=11,
        warmup=2,
        eval_every=11,
        eval_rows=6,
        checkpoint_every=4,
        device="cpu",
    )
    return train_run(config, str(tmp_path_factory.mktemp("heads-run") / "tiny")).path


@pytest.fixture(scope="session")
def foreign_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the checkpoints of a GPT-NeoX that was not trained here."""
    import torch
    from transformers import GPTNeoXForCausalLM

    from tests.engine.tiny_models import neox_config, tiny_tokenizer

    root = tmp_path_factory.mktemp("foreign") / "neox"
    for step in (100, 30, 2000):
        torch.manual_seed(step)
        GPTNeoXForCausalLM(neox_config()).save_pretrained(root / f"step-{step}")
        tiny_tokenizer().save(str(root / f"step-{step}" / "tokenizer.json"))
    return root
