from typing import Any

import pytest
import torch
from torch.nn import functional
from transformers import AutoConfig, AutoModelForCausalLM

from engine.config import LossWeights
from engine.errors import ConfigError, UnsupportedModel
from engine.prism.configuration import PrismConfig
from engine.prism.losses import bank_losses
from engine.prism.model import NO_WEIGHTS, PrismForCausalLM, check_exact, logit_factor
from tests.engine.tiny_decoders import ARCHITECTURES, D_MODEL, VOCAB, decoder, decoder_config


PROTOTYPES, ACTIVE = 29, 5
WEIGHTS = LossWeights(reconstruction=0.5, prototype_to_token=0.3, token_to_prototype=0.2)


def prism(name="llama", **settings) -> Any:
    """A small prototype model with random weights, in evaluation mode."""
    config = PrismConfig.for_backbone(
        decoder_config(name, **settings),
        weights=WEIGHTS,
        n_prototypes=PROTOTYPES,
        n_active=ACTIVE,
        cosine_chunk=8,
    )
    return PrismForCausalLM(config).eval()


def tokens(batch=2, pos=11):
    return torch.randint(0, VOCAB, (batch, pos))


def everything():
    return torch.ones(PROTOTYPES, dtype=torch.bool)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_retrofit_emits_the_decoders_own_logits_bit_for_bit(name):
    """The bank explains the state; it never moves a logit."""
    backbone = decoder(name)
    config = PrismConfig.for_backbone(
        backbone.config, weights=WEIGHTS, n_prototypes=PROTOTYPES, n_active=ACTIVE
    )
    model = PrismForCausalLM.around(backbone, config)
    check_exact(model)
    ids = tokens()
    with torch.no_grad():
        own = backbone(input_ids=ids).logits
        assert torch.equal(model(input_ids=ids).logits, own)
        assert torch.equal(model(input_ids=ids, return_prototypes=True).logits, own)
        assert torch.equal(model(input_ids=ids, suppressed=~everything()).logits, own)
        assert torch.equal(model(input_ids=ids, suppressed=everything(), strength=0.0).logits, own)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_saving_and_loading_keeps_every_output_bit(name, tmp_path):
    """save_pretrained, from_pretrained and the Auto classes are one round trip."""
    model = prism(name)
    model.save_pretrained(tmp_path)
    ids = tokens()
    config = AutoConfig.from_pretrained(tmp_path)
    assert isinstance(config, PrismConfig)
    assert config.loss_weights == WEIGHTS
    for loaded in (
        PrismForCausalLM.from_pretrained(tmp_path),
        AutoModelForCausalLM.from_pretrained(tmp_path),
    ):
        assert isinstance(loaded, PrismForCausalLM)
        one, other = (m(input_ids=ids, return_prototypes=True) for m in (model, loaded))
        assert torch.equal(one.logits, other.logits)
        assert torch.equal(one.prototype_activations, other.prototype_activations)
        assert torch.equal(one.prototype_indices, other.prototype_indices)
        assert torch.equal(one.residual_share, other.residual_share)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_generation_with_a_cache_equals_generation_without(name):
    """Suppressed too: what a step removes depends on its own state alone."""
    model = prism(name)
    ids = tokens(batch=2, pos=5)
    for suppressed in (None, everything()):
        settings = {"max_new_tokens": 7, "do_sample": False, "pad_token_id": 0}
        if suppressed is not None:
            settings.update(suppressed=suppressed, strength=0.5)
        cached = model.generate(ids, use_cache=True, **settings)
        plain = model.generate(ids, use_cache=False, **settings)
        assert torch.equal(cached, plain)
        assert cached.shape == (2, 12)


