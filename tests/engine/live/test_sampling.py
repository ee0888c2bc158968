import numpy as np
import pytest
import torch

from engine.live.results import Sampler
from engine.live.sampling import draw, restrict, uniform_numbers


def test_numbers_depend_on_seed_and_step_alone():
    """That is what two generations share."""
    first = uniform_numbers(3, 5, 11)
    np.testing.assert_array_equal(first, uniform_numbers(3, 5, 11))
    np.testing.assert_array_equal(first[:7], uniform_numbers(3, 5, 7))
    assert not np.array_equal(first, uniform_numbers(3, 6, 11))
    assert not np.array_equal(first, uniform_numbers(4, 5, 11))
    assert (first > 0).all()
    assert (first < 1).all()
    np.testing.assert_array_equal(uniform_numbers(-1, 0, 3), uniform_numbers(2**64 - 1, 0, 3))


def test_draws_follow_the_distribution():
    """Gumbel noise under argmax samples the softmax: 0.5, 0.3, 0.2 over 4,000 seeds."""
    logits = torch.tensor([0.5, 0.3, 0.2]).log().expand(4_000, 3)
    tokens = draw(logits, range(4_000), 2, Sampler(temperature=1, top_p=1))
    shares = torch.bincount(tokens) / 4_000
    torch.testing.assert_close(shares, torch.tensor([0.5, 0.3, 0.2]), atol=0.03, rtol=0)


def test_equal_logits_draw_equal_tokens_in_any_batch():
    """Rows of a batch do not see each other."""
    logits = torch.randn(5, 13)
    together = draw(logits, range(5), 1, Sampler())
    alone = [draw(logits[i : i + 1], [i], 1, Sampler()) for i in range(5)]
    assert together.tolist() == torch.cat(alone).tolist()


def test_close_distributions_mostly_draw_the_same_token():
    """Lowering one token must not reshuffle the others."""
    logits = torch.zeros(1_000, 17)
    changed = logits.clone()
    changed[:, 4] -= 5
    before, after = (draw(x, range(1_000), 0, Sampler(top_p=1)) for x in (logits, changed))
    kept = before != 4
    assert (before[kept] == after[kept]).all()


def test_temperature_zero_takes_the_likeliest():
    """Whatever the seed."""
    logits = torch.tensor([[0.1, 2.0, 1.0]])
    assert draw(logits, [9], 0, Sampler(temperature=0)).tolist() == [1]


@pytest.mark.parametrize(
    ("sampler", "kept"),
    [
        (Sampler(top_p=1), [0, 1, 2, 3]),
        (Sampler(top_p=0.5), [0]),  # 0.5 reaches 0.5
        (Sampler(top_p=0.51), [0, 1]),
        (Sampler(top_p=0.01), [0]),  # the likeliest always stays
        (Sampler(top_p=1, top_k=3), [0, 1, 2]),
        (Sampler(top_p=1, top_k=99), [0, 1, 2, 3]),
        (Sampler(top_p=0.7, top_k=2), [0, 1]),
    ],
)
def test_restriction_keeps_the_nucleus_and_the_top_k(sampler: Sampler, kept: list[int]):
    """Probabilities 0.5, 0.25, 0.15, 0.1."""
    scores = torch.tensor([[0.5, 0.25, 0.15, 0.1]]).log().double()
    assert restrict(scores, sampler)[0].isfinite().nonzero()[:, 0].tolist() == kept


@pytest.mark.parametrize("sharpness", [0.1, 3.0])
def test_a_nucleus_larger_than_the_sorted_head_is_found_whole(
    sharpness: float, monkeypatch: pytest.MonkeyPatch
):
    """Sorting the likeliest tokens first is a matter of speed: a full sort says the same."""
    monkeypatch.setattr("engine.live.sampling._HEAD", 7)
    generator = torch.Generator().manual_seed(5)
    scores = torch.randn(11, 31, generator=generator, dtype=torch.float64) * sharpness
    kept = restrict(scores, Sampler(top_p=0.9)).isfinite()
    for row, marked in zip(scores.softmax(-1), kept, strict=True):
        order = row.argsort(descending=True)
        n = int((row[order].cumsum(0) - row[order] < 0.9).sum())
        assert set(order[:n].tolist()) == set(marked.nonzero()[:, 0].tolist())
