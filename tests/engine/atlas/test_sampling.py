"""PhyloLM: similarity of counts by hand, and samples that follow the model."""

import numpy as np
import pytest
import torch

from engine.able.probes import probe_set
from engine.atlas.sampling import SamplingSettings, genes, nei_similarity, sample_alleles
from engine.errors import ConfigError
from tests.assertions import assert_close
from tests.engine.able.tiny_causal import SHORT, tiny_loaded


PROBES = probe_set("short", SHORT).probes
SETTINGS = SamplingSettings(n_genes=5, n_samples=29, n_tokens=3, n_characters=4, seed=3)


def test_similarity_by_hand():
    """Two genes: (1/2, 1/2) against (1, 0) in one, the same allele in the other."""
    first = [{"a": 2, "b": 2}, {"x": 4}]
    second = [{"a": 4}, {"x": 4}]
    third = [{"c": 4}, {"a": 4}]  # the allele of another gene is another allele
    got = nei_similarity([first, second, third])
    assert got[0, 1] == pytest.approx((0.5 + 1) / np.sqrt(1.5 * 2))
    assert got[0, 2] == got[1, 2] == 0
    assert_close(np.diag(got), [1, 1, 1], rtol=1e-12)


def test_beginnings_are_cut_behind_words():
    """All different, each the beginning of a prompt that ends with a whole word."""
    found = genes(PROBES, SETTINGS)
    assert len(set(found)) == len(found) == 5
    for text in found:
        prompt = next(probe.prompt for probe in PROBES if probe.prompt.startswith(text))
        assert text
        assert prompt == text or prompt[len(text)].isspace()
    assert genes(PROBES, SETTINGS) == found
    many = genes(PROBES, SamplingSettings(n_genes=1000))
    assert len(many) < 100  # no more than there are


def test_every_sample_is_counted_and_seeded():
    """As many alleles a gene as samples; the same seed draws the same ones."""
    loaded, beginnings = tiny_loaded(), genes(PROBES, SETTINGS)
    found = sample_alleles(loaded, beginnings, SETTINGS)
    assert [sum(counts.values()) for counts in found] == [29] * 5
    assert all(len(allele) <= 4 for counts in found for allele in counts)
    assert sample_alleles(loaded, beginnings, SETTINGS) == found
    other = SamplingSettings(n_genes=5, n_samples=29, n_tokens=3, seed=4)
    assert sample_alleles(loaded, beginnings, other) != found


def test_samples_follow_the_probabilities_of_the_model():
    """One token, many samples: shares of alleles against the softmax, written out."""
    loaded = tiny_loaded()
    settings = SamplingSettings(n_samples=20_000, n_tokens=1, n_characters=99)
    text = "The capital"
    (counts,) = sample_alleles(loaded, [text], settings)
    ids = loaded.tokenizer(text)["input_ids"]
    with torch.no_grad():
        chances = loaded.model(torch.tensor([ids])).logits[0, -1].double().softmax(-1).numpy()
    expected: dict[str, float] = {}
    for token, chance in enumerate(chances):
        allele = loaded.tokenizer.decode([*ids, token], skip_special_tokens=True)[len(text) :]
        expected[allele] = expected.get(allele, 0.0) + float(chance)
    assert set(counts) <= set(expected)
    for allele, chance in sorted(expected.items(), key=lambda item: -item[1])[:7]:
        assert counts[allele] / 20_000 == pytest.approx(chance, abs=5 * np.sqrt(chance / 20_000))


def test_padding_changes_no_probability():
    """Beginnings of different lengths, asked together and alone."""
    loaded = tiny_loaded("gpt_neox")
    settings = SamplingSettings(n_samples=5000, n_tokens=1)
    texts = ["Which is a fish", "hot and cold and warm and"]
    both = sample_alleles(loaded, texts, settings)
    alone = sample_alleles(loaded, texts[:1], settings)
    assert both[0] == alone[0]


def test_a_model_is_most_like_itself():
    """A copy with a little noise is nearer than a model of another seed."""
    settings = SamplingSettings(n_samples=64, n_tokens=2)
    beginnings = genes(PROBES, SETTINGS)
    near = tiny_loaded(seed=3)
    with torch.no_grad():
        for weight in near.model.parameters():
            weight.mul_(1.001)
    models = [tiny_loaded(seed=3), near, tiny_loaded(seed=5)]
    got = nei_similarity([sample_alleles(m, beginnings, settings) for m in models])
    assert got[0, 1] > got[0, 2] + 0.1


def test_no_sample_is_refused():
    """Settings that draw nothing."""
    with pytest.raises(ConfigError, match="n_samples is 0"):
        SamplingSettings(n_samples=0)


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_that_no_generator_takes_is_refused(seed):
    """Before anything is drawn."""
    with pytest.raises(ConfigError, match="seed is"):
        SamplingSettings(seed=seed)
