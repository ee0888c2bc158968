"""The folder of a model: exact arrays back, compact words near them, nothing half-written."""

import numpy as np
import pytest

from engine.able.embedding import VARIANTS, embed
from engine.able.facts import fact_probes
from engine.able.files import (
    compact,
    expand,
    folder_name,
    read_attribution,
    read_facts,
    read_probe_set,
    read_tables,
    write_attribution,
    write_failure,
    write_probes,
)
from engine.able.model import AttributionSettings, ModelAttribution, embed_model
from engine.able.probes import probe_set
from engine.errors import CacheMissing, CacheStale
from tests.engine.able.tiny_causal import tiny_loaded


PROBES = probe_set("facts", fact_probes(5))
FACTS = {"model": "mine", "status": "embedded", "probes": PROBES.fingerprint, "skipped": [1]}


@pytest.fixture(scope="module")
def attributed() -> ModelAttribution:
    """One model that could not read one of the probes; read it, never change it."""
    loaded = tiny_loaded()
    loaded.context = 138
    found = embed_model(loaded, PROBES, AttributionSettings(device="cpu", dtype="float32"))
    assert found.skipped
    return found


@pytest.fixture
def written(attributed: ModelAttribution, tmp_path):
    facts = FACTS | {"model": attributed.name, "skipped": list(attributed.skipped)}
    write_attribution(tmp_path / "mine", attributed, facts)
    return tmp_path / "mine"


def test_what_is_written_is_read_back_exactly(written, attributed: ModelAttribution):
    """Ablations are made of the arrays later; they must be those of the run."""
    found = read_attribution(written, PROBES)
    for name in ("words", "paper_words", "slot", "log_probabilities"):
        assert getattr(found, name).tobytes() == getattr(attributed, name).tobytes()
    assert found.skipped == attributed.skipped
    assert embed(found).tobytes() == embed(attributed).tobytes()


def test_tables_hold_embeddings_words_and_options(written, attributed: ModelAttribution):
    """What pages read."""
    tables = read_tables(written)
    vectors = tables["model_embeddings"].set_index("variant")["vector"]
    assert set(vectors.index) == set(VARIANTS)
    for name, settings in VARIANTS.items():
        assert np.asarray(vectors[name]).tobytes() == embed(attributed, settings).tobytes()
    options = tables["model_options"].set_index("probe")
    words = tables["model_words"].set_index("probe")
    assert set(options.index) == set(words.index) == set(range(5)) - set(attributed.skipped)
    for probe in options.index:
        places = attributed.columns.options_of(probe)
        scores = np.asarray(options["log_probabilities"][probe])
        assert scores.tobytes() == attributed.log_probabilities[places].tobytes()
        assert options["choice"][probe] == scores.argmax()
        assert options["correct"][probe] == (scores.argmax() == PROBES.probes[probe].answer)
        row = words.loc[probe]
        near = expand(float(row["scale"]), np.asarray(row["values"]))
        exact = attributed.of_probe(probe).ravel().astype(float)
        cosine = near @ exact / np.linalg.norm(near) / np.linalg.norm(exact)
        assert cosine > 0.9999


def test_eight_bits_keep_small_attributions_apart():
    """Equal steps of the root: a thousandth of the largest is off by a quarter at most."""
    values = np.array([1.0, -0.5, 0.001, -0.0001, 0.0])
    scale, levels = compact(values)
    assert levels.dtype == np.int8
    assert scale == 1
    near = expand(scale, levels)
    assert near[0] == 1
    assert near[1] == pytest.approx(-0.5, rel=0.01)
    assert near[2] == pytest.approx(0.001, rel=0.25)
    assert near[3] <= 0
    assert near[4] == 0
    assert compact(np.zeros(3))[0] == 0
    assert expand(0.0, compact(np.zeros(3))[1]).tolist() == [0, 0, 0]


def test_other_probes_and_damage_are_refused(written, tmp_path):
    """Columns of different probes do not compare."""
    other = probe_set("facts", fact_probes(7))
    with pytest.raises(CacheStale, match="other probes"):
        read_attribution(written, other)
    np.save(written / "words.npy", np.zeros(3, np.float32))
    with pytest.raises(CacheStale, match="damaged"):
        read_attribution(written, PROBES)
    (written / "words.npy").unlink()
    with pytest.raises(CacheStale, match="damaged"):
        read_attribution(written, PROBES)
    with pytest.raises(CacheMissing, match="no embedded model"):
        read_attribution(tmp_path / "nowhere", PROBES)


def test_a_failure_has_facts_alone(written):
    """What was made of other weights goes with it."""
    write_failure(written, {"status": "failed", "reason": "because"})
    assert [path.name for path in written.iterdir()] == ["facts.json"]
    assert read_facts(written) == {"status": "failed", "reason": "because"}
    (written / "facts.json").write_text("[]")
    assert read_facts(written) is None


def test_probes_are_kept_to_the_letter(tmp_path):
    """The prompt's end names columns, be it a newline or a space."""
    for style in ("letters", "texts"):
        probes = probe_set("facts", fact_probes(3), style)
        write_probes(tmp_path / "probes.json", probes)
        found = read_probe_set(tmp_path / "probes.json")
        assert found.fingerprint == probes.fingerprint
        assert found.style == style
    (tmp_path / "probes.json").write_text('{"probes": [{}]}')
    with pytest.raises(CacheStale, match="damaged"):
        read_probe_set(tmp_path / "probes.json")


def test_folder_names_are_readable_and_different():
    """Two names that differ by a slash must not share a folder."""
    names = ["org/model", "org-model", "../up", "a" * 200, "a" * 201, "日本"]
    made = [folder_name(name) for name in names]
    assert len(set(made)) == len(names)
    assert made[0].startswith("org-model-")
    assert all("/" not in name and not name.startswith(".") and len(name) < 80 for name in made)
