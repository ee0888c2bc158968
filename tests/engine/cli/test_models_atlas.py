"""`headwater models map`, `add` and `stability` as a user types them."""

import csv
import json
import shutil

import pytest
from typer.testing import CliRunner

from engine.able.model import AttributionSettings
from engine.able.probes import probe_set
from engine.cli.app import app
from engine.pipeline.models_catalogue import read_catalogue
from engine.pipeline.models_embed import EmbedStudy, embed_catalogue
from tests.engine.able.tiny_causal import SHORT, save_tiny


def _call(*arguments: str):
    return CliRunner().invoke(app, ["models", *arguments])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A map of two models, and a third one beside it; copy it, never change it."""
    folder = tmp_path_factory.mktemp("typed")
    for seed in (3, 5, 7):
        save_tiny(folder / f"m{seed}", seed=seed)
    with (folder / "all.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["path"], ["m3"], ["m5"]])
    study = EmbedStudy(
        attribution=AttributionSettings(device="cpu", dtype="float32"), n_dimensions=17
    )
    probes = probe_set("short", SHORT[:3])
    embed_catalogue(folder / "map", read_catalogue(folder / "all.csv"), probes, study)
    return folder


@pytest.fixture
def typed(made, house):
    """The map in the cache of a house of one's own."""
    shutil.copytree(made / "map", house / "cache" / "map")
    shutil.copytree(made / "m7", house / "m7")
    return house


def test_a_map_is_drawn_and_a_model_added(typed):
    """What it says can be read by a script; checking alone changes nothing."""
    drawn = _call("map", "--run", "map", "--json")
    assert drawn.exit_code == 0, drawn.output
    assert json.loads(drawn.stdout) == {"run": "map", "layouts": []}  # too few to be judged
    shown = _call("map", "--run", "map", "--variant", "able")
    assert "trustworthiness" in shown.stdout
    manifest = (typed / "cache" / "map" / "run.json").read_bytes()
    checked = _call("add", str(typed / "m7"), "--run", "map", "--dry-run", "--json")
    assert checked.exit_code == 0, checked.output
    found = json.loads(checked.stdout)
    assert found["passed"] is True
    assert found["name"] == "m7"
    assert (typed / "cache" / "map" / "run.json").read_bytes() == manifest
    added = _call("add", str(typed / "m7"), "--run", "map", "--name", "mine", "--json")
    assert added.exit_code == 0, added.output
    report = json.loads(added.stdout)
    assert report["model"] == "mine"
    assert {each["model"] for each in report["neighbours"]} == {"m3", "m5"}
    again = _call("add", str(typed / "m7"), "--run", "map", "--name", "mine")
    assert "mine, which was there" in again.stdout
    assert "not proof of derivation" in again.output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("map", "--run", "nowhere"), "nowhere"),
        (("map", "--run", "map", "--variant", "abel"), "no embeddings of the variant 'abel'"),
        (("add", "", "--run", "map"), "No model was named"),
        (("stability", "--run", "map", "--sample", "2"), "--sample is 2"),
        (("stability", "--run", "map"), "full attributions of 2 models"),
        (("stability", "--run", "map", "--workers", "0"), "--workers is 0"),
        (("stability", "--run", "map", "--workers", "2", "--ray", "auto"), "exclude each other"),
    ],
)
def test_bad_input_is_one_sentence(typed, arguments, sentence):
    """And no traceback."""
    found = _call(*arguments)
    assert found.exit_code != 0
    assert sentence in " ".join(found.output.split())
    assert "Traceback" not in found.output
