"""The statistics that judge attribution: known answers, and the slow obvious way beside."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from engine.influence import lds


SUBSETS, POOL, QUERIES = 23, 41, 7


@pytest.fixture
def toy():
    """Members, true effects of every sequence on every query, and the outcomes they add up to."""
    generator = np.random.default_rng(3)
    members = np.zeros((SUBSETS, POOL), bool)
    for row in members:
        row[generator.permutation(POOL)[: POOL // 2]] = True
    effects = generator.standard_normal((QUERIES, POOL))
    return members, effects, members @ effects.T


def test_the_true_effects_of_a_linear_world_are_predicted_without_a_miss(toy):
    """Where outcomes are sums, the summed true effects rank them exactly; negated, exactly not."""
    members, effects, outcomes = toy
    predicted = lds.predicted_outcomes(effects.astype(np.float32), members)
    assert np.allclose(lds.rank_correlations(predicted, outcomes), 1)
    assert np.allclose(lds.rank_correlations(-predicted, outcomes), -1)


def test_correlations_are_those_of_scipy_ties_included(toy):
    """Query by query, on values many of which are equal."""
    generator = np.random.default_rng(5)
    first = generator.integers(0, 6, (SUBSETS, QUERIES)).astype(float)
    second = first + generator.integers(0, 9, first.shape)
    slow = [spearmanr(first[:, q], second[:, q]).statistic for q in range(QUERIES)]
    assert np.allclose(lds.rank_correlations(first, second), slow)


def test_a_constant_prediction_counts_as_none():
    """A method that scores every subset alike has predicted nothing, not something undefined."""
    outcomes = np.random.default_rng(0).random((SUBSETS, QUERIES))
    assert np.array_equal(lds.rank_correlations(np.ones_like(outcomes), outcomes), np.zeros(7))


def test_measured_outcomes_rise_as_losses_fall():
    """The sign: a lower loss is a better outcome; seeds are averaged."""
    losses = np.array([[[1.0], [3.0]], [[2.0], [5.0]]])
    assert lds.measured_outcomes(losses).tolist() == [[-1.5], [-4.0]]


def domains_of(pool):
    return np.array(["law", "code", "verse"], object)[np.arange(pool) % 3]


def test_counting_a_domain_predicts_all_and_nothing_within(toy):
    """Scores that know the domain alone explain domain effects, and none of what is left."""
    members, effects, _ = toy
    domain = domains_of(POOL)
    by_domain = np.where(domain == "law", 1.0, 0.0)[None].repeat(QUERIES, 0)
    counts = lds.domain_counts(members, domain)
    outcomes = members @ (5 * by_domain + 0.1 * effects).T
    predicted = lds.predicted_outcomes(by_domain.astype(np.float32), members)
    assert lds.rank_correlations(predicted, outcomes).min() > 0.8
    within = lds.partial_out(predicted, counts), lds.partial_out(outcomes, counts)
    assert np.array_equal(within[0], np.zeros_like(predicted))
    assert np.array_equal(lds.rank_correlations(*within), np.zeros(QUERIES))
    true = lds.partial_out(members @ effects.T, counts)
    assert np.allclose(lds.rank_correlations(true, within[1]), 1)


def test_partialling_out_is_least_squares_query_by_query(toy):
    """Against a solve of the normal equations, one query at a time."""
    members, _, outcomes = toy
    counts = lds.domain_counts(members, domains_of(POOL))
    assert np.array_equal(counts.sum(1), np.full(SUBSETS, POOL // 2))
    design = np.column_stack([np.ones(SUBSETS), counts[:, 1:]])  # the counts add up: one is implied
    for query in range(QUERIES):
        own = outcomes[:, query]
        slow = own - design @ np.linalg.solve(design.T @ design, design.T @ own)
        assert np.allclose(lds.partial_out(outcomes, counts)[:, query], slow, atol=1e-8)


def test_seeds_that_agree_have_a_ceiling_of_one_and_noise_lowers_it(toy):
    """Identical seeds tell each other exactly; three seeds are averaged over pairs."""
    members, _, outcomes = toy
    counts = lds.domain_counts(members, domains_of(POOL))
    same = np.stack([-outcomes, -outcomes])
    assert np.allclose(lds.noise_ceiling(same), 1)
    assert np.allclose(lds.noise_ceiling(same, counts), 1)
    noise = np.random.default_rng(1).standard_normal((3, *outcomes.shape))
    noisy = -outcomes + 4 * noise
    pairs = [(0, 1), (0, 2), (1, 2)]
    slow = np.mean([lds.rank_correlations(noisy[i], noisy[j]) for i, j in pairs], axis=0)
    assert np.allclose(lds.noise_ceiling(noisy), slow)
    assert slow.mean() < 0.9


def test_intervals_hold_their_mean_and_narrow_with_more_queries():
    """Over queries: the percentile interval of a mean of many equal draws."""
    generator = np.random.default_rng(2)
    few, many = generator.normal(0.4, 0.2, 11), generator.normal(0.4, 0.2, 1009)
    wide, narrow = lds.mean_over_queries(few), lds.mean_over_queries(many)
    assert wide.low < wide.mean < wide.high
    assert narrow.high - narrow.low < (wide.high - wide.low) / 3
    assert abs((narrow.high - narrow.low) / 2 - 1.96 * many.std() / np.sqrt(1009)) < 0.002


def test_a_resample_of_subsets_correlates_the_ranks_drawn(toy):
    """The weighted correlation equals that of the ranks repeated as often as they were drawn."""
    _, _, outcomes = toy
    other = outcomes + np.random.default_rng(4).standard_normal(outcomes.shape)
    found = lds.mean_over_subsets(outcomes, other, resamples=3, seed=6)
    generator = np.random.default_rng(6)
    drawn = generator.multinomial(SUBSETS, np.full(SUBSETS, 1 / SUBSETS), 3)
    ranks = lds.centred_ranks(outcomes), lds.centred_ranks(other)
    means = []
    for weights in drawn:
        first, second = (np.repeat(side, weights, axis=0) for side in ranks)
        each = [np.corrcoef(first[:, q], second[:, q])[0, 1] for q in range(QUERIES)]
        means.append(np.mean(each))
    assert np.allclose([found.low, found.high], np.quantile(means, [0.025, 0.975]))
    assert found.mean == pytest.approx(lds.rank_correlations(outcomes, other).mean())


def test_a_difference_is_paired():
    """Two methods that differ by the same on every query differ without doubt."""
    first = np.random.default_rng(7).random(19)
    found = lds.mean_difference(first, first - 0.125)
    assert (found.low, found.mean, found.high) == pytest.approx((0.125, 0.125, 0.125))


def test_ranks_count_ties_against_a_method():
    """All scores equal is no recall; the best score ranks first."""
    scores = np.array([[0.0, 0.0, 0.0], [1.0, 3.0, 2.0], [5.0, 1.0, 5.0]])
    ranks = lds.ranks_of(scores, np.array([1, 1, 0]))
    assert ranks.tolist() == [3, 1, 2]
    assert lds.recall_at(ranks, 2) == pytest.approx(2 / 3)
    assert lds.mean_reciprocal_rank(ranks) == pytest.approx((1 / 3 + 1 + 1 / 2) / 3)
