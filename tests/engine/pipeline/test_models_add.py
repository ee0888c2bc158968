"""A model joins a map: beside its nearest neighbours, without moving a byte of the others."""

import csv
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest

from engine.able.embedding import VARIANTS, EmbeddingSettings
from engine.able.files import EMBEDDED, folder_name, read_facts
from engine.able.model import AttributionSettings
from engine.able.probes import probe_set
from engine.errors import CacheMissing, CacheStale, ConfigError, EngineError
from engine.pipeline.models_add import add_model, own_copy
from engine.pipeline.models_catalogue import read_catalogue
from engine.pipeline.models_embed import MODELS, EmbedStudy, embed_catalogue
from engine.pipeline.models_map import variants_of, write_layouts
from engine.pipeline.models_relations_reading import open_map_data
from engine.store import RunWriter, check_run, open_run, read_table
from tests.assertions import assert_plain_sentence
from tests.engine.able.tiny_causal import SHORT, save_tiny


PROBES = probe_set("short", SHORT)
STUDY = EmbedStudy(attribution=AttributionSettings(device="cpu", dtype="float32"), n_dimensions=71)
MADE = (("llama", 3), ("gpt_neox", 3), ("llama", 5))
TABLES = ("model_catalogue", "model_embeddings", "model_words", "model_options", "model_cards",
          "model_layouts")  # fmt: skip


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Folders of three models of a map, and of one to be added: a copy of the first."""
    folder = tmp_path_factory.mktemp("models")
    for family, seed in MADE:
        save_tiny(folder / f"{family}-{seed}", family, seed=seed)
    shutil.copytree(folder / "llama-3", folder / "copy")
    return folder


@pytest.fixture(scope="module")
def made(models, tmp_path_factory):
    """A map of three models with its pictures; copy it, never change it."""
    path = tmp_path_factory.mktemp("runs") / "map"
    with (models / "all.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["path"])
        writer.writerows([f"{family}-{seed}"] for family, seed in MADE)
    report = embed_catalogue(path, read_catalogue(models / "all.csv"), PROBES, STUDY)
    assert len(report.embedded) == 3
    write_layouts(str(path))
    return path


@pytest.fixture
def run(made, tmp_path):
    return shutil.copytree(made, tmp_path / "map")


@pytest.fixture(scope="module")
def added(made, models, tmp_path_factory):
    """The same map with the copy added, and the report; copy it, never change it."""
    path = shutil.copytree(made, tmp_path_factory.mktemp("added") / "map")
    return path, add_model(str(path), str(models / "copy"))


@pytest.fixture
def grown(added, tmp_path):
    return shutil.copytree(added[0], tmp_path / "grown")


def files_of(run):
    """Every file that was there before, but the manifest."""
    return {
        path.relative_to(run).as_posix(): path.read_bytes()
        for path in run.rglob("*")
        if path.is_file() and not path.name.startswith("run.")
    }


def test_an_added_model_joins_every_table_and_moves_no_byte(made, added):
    """Its rows lie in files of their own, and its nearest neighbour is what it is a copy of."""
    run, report = added
    assert report.model == "copy"
    first = report.neighbours[0]
    assert first["model"] == "llama-3"
    assert first["cosine"] == pytest.approx(1)
    before, after = files_of(made), files_of(run)
    assert {name: after[name] for name in before} == before
    opened = open_run(run)
    assert check_run(opened) == []
    for table in TABLES:
        rows = read_table(opened, table)
        assert set(rows["model"]) == {"llama-3", "gpt_neox-3", "llama-5", "copy"}, table
    places = read_table(opened, "model_layouts", where={"layout": "pca", "variant": "able"})
    places = places.set_index("model")
    assert places.loc["copy", "added"]
    assert not places["added"].drop("copy").any()
    near = places.loc["copy", ["x", "y"]] - places.loc["llama-3", ["x", "y"]]
    assert (near.astype(float) ** 2).sum() ** 0.5 < 0.1
    card = read_table(opened, "model_cards", where={"model": "copy"}).iloc[0]
    assert card["relation"] == "added"
    assert list(card["roots"]) == []


def test_a_model_that_is_there_is_not_computed_again(grown, added, models):
    """The command again says what the first said, and writes nothing."""
    before = files_of(grown)
    again = add_model(str(grown), str(models / "copy"))
    assert added[1].seconds > 0 == again.seconds
    assert again.neighbours == added[1].neighbours
    assert files_of(grown) == before


def without_times(files):
    """The files whose bytes do not hold how long something took."""
    return {n: b for n, b in files.items() if "facts" not in n and "model_catalogue" not in n}


def test_a_stopped_call_goes_on_to_the_same_bytes(run, added, models):
    """Stopped among its batches; nothing is seen of it until it is there."""

    def stopping(items, *, label="", total=None):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        add_model(str(run), str(models / "copy"), progress=stopping)
    assert "copy" not in set(read_table(open_run(run), "model_embeddings")["model"])
    add_model(str(run), str(models / "copy"))
    assert without_times(files_of(run)) == without_times(files_of(added[0]))


def test_a_call_stopped_before_its_rows_were_published_ends_the_same(run, grown, added, models):
    """The model's folder is there and its rows are not."""
    folder = folder_name("copy")
    shutil.copytree(grown / MODELS / folder, run / MODELS / folder)
    assert add_model(str(run), str(models / "copy")).seconds == 0
    assert files_of(run) == files_of(added[0])


