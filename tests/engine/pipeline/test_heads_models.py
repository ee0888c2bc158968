"""Finding the decoders that a user means, and loading them."""

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import BertConfig, BertForMaskedLM, BertModel

from engine.devices import resolve_device
from engine.errors import CacheMissing, ConfigError, PackageMissing, UnsupportedModel
from engine.pipeline.heads_models import find_source, load_decoder
from tests.engine.tiny_models import save_dense, save_prism


CPU = resolve_device("cpu")


def test_checkpoints_of_a_folder_come_in_the_order_of_their_steps(foreign_models: Path):
    """By number: step-100 does not stand before step-30."""
    source = find_source(str(foreign_models))
    assert [(c.name, c.step) for c in source.checkpoints] == [
        ("step-30", 30),
        ("step-100", 100),
        ("step-2000", 2000),
    ]
    named = find_source(str(foreign_models), ["2000", "step-30"])
    assert [c.step for c in named.checkpoints] == [30, 2000]
    one = str(foreign_models / "step-100")
    assert [c.name for c in find_source(one).checkpoints] == ["step-100"]


def test_a_run_of_ours_has_its_checkpoints_and_its_model(heads_run: Path):
    """The last checkpoint is the model and not counted twice; its weights are those on disk."""
    source = find_source(str(heads_run))
    assert [(c.name, c.step) for c in source.checkpoints] == [("step-0000008", 8), ("model", 11)]
    model = load_decoder(source, source.checkpoints[0], CPU)
    kept = load_file(heads_run / "checkpoints" / "step-0000008" / "model.safetensors")
    name = "model.layers.1.self_attn.q_proj.weight"
    assert torch.equal(model.state_dict()[name], kept[name])
    assert not any(p.requires_grad for p in model.parameters())
    assert source.tokenizer().get_vocab_size() == 300


def test_a_run_in_training_can_be_looked_at(heads_run: Path, tmp_path: Path):
    """It has checkpoints and no model yet; its tokenizer is that of its corpus."""
    copy = shutil.copytree(heads_run, tmp_path / "unfinished")
    shutil.rmtree(copy / "model")
    source = find_source(str(copy))
    assert [c.name for c in source.checkpoints] == ["step-0000008", "step-0000011"]
    assert source.tokenizer().get_vocab_size() == 300


def test_of_a_prototype_model_the_decoder_is_looked_at(tmp_path: Path):
    """The bank moves no logit and has no heads."""
    source = find_source(str(save_prism(tmp_path / "prism")))
    assert type(load_decoder(source, source.checkpoints[0], CPU)).__name__ == "LlamaForCausalLM"


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("MODEL", ["step-7"]), CacheMissing, "no checkpoint 'step-7'.* there are: step-30"),
        (("MODEL", (), ["step1"]), ConfigError, "is a folder, which has no revisions"),
        (("MODEL", ["30"], ["step1"]), ConfigError, "give one of them"),
        (("EMPTY",), CacheMissing, "no folder such as step-100"),
        (("/nowhere/at/all",), CacheMissing, "no folder /nowhere/at/all"),
        (("some/hub-model", ["step-7"]), CacheMissing, "name --revisions"),
        (("smollm2", (), ["step1"]), ConfigError, "has no revisions"),
    ],
)
def test_what_is_not_there_is_said(
    arguments: tuple, error: type, words: str, foreign_models: Path, tmp_path: Path
):
    """One sentence each, with what there is."""
    names = {"MODEL": str(foreign_models), "EMPTY": str(tmp_path)}
    with pytest.raises(error, match=words):
        find_source(names.get(arguments[0], arguments[0]), *arguments[1:])


def test_a_revision_that_cannot_be_had_is_named():
    """The tests have no network: the hub's answer is that it has none."""
    source = find_source("some/hub-model", revisions=["step1000", "step32"])
    assert [(c.name, c.step) for c in source.checkpoints] == [("step32", 32), ("step1000", 1000)]
    with pytest.raises(CacheMissing, match="at revision 'step32'"):
        load_decoder(source, source.checkpoints[0], CPU)


def test_a_package_that_is_not_here_is_named(house: Path):
    """Weights of a package are fetched by another command."""
    source = find_source("smollm2")
    with pytest.raises(PackageMissing, match="smollm2"):
        load_decoder(source, source.checkpoints[0], CPU)


def test_an_encoder_is_refused_as_such(tmp_path: Path):
    """Its weights are whole; it has no next token."""
    config = BertConfig(
        vocab_size=31,
        hidden_size=12,
        intermediate_size=20,
        num_hidden_layers=1,
        num_attention_heads=3,
    )
    for kind in (BertModel, BertForMaskedLM):
        kind(config).save_pretrained(tmp_path / kind.__name__)
        source = find_source(str(tmp_path / kind.__name__))
        with pytest.raises(UnsupportedModel, match=f"a {kind.__name__}, no causal language model"):
            load_decoder(source, source.checkpoints[0], CPU)


def test_names_without_numbers_are_numbered_in_their_order(tmp_path: Path):
    """Steps are keys of the tables and must tell checkpoints apart."""
    early, late = (str(save_dense(tmp_path / name)) for name in ("early", "late"))
    source = find_source(early, [late, early])
    assert [(c.name, c.step) for c in source.checkpoints] == [("late", 0), ("early", 1)]
