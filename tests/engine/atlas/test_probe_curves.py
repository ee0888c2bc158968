"""How cosines settle as probes are added."""

import numpy as np
import pytest

from engine.atlas.probe_curves import decay, half_gap, probe_curves, probe_sizes
from engine.atlas.similarity import cosines, shared_roots


N_PROBES, WORDS = 64, 3


@pytest.fixture(scope="module")
def made():
    """Models of three roots, each probe an independent draw around its root."""
    generator = np.random.default_rng(5)
    roots = generator.normal(size=(3, N_PROBES * WORDS))
    vectors = np.repeat(roots, 4, axis=0) + 0.8 * generator.normal(size=(12, N_PROBES * WORDS))
    probe_of = np.repeat(np.arange(N_PROBES), WORDS)
    return vectors, probe_of, shared_roots([[str(n // 4)] for n in range(12)])


def test_sizes_double_up_to_all():
    """All probes are one of the sizes, and few probes are no error."""
    assert probe_sizes(64) == [8, 16, 32, 64]
    assert probe_sizes(70) == [8, 16, 32, 64, 70]
    assert probe_sizes(5) == [5]


def test_more_probes_agree_more_and_all_of_them_wholly(made):
    """The curve ends at 1 by its definition, and rises to it."""
    drawn = list(probe_curves(*made, n_draws=5))
    curve = {
        size: np.mean([d.value for d in drawn if (d.n_probes, d.measure) == (size, "agreement")])
        for size in probe_sizes(N_PROBES)
    }
    values = list(curve.values())
    assert values == sorted(values)
    assert values[-1] == pytest.approx(1)
    assert {d.measure for d in drawn if d.study == "convergence"} == {"half_gap"}
    assert max(d.n_probes for d in drawn if d.study == "convergence") == 32


def test_independent_probes_converge_with_the_root_of_their_number(made):
    """The rate that the suite looks for is found where it is known to hold."""
    drawn = list(probe_curves(*made, n_draws=20))
    sizes = np.array([8.0, 16.0, 32.0])
    gaps = np.array(
        [np.mean([d.value for d in drawn if d.measure == "half_gap" and d.n_probes == s])
         for s in sizes]
    )  # fmt: skip
    assert -0.6 < decay(sizes, gaps) < -0.4


def test_the_gap_and_its_decay_by_hand():
    """Gaps that halve as the size grows fourfold have the exponent -1/2."""
    assert decay(np.array([1.0, 4.0, 16.0]), np.array([4.0, 2.0, 1.0])) == pytest.approx(-0.5)
    first, second = cosines(np.eye(2)), np.array([[1, 0.3], [0.3, 1]])
    assert half_gap(first, second) == pytest.approx(0.3)