def test_embedding_a_catalogue_afterwards_keeps_the_added_model(grown, models):
    """Its folder lies among the others', its card in the table of cards."""
    save_tiny(models / "more", "llama", seed=9)
    (models / "more.csv").write_text("path\nmore\n")
    embed_catalogue(grown, read_catalogue(models / "more.csv"), PROBES, STUDY)
    opened = open_run(grown)
    assert {"copy", "more"} <= set(read_table(opened, "model_cards")["model"])
    assert {"copy", "more"} <= set(read_table(opened, "model_embeddings")["model"])
    assert check_run(opened) == []


def test_its_neighbours_join_those_listed_by_variants_the_map_embeds(run, models):
    """Attributions without projection are not at hand in a map that ships."""
    listed = {"model": ["llama-3"] * 4, "neighbour": ["llama-5", "gpt_neox-3"] * 2}
    listed |= {"variant": ["able"] * 2 + ["able_whole"] * 2, "rank": [0, 1] * 2}
    listed |= {"cosine": [0.5] * 4, "percentile_unrelated": [1.0] * 4}
    listed |= {"verdict": ["none"] * 4, "known_relation": ["unknown"] * 4}
    writer = RunWriter.resume(run)
    writer.begin_stage("relations", 1)
    writer.write_table("model_neighbours", listed)
    writer.finish_stage("relations", {})
    report = add_model(str(run), str(models / "copy"))
    rows = read_table(open_run(run), "model_neighbours", where={"model": "copy"})
    assert rows["variant"].tolist() == ["able"] * 2
    assert rows["neighbour"].tolist() == [each["model"] for each in report.neighbours[:2]]
    assert check_run(open_run(run)) == []


def test_drawing_the_map_anew_gives_it_a_place_of_its_own(grown):
    """A further act, said to move the others."""
    places = read_table(write_layouts(str(grown)), "model_layouts")
    assert set(places["model"]) == {"llama-3", "gpt_neox-3", "llama-5", "copy"}
    assert not places["added"].any()


def test_a_map_that_ships_is_copied_before_it_grows(made, models, house):
    """What is in the repository is not changed by trying it."""
    shipped = shutil.copytree(made, house / "assets" / "zoo")
    before = files_of(shipped)
    added = add_model("zoo", str(models / "copy"))
    assert added.run == "zoo-own"
    assert files_of(shipped) == before
    assert "copy" in set(read_table(open_run("zoo-own"), "model_catalogue")["model"])
    assert add_model("zoo", str(models / "copy")).seconds == 0


def test_a_map_that_ships_is_copied_once_for_models_added_at_once(made, house, monkeypatch):
    """A second copy would replace the first, which may have grown by then."""
    shipped = open_run(shutil.copytree(made, house / "assets" / "zoo"))
    copied = []

    def slowly(source, target, *rest, **options):
        if source == shipped.path:  # it calls itself for the folders in it
            copied.append(target)
            time.sleep(0.3)  # so that others come in the meantime
        return copytree(source, target, *rest, **options)

    copytree = shutil.copytree
    monkeypatch.setattr("engine.pipeline.models_add.shutil.copytree", slowly)
    with ThreadPoolExecutor(3) as pool:
        runs = list(pool.map(own_copy, [shipped] * 3))
    assert len(copied) == 1
    assert {run.path for run in runs} == {house / "cache" / "zoo-own"}


