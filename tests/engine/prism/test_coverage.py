import pytest
import torch
from torch.nn import functional

from engine.prism.coverage import Coverage, StateGeometry


TOKENS, D_MODEL, PROTOTYPES, ACTIVE = 71, 7, 23, 5


def test_every_figure_equals_a_brute_force_one():
    """From the whole matrix at once, in float64."""
    states = torch.randn(TOKENS, D_MODEL, dtype=torch.float64)
    prototypes = torch.randn(PROTOTYPES, D_MODEL, dtype=torch.float64)
    coverage = Coverage(prototypes, ACTIVE, chunk=10)
    coverage.update(states)
    report = coverage.report()
    cosines = functional.normalize(states, dim=1) @ functional.normalize(prototypes, dim=1).T
    top = cosines.topk(ACTIVE, dim=1)
    active = torch.zeros_like(cosines).scatter(1, top.indices, top.values.clamp_min(0))
    shares = (states - active @ prototypes).square().sum(1) / states.square().sum(1)
    assert report.tokens == TOKENS
    assert report.prototype_coverage == pytest.approx(cosines.max(0).values.mean().item())
    assert report.token_coverage == pytest.approx(cosines.max(1).values.mean().item())
    assert report.residual_share == pytest.approx(shares.mean().item())
    assert report.mean_active == pytest.approx((active > 0).sum(1).double().mean().item())
    assert report.dead_prototypes == int(((active > 0).sum(0) == 0).sum())
    units = functional.normalize(states, dim=1)
    pairs = [float(units[i] @ units[j]) for i in range(TOKENS) for j in range(TOKENS) if i != j]
    assert report.pair_cosine == pytest.approx(sum(pairs) / len(pairs))
    spectrum = torch.linalg.eigvalsh(torch.cov(states.T, correction=0))
    ratio = (spectrum.sum() ** 2 / spectrum.square().sum()).item()
    assert report.participation_ratio == pytest.approx(ratio)


def test_batches_and_chunks_do_not_change_the_report():
    """A scan is one set of tokens however it is cut."""
    states = torch.randn(TOKENS, D_MODEL, dtype=torch.float64)
    prototypes = torch.randn(PROTOTYPES, D_MODEL, dtype=torch.float64)
    whole, parts = Coverage(prototypes, ACTIVE), Coverage(prototypes, ACTIVE, chunk=3)
    whole.update(states)
    for part in states.split(13):
        parts.update(part)
    for name, value in whole.report().as_dict().items():
        assert parts.report().as_dict()[name] == pytest.approx(value)


def test_states_in_a_cone_show_as_collapse():
    """High coverage must not hide it: pair cosine near 1 and few dimensions."""
    cone = torch.ones(TOKENS, D_MODEL) + 0.05 * torch.randn(TOKENS, 1) * torch.eye(D_MODEL)[0]
    geometry = StateGeometry(D_MODEL)
    geometry.update(cone)
    assert geometry.pair_cosine > 0.99
    assert geometry.participation_ratio == pytest.approx(1.0, abs=1e-3)


def test_isotropic_states_fill_every_dimension():
    """One standard basis vector each, equally often: the covariance has d - 1 equal eigenvalues."""
    geometry = StateGeometry(D_MODEL)
    geometry.update(torch.eye(D_MODEL).repeat(3, 1))
    assert geometry.participation_ratio == pytest.approx(D_MODEL - 1)


def test_a_prototype_opposite_to_all_states_is_dead():
    """It is never active, however large k is."""
    coverage = Coverage(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]), 2)
    coverage.update(torch.tensor([[1.0, 0.0], [2.0, 0.1]]))
    report = coverage.report()
    assert report.dead_prototypes == 1
    assert report.dead_share == 0.5
    assert report.mean_active == 1.0


def test_an_empty_batch_changes_nothing():
    """A batch of padding alone can happen."""
    coverage = Coverage(torch.randn(PROTOTYPES, D_MODEL), ACTIVE)
    coverage.update(torch.empty(0, D_MODEL))
    assert coverage.report().tokens == 0
