"""One command tree for all tests of the command line."""

from collections.abc import Iterator
from functools import cache
from unittest.mock import patch

import pytest
import typer.testing
from typer.main import get_command


@pytest.fixture(autouse=True, scope="session")
def _the_tree_is_built_once() -> Iterator[None]:
    """Every call would build all commands with all their options anew."""
    with patch.object(typer.testing, "_get_command", cache(get_command)):
        yield