def test_suppression_changes_what_is_generated():
    """The arguments reach every step."""
    model = prism()
    with torch.no_grad():
        model.prototypes.mul_(30)
    ids = tokens(batch=3, pos=5)
    settings = {"max_new_tokens": 9, "do_sample": False, "pad_token_id": 0}
    baseline = model.generate(ids, **settings)
    assert torch.equal(baseline, model.generate(ids, suppressed=~everything(), **settings))
    assert not torch.equal(baseline, model.generate(ids, suppressed=everything(), **settings))


def test_slices_and_residual_reach_the_logits_through_the_head():
    """Suppressing all active prototypes at full strength leaves W r."""
    model = prism()
    ids = tokens()
    with torch.no_grad():
        out = model(input_ids=ids, return_prototypes=True)
        bare = model(input_ids=ids, suppressed=everything()).logits
        parts = model.prototypes[out.prototype_indices] * out.prototype_activations[..., None]
        torch.testing.assert_close(bare, model.lm_head(out.states - parts.sum(-2)))


def test_cross_entropy_alone_gives_the_bank_no_gradient():
    """The residual is added back in full, so W z does not depend on the bank."""
    model = prism().train()
    ids = tokens()
    model(input_ids=ids, labels=ids, weights=NO_WEIGHTS).loss.backward()
    assert model.prototypes.grad is None
    out = model(input_ids=ids, return_prototypes=True)
    parts = model.prototypes[out.prototype_indices] * out.prototype_activations[..., None]
    whole = parts.sum(-2) + (out.states - parts.sum(-2))
    loss = functional.cross_entropy(
        model.lm_head(whole)[:, :-1].flatten(0, 1), ids[:, 1:].flatten()
    )
    (gradient,) = torch.autograd.grad(loss, model.prototypes)
    assert gradient.abs().max() < 1e-7


def test_holding_the_residual_constant_gives_the_bank_a_gradient():
    """The convention attribution needs; the zero above is not for want of a path."""
    model = prism().train()
    ids = tokens()
    out = model(input_ids=ids, return_prototypes=True)
    parts = model.prototypes[out.prototype_indices] * out.prototype_activations[..., None]
    held = (out.states - parts.sum(-2)).detach()
    logits = model.lm_head(parts.sum(-2) + held)
    loss = functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    (gradient,) = torch.autograd.grad(loss, model.prototypes)
    assert gradient.abs().max() > 1e-4


def test_the_loss_is_cross_entropy_plus_the_weighted_terms():
    """Each term is reported by itself, unweighted."""
    model = prism().train()
    ids = tokens()
    out = model(input_ids=ids, labels=ids)
    terms = out.loss_terms
    expected = (
        terms["cross_entropy"]
        + WEIGHTS.reconstruction * terms["reconstruction"]
        + WEIGHTS.prototype_to_token * terms["prototype_to_token"]
        + WEIGHTS.token_to_prototype * terms["token_to_prototype"]
    )
    torch.testing.assert_close(out.loss, expected)
    logits = model(input_ids=ids).logits[:, :-1].flatten(0, 1)
    torch.testing.assert_close(
        terms["cross_entropy"], functional.cross_entropy(logits, ids[:, 1:].flatten())
    )


def test_shifted_labels_give_the_same_cross_entropy():
    """Trainers that hold context + 1 tokens shift them beforehand."""
    model = prism()
    ids = tokens()
    shifted = functional.pad(ids[:, 1:], (0, 1), value=-100)
    one = model(input_ids=ids, labels=ids, weights=NO_WEIGHTS).loss
    other = model(input_ids=ids, shift_labels=shifted, weights=NO_WEIGHTS).loss
    torch.testing.assert_close(one, other)


def test_loss_weights_may_change_between_steps():
    """Training ramps them up; with none of them the bank's losses are not even computed."""
    model = prism().train()
    ids = tokens()
    model.loss_weights = NO_WEIGHTS
    assert set(model(input_ids=ids, labels=ids).loss_terms) == {"cross_entropy"}
    given = model(input_ids=ids, labels=ids, weights=WEIGHTS).loss
    model.loss_weights = WEIGHTS
    assert torch.equal(model(input_ids=ids, labels=ids).loss, given)


