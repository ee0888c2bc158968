"""The client of OpenAI-compatible endpoints: what it refuses and what it never shows."""

import pytest

from engine.endpoint import Endpoint, EndpointError
from engine.errors import ConfigError


def test_a_closed_port_is_one_plain_sentence():
    """No traceback for an address nobody listens at."""
    with pytest.raises(EndpointError, match="gave no usable answer"):
        Endpoint("http://127.0.0.1:9/v1", "m", timeout=2).ask("a", "b")


def test_an_address_must_be_http():
    """Files and other schemes are not asked."""
    with pytest.raises(ConfigError, match="must start with http"):
        Endpoint("file:///etc/passwd", "m")


def test_the_key_is_not_shown():
    """Logs print objects."""
    assert "secret" not in repr(Endpoint("http://x", "m", key="secret"))
