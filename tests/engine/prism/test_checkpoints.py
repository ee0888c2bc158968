import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.config import LossWeights
from engine.errors import CacheMissing, CacheStale, UnsupportedModel
from engine.prism.checkpoints import BANK_FILE, load_prism, save_bank
from engine.prism.configuration import PrismConfig
from engine.prism.model import PrismForCausalLM
from tests.engine.tiny_decoders import VOCAB, decoder, decoder_config


IDS = torch.arange(11)[None] * 5 % VOCAB


def settings(config):
    return PrismConfig.for_backbone(config, weights=LossWeights(), n_prototypes=29, n_active=5)


@pytest.fixture
def whole(tmp_path):
    """A folder as `save_pretrained` writes it."""
    model = PrismForCausalLM(settings(decoder_config("llama"))).eval()
    model.save_pretrained(tmp_path / "model")
    return model, tmp_path / "model"


@pytest.fixture
def retrofit(tmp_path):
    """A bank beside a decoder kept elsewhere."""
    backbone = decoder("gpt2")
    backbone.save_pretrained(tmp_path / "base")
    model = PrismForCausalLM.around(backbone, settings(backbone.config)).eval()
    save_bank(model, tmp_path / "bank", {"path": str(tmp_path / "base")})
    return model, tmp_path / "bank"


def same(one, other):
    found = [m(input_ids=IDS, return_prototypes=True) for m in (one, other)]
    return all(
        torch.equal(found[0][name], found[1][name])
        for name in ("logits", "prototype_activations", "prototype_indices")
    )


def test_a_whole_folder_loads_ready_for_inference(whole):
    """The tokenizer lies beside the weights."""
    model, folder = whole
    loaded, tokenizer = load_prism(folder)
    assert tokenizer == folder
    assert not loaded.training
    assert same(model, loaded)


def test_a_retrofit_loads_its_decoder_from_where_it_was(retrofit):
    """Its folder holds the bank alone; the tokenizer is the decoder's."""
    model, folder = retrofit
    assert sorted(p.name for p in folder.iterdir()) == [BANK_FILE, "config.json"]
    loaded, tokenizer = load_prism(folder)
    assert tokenizer == folder.parent / "base"
    assert same(model, loaded)


def test_a_tokenizer_of_its_own_comes_first(retrofit):
    """A retrofit of a hub model keeps one."""
    _, folder = retrofit
    (folder / "tokenizer.json").write_text("{}")
    assert load_prism(folder)[1] == folder


def test_bfloat16_weights_load_in_the_asked_format(whole):
    """What ships is bfloat16; live work is float32."""
    model, folder = whole
    model.to(torch.bfloat16).save_pretrained(folder)
    assert load_prism(folder)[0].prototypes.dtype == torch.float32


def test_a_folder_without_a_configuration_is_no_model(tmp_path):
    """One sentence names the folder and the command."""
    with pytest.raises(CacheMissing, match=r"not a model folder .* `headwater train`"):
        load_prism(tmp_path)


def test_a_configuration_without_weights_says_so(whole):
    """Half a copy is not a model."""
    _, folder = whole
    (folder / "model.safetensors").unlink()
    with pytest.raises(CacheMissing, match="no readable model"):
        load_prism(folder)


@pytest.mark.parametrize("content", ["{", "[]"])
def test_a_damaged_configuration_is_refused(whole, content):
    """Neither broken JSON nor JSON of another kind shows a traceback."""
    _, folder = whole
    (folder / "config.json").write_text(content)
    with pytest.raises(CacheStale, match="write the model again"):
        load_prism(folder)


@pytest.mark.parametrize(
    "change",
    [{"n_prototypes": 31}, {"n_active": "many"}, {"backbone": {"model_type": "none-such"}}],
)
def test_a_configuration_that_does_not_fit_the_weights_is_refused(whole, change):
    """Whatever transformers raises becomes one sentence."""
    _, folder = whole
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(CacheStale, match=r"do not fit its config\.json"):
        load_prism(folder)


def test_a_configuration_without_a_decoder_is_refused(whole):
    """A model built around itself would never end."""
    _, folder = whole
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"backbone": None}))
    with pytest.raises(CacheStale, match="does not say which decoder"):
        load_prism(folder)


def test_weights_without_the_bank_are_refused(whole):
    """A bank drawn at random would pass for a trained one."""
    _, folder = whole
    tensors = load_file(folder / "model.safetensors")
    del tensors["prototypes"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CacheStale, match="lack prototypes"):
        load_prism(folder)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["prototypes", "backbone.model.norm.weight"])
def test_weights_that_are_no_finite_numbers_are_refused(whole, name, value):
    """One NaN would spread to every number on the pages."""
    _, folder = whole
    tensors = load_file(folder / "model.safetensors")
    tensors[name].view(-1)[3] = value
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CacheStale, match=rf"hold 1 values that are no finite .* in {name}"):
        load_prism(folder)


def test_a_bank_that_is_not_finite_is_refused(retrofit):
    """A fit that diverged is not shown as one that did not."""
    model, folder = retrofit
    bank = model.prototypes.detach().clone()
    bank[2] = float("nan")
    save_file({"prototypes": bank}, folder / BANK_FILE)
    with pytest.raises(CacheStale, match="hold 24 values that are no finite"):
        load_prism(folder)


def test_damaged_weights_are_refused(whole):
    """A truncated file."""
    _, folder = whole
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(CacheStale, match="damaged"):
        load_prism(folder)


def test_pickled_weights_are_never_read(whole):
    """A folder that offers only pytorch_model.bin is refused before a byte of it is run."""
    _, folder = whole
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(CacheMissing):
        load_prism(folder)


def test_a_model_without_prototypes_is_told_about_retrofit(tmp_path):
    """Any causal LM's folder can be handed in by mistake."""
    decoder("llama").save_pretrained(tmp_path)
    with pytest.raises(UnsupportedModel, match=r"'llama' without prototypes; .*retrofit"):
        load_prism(tmp_path)


def test_a_bank_of_another_decoder_is_refused(retrofit):
    """Weights exchanged under it would make every number wrong."""
    _, folder = retrofit
    decoder("gpt2", n_layer=3).save_pretrained(folder.parent / "base")
    with pytest.raises(CacheStale, match="num_hidden_layers 2, but the weights have 3"):
        load_prism(folder)


def test_a_bank_of_another_shape_is_refused(retrofit):
    """The configuration and the bank must agree."""
    _, folder = retrofit
    config = json.loads((folder / "config.json").read_text())
    config["n_prototypes"] = 31
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(CacheStale, match=r"shape \(29, 24\), not one of shape \(31, 24\)"):
        load_prism(folder)


def test_a_decoder_that_is_gone_is_named(retrofit):
    """The sentence says which folder."""
    _, folder = retrofit
    base = folder.parent / "base"
    base.rename(folder.parent / "elsewhere")
    with pytest.raises(CacheMissing, match="base is not on this machine"):
        load_prism(folder)
