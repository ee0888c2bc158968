"""Catalogue runs: resumed to the same bytes, one failure apart from the rest, one set of probes."""

import csv
import json

import numpy as np
import pytest

from engine.able.files import folder_name, read_attribution, read_facts
from engine.able.model import AttributionSettings
from engine.able.probes import probe_set
from engine.errors import CacheStale, ConfigError
from engine.pipeline.models_catalogue import CatalogueEntry, read_catalogue
from engine.pipeline.models_embed import MODELS, EmbedStudy, embed_catalogue
from engine.pipeline.models_tables import map_frames
from engine.schema.model_tables import MODEL_TABLES
from engine.store import RunWriter, open_run, read_table, write_parquet
from tests.engine.able.tiny_causal import SHORT, save_tiny


PROBES = probe_set("short", SHORT)
OTHERS = probe_set("shorter", SHORT[:3])
STUDY = EmbedStudy(
    attribution=AttributionSettings(device="cpu", dtype="float32", batch_tokens=2048),
    n_dimensions=71,
)
MADE = (("llama", "byte_level"), ("gpt_neox", "metaspace"), ("bloom", "byte_level"))


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    """Three models and their catalogue; read them, never change them."""
    folder = tmp_path_factory.mktemp("zoo")
    for family, style in MADE:
        save_tiny(folder / family, family, style)
    write_catalogue(folder / "zoo.csv", [{"path": family} for family, _ in MADE])
    return folder


def write_catalogue(path, rows):
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    return path


def files_of(run):
    """Every file of the models but the facts, whose times differ."""
    return {
        path.relative_to(run).as_posix(): path.read_bytes()
        for path in sorted((run / MODELS).rglob("*"))
        if path.is_file() and path.name != "facts.json"
    }


@pytest.fixture(scope="module")
def whole(zoo, tmp_path_factory):
    """A run of all three, never interrupted."""
    path = tmp_path_factory.mktemp("runs") / "whole"
    report = embed_catalogue(path, read_catalogue(zoo / "zoo.csv"), PROBES, STUDY)
    assert report.embedded == ("llama", "gpt_neox", "bloom")
    assert report.failed == {}
    return path


def test_every_model_is_kept_with_its_facts(whole, zoo):
    """What a page shows without loading anything."""
    facts = {name: read_facts(whole / MODELS / folder_name(name)) for name, _ in MADE}
    assert {name: f["hook"] for name, f in facts.items()} == {
        "llama": "embedding",
        "gpt_neox": "embedding",
        "bloom": "norm",
    }
    for name, found in facts.items():
        assert found["status"] == "embedded"
        assert found["place"] == str(zoo / name)
        assert found["bytes"] == (zoo / name / "model.safetensors").stat().st_size
        assert found["n_parameters"] > 0
        assert 0 <= found["accuracy"] <= 1
        assert found["dtype"] == "float32"
    manifest = json.loads((whole / "run.json").read_text())
    assert manifest["kind"] == "models"
    assert manifest["probes"]["fingerprint"] == PROBES.fingerprint
    assert manifest["stages"]["embed"]["embedded"] == 3


def test_a_killed_run_resumes_to_the_same_bytes(zoo, whole, tmp_path):
    """Killed between models and within the writing of one."""
    run, catalogue = tmp_path / "killed", read_catalogue(zoo / "zoo.csv")

    def killing(items, *, label="", total=None):
        for place, item in enumerate(items):
            if place == 1:
                raise KeyboardInterrupt
            yield item

    with pytest.raises(KeyboardInterrupt):
        embed_catalogue(run, catalogue, PROBES, STUDY, killing)
    done = files_of(run)
    assert done
    assert set(done) < set(files_of(whole))
    stamps = {path: path.stat().st_mtime_ns for path in (run / MODELS).rglob("*.npy")}
    half = run / MODELS / ".llama.tmp-12345678"
    half.mkdir()
    (half / "words.npy").write_bytes(b"half")
    report = embed_catalogue(run, catalogue, PROBES, STUDY)
    assert len(report.embedded) == 3
    assert files_of(run) == files_of(whole)
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    assert not half.exists()


