"""Loading: folders, adapters, tokenizers; what is unfit is refused by one sentence."""

import json
import sys
from pathlib import Path

import pytest
import torch

from engine.able.loading import adapter_base, gated_sentence, load_model, load_tokenizer
from engine.errors import CacheMissing, CacheStale, UnsupportedModel
from tests.assertions import assert_plain_sentence
from tests.engine.able.tiny_causal import save_tiny, tiny_model, tiny_tokenizer


@pytest.fixture
def folder(tmp_path):
    return save_tiny(tmp_path / "base")


def change(folder, **settings):
    path = Path(folder, "config.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))


def test_a_folder_is_loaded_frozen_with_its_tokenizer(folder):
    """Ready to be attributed."""
    loaded = load_model(folder, name="mine")
    assert loaded.name == "mine"
    assert loaded.context == 211
    assert not loaded.model.training
    assert not any(weight.requires_grad for weight in loaded.model.parameters())
    assert loaded.tokenizer("cat")["input_ids"] == tiny_tokenizer()("cat")["input_ids"]
    assert loaded.facts["architecture"] == "LlamaForCausalLM"
    assert loaded.facts["n_parameters"] == sum(w.numel() for w in tiny_model("llama").parameters())


def test_a_folder_is_loaded_in_half_precision(folder):
    """As the paper does."""
    loaded = load_model(folder, dtype=torch.bfloat16)
    assert {weight.dtype for weight in loaded.model.parameters()} == {torch.bfloat16}


@pytest.fixture
def adapter(tmp_path, folder):
    """A LoRA on the folder's model that changes what it says."""
    peft = pytest.importorskip("peft")
    model = peft.get_peft_model(
        tiny_model("llama"), peft.LoraConfig(r=3, target_modules=["q_proj", "down_proj"])
    )
    torch.manual_seed(1)
    for name, weight in model.named_parameters():
        if "lora_" in name:
            weight.data = torch.randn_like(weight) * 0.3
    model.save_pretrained(tmp_path / "adapter")
    path = tmp_path / "adapter" / "adapter_config.json"
    settings = json.loads(path.read_text()) | {"base_model_name_or_path": "../base"}
    path.write_text(json.dumps(settings))
    return model, tmp_path / "adapter"


def test_an_adapter_is_merged_into_its_base(adapter):
    """The base is found beside it, by name or by path."""
    model, path = adapter
    assert adapter_base(str(path)) == f"{path}/../base"
    loaded = load_model(str(path))
    tokens = torch.arange(5, 16)[None]
    with torch.no_grad():
        torch.testing.assert_close(loaded.model(tokens).logits, model(tokens).logits)
        plain = tiny_model("llama")(tokens).logits
    assert (loaded.model(tokens).logits - plain).abs().max() > 0.1


def test_an_unfit_adapter_says_why(adapter, monkeypatch):
    """Other shapes, no weights, no base, no peft."""
    _, path = adapter
    settings = json.loads((path / "adapter_config.json").read_text())
    (path / "adapter_config.json").write_text(json.dumps(settings | {"r": 5}))
    with pytest.raises(UnsupportedModel, match="does not fit its base"):
        load_model(str(path))
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(UnsupportedModel, match="adapters"):
        load_model(str(path))
    (path / "adapter_model.safetensors").unlink()
    with pytest.raises(CacheMissing, match="has no adapter_model"):
        load_model(str(path))
    (path / "adapter_config.json").write_text("{}")
    with pytest.raises(CacheStale, match="base_model_name_or_path"):
        load_model(str(path))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"quantization_config": {"quant_method": "gptq"}}, "quantised with gptq"),
        ({"architectures": ["BertForMaskedLM"]}, "BertForMaskedLM, no causal"),
        ({"architectures": ["LlamaModel"]}, "LlamaModel, no causal"),
        (
            {"architectures": ["T5ForConditionalGeneration"], "is_encoder_decoder": True},
            "encoder-decoder",
        ),
        ({"model_type": "own", "auto_map": {"AutoConfig": "own.Config"}}, "--allow-code"),
    ],
)
def test_what_the_configuration_shows_is_refused_before_weights_are_read(folder, settings, words):
    """Gigabytes are not read to learn that they are of no use."""
    change(folder, **settings)
    with pytest.raises(UnsupportedModel, match=words):
        load_model(folder)


def test_code_of_its_own_runs_only_when_allowed(folder):
    """A model folder is data unless the user says otherwise."""
    code = (
        "from transformers import LlamaConfig\n"
        "class OwnConfig(LlamaConfig):\n    model_type = 'own'\n"
    )
    Path(folder, "own.py").write_text(code)
    code = "from transformers import LlamaForCausalLM\nclass OwnForCausalLM(LlamaForCausalLM):\n"
    code = f"from .own import OwnConfig\n{code}    config_class = OwnConfig\n"
    Path(folder, "own_model.py").write_text(code)
    auto = {"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own_model.OwnForCausalLM"}
    change(folder, model_type="own", auto_map=auto)
    with pytest.raises(UnsupportedModel, match="Python code of its own"):
        load_model(folder)
    loaded = load_model(folder, allow_code=True)
    assert type(loaded.model).__name__ == "OwnForCausalLM"


def test_a_slow_tokenizer_is_refused(monkeypatch, folder):
    """Without offsets no token can be laid on words."""
    from transformers import AutoTokenizer

    def slow(_text, **_settings):
        raise NotImplementedError("return_offset_mapping is not available")

    monkeypatch.setattr(AutoTokenizer, "from_pretrained", lambda *_a, **_k: slow)
    with pytest.raises(UnsupportedModel, match="slow tokenizer that gives no offsets"):
        load_tokenizer(folder, "mine")


def test_offsets_that_do_not_fit_are_refused(monkeypatch, folder):
    """As those of a release of `tokenizers` for the third Llamas."""
    from transformers import AutoTokenizer

    def broken(_text, **_settings):
        return {"input_ids": [1, 2], "offset_mapping": [(0, 0), (0, 8)]}

    monkeypatch.setattr(AutoTokenizer, "from_pretrained", lambda *_a, **_k: broken)
    with pytest.raises(UnsupportedModel, match="mine's tokenizer leave out"):
        load_tokenizer(folder, "mine")


def test_a_folder_without_a_tokenizer_is_refused(folder):
    """The model's own is needed."""
    for path in Path(folder).glob("token*"):
        path.unlink()
    with pytest.raises(UnsupportedModel, match="no tokenizer that can be read"):
        load_model(folder)


def test_a_gated_repository_is_named():
    """However deep the library wraps its error."""
    inner = type("GatedRepoError", (OSError,), {})("403")
    outer = OSError("cannot access")
    outer.__cause__ = inner
    sentence = gated_sentence("meta/secret", outer)
    assert sentence is not None
    assert "meta/secret is gated" in sentence
    assert "hf auth login" in sentence
    assert gated_sentence("meta/open", OSError("not found")) is None


def test_a_folder_that_is_not_there_is_not_taken_for_a_hub_id(tmp_path):
    """The sentence speaks of folders."""
    with pytest.raises(CacheMissing, match="There is no folder") as refused:
        load_model(str(tmp_path / "nowhere"))
    assert_plain_sentence(str(refused.value))
