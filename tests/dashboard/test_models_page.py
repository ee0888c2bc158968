"""The Models page: what it opens on, every input of a link, and runs that lack something."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from dashboard import data, models_report, service_models as service
from dashboard.components import models_map
from dashboard.components.models_card import neighbours_table
from dashboard.components.models_controls import ModelsView
from dashboard.model_rows import Asked, kept
from engine.store import RunWriter, open_run, read_table
from tests.dashboard.live_pages import link, open_page, pages, words


def drop(run: Path, *beginnings: str) -> None:
    """Take tables out of a run's manifest."""
    manifest = json.loads((run / "run.json").read_text())
    left = {n: t for n, t in manifest["tables"].items() if not n.startswith(beginnings)}
    (run / "run.json").write_text(json.dumps({**manifest, "tables": left}))


def ref_of(run: Path) -> data.RunRef:
    return next(ref for ref in data.run_refs() if ref.name == run.name)


def test_it_opens_on_the_map_the_model_with_most_children_and_the_tree(models_run: Path):
    """Map, lens, table, card with neighbours and caveat, tree."""
    app = open_page("models", run=models_run.name)
    assert not app.exception
    assert not app.warning
    assert len(app.get("plotly_chart")) == 2
    said = words(app)
    assert "synthetic" in "".join(pages(app))
    assert "not proof of derivation" in said
    assert "goes back to" in said
    assert any("Neighbour" in table.value for table in app.dataframe)
    assert app.selectbox(key="models_picker").value == "root-0"


def test_every_input_of_a_link_is_kept(models_run: Path):
    """Embedding, picture, colour, edges, method, filters, model, lasso, rows, tab."""
    names = service.cards(ref_of(models_run))["model"].tolist()
    picked = [names.index(f"root-{k}-quantised") for k in (0, 1)] + [names.index("root-2")]
    app = open_page(
        "models", run=models_run.name, variant="square_root", layout="PCA",
        colour="Likeness to the chosen model", edges="Predicted", q="root",
        derivations="quantised", model="root-1-quantised",
        picked=",".join(map(str, picked)), marked=str(picked[1]), panel="Heat map",
    )  # fmt: skip
    assert not app.exception
    assert not app.warning
    assert app.selectbox(key="variant").value == "square_root"
    assert app.multiselect(key="derivations").value == ["quantised"]
    assert app.selectbox(key="models_picker").value == "root-1-quantised"
    table = next(d.value for d in app.dataframe if "Cosine" in d.value and "Root" in d.value)
    assert set(table["Model"]) == {"root-0-quantised", "root-1-quantised"}
    assert len(app.get("plotly_chart")) == 2


NONSENSE = {
    "model": "<script>", "variant": "none", "layout": "none", "colour": "none", "edges": "none",
    "method": "none", "picked": "a,b", "panel": "none",
}  # fmt: skip


def test_nonsense_in_a_link_is_said_and_left_out(models_run: Path):
    """One sentence each; the page opens on its defaults."""
    app = open_page("models", run=models_run.name, **NONSENSE)
    assert not app.exception
    said = "\n".join(warning.value for warning in app.warning)
    assert all(f"The link's {name} is" in said for name in NONSENSE)
    assert app.selectbox(key="models_picker").value == "root-0"


@pytest.mark.parametrize("panel", ["Relations", "Bases", "Stability", "Export"])
def test_every_tab_draws(panel: str, models_run: Path):
    """Results of relations, predicted bases, stability, and what can be taken away."""
    app = open_page("models", run=models_run.name, panel=panel)
    assert not app.exception
    charts = {"Relations": 4, "Bases": 1, "Stability": 2, "Export": 1}
    assert len(app.get("plotly_chart")) == charts[panel]


def claims_shown(app) -> list[str]:
    """Claims that the tab of relations lists; those of the whole ledger have more columns."""
    tables = [d.value for d in app.dataframe if {"Claim", "Criterion"} <= set(d.value)]
    return [str(claim) for table in tables for claim in table["Claim"]]


