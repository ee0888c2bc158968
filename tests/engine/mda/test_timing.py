"""Influence along training: even where it is even, late where it is late."""

import numpy as np
import pytest

from engine.mda.timing import timing


def test_even_influence_has_an_even_density_and_mass():
    """Seven samples a step, the same in each."""
    steps = np.repeat(np.arange(100, 143), 7)
    influence = np.tile([-2.0, -1.0, 0.0, 0.1, 0.2, 0.3, 9.0], 43)
    found = timing(steps, influence, bins=43, share=1 / 7)
    assert found.edges[0] == 100
    assert found.edges[-1] == 143
    assert found.density == pytest.approx(np.ones(43))
    assert found.mass == pytest.approx(np.full(43, 1 / 43))
    assert found.lowering == pytest.approx(np.full(43, 1 / 43))


def test_influence_that_comes_late_is_seen_late():
    """All of it in the last third, skipped samples apart."""
    steps = np.repeat(np.arange(30), 5)
    influence = np.where(steps >= 20, 1.0, 0.0) + 1e-6 * np.arange(150)
    influence[3] = np.nan
    found = timing(steps, influence, bins=3, share=1 / 3)
    assert found.n_samples.tolist() == [49, 50, 50]
    assert found.density == pytest.approx([0, 0, 149 / 50])
    assert found.mass[2] > 0.99
    assert np.isnan(found.lowering).all()
    assert len(timing(steps, np.full(150, np.nan)).mass) == 0
