"""Influence on heads against slow, obvious computations."""

import copy
from typing import Any

import pytest
import torch
from scipy.stats import spearmanr

from engine.mda.blocks import head_layout, weight_of
from engine.mda.ekfac import fit_curvature, sample_labels, sequence_loss
from engine.mda.influence import precondition, score_samples, token_scores
from engine.mda.patterns import prefix_match, repeated_sequences
from engine.mda.probes import CopyProbe, PatternProbe
from engine.mda.settings import EkfacConfig, ProbeConfig
from engine.mda.subspaces import subspaces
from tests.engine.tiny_decoders import VOCAB, decoder


ARCHITECTURES = {
    "gpt2": {},
    "gpt_neox": {},
    "llama": {"num_key_value_heads": 1},
    "mistral": {"num_key_value_heads": 3},
    "qwen2": {"num_key_value_heads": 1},  # with biases
    "qwen3": {"num_key_value_heads": 3},  # a norm a head on queries and keys
    "olmo2": {"num_key_value_heads": 3},  # a norm over all heads together
}


@pytest.fixture(scope="module")
def rows() -> torch.Tensor:
    return torch.randint(3, VOCAB, (19, 14), generator=torch.Generator().manual_seed(5))


def batches(rows: torch.Tensor, size: int = 7) -> Any:
    return lambda: list(rows.split(size))


def block_gradients(model: Any, spaces: Any, value: torch.Tensor) -> list[torch.Tensor]:
    """The same blocks cut from the gradients that autograd leaves in the weights."""
    model.zero_grad()
    value.backward(retain_graph=True)
    found = []
    for block in spaces.blocks:
        parts = []
        for part in block.sources:
            module = model.get_submodule(part.module)
            grad = module.weight.grad
            grad = torch.zeros_like(module.weight) if grad is None else grad
            grad = grad.T if type(module).__name__ == "Conv1D" else grad
            chosen = part.features[list(block.heads)]
            parts.append(grad[:, chosen].permute(1, 0, 2) if block.kind == "o" else grad[chosen])
        found.append(torch.cat(parts, 1))
    return found


def same(left: list[torch.Tensor], right: list[torch.Tensor], tolerance: float = 1e-4) -> bool:
    pairs = zip(left, right, strict=True)
    return all(torch.allclose(a, b, atol=tolerance * float(b.abs().max() + 1e-6)) for a, b in pairs)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_probe_gradients_are_those_of_the_weights(name: str):
    """Taps, slices and layouts against `weight.grad`."""
    torch.manual_seed(1)
    model = decoder(name, **ARCHITECTURES[name])
    spaces = subspaces(head_layout(model))
    tokens = repeated_sequences(torch.arange(3, VOCAB).numpy(), ProbeConfig(sequences=3, length=10))
    probe = CopyProbe(tokens)
    assert same(probe.gradients(model, spaces), block_gradients(model, spaces, probe.value(model)))


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_pattern_probe_is_each_heads_own_pattern(name: str):
    """Grouped keys and joint norms included: nothing of its neighbours' patterns is in it."""
    torch.manual_seed(1)
    model = decoder(name, **ARCHITECTURES[name])
    model.set_attn_implementation("eager")
    spaces = subspaces(head_layout(model))
    tokens = repeated_sequences(torch.arange(3, VOCAB).numpy(), ProbeConfig(sequences=3, length=10))
    found = PatternProbe("prefix_matching", tokens).gradients(model, spaces)
    patterns = model(input_ids=tokens, output_attentions=True).attentions
    mask = prefix_match(tokens)
    for number, block in enumerate(spaces.blocks):
        for head in block.heads:
            mass = (patterns[block.layer][:, head] * mask).sum() / 3
            if block.kind == "qk":
                slow = block_gradients(model, spaces, mass)[number][head]
                assert torch.allclose(found[number][head], slow, atol=1e-6)
            else:
                assert found[number][head].abs().max() == 0


