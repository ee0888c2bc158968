"""URL parameters: sets of ids, selections of charts in both forms."""

from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st
from streamlit.testing.v1 import AppTest

from dashboard import state


@given(st.sets(st.integers(0, 20_000), max_size=300))
def test_a_set_of_ids_survives_the_url(ids: set[int]):
    """A lasso of any size is a link."""
    assert state.decode_ids(state.encode_ids(ids)) == tuple(sorted(ids))


def test_a_small_set_is_readable_and_a_large_one_is_short():
    """Links are read by people, and kept below what servers accept."""
    assert state.encode_ids([5, 3, 3]) == "3,5"
    assert len(state.encode_ids(range(0, 16_384, 2))) < 4_000


@pytest.mark.parametrize("text", ["x", "1,,x", "-3", "z!", "zAAAA", "99999999999"])
def test_nonsense_is_a_value_error(text: str):
    """The caller turns it into one sentence."""
    with pytest.raises(ValueError, match="not a set of ids"):
        state.decode_ids(text)


def test_a_bomb_unpacks_no_further_than_the_largest_id():
    """A short link must not fill the memory."""
    import base64
    import zlib

    bomb = "z" + base64.urlsafe_b64encode(zlib.compress(b"\xff" * 10_000_000)).decode()
    assert len(state.decode_ids(bomb)) <= state.MAX_ID


@pytest.mark.parametrize("custom", [7, [7, "label"], (7,), 7.0, {"0": 7, "1": 0.5}])
def test_both_forms_of_a_selection_give_the_ids(custom: object):
    """The browser sends objects, tests and session state plain dictionaries."""
    point = {"customdata": custom, "point_index": 99}
    plain = {"selection": {"points": [point, point]}}
    objects = SimpleNamespace(selection=SimpleNamespace(points=[SimpleNamespace(**point)]))
    assert state.selected_ids(plain) == (7,)
    assert state.selected_ids(objects) == (7,)


@pytest.mark.parametrize(
    "event", [None, {}, {"selection": None}, {"selection": {"points": [{}]}}, 3]
)
def test_no_selection_is_no_ids(event: object):
    """A chart that was never touched selects nothing."""
    assert state.selected_ids(event) == ()


def test_rows_of_a_table_are_read_in_both_forms():
    """As for charts."""
    assert state.selected_rows({"selection": {"rows": [3]}}) == (3,)
    assert state.selected_rows(SimpleNamespace(selection=SimpleNamespace(rows=[3]))) == (3,)
    assert state.selected_rows(None) == ()


def test_a_long_list_of_choices_says_how_many_it_leaves_out():
    """A cut list reads as if nothing else could be chosen."""
    app = AppTest.from_string(
        "import streamlit as st\nfrom dashboard import state\n"
        "state.read_choice('way', [str(i) for i in range(11)], '0')\n"
        "st.text(' '.join(state.warnings()))"
    )
    app.query_params["way"] = "x"
    assert "6, 7 and 3 more, so it was left out" in app.run().text[0].value
