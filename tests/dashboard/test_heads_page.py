"""The Heads page: what it opens on, every input of a link, and runs that lack something."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from dashboard import data, head_tails, service_heads
from dashboard.components.heads_doors import place_in
from dashboard.components.heads_samples import cells
from dashboard.service_heads import SampleText
from engine.live.heads import RepeatedSpan
from tests.dashboard.live_pages import link, open_page, pages, words


def drop(run: Path, *beginnings: str) -> None:
    """Take tables out of a run's manifest."""
    manifest = json.loads((run / "run.json").read_text())
    kept = {n: t for n, t in manifest["tables"].items() if not n.startswith(beginnings)}
    (run / "run.json").write_text(json.dumps({**manifest, "tables": kept}))


def test_the_page_opens_on_the_chosen_head_and_the_samples_that_raise_it(heads_run: Path):
    """Atlas, curves, scatter, histogram, tail, ranks, shares, one sample, attention: all drawn."""
    assert heads_run.is_dir()
    app = open_page("heads")
    assert not app.exception
    assert len(app.get("plotly_chart")) == 9
    facts = "".join(pages(app))
    assert "1.1 <span>induction head</span>" in facts
    assert "Generated repeats among the top of 1.1" in facts
    said = words(app)
    assert "raise the score of head 1.1" in said
    assert "log-likelihood ratio" in said


def test_every_input_of_a_link_is_kept(heads_run: Path):
    """Seed, score, probe, step, head, axes and bin."""
    assert heads_run.is_dir()
    app = open_page(
        "heads", seed="1", score="Previous token", probe="Previous token", step="220", head="0.2",
        across="Gini coefficient", up="Exponent α", bin="20",
    )  # fmt: skip
    assert not app.exception
    assert not app.warning
    assert app.selectbox(key="seed").value == "1"
    assert app.selectbox(key="probe").value == "Previous token"
    assert app.select_slider(key="step").value == 220
    assert app.selectbox(key="up").value == "Exponent α"
    assert "lower the score of head 0.2" in words(app)


def test_the_positive_control_of_a_head_is_not_shown_with_another(heads_run: Path):
    """Top samples were selected for the chosen head alone."""
    assert heads_run.is_dir()
    app = open_page("heads", head="0.1")
    assert not app.exception
    facts = "".join(pages(app))
    assert "<dd>0.1" in facts
    assert "Generated repeats" not in facts


NONSENSE = {
    "seed": "9",
    "head": "<script>",
    "step": "3",
    "bin": str(head_tails.BINS),
    "score": "nothing",
    "probe": "nothing",
    "across": "nothing",
    "from": "many",
}


def test_nonsense_in_a_link_is_said_and_left_out(heads_run: Path):
    """One sentence each; the page opens on its defaults."""
    assert heads_run.is_dir()
    app = open_page("heads", **NONSENSE)
    assert not app.exception
    said = "\n".join(warning.value for warning in app.warning)
    assert len(app.warning) == len(NONSENSE)
    assert all(f"The link's {name} is" in said for name in NONSENSE)
    assert "raise the score of head 1.1" in words(app)


def test_another_seed_forgets_the_bin_and_the_sample(heads_run: Path):
    """They belong to the samples of one seed."""
    assert heads_run.is_dir()
    app = open_page("heads", bin="30", sample="210-3", head="1.0")
    app.selectbox(key="seed").set_value("1").run()
    assert not app.exception
    assert (link(app, "bin"), link(app, "sample")) == ("", "")
    assert link(app, "head") == "1.0"


def test_generated_samples_can_be_left_out_and_are_counted(heads_run: Path):
    """A filter says how many it hides; the fits stay those of all samples."""
    assert heads_run.is_dir()
    app = open_page("heads", natural="true")
    assert not app.exception
    toggle = app.toggle(key="natural")
    ref = next(r for r in data.run_refs() if r.name == "heads")
    hidden = int((data.table(ref, "head_samples", where=(("seed", 0),))["document"] < 0).sum())
    assert f"hides {hidden:,}" in toggle.label
    values = service_heads.values_of(ref, 0, "induction", "1.1", natural=True)
    assert np.isnan(values).sum() == hidden + 1  # one natural sample was skipped
    rows = service_heads.top_samples(ref, 0, "induction", "1.1", 5, natural=True)
    assert rows["document"].ge(0).all()
    assert rows["influence"].iloc[0] == np.nanmax(values)