def test_order_and_company_change_no_bit(zoo, whole, tmp_path):
    """A model is embedded alone, then another before it in the catalogue."""
    alone = write_catalogue(tmp_path / "alone.csv", [{"path": zoo / "bloom"}])
    run = tmp_path / "run"
    embed_catalogue(run, read_catalogue(alone), PROBES, STUDY)
    first = files_of(run)
    rows = [{"path": zoo / name} for name in ("llama", "bloom")]
    embed_catalogue(run, read_catalogue(write_catalogue(alone, rows)), PROBES, STUDY)
    both = files_of(run)
    assert first.items() <= both.items() <= files_of(whole).items()


def test_a_failing_model_is_recorded_and_the_rest_goes_on(zoo, tmp_path):
    """One sentence each: missing, damaged, of no use, and a line said twice."""
    save_tiny(tmp_path / "damaged")
    (tmp_path / "damaged" / "model.safetensors").write_bytes(b"no weights")
    save_tiny(tmp_path / "encoder")
    settings = json.loads((tmp_path / "encoder" / "config.json").read_text())
    settings |= {"architectures": ["BertForMaskedLM"]}
    (tmp_path / "encoder" / "config.json").write_text(json.dumps(settings))
    rows = [
        {"path": "nowhere"},
        {"path": "damaged"},
        {"path": "encoder"},
        {"path": str(zoo / "llama")},
        {"path": str(zoo / "llama")},
        {"path": ""},
    ]
    catalogue = read_catalogue(write_catalogue(tmp_path / "all.csv", rows))
    report = embed_catalogue(tmp_path / "run", catalogue, PROBES, STUDY)
    assert report.embedded == ("llama",)
    assert report.failed.keys() == {"nowhere", "damaged", "encoder"}
    assert "damaged" in report.failed["damaged"]
    assert "no causal language model" in report.failed["encoder"]
    assert all(reason.endswith(".") for reason in report.failed.values())
    assert len(report.problems) == 2
    assert "repeats the name llama" in report.problems[0]
    assert "neither a path nor a hub id" in report.problems[1]
    save_tiny(tmp_path / "nowhere", seed=5)
    report = embed_catalogue(tmp_path / "run", catalogue, PROBES, STUDY)
    assert report.embedded == ("nowhere", "llama")


def test_changed_weights_are_embedded_again(zoo, tmp_path):
    """A stale place on the map is never served; a folder that is away is no change."""
    save_tiny(tmp_path / "mine")
    catalogue = read_catalogue(write_catalogue(tmp_path / "c.csv", [{"path": "mine"}]))
    embed_catalogue(tmp_path / "run", catalogue, PROBES, STUDY)
    before = files_of(tmp_path / "run")
    (tmp_path / "mine").rename(tmp_path / "away")
    assert embed_catalogue(tmp_path / "run", catalogue, PROBES, STUDY).embedded == ("mine",)
    assert files_of(tmp_path / "run") == before
    save_tiny(tmp_path / "mine", seed=11)
    embed_catalogue(tmp_path / "run", catalogue, PROBES, STUDY)
    assert files_of(tmp_path / "run") != before


def test_a_run_keeps_to_one_set_of_probes_and_settings(whole, zoo):
    """Columns of different probes do not compare."""
    catalogue = read_catalogue(zoo / "zoo.csv")
    with pytest.raises(CacheStale, match=r"'short' \(5 probes\), and 'shorter' \(3\)"):
        embed_catalogue(whole, catalogue, OTHERS, STUDY)
    with pytest.raises(CacheStale, match="other settings"):
        embed_catalogue(whole, catalogue, PROBES, EmbedStudy(attribution=STUDY.attribution))


def test_parts_together_are_the_whole(zoo, whole, tmp_path):
    """For machines that share a folder; a last call writes what belongs to all."""
    run, catalogue = tmp_path / "run", read_catalogue(zoo / "zoo.csv")
    for number in (2, 1):
        study = EmbedStudy(attribution=STUDY.attribution, n_dimensions=71, part=(number, 2))
        report = embed_catalogue(run, catalogue, PROBES, study)
        assert len(report.embedded) == number % 2 + 1
        assert not (run / "run.json").is_file()
    embed_catalogue(run, catalogue, PROBES, STUDY)
    assert (run / "run.json").is_file()
    assert files_of(run) == files_of(whole)
    with pytest.raises(ConfigError, match="part is 3/2"):
        EmbedStudy(part=(3, 2))