def test_the_shipped_map_lists_the_claims_that_rest_on_it(models_path: Path, house: Path):
    """All of the ledger whose evidence lies in its folder, and no word of another run."""
    shutil.copytree(models_path, house / "assets" / "zoo")
    app = open_page("models", run="zoo", panel="Relations")
    assert not app.exception
    own = [row for row in data.claims() if str(row["evidence"]).startswith("assets/zoo/")]
    measured = [str(r["claim"]) for r in own if r["value"] is not None]
    assert measured
    assert claims_shown(app) == measured
    assert "The shipped figures on maps of models" not in words(app)


def test_another_map_says_which_run_the_shipped_figures_belong_to(models_run: Path):
    """One sentence, instead of claims about other models or silence."""
    app = open_page("models", run=models_run.name, panel="Relations")
    assert not app.exception
    assert claims_shown(app) == []
    assert "belong to the run zoo, not to this one" in words(app)


def test_another_model_is_chosen_by_name(models_run: Path):
    """The keyboard reaches every model; the link follows."""
    app = open_page("models", run=models_run.name)
    app.selectbox(key="models_picker").set_value("root-2-mild_sft").run()
    assert not app.exception
    assert link(app, "model") == "root-2-mild_sft"
    assert "mild sft of root-2" in words(app)


def test_a_run_with_embeddings_alone_names_the_commands_for_the_rest(models_run: Path):
    """Nothing but the embeddings: every panel says what makes it."""
    drop(models_run, "model_layout", "model_neighbours", "model_pa", "model_relation",
         "model_trees", "model_stability", "model_cards", "model_answers")  # fmt: skip
    app = open_page("models", run=models_run.name)
    assert not app.exception
    codes = "\n".join(code.value for code in app.code)
    assert f"headwater models map --run {models_run.name}" in codes
    assert f"headwater models relate --run {models_run.name}" in codes
    other = open_page("models", run=models_run.name, panel="Stability")
    assert not other.exception
    assert any("headwater models stability" in code.value for code in other.code)


def test_pages_about_other_things_say_what_this_run_is(models_run: Path):
    """Prototypes and heads: none here; the overview shows the map."""
    app = open_page("prototypes", run=models_run.name)
    assert not app.exception
    assert "This run is a map of models" in words(app)
    overview = open_page("overview", run=models_run.name)
    assert not overview.exception
    assert "Models embedded" in "".join(pages(overview))
    assert len(overview.get("plotly_chart")) == 3


def test_a_run_without_models_offers_those_that_have_some(heads_run: Path, models_path: Path):
    """A button leads there."""
    shutil.copytree(models_path, heads_run.parent / "maps")
    app = open_page("models", run="heads")
    assert not app.exception
    assert app.button(key="switch_maps") is not None


def view_of(frame, **changes) -> ModelsView:
    given = {"variant": "able", "layout": "umap", "colour": "family", "edges": "both",
             "method": "able", "kept": kept(frame, Asked()), "filters": "", "chosen": "root-0",
             "picked": (), "marked": ()}  # fmt: skip
    return ModelsView(**{**given, **changes})


def test_predicted_edges_are_right_or_wrong_by_the_documents(models_run: Path):
    """Every prediction is drawn once; a teacher's edge is none of weights."""
    ref = ref_of(models_run)
    frame = service.cards(ref)
    edges = models_map.edges_of(ref, frame, view_of(frame))
    rows = service.parents(ref, "able")
    made = rows[rows["predicted"] != ""]
    assert len(edges.right) == int(made["correct"].sum())
    assert len(edges.wrong) == int((~made["correct"]).sum()) > 0
    distilled = frame["relation"].eq("distilled").sum()
    assert len(edges.taught) == distilled
    assert len(edges.documented) + len(edges.taught) == frame["parents"].str.len().sum()
    own = models_map.edges_of(ref, frame, view_of(frame, edges="own"))
    assert (own.documented == models_map.place_of(frame, "root-0")).any(axis=1).all()
    assert len(models_map.edges_of(ref, frame, view_of(frame, edges="none")).documented) == 0


