from types import SimpleNamespace

import numpy as np
import pytest
import torch

from engine.config import LossWeights
from engine.prism.attribution import scoring, search
from engine.prism.attribution.gradient import (
    VARIANTS,
    Variant,
    query_gradients,
    summed_gradient,
)
from engine.prism.attribution.pool import TokenArrays, TokenPool
from engine.prism.attribution.scoring import (
    by_norm,
    make_pool,
    pool_preconditioner,
    score_sequences,
)
from engine.prism.attribution.search import gradient_norms, invert, pair_scores, score_pool
from engine.prism.attribution.statistics import row_statistics
from engine.prism.configuration import PrismConfig
from engine.prism.model import PrismForCausalLM
from tests.engine.tiny_models import llama_config


POOL, QUERIES, LENGTH, PROTOTYPES, ACTIVE, VOCAB = 31, 3, 17, 37, 5, 311
STATISTICS = ("activations", "errors", "path")


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(2)
    config = PrismConfig.for_backbone(
        llama_config(), weights=LossWeights(), n_prototypes=PROTOTYPES, n_active=ACTIVE
    )
    return PrismForCausalLM(config).eval()


def rows(n, seed, shortest=1):
    generator = np.random.default_rng(seed)
    lengths = generator.integers(shortest, LENGTH, n)
    return SimpleNamespace(
        tokens=generator.integers(0, VOCAB, (n, LENGTH)),
        predicted=np.arange(LENGTH - 1) < lengths[:, None],
    )


def dense_gradients(model, given, statistic):
    """Gradient of each row over the whole bank, one after another: [n, prototypes, width]."""
    found = row_statistics(model, given)
    bank = model.prototypes.detach()
    parts = query_gradients(found, bank, statistic, len(given.tokens))
    return torch.stack([part.dense(PROTOTYPES) for part in parts]).double().numpy()


@pytest.mark.parametrize("name", VARIANTS)
def test_scores_are_products_of_whole_gradients(model, name):
    """Unquantised compiled scores against dense gradients and a dense solve."""
    variant, pool, queries = Variant.parse(name), rows(POOL, 5), rows(QUERIES, 7)
    of_pool = dense_gradients(model, pool, variant.statistic)
    of_queries = dense_gradients(model, queries, variant.statistic)
    stored, inverse = make_pool(model, pool, bits=32)
    conditioner = pool_preconditioner(stored, model, inverse)
    matrix = conditioner.coupling()
    matrix[np.arange(PROTOTYPES), np.arange(PROTOTYPES)] = conditioner.diagonal + conditioner.added
    solve = {
        "none": np.eye(PROTOTYPES),
        "diagonal": np.diag(1 / np.diag(matrix)),
        "coupled": np.linalg.inv(matrix),
    }
    expected = np.einsum("qid,ij,sjd->qs", of_queries, solve[variant.conditioning], of_pool)
    if variant.unit:
        expected /= np.linalg.norm(of_pool.reshape(POOL, -1), axis=1)
    found = score_sequences(model, pool, queries, name, bits=32)
    assert found.shape == (QUERIES, POOL)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-4 * np.abs(expected).max())


def test_a_positive_score_lowers_the_loss_of_the_query(model):
    """A small step down the sequence's gradient, with the residuals of the query held constant."""
    pool, queries = rows(POOL, 5), rows(1, 7)
    scores = score_sequences(model, pool, queries, "path", bits=32)[0]
    found = row_statistics(model, queries)
    bank = model.prototypes.detach().double()
    head = model.get_output_embeddings().weight.detach().double()
    states = found.unit_states.double() * found.square_norm.double().sqrt()[:, None]
    residual = states - torch.einsum("tk,tkd->td", found.activations.double(), bank[found.indices])
    targets = torch.from_numpy(queries.tokens[:, 1:][queries.predicted])

    def loss(p):
        cosines = torch.nn.functional.cosine_similarity(states[:, None], p[found.indices], dim=-1)
        rebuilt = torch.einsum("tk,tkd->td", cosines.relu(), p[found.indices])
        logits = (residual + rebuilt) @ head.T
        return torch.nn.functional.cross_entropy(logits, targets, reduction="sum")

    of_pool = dense_gradients(model, pool, "path")
    step = 1e-5
    for sequence in (int(scores.argmax()), int(scores.argmin())):
        moved = bank - step * torch.from_numpy(of_pool[sequence])
        lowered = float(loss(bank) - loss(moved)) / step
        assert lowered == pytest.approx(scores[sequence], rel=0.02)
    assert scores.max() > 0 > scores.min()


