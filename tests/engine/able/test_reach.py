"""Whether a hub answers, asked of servers on this machine alone."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from huggingface_hub import constants

from engine.able import reach
from engine.able.reach import require_hub
from engine.errors import CacheMissing
from tests.assertions import assert_plain_sentence


@pytest.fixture
def silent(monkeypatch) -> Iterator[str]:
    """Address of a server that takes a connection and never says a word."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(reach, "PATIENCE", 0.3)
        yield address


def test_a_hub_that_says_nothing_is_given_up(silent):
    """A network that drops what it is sent must not be waited for without end."""
    with pytest.raises(CacheMissing, match="cannot be reached") as caught:
        require_hub("owner/model")
    assert silent in str(caught.value)
    assert "owner/model" in str(caught.value)
    assert_plain_sentence(str(caught.value))


def test_a_hub_that_may_not_be_asked_is_said(monkeypatch):
    """The variable is named, since the reader set it."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(CacheMissing, match="HF_HUB_OFFLINE is set"):
        require_hub("owner/model")


@pytest.mark.parametrize("command", ["add", "embed"])
def test_an_unreachable_hub_is_said_before_torch_is_loaded(command, house):
    """Loading it is most of the wait, and nothing could be fetched after it."""
    from engine.pipeline.synthetic_map import write_synthetic_models

    write_synthetic_models(house / "cache" / "maps")
    (house / "hub.csv").write_text("hub_id\nowner/model\nowner/other\n")
    typed = {
        "add": ["add", "owner/model", "--run", "maps"],
        "embed": ["embed", "--catalogue", str(house / "hub.csv"), "--run", "new"],
    }
    script = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from engine.cli.app import app\n"
        f"done = CliRunner().invoke(app, ['models', *{typed[command]!r}])\n"
        "assert done.exit_code != 0\n"
        "assert 'cannot be reached' in ' '.join(done.output.split()), done.output\n"
        "sys.exit('torch was loaded' if 'torch' in sys.modules else 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=dict(os.environ), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert not (house / "cache" / "new").exists()


def test_a_model_that_is_on_the_map_needs_no_hub(house):
    """Naming it again says what was said."""
    from engine.cli.models_add import _refuse_unreachable
    from engine.pipeline.synthetic_map import write_synthetic_models
    from engine.store import open_run, read_table

    write_synthetic_models(house / "cache" / "maps")
    run = open_run("maps")
    places = [str(place) for place in read_table(run, "model_catalogue")["place"]]
    assert places
    _refuse_unreachable(run, places[0])
