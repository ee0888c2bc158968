"""What each derivation does to the weights, against slow and obvious versions."""

import numpy as np
import pytest
import torch

from engine.errors import ConfigError, EngineError, UnsupportedModel
from engine.zoo import compression
from engine.zoo.answers import accuracies, correctness, option_scores
from engine.zoo.architectures import architecture_config, linear_weights, random_model
from engine.zoo.generating import sampled_texts
from engine.zoo.merging import DROPPED, KEPT, merge
from engine.zoo.rewriting import rewrite
from engine.zoo.training import logits_of


IDS = torch.arange(2, 40).view(2, 19)


def tiny(name="llama", size="XS", vocab=512, seed=1):
    return random_model(architecture_config(name, size, vocab), seed).eval()


def copies(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


@pytest.mark.parametrize("name", ["llama", "gpt2", "falcon"])
@pytest.mark.parametrize("share", [0.3, 0.5])
def test_pruning_zeroes_the_smallest_of_every_matrix(name, share):
    """So many of them, none larger than what stays; embeddings keep theirs."""
    model = tiny(name)
    before = copies(model)
    compression.prune_magnitudes(model, share)
    for key, module in linear_weights(model).items():
        old, new = before[f"{key}.weight"], module.weight.detach()
        gone = new == 0
        assert float(gone.float().mean()) == pytest.approx(share, abs=0.01)
        assert float(old[gone].abs().max()) <= float(old[~gone].abs().min())
        assert torch.equal(new[~gone], old[~gone])
    table = model.get_input_embeddings().weight
    assert float((table == 0).float().mean()) < 0.01


@pytest.mark.parametrize("name", ["llama", "gpt2"])
@pytest.mark.parametrize("bits", [8, 4])
def test_rounding_goes_to_the_nearest_level_of_each_output(name, bits):
    """At most 2^bits - 1 levels an output channel, no weight moved by more than half a step."""
    model = tiny(name)
    before = copies(model)
    compression.round_weights(model, bits)
    for key, module in linear_weights(model).items():
        old, new = before[f"{key}.weight"], module.weight.detach()
        if name == "gpt2":
            old, new = old.T, new.T
        for row_old, row_new in zip(old, new, strict=True):
            step = float(row_old.abs().max()) / (2 ** (bits - 1) - 1)
            assert len(row_new.unique()) <= 2**bits - 1
            assert float((row_old - row_new).abs().max()) <= step / 2 * 1.001


def test_noise_has_the_size_asked_for_and_follows_its_seed():
    """Relative to each matrix."""
    model, again = tiny(), tiny()
    before = copies(model)
    compression.add_noise(model, 0.15, seed=3)
    compression.add_noise(again, 0.15, seed=3)
    for key, module in linear_weights(model).items():
        old = before[f"{key}.weight"]
        assert float((module.weight.detach() - old).std() / old.std()) == pytest.approx(
            0.15, rel=0.1
        )
    for one, other in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)


def test_only_the_last_layer_is_drawn_anew():
    """Its matrices change and no other weight does."""
    model = tiny("gpt_neox", "M")
    before = copies(model)
    compression.redraw_last_layer(model, seed=3)
    for key, value in model.state_dict().items():
        changed = not torch.equal(value, before[key])
        matrix = key.removesuffix(".weight") in linear_weights(model)
        assert changed == (matrix and compression.layer_of(key) == 2), key


@pytest.mark.parametrize("name", ["llama", "gpt2", "bloom", "mpt", "gpt_neox"])
def test_a_model_without_a_layer_computes_the_others(name):
    """Equal to the model whose layer was taken out of its list."""
    model = tiny(name, "M")
    smaller = random_model(architecture_config(name, "M", 512, 2), 9).eval()
    smaller.load_state_dict(compression.without_layer(model.state_dict(), 1))
    body = model.base_model
    layers = next(m for m in body.children() if isinstance(m, torch.nn.ModuleList))
    if name == "bloom":  # its blocks are told the number of layers by nothing but the list
        layers = body.h
    del layers[1]
    model.config.num_hidden_layers = 2
    assert torch.allclose(logits_of(model, IDS), logits_of(smaller, IDS), atol=1e-5)