@pytest.mark.parametrize("bits", [4, 8, 32])
@pytest.mark.parametrize("statistic", STATISTICS)
def test_every_way_of_scoring_stored_tokens_agrees(model, statistic, bits, monkeypatch):
    """Compiled scan, inverted index, torch in chunks and the NumPy detail of one sequence."""
    monkeypatch.setattr(search, "CUDA_TOKENS", 23)
    stored, _ = make_pool(model, rows(POOL, 5), bits=bits)
    query = summed_gradient(row_statistics(model, rows(1, 7)), model.prototypes.detach(), statistic)
    detail = [pair_scores(stored, stored.tokens_of(s), query).sum() for s in range(POOL)]
    scanned = score_pool(stored, [query])[0]
    np.testing.assert_allclose(scanned, detail, rtol=1e-4, atol=1e-5 * np.abs(detail).max())
    inverted = invert(stored.arrays, PROTOTYPES)
    monkeypatch.setattr(search, "SCAN_SHARE", 2.0)
    visited = score_pool(stored, [query], inverted=inverted)[0]
    np.testing.assert_allclose(visited, scanned, rtol=1e-5, atol=1e-6 * np.abs(detail).max())
    packed = search.Packed.of([query, query], stored)
    torched = search._score_on(stored, packed, torch.device("cpu"))
    np.testing.assert_allclose(torched[1], scanned, rtol=1e-4, atol=1e-5 * np.abs(detail).max())


def test_threads_share_the_sequences(model, monkeypatch):
    """More threads than sequences hold, and none twice."""
    stored, _ = make_pool(model, rows(POOL, 5))
    query = summed_gradient(row_statistics(model, rows(1, 7)), model.prototypes.detach(), "path")
    alone = score_pool(stored, [query])
    monkeypatch.setattr(torch, "get_num_threads", lambda: 43)
    assert np.array_equal(score_pool(stored, [query]), alone)
    monkeypatch.setattr(search, "SCAN_SHARE", 2.0)
    visited = score_pool(stored, [query], inverted=invert(stored.arrays, PROTOTYPES))
    np.testing.assert_allclose(visited, alone, rtol=1e-5, atol=1e-6 * np.abs(alone).max())


@pytest.mark.parametrize("bits", [4, 8])
def test_quantised_scores_follow_the_unquantised(model, bits):
    """Eight bits change a score in the third digit, four in the first or second."""
    pool, queries = rows(POOL, 5, 9), rows(QUERIES, 7, 9)
    exact = score_sequences(model, pool, queries, "path", bits=32)
    stored = score_sequences(model, pool, queries, "path", bits=bits)
    error = np.abs(stored - exact).max() / exact.std()
    assert 1e-5 < error < {4: 0.3, 8: 0.03}[bits]


@pytest.mark.parametrize("statistic", STATISTICS)
def test_gradient_norms_are_those_of_summed_gradients(model, statistic):
    """Not of single tokens: rows of a prototype met twice add up first."""
    pool = rows(POOL, 5)
    stored, _ = make_pool(model, pool, bits=32)
    expected = np.linalg.norm(dense_gradients(model, pool, statistic).reshape(POOL, -1), axis=1)
    np.testing.assert_allclose(gradient_norms(stored, statistic), expected, rtol=2e-4)


def test_the_inverted_index_lists_every_active_token_once(model):
    """Prototype by prototype, tokens rising."""
    stored, _ = make_pool(model, rows(POOL, 5))
    inverted = invert(stored.arrays, PROTOTYPES)
    tokens = stored.read(slice(None))
    for prototype in range(PROTOTYPES):
        at = slice(inverted.starts[prototype], inverted.starts[prototype + 1])
        active = (tokens.prototypes == prototype) & (tokens.activations > 0)
        assert inverted.tokens[at].tolist() == np.flatnonzero(active.any(1)).tolist()


def test_a_sequence_without_a_prediction_scores_nothing(model, monkeypatch):
    """It stays in its place, so that columns are the pool's sequences."""
    monkeypatch.setattr(scoring, "ROWS", 4)
    pool = rows(POOL, 5)
    pool.predicted[[0, 11, 12, POOL - 1]] = False
    for name in ("path", "path+unit"):
        scores = score_sequences(model, pool, rows(QUERIES, 7), name)
        assert (scores[:, [0, 11, 12, POOL - 1]] == 0).all()
        assert (scores[:, 1] != 0).all()
    assert by_norm(np.ones((1, 2)), np.array([0.0, 2.0])).tolist() == [[0.0, 0.5]]


def test_a_pool_says_what_a_token_takes(model):
    """Two bytes a prototype number, one an activation, one a slope, three scales."""
    for bits, stored in ((8, 24), (4, 12), (32, 96)):
        pool, _ = make_pool(model, rows(5, 3), bits=bits)
        numbers = ACTIVE * (2 + (8 if bits == 32 else 2))
        assert pool.bytes_a_token == numbers + 2 * stored + 12


def test_a_large_bank_takes_wider_numbers(model):
    """65,536 prototypes fit two bytes, one more does not."""
    found = row_statistics(model, rows(3, 3))
    for n, kind in ((2**16, np.uint16), (2**16 + 1, np.uint32)):
        bank = torch.ones(n, 24)
        arrays = TokenArrays.of(found, bank)
        assert arrays.prototypes.dtype == kind
    assert isinstance(TokenPool(arrays, np.array([0, len(found)]), bank), TokenPool)
