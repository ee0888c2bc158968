"""A whole model: columns filled, sums kept, batches without effect, refusals in a sentence."""

import numpy as np
import pytest
import torch

from engine.able.columns import Columns
from engine.able.embedding import (
    VARIANTS,
    EmbeddingSettings,
    centred_log_probabilities,
    embed,
    exact_length,
    principal_components,
    vector,
)
from engine.able.facts import fact_probes
from engine.able.hook import embedding_of
from engine.able.model import AttributionSettings, ModelAttribution, embed_model
from engine.able.probes import probe_set
from engine.errors import ConfigError, UnsupportedModel
from tests.engine.able.tiny_causal import SHORT, tiny_loaded


CPU = AttributionSettings(device="cpu", dtype="float32")
PROBES = probe_set("short", SHORT)


@pytest.fixture(scope="module")
def attributed() -> ModelAttribution:
    """One model; read it, never change it."""
    return embed_model(tiny_loaded(style="metaspace"), PROBES, CPU)


def test_every_column_is_filled_and_sums_are_kept(attributed: ModelAttribution):
    """Words and slot of an option add up under both rules; the mark of the beginning is apart."""
    columns = attributed.columns
    for number in range(len(PROBES)):
        stripped, paper = (attributed.of_probe(number, rule) for rule in ("stripped", "paper"))
        slot = attributed.slot[columns.options_of(number)]
        np.testing.assert_allclose(stripped.sum(1) + slot, paper.sum(1), rtol=1e-4, atol=1e-6)
        assert np.abs(stripped).min() > 0
        assert np.abs(slot).min() > 0
    assert (attributed.log_probabilities < 0).all()
    assert attributed.facts["hook"] == "embedding"


def test_batches_change_nothing_but_rounding(attributed: ModelAttribution):
    """One row at a time, and probes in another order: the same numbers under the same names."""
    small = AttributionSettings(device="cpu", dtype="float32", batch_tokens=1)
    other = probe_set("turned", PROBES.probes[::-1])
    found = embed_model(tiny_loaded(style="metaspace"), other, small)
    place = {key: n for n, key in enumerate(found.columns.keys.tolist())}
    moved = found.words[[place[key] for key in attributed.columns.keys.tolist()]]
    np.testing.assert_allclose(moved, attributed.words, rtol=1e-3, atol=1e-5)
    assert np.dot(embed(found), embed(attributed)) == pytest.approx(
        np.dot(embed(found), embed(found)), abs=1e-5
    )


def test_answers_are_the_likeliest_options(attributed: ModelAttribution):
    """The output side comes for free."""
    scores = attributed.log_probabilities.reshape(5, 3)
    assert attributed.choices.tolist() == scores.argmax(1).tolist()
    answers = [probe.answer for probe in PROBES.probes]
    assert attributed.correct.tolist() == (scores.argmax(1) == answers).tolist()
    centred = centred_log_probabilities(scores.reshape(1, -1), attributed.columns)
    np.testing.assert_allclose(centred.reshape(5, 3), scores - scores.mean(1)[:, None], atol=1e-5)


def test_texts_are_chosen_by_their_log_probability_a_byte():
    """The sum would choose the shortest text."""
    found = embed_model(tiny_loaded(), probe_set("facts", fact_probes(2), "texts"), CPU)
    for number, probe in enumerate(found.columns.probes.probes):
        scores = found.log_probabilities[found.columns.options_of(number)]
        each = [score / len(text) for score, text in zip(scores, probe.options, strict=True)]
        assert found.choices[number] == np.argmax(each)


def test_a_skipped_probe_leaves_zeros_and_no_answer():
    """A model with a short context is embedded by the probes it can read."""
    loaded = tiny_loaded()
    loaded.context = 25
    found = embed_model(loaded, PROBES, CPU)
    whole = embed_model(tiny_loaded(), PROBES, CPU)
    assert 0 < len(found.skipped) < 5
    for number in range(5):
        skipped = number in found.skipped
        assert (found.choices[number] == -1) == skipped
        assert np.isnan(found.log_probabilities[found.columns.options_of(number)]).all() == skipped
        if skipped:
            assert not found.of_probe(number).any()
        else:
            np.testing.assert_allclose(
                found.of_probe(number), whole.of_probe(number), rtol=1e-3, atol=1e-5
            )
    assert np.isfinite(embed(found)).all()


def test_attributions_that_are_no_numbers_are_refused():
    """A damaged weight must not become a place on a map."""
    loaded = tiny_loaded()
    loaded.model.model.layers[1].mlp.down_proj.weight[0, 0] = float("nan")
    with pytest.raises(UnsupportedModel, match=r"no finite number.*--dtype float32"):
        embed_model(loaded, PROBES, CPU)


def test_an_encoder_is_refused():
    """Its predictions see what comes after; there is no next token to attribute."""
    from transformers import BertConfig, BertLMHeadModel

    loaded = tiny_loaded()
    config = BertConfig(
        vocab_size=311,
        hidden_size=24,
        num_hidden_layers=1,
        num_attention_heads=3,
        intermediate_size=40,
        initializer_range=0.3,
    )
    loaded.model = BertLMHeadModel(config).eval().requires_grad_(False)
    with pytest.raises(UnsupportedModel, match="in both directions"):
        embed_model(loaded, PROBES, CPU)


