"""The demo's preparation: its status file says how far it is, whatever happens."""

import errno
import json
import signal

import pytest

from engine.cli import demo, preparation
from engine.errors import PackageMissing


@pytest.fixture
def steps(house, monkeypatch):
    """Steps that do nothing, and the folder of the status file."""
    previous = signal.getsignal(signal.SIGTERM)
    for name in ("_fetch", "_build", "_compare", "_fetch_smollm2"):
        monkeypatch.setattr(preparation, name, list)
    yield house / "cache"
    signal.signal(signal.SIGTERM, previous)


def status(cache):
    return json.loads((cache / "demo-preparation.json").read_text())


def test_a_finished_preparation_says_done(steps):
    preparation.prepare(preparation.Preparation())
    assert status(steps)["state"] == "done"
    assert preparation.read_status() == status(steps)


def test_a_package_that_cannot_be_had_is_named(steps, monkeypatch):
    """The pages show the sentence, and the rest stands."""
    monkeypatch.setattr(preparation, "_fetch", lambda: ["One package is missing."])
    preparation.prepare(preparation.Preparation(smollm2=True))
    assert status(steps)["state"] == "incomplete"
    assert status(steps)["sentences"] == ["One package is missing."]


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (PackageMissing("No network."), "failed"),
        (OSError(errno.ENOSPC, "No space left on device"), "failed"),
        (KeyboardInterrupt(), "stopped"),
    ],
)
def test_a_preparation_that_ends_early_says_why(steps, monkeypatch, error, state):
    def fail():
        raise error

    monkeypatch.setattr(preparation, "_build", fail)
    with pytest.raises(type(error)):
        preparation.prepare(preparation.Preparation())
    assert status(steps)["state"] == state


def test_before_the_first_preparation_there_is_no_status(house):
    assert preparation.read_status() == {}


def test_a_port_that_is_taken_is_passed_over():
    import socket

    with socket.socket() as taken:
        taken.bind(("localhost", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert demo.free_port(port) > port


def test_the_pages_are_awaited_without_the_proxy_of_the_environment(monkeypatch):
    """A proxy that cannot reach this machine's own ports would hold the browser back a minute."""
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from threading import Thread

    class Healthy(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    monkeypatch.setenv("http_proxy", "http://localhost:9")
    monkeypatch.delenv("no_proxy", raising=False)
    with HTTPServer(("localhost", 0), Healthy) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        assert demo.answers(server.server_port)
        server.shutdown()