def test_a_sample_of_a_link_opens_the_bin_it_lies_in(heads_run: Path):
    """A door from another page names the sample alone."""
    assert heads_run.is_dir()
    ref = next(r for r in data.run_refs() if r.name == "heads")
    found = service_heads.influence(ref, 0, "induction")
    worst = found.sort_values("1.1").iloc[0]
    key = f"{int(worst['step'])}-{int(worst['row'])}"
    app = open_page("heads", sample=key)
    assert f"step {int(worst['step']):,}, row {int(worst['row'])}" in words(app)
    assert "lower the score" in words(app)


def test_attention_is_drawn_of_a_typed_text(heads_run: Path):
    """The text is part of the link; an empty one is one sentence."""
    assert heads_run.is_dir()
    app = open_page("heads", typed="abcabc", on="A text")
    assert not app.exception
    assert "Prefix matching, here" in "".join(pages(app))
    app.text_area(key="typed").set_value("").run()
    assert not app.exception
    assert any("type at least one character" in info.value for info in app.info)


def test_a_run_without_weights_says_so_and_shows_the_rest(heads_run: Path):
    """Scores and influence need none."""
    shutil.rmtree(heads_run / "model" / "seed-0")
    app = open_page("heads")
    assert not app.exception
    assert any("ships no weights of seed 0" in info.value for info in app.info)
    assert len(app.get("plotly_chart")) == 8


def test_a_monitored_model_has_an_atlas_and_names_the_command_for_influence(heads_run: Path):
    """No influence, no tail, no arms: what is there is drawn."""
    names = ("arms", "samples", "influence", "choices", "effects", "tails", "overlaps", "tags")
    drop(heads_run, *(f"head_{name}" for name in (*names, "motifs", "mixtures")))
    app = open_page("heads")
    assert not app.exception
    assert len(app.get("plotly_chart")) == 4
    assert any("headwater heads influence" in code.value for code in app.code)


def test_a_run_of_influence_alone_shows_the_heads_that_were_traced(heads_run: Path):
    """No atlas without scores; a head that was not traced is refused in a sentence."""
    drop(heads_run, "head_scores", "head_losses", "head_arms", "head_effects", "head_mixtures")
    app = open_page("heads", head="1.0")
    assert not app.exception
    assert app.selectbox(key="heads_traced").value == "1.0"
    assert len(app.get("plotly_chart")) == 6
    assert any("headwater heads monitor" in code.value for code in app.code)
    assert len(open_page("heads", head="8.8").warning) == 1
    overview = open_page("overview")
    assert not overview.exception
    assert "Samples scored" in "".join(pages(overview))


def test_the_tokens_that_carry_the_influence_add_up_to_it(heads_run: Path):
    """Kept for the ends of the chosen heads; for other samples there is nothing to show."""
    assert heads_run.is_dir()
    ref = next(r for r in data.run_refs() if r.name == "heads")
    best = service_heads.top_samples(ref, 0, "induction", "1.1", 1, natural=False).iloc[0]
    values = service_heads.token_influence(ref, 0, "induction", "1.1", best)
    assert values is not None
    assert values.sum() == pytest.approx(best["influence"], rel=1e-4)
    assert service_heads.token_influence(ref, 0, "induction", "0.0", best) is None
    key = f"{int(best['step'])}-{int(best['row'])}"
    assert "What each token adds to the influence" in words(open_page("heads", sample=key))


def test_a_run_without_tails_draws_the_tail_without_a_fit(heads_run: Path):
    """Nothing is fitted on the page."""
    drop(heads_run, "head_tails")
    app = open_page("heads")
    assert not app.exception
    assert "No tail was fitted" in words(app)
    assert "Exponent α" not in app.selectbox(key="up").options


def test_samples_without_a_corpus_keep_their_numbers(heads_run: Path):
    """Generated rows are written out all the same: they follow from the study's settings."""
    assert heads_run.is_dir()
    ref = next(r for r in data.run_refs() if r.name == "heads")
    samples = data.table(ref, "head_samples")
    natural = samples[samples["document"] >= 0].iloc[0]
    assert "No corpus called synthetic" in service_heads.sample_text(ref, natural).problem
    generated = samples[samples["document"] < 0].iloc[0]
    found = service_heads.sample_text(ref, generated)
    assert len(found.tokens) == 129
    assert found.spans
    assert not found.problem


