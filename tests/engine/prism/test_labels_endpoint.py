"""An endpoint's labels: scored by prediction, and failed ones say so."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from engine.endpoint import Endpoint
from engine.prism.labels.endpoint import (
    FAILED_ROLE,
    GIVE_UP_AFTER,
    Snippets,
    label_by_endpoint,
)


SNIPPETS = Snippets(("a ⟦cat⟧",), ("a ⟦cat⟧", "a ⟦stone⟧", "the ⟦cat⟧"), (True, False, True))


class Answers(BaseHTTPRequestHandler):
    """Names everything "cats" and finds cats by their letters; keeps what it was asked."""

    asked: list = []  # noqa: RUF012
    broken = False

    def do_POST(self):
        length = int(self.headers["Content-Length"])
        body = json.loads(self.rfile.read(length))
        type(self).asked.append((self.path, self.headers["Authorization"], body))
        if self.broken:
            self.send_error(500)
            return
        prompt, text = (m["content"] for m in body["messages"])
        if "described as: cats" in prompt:
            lines = text.splitlines()
            answer = {"active": [i + 1 for i, line in enumerate(lines) if "cat" in line]}
        else:
            answer = {"category": "Animals", "role": "cats"}
        content = f"Here: ```json\n{json.dumps(answer)}\n```"
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"choices": [{"message": {"content": content}}]}).encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    """A server on this machine, reached without a proxy."""
    Answers.asked, Answers.broken = [], False
    running = HTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}/v1"
    running.shutdown()
    thread.join()
    running.server_close()


def test_a_label_is_scored_by_what_it_predicts(server):
    """Both cats and the stone are told apart: balanced accuracy 1; the key is sent along."""
    label = label_by_endpoint(Endpoint(server, "m", key="secret"), [SNIPPETS, SNIPPETS])[0]
    assert (label.category, label.role, label.score) == ("Animals", "cats", 1.0)
    assert Answers.asked[0][0] == "/v1/chat/completions"
    assert Answers.asked[0][1] == "Bearer secret"


def test_a_broken_endpoint_is_given_up_and_leaves_no_number(server):
    """A label that failed must never look like a low score."""
    Answers.broken = True
    labels = label_by_endpoint(Endpoint(server, "m"), [SNIPPETS] * 7)
    assert {label.role for label in labels} == {FAILED_ROLE}
    assert {label.score for label in labels} == {None}
    assert len(Answers.asked) == GIVE_UP_AFTER
