"""Attributions of a batch against captum, autograd a row at a time, and finite differences."""

import pytest
import torch
from torch import nn

from engine.able.attribution import (
    PLAIN,
    WAYS,
    Way,
    attribute,
    choose_way,
    is_causal,
    make_batch,
    option_scores,
)
from engine.able.facts import fact_probes
from engine.able.hook import captured, embedding_of, find_hook_point
from engine.able.probes import probe_set
from engine.able.rows import encode_probes
from engine.errors import UnsupportedModel
from tests.engine.able.tiny_causal import FAMILIES, SHORT, tiny_model, tiny_tokenizer


CPU = torch.device("cpu")
FAST = Way(two_parts=False, batched=True, positions_only=True)


def rows_of(style="letters", count=5):
    probes = probe_set("facts", fact_probes(count), style) if style == "texts" else None
    short = probe_set("short", SHORT[:count])
    return encode_probes(probes or short, tiny_tokenizer(), None).rows


def hook_of(model, rows):
    batch = make_batch(rows[:2], CPU)
    return find_hook_point(model, lambda: option_scores(model, batch))


def slow_attributions(model, module, row):
    """Gradient x Input by autograd, one option and one row at a time, without padding or hooks of
    the engine: [options, prompt tokens]."""
    found = []
    for place in range(len(row.options)):
        kept = {}

        def keep(_module, _inputs, output, kept=kept):
            kept["x"] = output.detach().clone().requires_grad_(True)
            return kept["x"]

        handle = module.register_forward_hook(keep)
        logits = model(torch.from_numpy(row.tokens)[None], use_cache=False).logits[0]
        handle.remove()
        asked = logits[len(row.tokens) - row.n_positions :].log_softmax(-1)
        score = sum(asked[n, int(row.answers[n, place])] for n in range(row.n_positions))
        (gradient,) = torch.autograd.grad(score, kept["x"])
        found.append((gradient * kept["x"].detach()).sum(-1)[0, : row.n_prompt])
    return torch.stack(found)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_padded_batch_equals_one_row_and_one_option_at_a_time(family: str):
    """Padding, batching, reading in two parts and narrowing the head must change nothing."""
    model = tiny_model(family)
    rows = rows_of()
    point = hook_of(model, rows)
    batch = make_batch(rows, CPU)
    way = choose_way(model, point.module, batch, 0.9999)
    assert way != PLAIN
    recurrent = family in ("mamba", "rwkv")  # their states do not go on with several tokens
    assert way.two_parts is not recurrent
    scores, found = attribute(model, point.module, batch, way)
    for row, own_scores, own in zip(rows, scores, found, strict=True):
        slow = slow_attributions(model, point.module, row)
        near = torch.nn.functional.cosine_similarity(own[:, : row.n_prompt], slow, dim=1)
        assert near.min() >= 0.9999
        torch.testing.assert_close(own[:, : row.n_prompt], slow, rtol=1e-3, atol=1e-5)
        assert not own[:, row.n_prompt :].any()
        assert (own_scores < 0).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_attributions_equal_captums(family: str):
    """The paper's code calls captum's LayerGradientXActivation for every option."""
    captum = pytest.importorskip("captum.attr")
    rows = rows_of(count=2)
    model = tiny_model(family)
    point = hook_of(model, rows)
    scores, found = attribute(model, point.module, make_batch(rows, CPU), FAST)
    model.requires_grad_(True)  # captum differentiates in parameters' graphs
    for number, row in enumerate(rows):
        tokens = torch.from_numpy(row.tokens)[None]
        for place in range(len(row.options)):

            def score(ids, row=row, place=place):
                logits = model(ids, use_cache=False).logits[:, -1]
                return logits.log_softmax(-1)[:, int(row.answers[0, place])]

            layer = captum.LayerGradientXActivation(score, point.module)
            theirs = layer.attribute(tokens).sum(-1)[0].detach()
            own = found[number, place, : row.n_prompt]
            assert torch.nn.functional.cosine_similarity(own, theirs, dim=0) >= 0.9999
            torch.testing.assert_close(own, theirs, rtol=1e-3, atol=1e-5)
            torch.testing.assert_close(score(tokens)[0].detach(), scores[number, place])


