"""Which folders are runs, and what is said of those that are not."""

import json
from pathlib import Path

import pytest

from engine import store
from engine.errors import CacheMissing, CacheStale, ConfigError, SchemaMismatch
from tests.assertions import assert_plain_sentence


@pytest.mark.parametrize(
    "name",
    [
        "",
        "../demo",
        "a/b",
        "/etc",
        "..",
        ".",
        "~root",
        "a\0b",
        "x" * 101,
        "corpus",
        "-x",
        "<script>",
        "a b",
        "é",
    ],
)
def test_a_name_from_a_url_never_leaves_the_run_folders(house: Path, name: str):
    """Names come straight from URLs; none of them may become a path."""
    with pytest.raises(ConfigError) as caught:
        store.open_named_run(name)
    assert_plain_sentence(str(caught.value))


def test_a_shipped_run_is_found_before_one_of_the_cache(house: Path, synthetic_run: Path):
    """`--run demo` names what ships, whatever the cache holds."""
    shipped = house / "assets" / "synthetic"
    assert store.open_run("synthetic").path == synthetic_run
    shipped.mkdir()
    (shipped / "run.json").write_bytes((synthetic_run / "run.json").read_bytes())
    assert store.open_run("synthetic").path == shipped


def test_an_unknown_run_names_those_that_exist(synthetic_run: Path):
    """A typing error is answered with the names that would have worked."""
    with pytest.raises(CacheMissing, match="runs here: synthetic") as caught:
        store.open_run("sintetic")
    assert_plain_sentence(str(caught.value))


def test_a_folder_without_manifest_is_no_run(house: Path):
    """A folder somebody made by hand is refused, not read as empty."""
    (house / "cache" / "mine").mkdir()
    with pytest.raises(CacheMissing, match=r"holds no run\.json"):
        store.open_run("mine")


def test_a_model_folder_is_a_model_and_not_a_run(house: Path):
    """`decompose` and `generate` take what `save_pretrained` wrote; pages cannot."""
    folder = house / "saved"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    assert store.resolve_model(folder) == folder
    assert store.resolve_model(str(folder)) == folder
    with pytest.raises(CacheMissing, match="model folder and not a run"):
        store.open_run(folder)


def test_a_model_folder_of_the_working_directory_needs_no_slash(
    synthetic_run: Path, monkeypatch: pytest.MonkeyPatch
):
    """As a shell completes it; a run of that name comes first."""
    for name in ("saved", "synthetic"):
        (synthetic_run.parents[1] / name).mkdir()
        (synthetic_run.parents[1] / name / "config.json").write_text("{}")
    monkeypatch.chdir(synthetic_run.parents[1])
    assert store.resolve_model("saved") == Path("saved")
    with pytest.raises(CacheMissing, match="holds no model"):
        store.resolve_model("synthetic")


def test_the_model_of_a_run_is_found_by_the_runs_name(synthetic_run: Path):
    """One argument, `--run`, serves runs and bare models."""
    with pytest.raises(CacheMissing, match="holds no model"):
        store.resolve_model("synthetic")
    (synthetic_run / "model" / "config.json").write_text("{}")
    assert store.resolve_model("synthetic") == synthetic_run / "model"


def test_another_schema_version_is_refused_with_the_command_that_rebuilds(synthetic_run: Path):
    """Old tables are never migrated by guessing."""
    _edit_manifest(synthetic_run, schema_version=0)
    with pytest.raises(SchemaMismatch, match="headwater index --run synthetic"):
        store.open_run("synthetic")
    assert [broken.name for broken in store.list_broken()] == ["synthetic"]
    assert store.list_runs() == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema_version": 1}', "\ufeff\0"])
def test_a_damaged_manifest_is_stale(synthetic_run: Path, text: str):
    """What is not a manifest is refused with a sentence, whatever it is."""
    (synthetic_run / "run.json").write_text(text)
    with pytest.raises(CacheStale) as caught:
        store.open_run("synthetic")
    assert_plain_sentence(str(caught.value))


@pytest.mark.parametrize(
    "change",
    [
        {"created": None},
        {"created": 7},
        {"stages": None},
        {"stages": {"train": 3}},
        {"corpus": []},
        {"tables": {"prototypes": []}},
        {"tables": {"prototypes": {"rows": "67", "files": []}}},
        {"tables": {"prototypes": {"rows": 67, "files": [{"path": "a.parquet"}]}}},
    ],
)
def test_a_manifest_of_another_shape_is_stale(synthetic_run: Path, change: dict[str, object]):
    """What readers rely on is checked at the door, not where it is missed."""
    _edit_manifest(synthetic_run, **change)
    with pytest.raises(CacheStale, match="is damaged: its") as caught:
        store.open_run("synthetic")
    assert_plain_sentence(str(caught.value))
    assert [broken.name for broken in store.list_broken()] == ["synthetic"]


@pytest.mark.parametrize("name", ["created", "stages", "tables"])
def test_a_manifest_that_lacks_a_part_is_stale(synthetic_run: Path, name: str):
    """One sentence in place of a KeyError."""
    manifest = json.loads((synthetic_run / "run.json").read_text())
    del manifest[name]
    (synthetic_run / "run.json").write_text(json.dumps(manifest))
    with pytest.raises(CacheStale) as caught:
        store.open_run("synthetic")
    assert_plain_sentence(str(caught.value))


def test_the_stamp_changes_with_the_manifest_alone(synthetic_run: Path):
    """The dashboard caches by name and stamp."""
    first = store.open_run("synthetic").stamp
    assert store.open_run("synthetic").stamp == first
    _edit_manifest(synthetic_run, name="Another")
    assert store.open_run("synthetic").stamp != first


def test_other_folders_of_the_cache_are_not_listed(synthetic_run: Path):
    """Corpora and packages lie beside the runs."""
    (synthetic_run.parent / "corpus").mkdir()
    (synthetic_run.parent / "notes").mkdir()
    assert [run.name for run in store.list_runs()] == ["synthetic"]
    assert store.list_broken() == []


def _edit_manifest(path: Path, **values: object) -> None:
    manifest = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps(manifest | values))


@pytest.mark.parametrize(
    ("table", "command"),
    [
        ("prototypes", "headwater index --run synthetic"),
        ("attribution_sequences", "headwater attribution-index --run synthetic"),
        ("attribution_agreement", "headwater study attribution --run synthetic"),
        ("attribution_costs", "headwater study attribution --run synthetic"),
        ("attribution_validity", "headwater retrain-check --run synthetic"),
        ("coverage", "headwater study coverage --run synthetic"),
        ("head_scores", "headwater heads study --run synthetic"),
        ("head_mixtures", "headwater heads mixtures --run synthetic"),
    ],
)
def test_a_missing_table_names_the_command_that_makes_it(
    synthetic_run: Path, table: str, command: str
):
    """Pages show this command; it must be one that exists and makes the table."""
    run = store.open_run(synthetic_run)
    assert run.command_for(table).replace("Synthetic", "synthetic") == command


def test_a_run_of_heads_says_that_it_has_no_prototypes(synthetic_run: Path):
    """No command could make them of it."""
    manifest = json.loads((synthetic_run / "run.json").read_text())
    del manifest["tables"]["prototypes"], manifest["tables"]["head_scores"]
    (synthetic_run / "run.json").write_text(json.dumps({**manifest, "kind": "heads"}))
    run = store.open_run(synthetic_run)
    with pytest.raises(CacheMissing, match="holds no prototypes"):
        run.files("prototypes")
    with pytest.raises(CacheMissing, match="headwater heads study --run synthetic"):
        run.files("head_scores")
