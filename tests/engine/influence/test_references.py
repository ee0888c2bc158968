"""Every reference against the slow and obvious way to the same number."""

import numpy as np
import pytest
import torch
from sklearn.metrics.pairwise import cosine_similarity

from engine.errors import ConfigError
from engine.influence.decoder import block_linears
from engine.influence.frame import Sequences
from engine.influence.gradients import gradient_products
from engine.influence.methods import METHODS, method_named
from engine.influence.neighbours import score_neighbours
from engine.influence.prototype_gradients import full_scores, score_full
from engine.influence.random_scores import score_random
from engine.influence.text_scores import score_bm25, score_tfidf, words_of
from engine.prism.attribution.gradient import VARIANTS
from engine.prism.model import PrismForCausalLM


def row_loss(model: PrismForCausalLM, sequences: Sequences, row: int) -> torch.Tensor:
    """Sum of -log p, token by token, over one sequence without its padding."""
    tokens = torch.from_numpy(sequences.tokens[row, : sequences.length[row]])
    chances = model(input_ids=tokens[None]).logits[0].log_softmax(-1)
    places = np.flatnonzero(sequences.predicted[row])
    return -torch.stack([chances[t, tokens[t + 1]] for t in places]).sum()


def decoder_gradient(model: PrismForCausalLM, sequences: Sequences, row: int) -> np.ndarray:
    """Gradient of one loss in all weights of the decoder, by backward()."""
    model.zero_grad()
    row_loss(model, sequences, row).backward()
    parts = [p.grad.flatten() for p in model.backbone.parameters()]
    return torch.cat(parts).double().numpy()


def test_gradient_products_are_those_of_whole_gradients(small_model, pool, queries):
    """In blocks too small for all the queries, which must not change a number."""
    expected = [
        [decoder_gradient(small_model, s, i) for i in range(len(s))] for s in (queries, pool)
    ]
    asked, held = (np.stack(rows) for rows in expected)
    found = gradient_products(small_model, pool, queries, memory_bytes=4 * asked.shape[1] * 5)
    np.testing.assert_allclose(found.dots, asked @ held.T, rtol=2e-4, atol=1e-2)
    np.testing.assert_allclose(found.cosines, cosine_similarity(asked, held), atol=1e-5)
    assert all(p.requires_grad for p in small_model.backbone.parameters())


def test_a_step_on_a_text_lowers_the_loss_as_scored(small_model, pool, queries):
    """The sign: -rate x score is the change of the query's loss, to first order."""
    score = gradient_products(small_model, pool[:1], queries[:1]).dots[0, 0]
    step = decoder_gradient(small_model, pool, 0)
    before = row_loss(small_model, queries, 0).item()
    weights = torch.nn.utils.parameters_to_vector(small_model.backbone.parameters()).detach()
    rate = 1e-6
    moved = weights - rate * torch.from_numpy(step).float()
    torch.nn.utils.vector_to_parameters(moved, small_model.backbone.parameters())
    after = row_loss(small_model, queries, 0).item()
    torch.nn.utils.vector_to_parameters(weights, small_model.backbone.parameters())
    assert after - before == pytest.approx(-rate * score, rel=0.1)


def bank_loss(
    model: PrismForCausalLM, bank: torch.Tensor, sequences: Sequences, row: int
) -> torch.Tensor:
    """Loss of a sequence whose states are rebuilt from the bank; residual and choice stay."""
    tokens = torch.from_numpy(sequences.tokens[row, : sequences.length[row]])
    out = model(input_ids=tokens[None], return_prototypes=True)
    loss = torch.zeros((), dtype=torch.float64)
    for t in np.flatnonzero(sequences.predicted[row]):
        state = out.states[0, t].double().detach()
        rebuilt, fixed = torch.zeros_like(state), torch.zeros_like(state)
        for i in out.prototype_indices[0, t].tolist():
            for total, p in ((rebuilt, bank[i]), (fixed, model.prototypes[i].double().detach())):
                total += torch.relu(p @ state / (p.norm() * state.norm())) * p
        z = rebuilt + state - fixed
        head = model.get_output_embeddings().weight.double().detach()
        loss = loss - (head @ z).log_softmax(0)[tokens[t + 1]]
    return loss


def test_the_full_gradient_is_the_slope_of_the_loss_in_the_bank(small_model, pool):
    """Central differences along random directions, residual and active set held constant."""
    bank = small_model.prototypes.detach().double()
    direction = torch.from_numpy(np.random.default_rng(3).standard_normal(bank.shape))
    step = 1e-5
    with torch.no_grad():
        ends = [bank_loss(small_model, bank + s * step * direction, pool, 4) for s in (1, -1)]
        slope = float((ends[0] - ends[1]) / (2 * step))
    found = prototype_rows(small_model, pool[4:5], through_activations=True)
    assert float((found * direction).sum()) == pytest.approx(slope, rel=1e-5)


def prototype_rows(model: PrismForCausalLM, one: Sequences, **settings: bool) -> torch.Tensor:
    """Gradient of a sequence in float64 as the reference takes it."""
    from engine.influence.decoder import last_states, tensors
    from engine.influence.prototype_gradients import prototype_gradient

    tokens, predicted = tensors(one, "cpu")
    states = last_states(model, tokens)[0, :-1].double()
    return prototype_gradient(model, states, tokens[0, 1:], predicted[0], **settings)


