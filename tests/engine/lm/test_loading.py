import pytest
import torch

from engine.errors import CacheMissing, CacheStale, PackageMissing, UnsupportedModel
from engine.lm.loading import load_weights, model_reference
from tests.engine.tiny_decoders import VOCAB, decoder


def test_a_folder_is_referred_to_by_its_path(tmp_path):
    """And loads to the same logits, ready for inference."""
    model = decoder("llama")
    model.save_pretrained(tmp_path)
    reference = model_reference(str(tmp_path))
    assert reference == {"path": str(tmp_path.resolve())}
    loaded, source = load_weights(reference)
    assert source == str(tmp_path.resolve())
    assert not loaded.training
    ids = torch.arange(7)[None] % VOCAB
    assert torch.equal(loaded(input_ids=ids).logits, model(input_ids=ids).logits)


def test_a_packaged_model_is_referred_to_by_its_archive():
    """A retrofit remembers version and digest, not a path of this machine."""
    reference = model_reference("smollm2")
    assert reference["package"] == "smollm2"
    assert reference["version"] == "0.1.2"
    assert len(reference["sha256"]) == 64


def test_a_packaged_model_that_is_not_there_names_its_command():
    """Nothing is fetched behind the user's back."""
    with pytest.raises(PackageMissing, match="`headwater demo --with smollm2`"):
        load_weights(model_reference("smollm2"))


def test_an_unknown_name_lists_what_there_is():
    """It is tried as a hub id, which cannot be reached here."""
    assert model_reference("nobody/nothing") == {"hub": "nobody/nothing"}
    with pytest.raises(CacheMissing, match=r"No model can be read from 'nobody/nothing'.*smollm2"):
        load_weights({"hub": "nobody/nothing"})


def test_a_bank_without_a_reference_is_refused():
    """There is nothing to put it around."""
    with pytest.raises(CacheStale, match="no `base`"):
        load_weights({})


def test_pickled_weights_are_never_read(tmp_path):
    """Only safetensors are."""
    decoder("llama").save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(CacheMissing, match="safetensors"):
        load_weights({"path": str(tmp_path)})


def test_damaged_weights_are_refused(tmp_path):
    """A truncated file."""
    decoder("llama").save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(CacheStale, match="damaged"):
        load_weights({"path": str(tmp_path)})


def test_a_model_of_another_kind_is_refused(tmp_path):
    """Its configuration names nothing that transformers knows."""
    (tmp_path / "config.json").write_text('{"model_type": "nonsense"}')
    with pytest.raises(UnsupportedModel, match="no causal language model"):
        load_weights({"path": str(tmp_path)})
