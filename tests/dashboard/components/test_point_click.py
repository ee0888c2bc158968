"""What a browser sends of a click, before it is believed."""

from types import SimpleNamespace

import pytest

from dashboard.components.browser import _open
from dashboard.components.point_click import clicked_id


@pytest.mark.parametrize(
    ("state", "found"),
    [
        ({"clicked": {"id": 7}}, 7),
        (SimpleNamespace(clicked={"id": 0}), 0),
        ({"clicked": {"id": -1}}, None),
        ({"clicked": {"id": True}}, None),
        ({"clicked": {"id": "7"}}, None),
        ({"clicked": None}, None),
        ({}, None),
        (None, None),
    ],
)
def test_only_a_whole_number_is_an_id(state, found):
    """Anything may come from a browser."""
    assert clicked_id(state) == found


def test_a_click_on_a_point_that_is_gone_opens_nothing(monkeypatch):
    """Filters may have changed while the click was on its way."""
    written = []
    monkeypatch.setattr("dashboard.state.write", lambda **values: written.append(values))
    _open(7, frozenset((5, 11)))
    assert written == []
    _open(11, frozenset((5, 11)))
    assert written == [{"prototype": 11, "mark": None}]
