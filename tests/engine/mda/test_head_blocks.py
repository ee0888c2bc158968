"""Which weights belong to a head: one case per way of laying them out."""

import pytest
import torch

from engine.errors import ConfigError, UnsupportedModel
from engine.mda.blocks import head_layout, parse_head, weight_of
from engine.mda.patterns import attention_patterns
from tests.engine.tiny_decoders import D_MODEL, VOCAB, decoder


CASES = {
    "gpt2": {},
    "gpt_neox": {},
    "llama": {"num_key_value_heads": 1},
    "mistral": {"num_key_value_heads": 3},
    "qwen2": {"num_key_value_heads": 1},
    "qwen3": {"num_key_value_heads": 3},
    "olmo2": {"num_key_value_heads": 3},
}


def patterns(model: torch.nn.Module) -> torch.Tensor:
    tokens = torch.arange(11)[None] * 5 % VOCAB
    with torch.inference_mode():
        return torch.stack(attention_patterns(model, tokens))


@pytest.mark.parametrize("name", CASES)
def test_query_rows_move_their_own_heads_pattern_alone(name: str):
    """Queries of head 1 of the last layer must not touch head 0 or 2."""
    torch.manual_seed(3)
    model = decoder(name, **CASES[name])
    layout = head_layout(model)
    before = patterns(model)
    part = layout.layers[1].query
    with torch.no_grad():
        weight_of(model, part)[part.features[1]] += torch.randn(8, D_MODEL)
    moved = (patterns(model) - before).abs().amax(dim=(1, 3, 4))
    if name == "olmo2":  # the norm over all heads couples them weakly; its own head moves most
        assert moved[1].argmax() == 1
    else:
        assert moved[1, 1] > 1e-4
        assert moved[1, [0, 2]].max() < 1e-6
    assert moved[0].max() < 1e-6


@pytest.mark.parametrize("name", CASES)
def test_key_rows_move_the_patterns_of_their_group(name: str):
    """Heads that share a key move together, the others stay."""
    torch.manual_seed(3)
    model = decoder(name, **CASES[name])
    layout = head_layout(model)
    before = patterns(model)
    part = layout.layers[1].key
    with torch.no_grad():
        weight_of(model, part)[part.features[2]] += torch.randn(8, D_MODEL)
    moved = (patterns(model) - before).abs().amax(dim=(1, 3, 4))[1]
    if layout.grouped:
        assert moved.min() > 1e-5
    elif name == "olmo2":
        assert moved.argmax() == 2
    else:
        assert moved[2] > 1e-4
        assert moved[:2].max() < 1e-6


@pytest.mark.parametrize("name", CASES)
def test_a_head_without_value_or_output_adds_nothing(name: str):
    """Zeroing the value rows of every head but one leaves what zeroing its output columns takes.

    Cutting head 1's output columns and cutting its value rows must give the same logits.
    """
    torch.manual_seed(3)
    tokens = torch.arange(11)[None] * 5 % VOCAB
    logits = []
    for kind in ("value", "output"):
        torch.manual_seed(3)
        model = decoder(name, **{**CASES[name], "num_key_value_heads": 3} if name != "gpt2" else {})
        layout = head_layout(model)
        part = getattr(layout.layers[1], kind)
        module = model.get_submodule(part.module)
        with torch.no_grad():
            if getattr(module, "bias", None) is not None:
                module.bias.zero_()
            weight = weight_of(model, part)
            if kind == "value":
                weight[part.features[1]] = 0
            else:
                weight[:, part.features[1]] = 0
            logits.append(model(input_ids=tokens).logits)
    assert torch.allclose(*logits, atol=1e-5)


def test_a_layout_names_sizes_and_refuses_heads_that_do_not_exist():
    """The sentence says which heads there are."""
    layout = head_layout(decoder("llama", num_key_value_heads=1))
    assert (layout.n_layers, layout.n_heads, layout.d_head, layout.n_key_value_heads) == (
        2,
        3,
        8,
        1,
    )
    assert layout.grouped
    with pytest.raises(ConfigError, match=r"no head 2\.0; this model has layers 0 to 1"):
        layout.check(2, 0)


@pytest.mark.parametrize("text", ["", "1", "a.b", "1.-2", "1.2.3"])
def test_what_is_no_head_is_said(text: str):
    """LAYER.HEAD is the only way to write one."""
    with pytest.raises(ConfigError, match="names no head"):
        parse_head(text)


def test_a_fused_layout_that_is_not_known_is_refused():
    """Falcon's fused rows lie in another order; a guess would be wrong silently."""
    with pytest.raises(UnsupportedModel, match="not known here"):
        head_layout(decoder("bloom", n_head=3, n_layer=2))


@pytest.mark.parametrize("missing", ["k_proj", "o_proj"])
def test_attention_without_one_of_the_four_maps_is_refused(missing: str):
    """Latent attention has queries but computes keys in another way."""
    model = decoder("llama")
    for layer in model.model.layers:
        delattr(layer.self_attn, missing)
    with pytest.raises(UnsupportedModel, match="by four maps"):
        head_layout(model)


def test_queries_of_another_width_are_refused():
    """A gate beside the queries doubles their rows; every cut would be in the wrong place."""
    model = decoder("llama")
    for layer in model.model.layers:
        layer.self_attn.q_proj = torch.nn.Linear(D_MODEL, 2 * D_MODEL)
    with pytest.raises(UnsupportedModel, match="no 3 queries of 8 features"):
        head_layout(model)


def test_a_model_without_attention_is_refused():
    """The sentence names shapes that work."""
    with pytest.raises(UnsupportedModel, match="use a GPT-2, GPT-NeoX"):
        head_layout(decoder("mamba", num_hidden_layers=1, state_size=4))


def test_heads_are_coupled_where_a_norm_goes_over_all_of_them():
    """Then the gradient of one head's pattern must be taken alone."""
    coupled = {name: head_layout(decoder(name)).layers[0].coupled for name in ("olmo2", "qwen3")}
    assert coupled == {"olmo2": True, "qwen3": False}
