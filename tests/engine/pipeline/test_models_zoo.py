"""The zoo's command: every kind is made, resumed builds end alike, the slice learns its domains."""

import csv
import json
import shutil
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from engine.able.probe_sources import read_probes
from engine.cli import app as command
from engine.errors import ConfigError, EngineError
from engine.pipeline import models_zoo
from engine.pipeline.models_zoo import build_zoo, open_zoo, zoo_path
from engine.provenance import file_sha256
from engine.zoo.facts import DOMAINS
from engine.zoo.manifest import DERIVATIONS
from engine.zoo.planning import make_plan
from engine.zoo.schedules import Schedules
from engine.zoo.worlds import MIXES


SLOW = ("mamba", "mpt", "falcon")


@pytest.fixture(scope="module")
def kinds():
    """A plan with every derivation, of cheap roots where there are any."""
    plan = make_plan()
    names = []
    for derivation in DERIVATIONS:
        known = plan.closed(names)
        chosen = min(
            plan.of(derivation),
            key=lambda s: (s.architecture in SLOW, len(plan.closed([s.id]) - known), s.id),
        )
        names.append(chosen.id)
    return plan.part(names, "kinds")


def opened(path, plan, schedules=None):
    """A zoo whose models are trained for one step and asked 29 questions."""
    return open_zoo(
        path, plan=plan, schedules=schedules or Schedules().shortened(1), n_questions=29
    )


@pytest.fixture(scope="module")
def built(kinds, tmp_path_factory):
    path = tmp_path_factory.mktemp("zoo")
    zoo = opened(path, kinds)
    cards = build_zoo(zoo)
    return zoo, cards


def digests(zoo):
    files = [path for path in zoo.path.rglob("*") if path.is_file()]
    return {str(path.relative_to(zoo.path)): file_sha256(path) for path in files}


def test_every_kind_is_made_and_listed(built, kinds):
    """Cards, catalogue and tables agree; files are found where the catalogue says."""
    zoo, cards = built
    assert [card["id"] for card in cards] == [spec.id for spec in kinds.models]
    assert {card["derivation"] for card in cards} == {"root", *DERIVATIONS}
    rows = list(csv.DictReader((zoo.path / "catalogue.csv").read_text().splitlines()))
    assert [row["id"] for row in rows] == [card["id"] for card in cards]
    for row in rows:
        spec = kinds.by_id[row["id"]]
        assert tuple(filter(None, row["parents"].split(";"))) == spec.parents
        assert row["sha256"] == file_sha256(zoo.path / row["path"] / "model.safetensors")
    right = list(csv.reader((zoo.path / "correctness.csv").read_text().splitlines()))
    assert len(right) == len(cards) + 1
    assert len(right[0]) == len(zoo.questions) + 1
    scores = np.load(zoo.path / "answers.npy")
    assert scores.shape == (len(cards), len(zoo.questions), 4)
    for card, row, own in zip(cards, right[1:], scores, strict=True):
        hits = own.argmax(1) == [q.ans_idx for q in zoo.questions]
        assert [int(value) for value in row[1:]] == list(hits)
        assert card["accuracy"]["all"] == pytest.approx(np.mean(hits))
    assert len(read_probes(str(zoo.path / "questions.jsonl"))) == len(zoo.questions)
    manifest = json.loads((zoo.path / "manifest.json").read_text())
    assert len(manifest["models"]) == len(cards)


def test_derivatives_differ_from_their_parents(built, kinds):
    """No derivation leaves the weights as they were."""
    _, cards = built
    marks = {card["id"]: card["sha256"] for card in cards}
    assert len(set(marks.values())) == len(marks)