def test_a_layer_that_is_not_there_is_said():
    """By its number."""
    with pytest.raises(UnsupportedModel, match="no layer 7"):
        compression.without_layer(tiny().state_dict(), 7)


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_a_low_rank_update_is_merged_into_the_weights(name):
    """Rank at most 4; only the update was trained; the merged model computes the same."""
    model = tiny(name)
    before = copies(model)
    unchanged = logits_of(model, IDS).detach()
    matrices = len(linear_weights(model))
    compression.add_low_rank(model, 4, seed=3)
    assert torch.allclose(logits_of(model, IDS), unchanged, atol=1e-6)
    trained = [p for p in model.parameters() if p.requires_grad]
    assert len(trained) == 2 * matrices > 0
    with torch.no_grad():
        for weight in trained:
            weight.add_(0.05 * torch.randn(weight.shape))
    adapted = logits_of(model, IDS).detach()
    compression.merge_low_rank(model)
    assert set(model.state_dict()) == set(before)
    assert torch.allclose(logits_of(model, IDS), adapted, atol=1e-5)
    assert not torch.allclose(adapted, unchanged, atol=1e-3)
    for key, module in linear_weights(model).items():
        difference = (module.weight - before[f"{key}.weight"]).detach()
        assert int(torch.linalg.matrix_rank(difference, rtol=1e-4)) <= 4
    table = model.get_input_embeddings().weight
    assert any(torch.equal(table, value) for value in before.values())


@pytest.mark.parametrize("way", ["neurons", "heads", "norms"])
@pytest.mark.parametrize("name", ["llama", "mistral"])
def test_a_rewrite_keeps_the_function_and_changes_the_weights(way, name):
    """Norms are drawn first: their initial scale of one would hide a missing factor."""
    model = tiny(name, "S")
    with torch.no_grad():
        for key, weight in model.named_parameters():
            if "norm" in key:
                weight.uniform_(0.5, 1.5)
    before, weights = logits_of(model, IDS).detach(), copies(model)
    rewrite(model, way, seed=5)
    assert float((logits_of(model, IDS).detach() - before).abs().max()) < 1e-5
    assert any(not torch.equal(v, weights[k]) for k, v in model.state_dict().items())


def test_a_rewrite_that_changes_the_function_is_refused(monkeypatch):
    """The check is made on logits, not assumed."""
    from engine.zoo import rewriting

    def spoil(layer, _config, _generator):
        layer.mlp.down_proj.weight.mul_(3.0)

    monkeypatch.setitem(rewriting._WAYS, "neurons", spoil)
    with pytest.raises(EngineError, match="changed the logits"):
        rewrite(tiny(), "neurons", seed=5)
    with pytest.raises(UnsupportedModel, match="cannot be rewritten"):
        rewrite(tiny("gpt2"), "neurons", seed=5)
    with pytest.raises(ConfigError, match="no rewrite 'colours'"):
        rewrite(tiny(), "colours", seed=5)


def random_weights(seed, shapes=((5, 7), (11,))):
    generator = torch.Generator().manual_seed(seed)
    return {f"w{i}": torch.randn(shape, generator=generator) for i, shape in enumerate(shapes)}


def test_linear_is_the_mean_and_slerp_keeps_the_angle():
    """The spherical mean has the same cosine with both, and for unit vectors length one."""
    a, b, base = (random_weights(seed) for seed in (1, 2, 3))
    assert torch.allclose(merge("linear", [a, b], base, 0)["w0"], (a["w0"] + b["w0"]) / 2)
    unit = [{k: v / v.norm() for k, v in w.items()} for w in (a, b)]
    found = merge("slerp", unit, base, 0)["w0"]
    cosines = [float((found * w["w0"]).sum()) for w in unit]
    assert float(found.norm()) == pytest.approx(1.0, abs=1e-5)
    assert cosines[0] == pytest.approx(cosines[1], abs=1e-5)