def test_tables_are_gathered_and_strangers_left_out(whole, zoo, tmp_path):
    """A folder from another run may have other columns under the same places."""
    run = tmp_path / "run"
    embed_catalogue(run, read_catalogue(zoo / "zoo.csv"), PROBES, STUDY)
    other = tmp_path / "other"
    stranger = read_catalogue(
        write_catalogue(tmp_path / "s.csv", [{"name": "stranger", "path": zoo / "llama"}])
    )
    embed_catalogue(other, stranger, OTHERS, STUDY)
    made = other / MODELS / folder_name("stranger")
    made.rename(run / MODELS / folder_name("stranger"))
    frames, problems = map_frames(run / MODELS, PROBES)
    assert len(problems) == 1
    assert "other probes" in problems[0]
    assert set(frames) == {spec.name for spec in MODEL_TABLES}
    sizes = {
        spec.name: write_parquet(tmp_path / "t", frames[spec.name], spec) for spec in MODEL_TABLES
    }
    assert sizes == {
        "model_probes": 5,
        "model_catalogue": 3,
        "model_embeddings": 18,
        "model_words": 15,
        "model_options": 15,
    }
    vectors = frames["model_embeddings"].set_index(["model", "variant"])["vector"]
    assert len(vectors["llama", "able"]) == 71
    llama = read_attribution(run / MODELS / folder_name("llama"), PROBES)
    assert np.isfinite(llama.words).all()


def test_a_catalogue_names_models_by_folder_hub_id_or_name(tmp_path):
    """Other columns are somebody else's."""
    rows = [
        {"name": "", "hub_id": "org/one", "path": "", "family": "x"},
        {"name": "two", "hub_id": "", "path": "sub/folder", "family": ""},
        {"name": "", "hub_id": "", "path": "sub/three/", "family": ""},
    ]
    found = read_catalogue(write_catalogue(tmp_path / "c.csv", rows))
    assert found.entries == (
        CatalogueEntry("org/one", "org/one"),
        CatalogueEntry("two", str(tmp_path / "sub/folder")),
        CatalogueEntry("three", str(tmp_path / "sub/three")),
    )
    (tmp_path / "c.csv").write_text("model\nx\n")
    with pytest.raises(ConfigError, match="neither a column `path` nor `hub_id`; it has model"):
        read_catalogue(tmp_path / "c.csv")
    (tmp_path / "c.csv").write_text("path\n\n")
    with pytest.raises(ConfigError, match="names no model"):
        read_catalogue(tmp_path / "c.csv")
    with pytest.raises(ConfigError, match="cannot be read as CSV"):
        read_catalogue(tmp_path / "missing.csv")


def test_a_catalogue_of_which_no_model_can_be_embedded_ends_with_its_reasons(zoo, tmp_path):
    """The map is whole, and empty."""
    write_catalogue(tmp_path / "none.csv", [{"path": "nowhere"}])
    run = tmp_path / "none"
    report = embed_catalogue(run, read_catalogue(tmp_path / "none.csv"), PROBES, STUDY)
    assert report.embedded == ()
    assert list(report.failed) == ["nowhere"]
    assert read_table(open_run(run), "model_embeddings").empty
    assert read_table(open_run(run), "model_catalogue")["status"].tolist() == ["failed"]


def test_a_run_of_something_else_is_no_map(zoo, tmp_path):
    """Nothing is written into it."""
    run = tmp_path / "heads"
    RunWriter.create(run, name="heads", kind="heads", identity={})
    with pytest.raises(ConfigError, match="Run heads holds no map of models"):
        embed_catalogue(run, read_catalogue(zoo / "zoo.csv"), PROBES, STUDY)
    assert not (run / MODELS).exists()