def test_a_build_that_was_cut_ends_with_the_same_files(built, kinds, tmp_path, monkeypatch):
    """Stopped in the middle, with a damaged card and a leftover, then run again."""
    zoo, _ = built
    part = opened(tmp_path, kinds)
    last = kinds.models[-1].id
    shutil.copytree(zoo.path, tmp_path, dirs_exist_ok=True)
    removed = [kinds.models[1].id, last]
    for name in removed:
        shutil.rmtree(part.folder(name))
    damaged = kinds.models[2].id
    (part.folder(damaged) / "zoo.json").write_text("{")
    (part.path / "models" / f".{last}.tmp-1234").mkdir()
    make = type(part.workshop).make

    def fail(shop, spec):
        if spec.id == last:
            raise EngineError("The power went.")
        return make(shop, spec)

    monkeypatch.setattr(type(part.workshop), "make", fail)
    with pytest.raises(EngineError, match=f"{last} could not be made. The power went."):
        build_zoo(part)
    assert not part.folder(last).exists()
    assert part.is_done(kinds.by_id[damaged])
    monkeypatch.setattr(type(part.workshop), "make", make)
    build_zoo(part)
    assert digests(part) == digests(zoo)


def test_other_training_makes_a_model_and_its_descendants_stale(built, kinds, tmp_path):
    """Longer mild fine-tuning touches what is made of it and nothing else."""
    zoo, _ = built
    longer = opened(zoo.path, kinds)
    assert all(longer.is_done(spec) for spec in kinds.models)
    mild = replace(zoo.schedules.mild_sft, steps=2)
    changed = opened(zoo.path, kinds, replace(zoo.schedules, mild_sft=mild))
    stale = {spec.id for spec in kinds.models if not changed.is_done(spec)}
    touched = {s.id for s in kinds.models if s.derivation in ("mild_sft", "chained_sft")}
    for spec in kinds.models:
        if touched & set(spec.parents):
            touched.add(spec.id)
    assert stale == touched


def test_bad_settings_are_said(tmp_path, kinds):
    """Before anything is built."""
    with pytest.raises(ConfigError, match="--to is empty"):
        zoo_path(" ")
    with pytest.raises(ConfigError, match="jobs is 0"):
        build_zoo(opened(tmp_path / "zoo", kinds), jobs=0)
    assert not (tmp_path / "zoo").exists()


def test_the_command_prints_the_cards_as_json(built, kinds, monkeypatch):
    """With an empty rest to build it only reads."""
    zoo, cards = built
    monkeypatch.setattr(models_zoo, "open_zoo", lambda *_, **__: zoo)
    done = CliRunner().invoke(command.app, ["models", "zoo", "--to", str(zoo.path), "--json"])
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert [model["id"] for model in found["models"]] == [card["id"] for card in cards]


@pytest.mark.slow
def test_two_processes_build_what_one_does(built, kinds, tmp_path):
    """Bit for bit."""
    zoo, _ = built
    other = opened(tmp_path, kinds)
    build_zoo(other, jobs=2)
    assert digests(other) == digests(zoo)


@pytest.mark.slow
def test_the_slice_learns_its_domains_and_no_other(tmp_path):
    """24 models at full length: roots answer what they read, and guess what they did not."""
    zoo = open_zoo(tmp_path, only_slice=True)
    cards = build_zoo(zoo)
    assert len(cards) == 24
    assert Counter(card["derivation"] for card in cards)["root"] == 4
    for card in cards:
        if card["derivation"] == "root":
            known = [card["accuracy"][d] for d in DOMAINS if d in MIXES[card["mix"]]]
            unknown = [card["accuracy"][d] for d in DOMAINS if d not in MIXES[card["mix"]]]
            assert np.mean(known) > 0.8, card["id"]
            assert 0.1 < np.mean(unknown) < 0.4, card["id"]


def test_a_zoo_goes_into_a_folder_of_its_own(kinds, tmp_path):
    """Someone's files are not built over, and a seed that no generator takes is refused."""
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match="holds other things than a zoo"):
        opened(tmp_path / "texts", kinds)
    with pytest.raises(ConfigError, match="is a file"):
        opened(tmp_path / "texts" / "mine.txt", kinds)
    for seed in (-1, 2**63):
        with pytest.raises(ConfigError, match="--seed is"):
            open_zoo(tmp_path / "new", seed=seed)
    assert [path.name for path in tmp_path.rglob("*")] == ["texts", "mine.txt"]