def test_ties_equals_its_definition():
    """Trim, elect a sign, mean of those that agree: entry by entry."""
    a, b, base = (random_weights(seed) for seed in (1, 2, 3))
    found = merge("ties", [a, b], base, 0)
    for name in base:
        rows = []
        for weights in (a, b):
            change = (weights[name] - base[name]).flatten().numpy()
            keep = np.sort(np.abs(change))[max(1, round((1 - KEPT) * change.size)) - 1 :]
            rows.append([x if abs(x) >= keep[0] else 0.0 for x in change])
        slow = []
        for pair in zip(*rows, strict=True):
            total = sum(pair)
            agreeing = [x for x in pair if x * total > 0]
            slow.append(sum(agreeing) / len(agreeing) if agreeing else 0.0)
        change = (found[name] - base[name]).flatten().numpy()
        np.testing.assert_allclose(change, slow, atol=1e-6)


def test_dare_drops_and_scales():
    """Every entry is the mean of two differences, each dropped or scaled up; seeded."""
    base, a = random_weights(3, ((67, 71),)), random_weights(1, ((67, 71),))
    found = merge("dare", [a, a], base, 5)["w0"]
    ratio = (found - base["w0"]) / (a["w0"] - base["w0"])
    levels = torch.tensor([0.0, 0.5 / (1 - DROPPED), 1.0 / (1 - DROPPED)])
    nearest = (ratio[..., None] - levels).abs().min(-1)
    assert float(nearest.values.max()) < 1e-2
    shares = torch.bincount(nearest.indices.flatten(), minlength=3) / ratio.numel()
    wanted = torch.tensor([DROPPED**2, 2 * DROPPED * (1 - DROPPED), (1 - DROPPED) ** 2])
    assert torch.allclose(shares, wanted, atol=0.04)
    assert torch.equal(found, merge("dare", [a, a], base, 5)["w0"])


def test_merges_refuse_other_shapes_and_names():
    """In a sentence."""
    a, base = random_weights(1), random_weights(2)
    other = random_weights(3, ((5, 7), (13,)))
    with pytest.raises(UnsupportedModel, match="different shape"):
        merge("linear", [a, other], base, 0)
    with pytest.raises(ConfigError, match="no merge 'soup'"):
        merge("soup", [a, a], base, 0)


def test_texts_are_drawn_from_the_model(tokenizers):
    """The same seed gives the same texts; each ends at the separator."""
    tokenizer = tokenizers("bpe512")
    model = tiny()
    texts = sampled_texts(model, tokenizer, 7, 11, seed=3)
    assert texts == sampled_texts(model, tokenizer, 7, 11, seed=3)
    assert texts != sampled_texts(model, tokenizer, 7, 11, seed=4)
    assert 0 < len(texts) <= 7
    assert all("<|endoftext|>" not in text for text in texts)


@pytest.mark.parametrize("kind", ["bpe512", "bpe2048", "wordpiece1024", "fallback1024"])
def test_scores_of_options_equal_one_pass_each(kind, tokenizers, world):
    """Batched and padded against one text at a time."""
    tokenizer = tokenizers(kind)
    model = tiny(vocab=tokenizer.get_vocab_size())
    questions = world.questions()[:11]
    scores = option_scores(model, tokenizer, questions)
    for q, row in zip(questions, scores, strict=True):
        for choice, score in zip(q.choices, row, strict=True):
            found = tokenizer.encode(f"{q.prompt} {choice}")
            ids = torch.tensor([found.ids])
            each = logits_of(model, ids[:, :-1]).detach().log_softmax(-1)[0]
            places = [i for i, (_, end) in enumerate(found.offsets) if end > len(q.prompt)]
            slow = sum(float(each[i - 1, found.ids[i]]) for i in places)
            assert score == pytest.approx(slow, abs=1e-3)


def test_accuracy_is_counted_by_domain(world):
    """Against a loop; an untrained model guesses."""
    questions = world.questions()[:16]
    scores = np.random.default_rng(0).normal(size=(16, 4)).astype(np.float32)
    right = correctness(scores, questions)
    found = accuracies(right, questions)
    slow = [int(np.argmax(row)) == q.ans_idx for row, q in zip(scores, questions, strict=True)]
    assert found["all"] == pytest.approx(np.mean(slow))
    jobs = [hit for hit, q in zip(slow, questions, strict=True) if q.resource == "jobs"]
    assert found["jobs"] == pytest.approx(np.mean(jobs))
