"""`headwater heads motifs`: what it asks of the stage, what it prints, what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from engine.cli import app as command
from engine.pipeline import heads_motifs
from engine.pipeline.heads_motifs import motif_rows
from engine.store import Run, RunWriter, open_run
from tests.assertions import assert_plain_sentence
from tests.engine.mda.test_motifs import motif_of


def ask(*arguments: str):
    return CliRunner().invoke(command.app, ["heads", "motifs", "--run", "heads", *arguments])


@pytest.fixture
def asked(house: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the stage is called with; the run has motifs and nothing to make them of."""
    writer = RunWriter.create(house / "cache" / "heads", name="heads", kind="heads", identity={})
    writer.begin_stage("motifs", {})
    found = {"induction": [motif_of("markup"), motif_of("list")], "gate": [motif_of("table")]}
    writer.write_table("head_motifs", motif_rows(found))
    writer.finish_stage("motifs", {})
    calls: list[Any] = []

    def stage(run: str, *, endpoint: Any = None, **_: Any) -> Run:
        calls.append((run, endpoint))
        return open_run(writer.path)

    monkeypatch.setattr(heads_motifs, "write_motifs", stage)
    return calls


def test_the_table_has_a_line_a_motif_and_says_what_it_is_built_of(asked: list[Any]):
    """No endpoint is asked unless one is named."""
    done = ask()
    assert done.exit_code == 0, done.output
    assert asked == [("heads", None)]
    lines = done.stdout.splitlines()
    assert len(lines) == 1 + 3 + 1
    assert [line.split()[:3] for line in lines[1:4]] == [
        ["gate", "table", "3"],
        ["induction", "list", "3"],
        ["induction", "markup", "3"],
    ]
    assert "delimiters ';'" in lines[1]
    assert "alone 0.25" in lines[3]


def test_the_json_of_one_kind_of_head_holds_structure_and_vocabulary(asked: list[Any]):
    """A script can make the motif again from it."""
    found = json.loads(ask("--unit", "gate", "--json").stdout)["motifs"]
    assert [(row["unit"], row["motif"]) for row in found] == [("gate", "table")]
    assert found[0]["structure"]["n_fields"] == {"values": [3], "counts": [3]}
    assert {"letters", "word_lengths", "tokens"} <= set(found[0]["vocabulary"])


def test_an_endpoint_is_asked_where_it_is_named(asked: list[Any], monkeypatch: pytest.MonkeyPatch):
    """With the key of the environment."""
    monkeypatch.setenv("HEADWATER_ENDPOINT_KEY", "k")
    assert ask("--endpoint", "http://x/v1", "--endpoint-model", "m").exit_code == 0
    (_, endpoint) = asked[0]
    assert (endpoint.url, endpoint.model, endpoint.key) == ("http://x/v1", "m", "k")


def test_bad_input_is_one_sentence(asked: list[Any]):
    """Half an endpoint, an address that is none, a kind of head that is not there, no run."""
    for arguments, said in (
        (["--endpoint", "http://x/v1"], "must be given together"),
        (["--endpoint", "x", "--endpoint-model", "m"], "must start with http"),
        (["--unit", "gates"], "no motifs of gates heads"),
        (["--run", "elsewhere"], "elsewhere"),
    ):
        done = ask(*arguments)
        assert done.exit_code in (1, 2)
        assert said in done.stderr
        assert_plain_sentence(done.stderr.strip())
    assert asked == [("heads", None)]
