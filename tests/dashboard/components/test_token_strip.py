"""What a strip sends to the browser and what it accepts back."""

from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.components import token_strip
from dashboard.components.token_strip import StripClick


@pytest.mark.parametrize("state", [{"clicked": {"key": "0-1", "position": 5}}])
def test_a_click_is_read_in_both_forms(state: dict):
    """The component returns an object, session state may hold a dictionary."""
    expected = StripClick("0-1", 5)
    assert token_strip._click(state) == expected
    assert token_strip._click(SimpleNamespace(**state)) == expected


@pytest.mark.parametrize(
    "clicked", [None, "x", 3, {"position": "5"}, {"position": True}, {"position": 1.5}, []]
)
def test_anything_else_is_no_click(clicked: object):
    """What comes back from a browser is not trusted."""
    assert token_strip._click({"clicked": clicked}) is None


def test_a_strip_renders_without_html():
    """Text is data of the component; the page holds no markup made of it."""
    app = AppTest.from_string(
        "from dashboard.components.token_strip import TokenCell, token_strip\n"
        "token_strip([TokenCell('<script>', 0.5, 'title')], key='s', selectable=True)\n"
    ).run(timeout=300)
    assert not app.exception
    assert not app.get("html")


def test_the_script_writes_text_through_text_nodes_alone():
    """A static check: nothing in the script parses text as markup."""
    script = (token_strip._ASSETS / "token_strip.js").read_text(encoding="utf-8")
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert forbidden not in script