def test_right_wrong_and_missed_bases_are_of_one_selection(models_run: Path):
    """Without filters all models; with a lasso its models alone; none where no edge is told."""
    ref = ref_of(models_run)
    frame = service.cards(ref)
    names = ["root-0-mild_sft", "root-1-quantised", "root-2-quantised"]
    rows = read_table(open_run(models_run), "model_parents")
    own = rows["model"].isin(names) & (rows["method"] == "able")
    writer = RunWriter.resume(models_run)
    writer.begin_stage("again", {})
    missed = rows.assign(
        predicted=rows["predicted"].mask(own, ""), correct=rows["correct"].mask(own, False)
    )
    writer.write_table("model_parents", missed)
    writer.finish_stage("again", {})
    ref = ref_of(models_run)
    places = [models_map.place_of(frame, name) for name in names]
    others = [p for p in frame["place"] if p not in places]
    one = names[0]
    asked = Asked(query=one)
    left = asked.masks(frame)["search"]
    for changes, wanted in (
        ({}, len(places)),
        ({"picked": tuple(others)}, 0),
        ({"picked": (places[0], *others)}, 1),
        ({"kept": kept(frame, asked)}, int(left.to_numpy()[places].sum())),
        ({"edges": "own", "chosen": one}, 1),
        ({"edges": "documented"}, 0),
    ):
        assert models_map.missed_of(ref, frame, view_of(frame, **changes)) == wanted


def test_a_lasso_leaves_edges_that_touch_it(models_run: Path):
    """Edges of what is faded would hide what is chosen."""
    ref = ref_of(models_run)
    frame = service.cards(ref)
    child, root = (models_map.place_of(frame, m) for m in ("root-1-quantised", "root-1"))
    edges = models_map.edges_of(ref, frame, view_of(frame, picked=(child,)))
    assert edges.documented.tolist() == [[root, child]]


def test_cosines_are_those_of_the_embeddings_in_the_order_of_the_cards(models_run: Path):
    """By hand for one pair; a picture plays no part."""
    ref = ref_of(models_run)
    rows = data.table(ref, "model_embeddings", where=(("variant", "able"),)).set_index("model")
    frame = service.cards(ref)
    a, b = (np.asarray(rows.loc[frame["model"].iloc[k], "vector"], float) for k in (2, 5))
    expected = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
    assert service.cosines(ref, "able")[2, 5] == pytest.approx(expected)


def test_neighbours_say_whether_the_tokenizer_is_the_same(models_run: Path):
    """A shared tokenizer makes models alike for that alone."""
    ref = ref_of(models_run)
    frame = service.cards(ref)
    row = frame[frame["model"] == "root-0"].iloc[0]
    table = neighbours_table(service.neighbours(ref, "able", "root-0"), frame, row)
    own = dict(zip(frame["model"], frame["tokenizer"], strict=True))
    said = dict(zip(table["Neighbour"], table["Tokenizer"], strict=True))
    for name, word in said.items():
        assert word == ("same" if own[name] == own["root-0"] else "differs")


def test_the_report_is_one_page_that_needs_no_network(models_run: Path):
    """Figures carry their library; nothing of the data is markup."""
    ref = ref_of(models_run)
    frame = service.cards(ref).copy()
    frame.loc[0, "family"] = "<script>alert(1)</script>"
    page = models_report.report(ref, frame, "able", "umap", "root-0")
    assert page.startswith("<!doctype html>")
    assert "plotly" in page
    assert 'src="http' not in page
    assert "<script>alert(1)" not in page
    assert "not proof of derivation" in page
