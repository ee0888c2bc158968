"""The Catalogue page: the shipped list with and without runs, its links, what it lacks."""

import json
import shutil
from pathlib import Path

import pytest

from dashboard import service_catalogue as service
from dashboard.components import catalogue_graph
from dashboard.components.catalogue_graph import catalogue_rows
from engine.config import PROJECT_ROOT
from engine.store import RunWriter, model_catalogue
from tests.dashboard.live_pages import link, open_page, pages, words


@pytest.fixture
def shipped(house: Path) -> Path:
    """`house` with the catalogue that ships, and no run."""
    shutil.copytree(PROJECT_ROOT / "assets" / "models", house / "assets" / "models")
    return house


def hold(house: Path, embedded: dict[str, str], failed: dict[str, str]) -> Path:
    """A run of models that says which hub ids it embedded, by name, and why others failed."""
    path = house / "cache" / "able239"
    writer = RunWriter.create(path, name="able239", kind="models", identity={"test": True})
    writer.begin_stage("embed", {"test": True})
    rows = [(name, hub_id, "embedded", "") for hub_id, name in embedded.items()]
    rows += [(hub_id, hub_id, "failed", reason) for hub_id, reason in failed.items()]
    n = len(rows)
    names, hub_ids, status, reasons = (list(column) for column in zip(*rows, strict=True))
    writer.write_table(
        "model_catalogue",
        {
            "model": names, "place": hub_ids, "status": status, "reason": reasons,
            "architecture": [""] * n, "n_parameters": [1] * n, "hook": ["embedding"] * n,
            "homogeneity": [0.1] * n, "two_parts": [False] * n, "dtype": ["float32"] * n,
            "n_probes": [1] * n, "n_skipped": [0] * n, "accuracy": [0.5] * n,
            "seconds": [1.0] * n, "bytes": [1] * n,
        },
    )  # fmt: skip
    writer.write_table(
        "model_layouts",
        {"variant": ["able"] * n, "layout": ["umap"] * n, "model": names,
         "x": [float(k) for k in range(n)], "y": [0.0] * n, "added": [False] * n},
    )  # fmt: skip
    writer.finish_stage("embed", {})
    return path


def test_it_opens_without_any_run(shipped: Path):
    """The catalogue is an asset: graph, table and the card of the model most others go back to."""
    assert shipped.is_dir()
    app = open_page("catalogue")
    assert not app.exception
    assert len(app.get("plotly_chart")) == 1
    assert len(app.dataframe[0].value) == 239
    said = words(app)
    assert "mistralai/Mistral-7B-v0.1" in said
    assert "headwater models embed --catalogue assets/models/able239.csv" in said
    assert "Near does not mean alike" in said or "near does not mean alike" in said
    assert "177" in "".join(pages(app))


def test_filters_of_a_link_hide_and_say_so(shipped: Path):
    """What is hidden is counted filter by filter; the model of the link stays open."""
    assert shipped.is_dir()
    app = open_page(
        "catalogue", family="mistral", evidence="general knowledge, unchecked", q="7b",
        model="teknium/OpenHermes-2-Mistral-7B", colour="MMLU-Pro",
    )  # fmt: skip
    assert not app.exception
    assert not app.warning
    table = app.dataframe[0].value
    assert set(table["Family"]) == {"mistral"}
    assert (table["Model"] + " " + table["Of"]).str.lower().str.contains("7b").all()
    assert "hidden by search" in words(app)
    assert "mistralai/Mistral-7B-v0.1 ← teknium/OpenHermes-2-Mistral-7B" in words(app)


def test_an_ancestor_that_is_not_listed_has_a_card_of_what_is_known(shipped: Path):
    """It is named by others and by nothing else."""
    assert shipped.is_dir()
    app = open_page("catalogue", model="huggyllama/llama-13b")
    assert not app.exception
    assert "not on the list" in words(app)