def test_all_heads_in_one_pass_equal_one_head_alone(rows: torch.Tensor):
    """Also with other heads' blocks in the same batch, to 1e-5 relative."""
    torch.manual_seed(1)
    model = decoder("gpt_neox")
    layout = head_layout(model)
    tokens = repeated_sequences(torch.arange(3, VOCAB).numpy(), ProbeConfig(sequences=3, length=10))

    def run(heads: list[tuple[int, int]] | None) -> dict[tuple[int, int], torch.Tensor]:
        spaces = subspaces(layout, heads)
        curvature = fit_curvature(model, spaces, batches(rows))
        directions = precondition(curvature, CopyProbe(tokens).gradients(model, spaces))
        parts = [s.scores for s in score_samples(model, spaces, directions, rows.split(7))]
        return dict(zip(spaces.heads, torch.cat(parts).sum(2).T, strict=True))

    together = run(None)
    assert len(together) == 6
    for head in ((0, 2), (1, 1)):
        alone = run([head])[head]
        assert torch.allclose(
            together[head], alone, rtol=1e-5, atol=1e-5 * float(alone.abs().max())
        )


def test_curvature_does_not_depend_on_how_the_sample_is_dealt_into_batches(rows: torch.Tensor):
    """A halved batch must go on to the same result, sampled labels included."""
    torch.manual_seed(1)
    model = decoder("qwen3", num_key_value_heads=1)
    spaces = subspaces(head_layout(model), [(0, 2), (1, 0)])
    few, many = (fit_curvature(model, spaces, batches(rows, n)) for n in (2, 19))
    for one, other in zip(few, many, strict=True):
        scale = float(other.eigenvalues.max())
        assert torch.allclose(one.eigenvalues, other.eigenvalues, rtol=1e-3, atol=1e-4 * scale)


def test_a_sequence_without_finite_gradient_does_not_spoil_the_curvature(
    rows: torch.Tensor, caplog: pytest.LogCaptureFixture
):
    """It is named and left out: the rest gives what it gives alone."""
    torch.manual_seed(1)
    model = decoder("llama", tie_word_embeddings=False)
    spaces = subspaces(head_layout(model), [(1, 1)], ("v", "o"))
    unseen = VOCAB - 1
    good = rows[(rows != unseen).all(1)][:8]
    alone = fit_curvature(model, spaces, batches(good))
    with torch.no_grad():
        model.get_input_embeddings().weight[unseen] = float("nan")
    broken = torch.cat([good, torch.full_like(good[:1], unseen)])
    with caplog.at_level("WARNING"):
        together = fit_curvature(model, spaces, batches(broken))
    assert "Sequence 8 of the curvature's sample" in caplog.text
    for one, other in zip(alone, together, strict=True):
        assert torch.allclose(one.eigenvalues, other.eigenvalues, rtol=1e-4, atol=1e-7)


def test_sampled_labels_follow_the_model():
    """Their frequencies are its probabilities."""
    shares = torch.tensor([0.5, 0.0, 0.3, 0.2])
    drawn = sample_labels(shares.log().expand(7, 1_001, 4), torch.Generator().manual_seed(3))
    found = torch.bincount(drawn.flatten(), minlength=4) / drawn.numel()
    assert torch.allclose(found, shares, atol=0.02)
    assert found[1] == 0


def dense_fisher(model: Any, spaces: Any, rows: torch.Tensor, seed: int) -> torch.Tensor:
    """Mean over sequences of the outer product of sampled-label gradients of one block."""
    generator = torch.Generator().manual_seed(seed)
    flat = []
    for part in rows.split(20):
        logits = model(input_ids=part[:, :-1]).logits
        losses = sequence_loss(logits, sample_labels(logits, generator))
        flat += [block_gradients(model, spaces, loss)[0].flatten() for loss in losses]
    stacked = torch.stack(flat)
    return stacked.T @ stacked / len(rows)