@pytest.mark.parametrize("family", ["gpt2", "opt", "gpt_neox"])
def test_attributions_add_up_to_the_derivative_in_a_common_factor(family: str):
    """Σ_t a_t = d s(α x) / dα at α = 1: a definition by differences, without a backward pass.

    In float64, which norms by the root mean square leave: they compute in float32.
    """
    model = tiny_model(family).double()
    rows = rows_of(count=2)
    module = embedding_of(model)
    batch = make_batch(rows, CPU)
    _, found = attribute(model, module, batch, FAST)

    def scaled(factor):
        handle = module.register_forward_hook(lambda _m, _i, output: output * factor)
        with torch.no_grad():
            scores = option_scores(model, batch)
        handle.remove()
        return scores

    step = 1e-5
    slope = (scaled(1 + step) - scaled(1 - step)) / (2 * step)
    torch.testing.assert_close(found.sum(2), slope, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("way", WAYS)
def test_options_of_several_tokens_are_summed_over_their_tokens(way: Way):
    """Texts as options: the prompt alone is attributed, every token of the option is asked."""
    model = tiny_model("llama")
    rows = [row for row in rows_of("texts") if row.n_positions > 1]
    assert len({row.n_positions for row in rows}) > 1
    module = embedding_of(model)
    _, found = attribute(model, module, make_batch(rows, CPU), way)
    for row, own in zip(rows, found, strict=True):
        slow = slow_attributions(model, module, row)
        torch.testing.assert_close(own[:, : row.n_prompt], slow, rtol=1e-3, atol=1e-5)


def test_bloom_is_attributed_behind_its_embedding_norm():
    """At the embedding itself x · g = 0 by Euler's theorem; what is measured there is rounding."""
    model = tiny_model("bloom").double()
    rows = rows_of()
    point = hook_of(model, rows)
    assert point.name == "norm"
    assert point.module is model.transformer.word_embeddings_layernorm
    batch = make_batch(rows, CPU)
    _, behind = attribute(model, point.module, batch)
    _, before = attribute(model, embedding_of(model), batch)
    assert before.abs().max() < 1e-3 * behind.abs().max()


def test_rwkv_is_attributed_behind_its_first_norm():
    """It is part of the first block, and nothing passes it by."""
    model = tiny_model("rwkv")
    point = hook_of(model, rows_of(count=2))
    assert point.name == "norm"
    assert point.module is model.rwkv.blocks[0].pre_ln


@pytest.mark.parametrize("family", sorted(set(FAMILIES) - {"bloom", "rwkv"}))
def test_others_are_attributed_at_their_embedding(family: str):
    """A norm in the first block is no reason: the residual stream passes it by."""
    model = tiny_model(family)
    point = hook_of(model, rows_of(count=2))
    assert point.name == "embedding"
    assert point.module is embedding_of(model)
    assert point.homogeneity > 5e-4


def test_a_factor_on_the_embedding_changes_no_attribution():
    """Gemma scales its embedding, within the module or behind it depending on the release."""

    class Scaled(nn.Module):
        def __init__(self, inner, factor):
            super().__init__()
            self.inner, self.factor = inner, factor

        def forward(self, tokens):
            return self.inner(tokens) * self.factor

    model = tiny_model("gpt_neox")
    batch = make_batch(rows_of(count=2), CPU)
    inner = embedding_of(model)
    model.set_input_embeddings(Scaled(inner, 5.0))
    _, outside = attribute(model, embedding_of(model), batch)
    _, inside = attribute(model, inner, batch)
    torch.testing.assert_close(outside, inside, rtol=1e-3, atol=1e-5)


def test_bfloat16_points_in_the_direction_of_float32():
    """The paper computes in bfloat16."""
    rows = rows_of(count=3)
    found = []
    for dtype in (torch.float32, torch.bfloat16):
        model = tiny_model("llama", initializer_range=0.05).to(dtype)
        found.append(attribute(model, embedding_of(model), make_batch(rows, CPU), FAST)[1])
    assert found[1].dtype == torch.float32
    assert torch.nn.functional.cosine_similarity(*found, dim=2).min() > 0.98


def test_a_way_that_gives_other_numbers_is_not_taken():
    """A model whose head mixes positions cannot have its head narrowed."""

    class Shifting(nn.Linear):
        def forward(self, states):
            return super().forward(states.roll(1, dims=1))

    model = tiny_model("llama")
    head = Shifting(24, 307, bias=False).requires_grad_(False)
    model.set_output_embeddings(head)
    rows = rows_of(count=3)
    assert choose_way(model, embedding_of(model), make_batch(rows, CPU), 0.9999) == PLAIN


class Blind(nn.Module):
    """Stands for a kernel without a backward pass."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, *inputs):
        with torch.no_grad():
            return self.inner(*inputs)


def test_a_model_without_gradients_is_refused_in_a_sentence():
    """Quantised kernels often have no backward pass; zeros would look like a finding."""
    model = tiny_model("llama")
    model.set_output_embeddings(Blind(model.get_output_embeddings()))
    rows = rows_of(count=2)
    with pytest.raises(UnsupportedModel, match="No gradient reaches the embedding"):
        hook_of(model, rows)
    with pytest.raises(UnsupportedModel, match="No gradient"):
        attribute(model, embedding_of(model), make_batch(rows, CPU))


@pytest.mark.parametrize("family", ["llama", "mamba", "bloom"])
def test_a_decoder_is_causal(family: str):
    """Its earlier predictions cannot see the last token."""
    assert is_causal(tiny_model(family), torch.arange(3, 14)[None])


def test_an_encoder_is_not_causal():
    """Its predictions see every token."""
    from transformers import BertConfig, BertLMHeadModel

    config = BertConfig(
        vocab_size=61,
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=40,
        initializer_range=0.3,
    )
    assert not is_causal(BertLMHeadModel(config).eval(), torch.arange(3, 14)[None])


def test_hooks_are_gone_afterwards():
    """A model that was attributed computes as before."""
    model = tiny_model("llama")
    batch = make_batch(rows_of(count=2), CPU)
    before = option_scores(model, batch)
    attribute(model, embedding_of(model), batch, WAYS[0])
    with pytest.raises(ZeroDivisionError), captured(embedding_of(model)):
        raise ZeroDivisionError
    assert torch.equal(option_scores(model, batch), before)
    assert not embedding_of(model)._forward_hooks
    assert not model.get_output_embeddings()._forward_pre_hooks
