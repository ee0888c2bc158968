"""Pictures of a map: drawn once for each state of it, and each with how true it is."""

import numpy as np
import pytest

from engine.errors import ConfigError
from engine.pipeline.models_map import write_layouts
from engine.pipeline.synthetic_map import write_synthetic_models
from engine.pipeline.synthetic_models import SyntheticMap
from engine.store import RunWriter, check_run, open_run, read_table


@pytest.fixture
def run(tmp_path):
    """A map of four models: too few for neighbourhoods."""
    return write_synthetic_models(tmp_path / "map", shape=SyntheticMap(n_roots=1))


def test_few_models_are_drawn_by_their_principal_plane_alone(run):
    """UMAP of four points would be noise."""
    done = write_layouts(str(run))
    places = read_table(done, "model_layouts")
    assert set(places["layout"]) == {"pca"}
    assert len(places) == 4 * len(set(places["variant"]))
    own = places[places["variant"] == "able"]
    assert np.allclose(own[["x", "y"]].mean(), 0, atol=1e-5)
    assert check_run(done) == []


def test_a_picture_is_drawn_once_for_each_state_of_the_map(run):
    """The same embeddings, seed and variants are not drawn again; another choice is."""
    first = write_layouts(str(run), ["able"])
    stamp = (run / "model_layouts.parquet").stat().st_mtime_ns
    assert write_layouts(str(run), ["able"]).stamp == first.stamp
    assert (run / "model_layouts.parquet").stat().st_mtime_ns == stamp
    again = write_layouts(str(run), ["able", "paper"])
    assert set(read_table(again, "model_layouts")["variant"]) == {"able", "paper"}
    assert again.manifest["stages"]["layouts"]["variants"] == ["able", "paper"]


def test_what_cannot_be_drawn_is_said(run, tmp_path):
    """One sentence each."""
    with pytest.raises(ConfigError, match="no embeddings of the variant 'abel'"):
        write_layouts(str(run), ["abel"])
    with pytest.raises(ConfigError, match="--seed is -1"):
        write_layouts(str(run), seed=-1)
    one = RunWriter.create(tmp_path / "one", name="one", kind="models", identity={})
    one.begin_stage("embed", 1)
    one.write_table(
        "model_embeddings", {"model": ["a"], "variant": ["able"], "vector": [[1.0, 0.0]]}
    )
    one.finish_stage("embed", {})
    with pytest.raises(ConfigError, match="1 embedded model"):
        write_layouts(str(tmp_path / "one"))


@pytest.mark.slow
def test_all_layouts_of_a_map_keep_its_families_and_repeat_themselves(tmp_path):
    """One seed, one map, in a process that compiles for itself."""
    shape = SyntheticMap(n_roots=8)
    found = []
    for name in ("one", "two"):
        path = write_synthetic_models(tmp_path / name, shape=shape)
        done = write_layouts(str(path), ["able", "paper"])
        results = read_table(done, "model_layout_results")
        assert set(results["layout"]) == {"umap", "tsne", "pca"}
        assert len(results) == 6
        kept = results[results["layout"] != "pca"]
        assert (kept["trustworthiness"] > 0.8).all()
        found.append(read_table(open_run(path), "model_layouts")[["x", "y"]].to_numpy())
    assert np.array_equal(found[0], found[1])
