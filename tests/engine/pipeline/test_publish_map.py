"""A published map holds what the pages read, and is checked like any run."""

import pytest

from engine.errors import ConfigError
from engine.pipeline.publish_map import LEFT, publish_map
from engine.pipeline.synthetic_map import write_synthetic_models
from engine.pipeline.synthetic_models import SyntheticMap
from engine.store import check_run, open_run, read_table


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A map of every table; read it, never write it."""
    return open_run(write_synthetic_models(tmp_path_factory.mktemp("runs") / "whole"))


def test_what_pages_read_is_copied_with_the_words_of_some_probes(whole, tmp_path):
    """Word attributions are most of the bytes, and two models are compared probe by probe."""
    found = publish_map(whole, tmp_path / "copy", words=3)
    assert set(found.tables) == set(whole.tables) - {LEFT}
    assert check_run(found) == []
    kept = read_table(found, "model_words")
    assert sorted(kept["probe"].unique()) == [0, 3, SyntheticMap().n_probes - 1]
    assert kept["model"].nunique() == len(SyntheticMap().models)
    everything = read_table(whole, "model_words")
    rows = everything[everything["probe"] == 3]["scale"].to_numpy()
    assert (kept[kept["probe"] == 3]["scale"].to_numpy() == rows).all()


def test_a_map_is_not_published_over_itself(whole):
    """It would be read while it is replaced."""
    with pytest.raises(ConfigError, match="is the run itself"):
        publish_map(whole, whole.path)