def test_the_banks_losses_pull_the_decoder_as_well():
    """Token states move towards prototypes: the gradient reaches the backbone."""
    model = prism().train()
    ids = tokens()
    out = model(input_ids=ids, labels=ids)
    (out.loss - model(input_ids=ids, labels=ids, weights=NO_WEIGHTS).loss).backward()
    gradients = [p.grad.abs().max() for p in model.backbone.base_model.layers.parameters()]
    assert max(gradients) > 0
    assert model.prototypes.grad.abs().max() > 0


def test_padding_counts_in_no_loss_of_the_bank():
    """A padded row gives the same terms as the bare one."""
    model = prism()
    ids = tokens(batch=1, pos=7)
    padded = torch.cat([ids, torch.zeros(1, 4, dtype=torch.int64)], dim=1)
    mask = torch.cat([torch.ones(1, 7), torch.zeros(1, 4)], dim=1).long()
    labels = padded.masked_fill(mask == 0, -100)
    bare = model(input_ids=ids, labels=ids).loss_terms
    found = model(input_ids=padded, attention_mask=mask, labels=labels).loss_terms
    for name, value in bare.items():
        torch.testing.assert_close(found[name], value, rtol=1e-4, atol=1e-6)


def test_the_loss_terms_are_those_of_the_flattened_states():
    """The model only gathers states; the terms are `bank_losses`."""
    model = prism()
    ids = tokens()
    states = model(input_ids=ids, return_prototypes=True).states.flatten(0, 1)
    expected = bank_losses(states, model.prototypes, ACTIVE)
    terms = model(input_ids=ids, labels=ids).loss_terms
    torch.testing.assert_close(terms["reconstruction"], expected.reconstruction.detach())
    torch.testing.assert_close(terms["prototype_to_token"], expected.prototype_to_token.detach())


def test_kept_positions_are_the_last_of_all():
    """Generation asks for one; its prototypes are those of the same position in a full pass."""
    model = prism()
    ids = tokens()
    full = model(input_ids=ids, return_prototypes=True)
    last = model(input_ids=ids, return_prototypes=True, logits_to_keep=1)
    assert last.logits.shape == (2, 1, VOCAB)
    torch.testing.assert_close(last.logits, full.logits[:, -1:])
    assert torch.equal(last.prototype_indices, full.prototype_indices[:, -1:])


def test_a_constant_factor_of_the_decoder_is_kept():
    """Cohere multiplies its logits, Granite divides them; both stay linear."""
    for name, expected in (("cohere", 0.5), ("granite", 0.25)):
        backbone = decoder(name)
        assert logit_factor(backbone) == pytest.approx(expected)
        config = PrismConfig.for_backbone(
            backbone.config, weights=WEIGHTS, n_prototypes=PROTOTYPES, n_active=ACTIVE
        )
        model = PrismForCausalLM.around(backbone, config)
        ids = tokens()
        torch.testing.assert_close(
            model(input_ids=ids).logits, backbone(input_ids=ids).logits, rtol=1e-6, atol=1e-7
        )


def test_squashed_logits_are_refused():
    """tanh of a sum is no sum of slices."""
    with pytest.raises(UnsupportedModel, match="final_logit_softcapping"):
        prism("gemma2")


def test_the_extra_parameters_are_the_bank_alone():
    """Overhead is K times d_model."""
    model = prism()
    extra = model.num_parameters() - model.backbone.num_parameters()
    assert extra == PROTOTYPES * D_MODEL


def test_more_active_prototypes_than_there_are_is_refused():
    """The sentence names both numbers."""
    with pytest.raises(ConfigError, match=r"n_active is 7; it must lie between 1 and .* \(5\)"):
        PrismConfig(n_prototypes=5, n_active=7)