def test_nonsense_in_a_link_is_said_and_left_out(shipped: Path):
    """One sentence each, and the page opens on its defaults."""
    assert shipped.is_dir()
    nonsense = {"model": "<script>", "family": "none", "colour": "rainbow", "relation": "x"}
    app = open_page("catalogue", **nonsense)
    assert not app.exception
    assert len(app.warning) == len(nonsense)
    assert "mistralai/Mistral-7B-v0.1" in words(app)


def test_nothing_found_names_the_filter_to_loosen(shipped: Path):
    """An empty list is an answer."""
    assert shipped.is_dir()
    app = open_page("catalogue", q="zzzzzz")
    assert not app.exception
    assert any(info.value == "No model fits the search; loosen it." for info in app.info)


def test_a_house_without_the_catalogue_is_one_sentence(house: Path):
    """Nothing else is missing for it."""
    assert house.is_dir()
    app = open_page("catalogue")
    assert not app.exception
    assert "ships with the project" in words(app)


def test_embedded_models_stand_on_the_map_and_failures_say_why(shipped: Path):
    """Matched by hub id, whatever they are called in the run."""
    held, failed = "EleutherAI/pythia-70m", "facebook/opt-1.3b"
    hold(shipped, {held: "tiny", "gpt2-of-nobody": "other"}, {failed: "It is gated."})
    app = open_page("catalogue", model=failed)
    assert not app.exception
    assert "It is gated." in words(app)
    assert "Map of embeddings" in [str(o) for o in app.get("button_group")[0].options]
    found = service.held()
    assert found[held].model == "tiny"
    assert found[held].status == "embedded"
    assert set(found) == {held, failed}
    places = service.map_places(service.models())
    assert places is not None
    assert held not in places.layout.band
    assert len(places.layout.band) == 238
    assert link(app, "model") == failed


def test_the_export_is_a_catalogue_that_the_engine_reads(shipped: Path, tmp_path: Path):
    """What a reader filtered can be embedded alone."""
    from engine.pipeline.models_catalogue import read_catalogue

    assert shipped.is_dir()
    rows = catalogue_rows(service.models().head(7))
    rows.to_csv(tmp_path / "some.csv", index=False)
    found = read_catalogue(tmp_path / "some.csv")
    assert [entry.source for entry in found.entries] == rows["hub_id"].tolist()
    assert not found.problems


def test_a_declared_base_is_held_against_the_stated_parent(shipped: Path):
    """An empty one is missing and no disagreement."""
    assert shipped.is_dir()
    assert service.declared_word("c", ["a", "b"], {"a", "b"}) == "differs"
    assert service.declared_word("b", ["a", "b"], {"a", "b"}) == "earlier"
    found = service.models().set_index("model")["declared"]
    assert found["google/gemma-7b-it"] == "agrees"
    assert found["Intel/neural-chat-7b-v3-3"] == "unclear"  # its parent is not listed
    assert found["openchat/openchat-3.5-0106"] == "agrees"
    assert found["01-ai/Yi-34B-Chat"] == "missing"


def test_every_colour_is_drawn_with_twelve_hues_at_most(shipped: Path):
    """The rest is grey, and a score that was not published has no colour of the scale."""
    from dashboard import text_catalogue as text, theme

    assert shipped.is_dir()
    frame = service.models()
    for colour in (*text.COLOURS, *text.SCORES):
        shades = catalogue_graph.shades_of(frame, colour, {}, dark=True)
        assert len(shades.colours) == 239
        assert len({c for _, c, _ in shades.groups}) <= 13
    scored = catalogue_graph.shades_of(frame, "gpqa", {}, dark=False).colours
    grey = [c == theme.LIGHT.faint for c in scored]
    assert sum(grey) == int(frame["gpqa"].isna().sum())


def test_a_run_of_another_kind_changes_nothing(shipped: Path):
    """A run without models, or a broken one, is no reason to fail."""
    (shipped / "cache" / "odd").mkdir()
    (shipped / "cache" / "odd" / "run.json").write_text(json.dumps({"kind": "models"}))
    assert service.held() == {}
    assert service.map_places(service.models()) is None
    assert model_catalogue.catalogue_path().is_file()
