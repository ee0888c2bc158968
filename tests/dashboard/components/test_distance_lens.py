"""What the line below a map sends to the browser."""

import numpy as np
import pytest

from dashboard.components.distance_lens import as_bytes, clicked_place, reach_of


def test_cosines_come_back_from_their_bytes():
    """A step of 255 between both ends, and no more off than half of it."""
    generator = np.random.default_rng(2)
    cosines = generator.uniform(-0.2, 0.9, (13, 13))
    packed = as_bytes(cosines, -0.2, 0.9)
    assert np.abs(-0.2 + 1.1 * packed / 255 - cosines).max() <= 0.5 * 1.1 / 255 + 1e-12


def test_the_ends_leave_out_a_model_with_itself():
    """Else the scale would always end at 1, and near models would look alike."""
    cosines = np.full((7, 7), 0.1)
    cosines[2, 3] = cosines[3, 2] = 0.6
    np.fill_diagonal(cosines, 1.0)
    assert reach_of(cosines) == pytest.approx((0.1, 0.6))
    assert reach_of(np.ones((1, 1))) == (0.0, 1.0)
    low, high = reach_of(np.ones((3, 3)))
    assert high > low


@pytest.mark.parametrize(
    ("state", "place"),
    [
        ({"clicked": {"place": 3}}, 3),
        ({"clicked": {"place": 7}}, None),
        ({"clicked": {"place": True}}, None),
        ({"clicked": {"place": "3"}}, None),
        ({"clicked": None}, None),
        (None, None),
    ],
)
def test_a_click_is_a_place_of_a_mark_or_nothing(state: object, place: int | None):
    """What comes from a browser is checked before it names a model."""
    assert clicked_place(state, 7) == place
