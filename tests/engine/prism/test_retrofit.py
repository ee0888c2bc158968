import pytest
import torch
from torch.nn import functional

from engine.config import LossWeights, RetrofitConfig
from engine.errors import ConfigError
from engine.prism.coverage import Coverage
from engine.prism.retrofit import fit_bank, nearest_states


TOKENS, D_MODEL, PROTOTYPES, ACTIVE = 401, 7, 23, 5


def config(**settings):
    values = {
        "n_prototypes": PROTOTYPES,
        "n_active": ACTIVE,
        "steps": 60,
        "batch_tokens": 128,
        "learning_rate": 1e-2,
    }
    return RetrofitConfig(**{**values, **settings})


def weights(reconstruction, clustering):
    return LossWeights(
        reconstruction=reconstruction,
        prototype_to_token=clustering,
        token_to_prototype=clustering,
    )


def report(bank, states):
    coverage = Coverage(bank, ACTIVE)
    coverage.update(states)
    return coverage.report()


def test_fitting_lowers_the_residual_that_k_means_leaves():
    """That is what Adam is for; k-means alone maximises coverage."""
    states = torch.randn(TOKENS, D_MODEL)
    fit = fit_bank(states, config(weights=weights(1.0, 0.1)))
    assert report(fit.prototypes, states).residual_share < (
        0.9 * report(fit.start, states).residual_share
    )


def test_clustering_weight_trades_residual_for_coverage():
    """More of it must give more coverage, at the price of the residual."""
    states = torch.randn(TOKENS, D_MODEL)
    low, high = (
        report(fit_bank(states, config(weights=weights(1.0, w))).prototypes, states)
        for w in (0.03, 3.0)
    )
    assert high.prototype_coverage > low.prototype_coverage
    assert high.token_coverage > low.token_coverage
    assert high.residual_share > low.residual_share


def test_the_same_seed_gives_the_same_bank():
    """A fit is repeatable, batch order included."""
    states = torch.randn(TOKENS, D_MODEL)
    first, again = (fit_bank(states, config(steps=7)) for _ in range(2))
    assert torch.equal(first.prototypes, again.prototypes)
    assert first.log == again.log
    assert [row["step"] for row in first.log] == list(range(1, 8))


def test_half_precision_states_are_fitted_in_float32():
    """States may be kept in half the space."""
    fit = fit_bank(torch.randn(TOKENS, D_MODEL).half(), config(steps=3))
    assert fit.prototypes.dtype == torch.float32
    assert bool(torch.isfinite(fit.prototypes).all())


def test_nearest_states_equal_a_brute_force_search():
    """Over all states, chunk borders or not."""
    states, bank = torch.randn(TOKENS, D_MODEL), torch.randn(PROTOTYPES, D_MODEL)
    cosines = functional.normalize(states, dim=1) @ functional.normalize(bank, dim=1).T
    assert torch.equal(nearest_states(states, bank, chunk=37), cosines.argmax(dim=0))


def test_fewer_states_than_prototypes_are_refused():
    """K-means needs a state a prototype."""
    with pytest.raises(ConfigError, match="use more tokens or fewer prototypes"):
        fit_bank(torch.randn(11, D_MODEL), config())