def test_a_map_without_its_models_folders_can_grow(run, models):
    """A shipped map has tables alone."""
    shutil.rmtree(run / MODELS)
    (run / "probes.json").unlink()
    added = add_model(str(run), str(models / "copy"))
    assert added.neighbours[0]["model"] == "llama-3"
    facts = read_facts(run / MODELS / folder_name("copy"))
    assert facts is not None
    assert facts["status"] == EMBEDDED


def test_a_catalogue_is_not_embedded_into_a_map_that_would_lose_models(run, models):
    """Its tables are all there is of them; nothing is touched."""
    shutil.rmtree(run / MODELS / folder_name("llama-3"))
    (models / "one.csv").write_text("path\ncopy\n")
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with pytest.raises(CacheStale, match=r"for 1 of its models.*models add MODEL") as refused:
        embed_catalogue(run, read_catalogue(models / "one.csv"), PROBES, STUDY)
    assert_plain_sentence(str(refused.value))
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    assert (
        len(embed_catalogue(run, read_catalogue(models / "all.csv"), PROBES, STUDY).embedded) == 3
    )


def test_models_added_at_once_all_join_the_map(run, models):
    """Two commands on one map: each waits for the other's rows."""
    names = ["first", "second", "third"]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda name: add_model(str(run), str(models / "copy"), name), names))
    grown = open_run(run)
    assert set(names) <= set(read_table(grown, "model_catalogue")["model"])
    assert grown.manifest["stages"]["add"]["models"] == names
    assert check_run(grown) == []


def test_a_map_of_an_engine_that_knew_fewer_variants_can_grow(run, models, monkeypatch):
    """The new model gets the variants that the others have, and the map can be read."""
    known = set(read_table(open_run(run), "model_embeddings")["variant"])
    newer = EmbeddingSettings(square_root=True, per_probe=True)
    monkeypatch.setitem(VARIANTS, "newer", newer)
    added = add_model(str(run), str(models / "copy"))
    assert added.neighbours[0]["model"] == "llama-3"
    rows = read_table(open_run(run), "model_embeddings", where={"model": "copy"})
    assert set(rows["variant"]) == known


def test_a_variant_that_one_model_alone_has_is_left_out_of_reading(run):
    """Such rows came of an engine that knew it; those of every model are read as before."""
    rows = read_table(open_run(run), "model_embeddings", where={"model": "llama-3"})
    rows = rows[rows["variant"] == "able"].assign(variant="newer")
    writer = RunWriter.resume(run)
    writer.begin_stage("newer", {})
    writer.append_rows("model_embeddings", "newer", rows)
    writer.finish_stage("newer", {})
    data = open_map_data(run)
    assert set(data.vectors) == set(VARIANTS) == set(variants_of(open_run(run)))
    assert {len(vectors) for vectors in data.vectors.values()} == {3}
    write_layouts(str(run))


@pytest.mark.parametrize(
    ("source", "name", "error", "sentence"),
    [
        ("", None, ConfigError, "No model was named"),
        ("nowhere", None, CacheMissing, "nowhere"),
        ("gpt_neox-3", "llama-3", ConfigError, "a model called llama-3 already"),
    ],
)
def test_what_cannot_be_added_is_said_and_leaves_no_row(run, models, source, name, error, sentence):
    """One sentence, and the map as it was."""
    before = read_table(open_run(run), "model_catalogue")
    with pytest.raises(error, match=sentence) as caught:
        add_model(str(run), str(models / source) if source else "", name)
    assert isinstance(caught.value, EngineError)
    pd.testing.assert_frame_equal(read_table(open_run(run), "model_catalogue"), before)


def test_a_run_that_is_no_map_is_refused(synthetic_run, models):
    """Such as a run of prototypes."""
    with pytest.raises(ConfigError, match="no map of models"):
        add_model("synthetic", str(models / "copy"))