@pytest.mark.parametrize("through", [True, False])
def test_full_scores_are_products_of_those_gradients(small_model, pool, queries, through: bool):
    """Plain, under a diagonal and under a whole inverse, and divided by the text's own length."""
    rows = [
        torch.stack([prototype_rows(small_model, s[i : i + 1], through_activations=through)
                     for i in range(len(s))]).flatten(1)
        for s in (queries, pool)
    ]  # fmt: skip
    plain = score_full(small_model, pool, queries, precision="float64", through_activations=through)
    np.testing.assert_allclose(plain, (rows[0] @ rows[1].T).numpy(), rtol=1e-5)
    unit = score_full(small_model, pool, queries, through_activations=through, unit=True)
    np.testing.assert_allclose(unit, plain / rows[1].norm(dim=1).numpy(), rtol=1e-3, atol=1e-3)


def test_both_forms_of_an_inverse_agree_in_one_pass(small_model, pool, queries):
    """A diagonal given as a vector and as a matrix; conditioned on the query's side."""
    diagonal = torch.linspace(0.5, 3, len(small_model.prototypes))
    plain, vector, matrix = full_scores(
        small_model, pool, queries, [None, diagonal, torch.diag(diagonal)]
    )
    np.testing.assert_allclose(vector, matrix, rtol=1e-4, atol=1e-3)
    assert not np.allclose(plain, vector, rtol=0.05)


@pytest.mark.parametrize("variant", ["path", "errors"])
def test_cached_scores_without_quantisation_are_the_full_ones(small_model, pool, queries, variant):
    """Two implementations that share no line but the model."""
    cached = METHODS[variant].score(small_model, pool, queries, bits=32)
    full = score_full(small_model, pool, queries, through_activations=variant == "path")
    np.testing.assert_allclose(cached, full, rtol=1e-3, atol=1e-4 * np.abs(full).max())


@pytest.mark.parametrize("states", ["mean", "last"])
def test_neighbours_compare_states_of_texts_without_padding(small_model, pool, queries, states):
    """One sequence at a time, cut to its length."""

    def state(sequences: Sequences, row: int) -> np.ndarray:
        tokens = torch.from_numpy(sequences.tokens[row, : sequences.length[row]])
        found = small_model(input_ids=tokens[None], return_prototypes=True).states[0]
        last = np.flatnonzero(sequences.predicted[row])[-1]
        return (found[last] if states == "last" else found[1:].mean(0)).detach().numpy()

    sides = [np.stack([state(s, i) for i in range(len(s))]) for s in (queries, pool)]
    found = score_neighbours(small_model, pool, queries, states=states, batch_size=3)
    np.testing.assert_allclose(found, cosine_similarity(*sides), atol=1e-5)


def test_bm25_is_the_formula(small_model, pool, queries):
    """Lucene's: ln(1 + (n - df + 0.5) / (df + 0.5)) tf / (tf + k1 (1 - b + b length / mean))."""
    texts = words_of(pool)
    mean = np.mean([len(text) for text in texts])
    expected = np.zeros((len(queries), len(pool)))
    for q, words in enumerate(words_of(queries)):
        for word in words:
            df = sum(word in text for text in texts)
            weight = np.log(1 + (len(texts) - df + 0.5) / (df + 0.5))
            for d, text in enumerate(texts):
                tf = text.count(word)
                expected[q, d] += weight * tf / (tf + 1.5 * (0.25 + 0.75 * len(text) / mean))
    found = score_bm25(small_model, pool, queries)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_tfidf_finds_a_text_among_its_likes(small_model, pool):
    """A text is most like itself, less like one of half its tokens, not like one of none."""
    found = score_tfidf(small_model, pool, pool)
    np.testing.assert_allclose(np.diag(found), 1, atol=1e-5)
    tokens = pool.tokens.copy()
    tokens[1] = tokens[0]
    tokens[1, 7:] = tokens[2, 7:]
    half = Sequences(tokens, pool.predicted, pool.domain, pool.document, pool.start, pool.length)
    scores = score_tfidf(small_model, half, half[:1])
    assert scores[0, 0] > scores[0, 1] > np.delete(scores[0], [0, 1]).max()


def test_random_scores_depend_on_the_seed_alone(small_model, pool, queries):
    """The same again, and others under another seed."""
    first, second, other = (score_random(small_model, pool, queries, seed=s) for s in (1, 1, 2))
    assert (first == second).all()
    assert not (first == other).any()


def test_block_linears_leave_out_embedding_and_head(small_model):
    """Seven a block of a Llama."""
    names = block_linears(small_model.backbone)
    assert len(names) == 14
    assert all(".layers." in name for name in names)


def test_every_method_that_needs_no_package_scores_every_pair(small_model, pool, queries):
    """Shape, type and no NaN; of the cached variants a few."""
    cached = {"path", "errors+diagonal", "activations+coupled+unit"}
    for name in cached | (set(METHODS) - set(VARIANTS) - {"ekfac", "projected"}):
        scores = method_named(name).score(small_model, pool, queries)
        assert scores.shape == (7, 19), name
        assert scores.dtype == np.float32, name
        assert np.isfinite(scores).all(), name


def test_an_unknown_method_is_said():
    """The sentence lists those there are."""
    with pytest.raises(ConfigError, match="choose one of activations"):
        method_named("magic")