def test_a_model_made_to_be_homogeneous_is_noticed():
    """BLOOM is attributed behind the norm, others can be asked for it and say no."""
    bloom = embed_model(tiny_loaded("bloom"), PROBES, CPU)
    assert bloom.facts["hook"] == "norm"
    assert bloom.facts["homogeneity"] < 1e-4
    at_embedding = AttributionSettings(device="cpu", dtype="float32", hook="embedding")
    assert embed_model(tiny_loaded("bloom"), PROBES, at_embedding).facts["hook"] == "embedding"
    with pytest.raises(UnsupportedModel, match="no norm directly"):
        embed_model(tiny_loaded(), PROBES, AttributionSettings(device="cpu", hook="norm"))


def test_a_batch_that_memory_does_not_hold_is_halved(monkeypatch: pytest.MonkeyPatch):
    """The batch size is a guess; a model may need smaller ones."""
    import engine.able.model as module

    real = module.attribute
    sizes = []

    def scarce(model, hooked, batch, way):
        sizes.append(len(batch.n_prompt))
        if len(batch.n_prompt) > limit:
            raise RuntimeError("CUDA out of memory. Tried to allocate")
        return real(model, hooked, batch, way)

    monkeypatch.setattr(module, "attribute", scarce)
    limit = 2
    found = embed_model(tiny_loaded(), PROBES, CPU)
    assert max(sizes) == 5
    np.testing.assert_allclose(
        embed(found), embed(embed_model_without(monkeypatch, module, real)), atol=1e-5
    )
    monkeypatch.setattr(module, "attribute", scarce)
    limit = 0
    with pytest.raises(UnsupportedModel, match="memory does not hold"):
        embed_model(tiny_loaded(), PROBES, CPU)


def embed_model_without(monkeypatch, module, real) -> ModelAttribution:
    monkeypatch.setattr(module, "attribute", real)
    return embed_model(tiny_loaded(), PROBES, CPU)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"dtype": "int8"}, "dtype"),
        ({"hook": "middle"}, "hook"),
        ({"batch_tokens": -1}, "batch_tokens"),
    ],
)
def test_impossible_settings_are_refused(settings, words):
    """Before a model is loaded."""
    with pytest.raises(ConfigError, match=words):
        AttributionSettings(**settings)


def test_variants_are_what_they_say(attributed: ModelAttribution):
    """Each against its definition, written out."""
    columns = attributed.columns
    words = attributed.words.astype(float)

    def unit(values):
        return values / np.linalg.norm(values)

    by_hand = {
        "able": words,
        "paper": attributed.paper_words.astype(float),
        "square_root": np.sign(words) * np.abs(words) ** 0.5,
        "correct_only": np.where(columns.correct, words, 0),
        "per_probe": np.concatenate([unit(words[columns.block(n)]) for n in range(5)]),
    }
    contrast = words.copy()
    for number in range(5):
        own = columns.block(number)
        by_option = words[own].reshape(int(columns.n_options[number]), -1)
        contrast[own] = (by_option - by_option.mean(0)).ravel()
    by_hand["contrast"] = np.sign(contrast) * np.abs(contrast) ** 0.5
    assert by_hand.keys() == VARIANTS.keys()
    for name, values in by_hand.items():
        np.testing.assert_allclose(vector(attributed, VARIANTS[name]), unit(values), rtol=1e-12)
    short = embed(attributed, EmbeddingSettings(n_dimensions=31, seed=2))
    assert short.shape == (31,)
    assert short.dtype == np.float32
    assert not np.allclose(short, embed(attributed, EmbeddingSettings(n_dimensions=31)))


def test_a_model_that_depends_on_nothing_has_no_embedding(attributed: ModelAttribution):
    """No direction is not a direction."""
    nothing = ModelAttribution(
        "still",
        attributed.columns,
        np.zeros_like(attributed.words),
        np.zeros_like(attributed.words),
        attributed.slot,
        attributed.log_probabilities,
    )
    with pytest.raises(UnsupportedModel, match="still"):
        embed(nothing)


def test_an_exact_copy_lies_on_its_original_and_a_twin_does_not():
    """The map's first duty; a twin has the same shape, tokenizer and untrained state."""
    model, copy, twin = (
        embed(embed_model(tiny_loaded("gpt_neox", seed=seed), PROBES, CPU)) for seed in (3, 3, 5)
    )
    assert model.tobytes() == copy.tobytes()
    cosine = float(model @ twin / np.linalg.norm(model) / np.linalg.norm(twin))
    assert cosine < 0.9


def test_principal_components_keep_products():
    """With all variance kept, distances are those of the vectors."""
    vectors = np.random.default_rng(0).normal(size=(7, 53))
    whole = principal_components(vectors, 1.0)
    assert whole.shape == (7, 6)
    for a in range(7):
        for b in range(a):
            expected = np.linalg.norm(vectors[a] - vectors[b])
            assert np.linalg.norm(whole[a] - whole[b]) == pytest.approx(expected)
    fewer = principal_components(vectors, 0.6)
    variance = (whole**2).sum(0)
    assert (variance[: fewer.shape[1]].sum() / variance.sum()) >= 0.6
    assert (variance[: fewer.shape[1] - 1].sum() / variance.sum()) < 0.6
    assert principal_components(np.ones((3, 5))).tolist() == [[0], [0], [0]]


def test_lengths_depend_on_no_order():
    """Rounded once."""
    values = np.random.default_rng(0).normal(size=1009) ** 5
    assert exact_length(values) == exact_length(values[::-1]) == exact_length(np.sort(values))
    assert exact_length(values) == pytest.approx(np.linalg.norm(values))


def test_parameters_are_not_differentiated():
    """The gradient ends at the embedding."""
    loaded = tiny_loaded()
    embed_model(loaded, PROBES, CPU)
    assert all(weight.grad is None for weight in loaded.model.parameters())
    assert not embedding_of(loaded.model)._forward_hooks
    assert Columns(PROBES).n_columns > 0
    assert torch.is_grad_enabled()