def test_repeated_spans_are_shaded_and_say_where_they_stood():
    """Neighbouring spans differ in shade, other tokens have none."""
    spans = (RepeatedSpan(2, 4, 0), RepeatedSpan(4, 5, 1))
    shown = cells(SampleText(tuple("ababb"), (1, 2, 1, 2, 2), spans))
    assert [cell.value for cell in shown] == [0, 0, 1.0, 1.0, 0.62]
    assert shown[2].title == "token 2 · repeats tokens 0 to 1, 2 tokens, 2 back"


def test_a_document_is_found_in_a_run_with_prototypes(heads_run: Path, synthetic_path: Path):
    """By its id, with a prototype that is active near; one that the run lacks has no place."""
    other_path = heads_run.parent / "synthetic"
    shutil.copytree(synthetic_path, other_path)
    refs = {r.name: r for r in data.run_refs()}
    rows = data.table(refs["synthetic"], "prototype_examples", ("document", "prototype"))
    document = int(rows["document"].iloc[0])
    known = data.table(refs["synthetic"], "documents", where=(("document", document),))
    found = place_in(refs["synthetic"], refs["heads"], str(known["doc_id"].iloc[0]), 0)
    assert found is not None
    assert found.document == document
    near = rows[rows["document"] == document]["prototype"]
    assert found.prototype in set(near)
    assert place_in(refs["synthetic"], refs["heads"], "nothing", 0) is None


@pytest.mark.parametrize("page", ["prompt", "curvature"])
def test_pages_of_prototypes_say_what_a_run_of_heads_holds(page: str, heads_run: Path):
    """No traceback, no command that cannot help: pages that show the run instead."""
    assert heads_run.is_dir()
    app = open_page(page)
    assert not app.exception
    assert "no prototypes" in words(app)
    assert "headwater" not in "".join(code.value for code in app.code)


def test_a_prototype_page_on_a_run_of_heads_switches_in_one_click(
    heads_run: Path, synthetic_path: Path
):
    """And a page of heads on a prototype run without any switches back."""
    other = heads_run.parent / "synthetic"
    shutil.copytree(synthetic_path, other)
    drop(other, "head_")
    app = open_page("prototypes", run="heads")
    app.button(key="switch_synthetic").click().run()
    assert app.selectbox(key="run").value == "synthetic"
    assert not app.exception
    back = open_page("heads", run="synthetic")
    assert "holds no attention heads" in words(back)
    back.button(key="switch_heads").click().run()
    assert back.selectbox(key="run").value == "heads"
    assert len(back.get("plotly_chart")) == 9


def test_another_run_arrives_through_a_door(heads_run: Path, synthetic_path: Path):
    """The picker takes it, and the parameter that carried it is gone."""
    shutil.copytree(synthetic_path, heads_run.parent / "synthetic")
    app = open_page("runs", run="heads", into="synthetic")
    assert app.selectbox(key="run").value == "synthetic"
    assert link(app, "into") == ""
    assert open_page("runs", into="nothing").selectbox(key="run").value == "synthetic"


def test_a_door_of_a_page_that_is_open_wins_over_its_run(heads_run: Path, synthetic_path: Path):
    """By then the parameter belongs to the picker, which nothing else may take away."""
    shutil.copytree(synthetic_path, heads_run.parent / "synthetic")
    app = open_page("runs", run="synthetic")
    assert app.selectbox(key="run").value == "synthetic"
    app.query_params["run"] = "synthetic"
    app.query_params["into"] = "heads"
    app.run()
    assert not app.exception
    assert app.selectbox(key="run").value == "heads"
    assert "into" not in app.query_params
    app.run()
    assert app.selectbox(key="run").value == "heads"


def test_the_overview_of_a_run_of_heads_shows_its_choices_and_effects(heads_run: Path):
    """What was studied, which heads were chosen, what the arms did; no prototype is missed."""
    assert heads_run.is_dir()
    app = open_page("overview")
    assert not app.exception
    facts = "".join(pages(app))
    assert "GPT-NeoX 2 × 24, 3 heads a layer" in facts
    assert "30% generated repeats" in facts
    chosen = next(d.value for d in app.dataframe if "Head" in d.value)
    assert chosen["Head"].tolist() == ["1.1", "1.1", "0.2", "0.2"]
    assert len(app.get("plotly_chart")) == 1
    assert "index" not in "".join(str(d.value.to_dict()) for d in app.dataframe if "Missing" in d)