def test_ekfac_ranks_like_the_dense_inverse():
    """On a block of 128 weights whose Fisher can be inverted whole."""
    torch.manual_seed(0)
    model = decoder(
        "llama", hidden_size=8, head_dim=4, num_attention_heads=2, num_key_value_heads=2
    )
    rows = torch.randint(3, VOCAB, (400, 9), generator=torch.Generator().manual_seed(2))
    spaces = subspaces(head_layout(model), [(1, 0)], ("v",))
    tokens = repeated_sequences(torch.arange(3, VOCAB).numpy(), ProbeConfig(sequences=8, length=8))
    gradient = CopyProbe(tokens).gradients(model, spaces)
    config = EkfacConfig()
    curvature = fit_curvature(model, spaces, batches(rows, 50), config)
    fisher = dense_fisher(model, spaces, rows, config.seed)
    damped = fisher + config.damping * fisher.diagonal().mean() * torch.eye(len(fisher))
    dense = torch.linalg.solve(damped, gradient[0][0].flatten()).view_as(gradient[0][0])[None]
    scored = [
        torch.cat([s.scores for s in score_samples(model, spaces, [direction], rows.split(50))])
        for direction in (precondition(curvature, gradient, config)[0], dense)
    ]
    rank = spearmanr(*(scores.flatten().numpy() for scores in scored)).statistic
    assert rank >= 0.95


def test_token_scores_add_up_to_the_sample(rows: torch.Tensor):
    """The split by position loses nothing."""
    torch.manual_seed(1)
    model = decoder("gpt2")
    spaces = subspaces(head_layout(model), [(0, 1), (1, 0), (1, 2)])
    tokens = repeated_sequences(torch.arange(3, VOCAB).numpy(), ProbeConfig(sequences=3, length=10))
    directions = CopyProbe(tokens).gradients(model, spaces)
    whole = next(iter(score_samples(model, spaces, directions, [rows[:1]]))).scores[0].sum(1)
    split = token_scores(model, spaces, directions, rows[0])
    assert split.shape == (3, 13)
    assert torch.allclose(split.sum(1), whole, rtol=1e-4, atol=1e-5)


def test_a_step_on_a_sample_moves_the_probe_by_its_influence(rows: torch.Tensor):
    """Sign and size: a small gradient step on a sample raises f where the score is positive."""
    torch.manual_seed(1)
    model = decoder("gpt_neox").double()
    layout = head_layout(model)
    spaces = subspaces(layout, [(1, 1)])
    tokens = repeated_sequences(torch.arange(3, VOCAB).numpy(), ProbeConfig(sequences=3, length=10))
    probe = CopyProbe(tokens)
    directions = probe.gradients(model, spaces)
    before = float(probe.value(model).detach())
    for row in rows[:3]:
        score = float(
            next(iter(score_samples(model, spaces, directions, [row[None]]))).scores.sum()
        )
        stepped = copy.deepcopy(model)
        logits = model(input_ids=row[None, :-1]).logits
        found = block_gradients(model, spaces, sequence_loss(logits, row[None, 1:]).sum())
        for block, gradient in zip(spaces.blocks, found, strict=True):
            step = 1e-6 * gradient[0]
            start = 0
            for part in block.sources:
                weight = weight_of(stepped, part)
                with torch.no_grad():
                    if block.kind == "o":
                        weight[:, part.features[1]] -= step
                    else:
                        weight[part.features[1]] -= step[start : start + layout.d_head]
                start += layout.d_head
        after = float(probe.value(stepped).detach())
        assert (after - before) / 1e-6 == pytest.approx(score, rel=1e-3, abs=1e-5)


def test_a_sample_without_finite_gradient_is_counted_and_left_out(rows: torch.Tensor):
    """Its neighbours in the batch keep their scores."""
    torch.manual_seed(1)
    model = decoder("llama", tie_word_embeddings=False)
    with torch.no_grad():
        model.get_input_embeddings().weight[rows[1, 0]] = float("nan")
    clean = (rows != rows[1, 0]).all(1)
    spaces = subspaces(head_layout(model), [(0, 0)])
    good = rows[clean][:1]
    tokens = good[:, :10]
    directions = CopyProbe(tokens).gradients(model, spaces)
    batch = torch.cat([good, rows[1:2]])
    scored = next(iter(score_samples(model, spaces, directions, [batch])))
    assert scored.finite.tolist() == [True, False]
    assert scored.scores[0].isfinite().all()
    assert scored.scores[1].isnan().all()
