"""Figures of a K x K matrix on cases that can be worked out by hand."""

import numpy as np
import pytest

from engine.prism.curvature.matrices import TermMatrix
from engine.prism.curvature.measures import coupling, measure, normalised


D = 3
BLOCK = np.array([[4.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 9.0]])
DEAD = np.pad(BLOCK, (0, 2))


def test_coupling_is_the_off_diagonal_share_of_the_absolute_mass():
    """2 of 16, whatever the signs."""
    assert coupling(BLOCK) == pytest.approx(2 / 16)
    signs = np.array([1, -1, 1])
    assert coupling(BLOCK * signs * signs[:, None]) == pytest.approx(2 / 16)
    assert coupling(np.diag([3.0, 2.0])) == 0
    assert coupling(np.zeros((2, 2))) == 0


def test_the_normalised_matrix_forgets_how_often_a_prototype_fires():
    """1 / sqrt(4 * 1) off the diagonal; prototypes without curvature are left out."""
    found = normalised(DEAD)
    assert found.shape == (3, 3)
    assert found[0, 1] == pytest.approx(0.5)
    figures, _ = measure(TermMatrix(DEAD), D)
    assert figures.coupling_normalised == pytest.approx(1 / 4)


def test_dead_prototypes_count_as_zero_eigenvalues():
    """They set the smallest eigenvalue and not the effective condition."""
    figures, values = measure(TermMatrix(DEAD), D, damping=0.1)
    inner = np.linalg.eigvalsh(BLOCK)
    assert figures.n_zero == 2
    assert figures.mean_eigenvalue == pytest.approx(14 / 5)
    assert figures.condition_effective == pytest.approx(inner[-1] / inner[0])
    assert figures.condition_number == pytest.approx((9 + 0.28) / 0.28)
    assert values[0] == pytest.approx(9)


def test_participation_counts_the_directions_of_equal_curvature():
    """K for the identity, 1 for one direction."""
    assert measure(TermMatrix(np.eye(7)), D)[0].participation == pytest.approx(7)
    one = np.outer([1.0, 2.0], [1.0, 2.0])
    assert measure(TermMatrix(one), D)[0].participation == pytest.approx(1)


def test_an_identity_is_perfectly_conditioned():
    """Whatever its scale and the damping, which is relative."""
    figures, _ = measure(TermMatrix(1e-9 * np.eye(5)), D)
    assert figures.condition_number == pytest.approx(1)
    assert figures.condition_scaled == pytest.approx(1)
    assert figures.coupling == 0


def test_a_matrix_with_negative_curvature_has_no_condition_number():
    """A ratio of unlike signs would look like a good one."""
    figures, _ = measure(TermMatrix(np.diag([2.0, 1.0, -1.0])), D)
    assert figures.condition_number is None


def test_a_bank_that_never_fires_is_measured_as_nothing():
    """No division by zero, no invented figure."""
    figures, _ = measure(TermMatrix(np.zeros((3, 3))), D)
    assert figures.condition_effective is None
    assert figures.condition_scaled is None
    assert figures.participation == 0
