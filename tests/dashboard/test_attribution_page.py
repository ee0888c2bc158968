"""The Attribution page: the query, the list, the bars behind it, and every input of a link."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dashboard import data, rankings, service, service_attribution
from dashboard.components.attribution_export import as_json
from dashboard.service_attribution import Query
from engine.live.attribution_results import AttributionPool, AttributionScores
from tests.dashboard.live_pages import link, open_page, pages, scored, words


PROMPT = "the dog sleeps by the river"
N_POOL, N_TOKENS, N_BANK = 23, 13, 37
DOMAINS = ("code", "law", "<b>verse</b>")
VARIANTS = ("activations", "errors", "path", "path+diagonal")


def scores_of(method: str) -> np.ndarray:
    """Scores of a method: sequence 7 leads all cached ones, 4 is last."""
    values = np.random.default_rng(len(method)).normal(0, 1, N_POOL)
    values[7], values[4] = 9.0, -9.0
    return values


def fake_pool(_ref: object) -> AttributionPool:
    return AttributionPool(
        n_sequences=N_POOL,
        n_tokens=N_POOL * N_TOKENS,
        bits=8,
        length=N_TOKENS + 1,
        domains=tuple(sorted(DOMAINS)),
        variants=VARIANTS,
        default="path",
        model="0" * 16,
    )


def fake_traced(_ref: object, query: Query, method: str) -> AttributionScores:
    rows = np.arange(N_POOL)
    frame = pd.DataFrame(
        {
            "sequence": rows,
            "document": rows // 2,
            "doc_id": [f"{row:016x}" for row in rows],
            "domain": [DOMAINS[row % 3] for row in rows],
            "position": 0,
            "n_tokens": N_TOKENS,
            "score": scores_of(method),
        }
    )
    loss = 2.5 if query.span is None else 7.25
    times = {"pass": 0.021, "preparation": 0.004, "search": 1.5}
    return AttributionScores(frame, method, "nats", " dog", (17,), loss, times)


def fake_tokens(_ref: object, _query: Query, method: str, sequences: tuple[int, ...]):
    rows = [
        (s, o, -1, "", scores_of(method)[s] / N_TOKENS) for s in sequences for o in range(N_TOKENS)
    ]
    return pd.DataFrame(rows, columns=["sequence", "position", "token_id", "token", "score"])


def fake_shares(_ref: object, _query: Query, method: str, sequence: int):
    part = np.arange(1, 18) / np.arange(1, 18).sum() * scores_of(method)[sequence]
    labels = [f"role {i}" for i in range(17)]
    return pd.DataFrame({"prototype": range(17), "label": labels, "share": part})


@pytest.fixture
def pool(live_run: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run with a model, and a pool whose scores are known."""
    monkeypatch.setattr(service, "scores", scored(0.1))
    fakes = {"pool": fake_pool, "traced": fake_traced}
    fakes |= {"token_scores": fake_tokens, "shares": fake_shares}
    for name, fake in fakes.items():
        monkeypatch.setattr(service_attribution, name, fake)
    return live_run


def test_the_page_opens_on_a_worked_example(pool: Path):
    """Query, loss, pool, times, the list and its reasons; and that nobody retrained the model."""
    assert pool.is_dir()
    app = open_page("attribution")
    assert not app.exception
    said = words(app)
    assert "2.50 <span>nats" in said
    assert "21.0 ms" in said
    assert "1.50 s" in said
    assert f"The 10 most helpful of {N_POOL} sequences" in said
    assert "Place 1 of the most helpful" in said
    assert "Blue: weighting the text up lowers" in said
    assert "headwater attribution-index --run tiny" in said
    assert "not validated for this model" in said
    assert any("headwater retrain-check" in code.value for code in app.code)


def test_another_models_study_is_named_as_such(pool: Path, synthetic_path: Path):
    """Its figures stand there with their interval and ceiling, and are not this model's."""
    import shutil

    shutil.copytree(synthetic_path, pool.parent / "study")
    app = open_page("attribution", run="tiny", method="errors")
    assert not app.exception
    said = words(app)
    assert "not validated for this model" in said
    assert "run study" in said
    assert "ceiling 0.70" in said


def test_every_choice_lies_in_the_link(pool: Path):
    """Tail, size, domain, method, text and span come from it; the places stay the pool's."""
    assert pool.is_dir()
    asked = {"tail": "harmful", "top": "20", "domain": "law", "method": "errors", "span": "1-3"}
    app = open_page("attribution", prompt=PROMPT, sequence="7", beside="activations", **asked)
    assert not app.exception
    said = words(app)
    law = [row for row in range(N_POOL) if DOMAINS[row % 3] == "law"]
    assert f"The {len(law)} most harmful of {len(law)} sequences of law" in said
    assert "lie in other domains and are hidden" in said
    assert f"Place {N_POOL} of the most harmful" in said
    assert "7.25 <span>nats" in said
    assert "3 tokens" in said
    assert app.selectbox(key="method").value == "errors"
    assert app.selectbox(key="beside").value == "activations"


def test_a_span_is_traced_and_left_again(pool: Path):
    """The switch writes the span into the link and takes it out."""
    assert pool.is_dir()
    app = open_page("attribution", prompt=PROMPT, position="2")
    app.segmented_control(key="attribution_way").set_value("span").run()
    assert not app.exception
    last = len(service.tokens(data.run_refs()[0], PROMPT)) - 1
    assert link(app, "span") == f"2-{last}"
    app.slider(key="attribution_span").set_value((1, 3)).run()
    assert link(app, "span") == "1-3"
    app.segmented_control(key="attribution_way").set_value("next").run()
    assert link(app, "span") == ""


def test_another_prompt_forgets_span_and_text(pool: Path):
    """What belongs to the old prompt leaves the link."""
    assert pool.is_dir()
    app = open_page("attribution", prompt=PROMPT, span="1-3", sequence="7")
    app.text_area(key="prompt").set_value("words and numbers").run()
    assert not app.exception
    assert link(app, "span") == link(app, "sequence") == ""


def test_two_methods_are_compared(pool: Path):
    """Overlap with what chance gives, and rank correlation over the pool."""
    assert pool.is_dir()
    app = open_page("attribution", prompt=PROMPT, method="errors", beside="path")
    first, second = (fake_traced(None, Query("", 0), m).frame for m in ("errors", "path"))
    found = rankings.compare(first, second, 10)
    assert f"{found.shared} of 10" in words(app)
    assert f"{abs(found.correlation):.3f}" in words(app)


def test_a_method_without_details_says_whose_shades_it_shows(pool: Path):
    """BM25 scores texts whole; the tokens shown are the cached method's."""
    assert pool.is_dir()
    app = open_page("attribution", prompt=PROMPT, method="bm25")
    assert not app.exception
    assert "bm25 scores each text whole" in words(app)
    assert "Scores of this method are likenesses" in words(app)
    assert "Blue: weighting the text up" not in words(app)


def test_a_method_that_runs_the_model_over_the_pool_is_asked_for(pool: Path):
    """One click a query; it is not asked again when the page reruns."""
    assert pool.is_dir()
    app = open_page("attribution", prompt=PROMPT, method="knn")
    assert "most helpful of" not in words(app)
    app.button(key="attribution_ask_knn").click().run()
    assert "most helpful of" in words(app)
    app.selectbox(key="top").set_value(20).run()
    assert not app.exception
    assert "most helpful of" in words(app)


def test_a_prototype_and_a_document_open_from_the_link(pool: Path):
    """The card stands beside the list; without the corpus the window says what is missing."""
    assert pool.is_dir()
    app = open_page("attribution", prompt=PROMPT, slice="5", sequence="7", read="7")
    assert not app.exception
    assert app.selectbox(key="attribution_prototype").value == 5
    assert "#5" in words(app)
    assert "not on this machine" in words(app)


@pytest.mark.parametrize(
    "nonsense",
    [
        {"span": "0-2", "sequence": "999", "method": "magic", "domain": "music", "position": "99"},
        {"span": "1-4000", "sequence": "-1", "beside": "<script>"},
    ],
)
def test_nonsense_in_the_link_is_said_in_one_sentence(pool: Path, nonsense: dict[str, str]):
    """A cut link opens the page with defaults and says of each part that it was left out."""
    assert pool.is_dir()
    app = open_page("attribution", prompt=PROMPT, **nonsense)
    assert not app.exception
    said = " ".join(warning.value for warning in app.warning)
    assert [name for name in nonsense if f"The link's {name} is" not in said] == []
    assert "The 10 most helpful" in words(app)


def test_markup_of_texts_and_domains_is_never_html(pool: Path):
    """A domain's name and a prompt reach the page as text."""
    assert pool.is_dir()
    app = open_page("attribution", prompt="<img src=x onerror=alert(1)>")
    assert not app.exception
    assert not any("<img" in body or "<b>verse" in body for body in pages(app))


def test_a_run_without_a_model_keeps_its_validity_section(synthetic_run: Path):
    """Tables alone cannot trace a prompt; what retraining measured is still there."""
    assert synthetic_run.is_dir()
    app = open_page("attribution")
    assert not app.exception
    assert "holds no model" in words(app)
    assert not any("retrain-check" in code.value for code in app.code)
    assert "the study chose, path+coupled (LDS" in words(app)
    assert "This page takes path+diagonal+unit" in words(app)


def test_the_export_holds_all_that_is_needed(pool: Path):
    """Query, method, times, and summands of each text that add up to its score."""
    assert pool.is_dir()
    ref, query = data.run_refs()[0], Query(PROMPT, 3, 17)
    traced = fake_traced(ref, query, "path")
    found = rankings.listing(traced.frame, "helpful", 5, "law")
    content = json.loads(
        as_json(ref, query, traced, found, lambda s: fake_shares(ref, query, "path", s))
    )
    assert (content["prompt"], content["position"], content["target"]) == (PROMPT, 3, 17)
    assert content["method"] == "path"
    assert content["domain"] == "law"
    assert len(content["results"]) == 5
    for row in content["results"]:
        assert sum(share for _, share in row["prototypes"]) == pytest.approx(row["score"])


def test_a_token_of_the_prompt_page_has_a_door_here(pool: Path):
    """Pick a token, trace it."""
    assert pool.is_dir()
    app = open_page("prompt", prompt=PROMPT, position="2", target="17")
    doors = [e.proto for e in app.get("page_link") if "Trace" in e.proto.label]
    assert len(doors) == 1
    assert "target=17" in doors[0].query_string
    assert "handed=the+dog" in doors[0].query_string
    assert "position=2" in doors[0].query_string


def test_generated_text_has_a_door_here(pool: Path):
    """Its own tokens are the span; both columns have one."""
    assert pool.is_dir()
    app = open_page("suppression", prompt=PROMPT, tokens="8")
    doors = [e.proto for e in app.get("page_link") if "Trace" in e.proto.label]
    assert len(doors) == 2
    assert all("span=" in door.query_string for door in doors)


def test_a_prompt_comes_through_a_door(pool: Path):
    """The page one leaves takes its own `prompt` along; the door carries it under another name."""
    assert pool.is_dir()
    app = open_page("attribution", handed=PROMPT, span="1-3")
    assert not app.exception
    assert app.text_area(key="prompt").value == PROMPT
    assert link(app, "handed") == ""
    assert link(app, "span") == "1-3"


@pytest.fixture
def stored_pool(live_run: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run with a pool of random texts, stored as any pool is; its corpus is not here."""
    from engine.influence.frame import sequences_from_rows
    from engine.pipeline.attribution import build_pool

    monkeypatch.setattr(service, "scores", scored(0.1))
    drawn = np.random.default_rng(0).integers(1, 300, (N_POOL, N_TOKENS)).tolist()
    rows = sequences_from_rows([[0, *row] for row in drawn], domain="code")
    ids = np.array([f"{row:016x}" for row in range(N_POOL)], object)
    build_pool(live_run, rows=rows, doc_ids=ids)
    return live_run


def test_a_stored_pool_is_searched(stored_pool: Path):
    """Scores need no text: the list stands, and a sentence says what is missing for the words."""
    assert stored_pool.is_dir()
    app = open_page("attribution", prompt=PROMPT)
    assert not app.exception
    said = words(app)
    assert f"The 10 most helpful of {N_POOL} sequences" in said
    assert "Place 1 of the most helpful" in said
    assert "need no text" in said


def test_tokens_and_prototypes_add_up_to_the_score(stored_pool: Path):
    """What strips and bars show is the whole score, for a token and for a span."""
    assert stored_pool.is_dir()
    ref = data.run_refs()[0]
    for query in (Query(PROMPT, 3), Query(PROMPT, 0, span=(1, 5))):
        for method in ("path", "errors+diagonal+unit"):
            frame = service_attribution.traced(ref, query, method).frame
            best = int(frame["score"].abs().idxmax())
            wanted = pytest.approx(float(frame.loc[best, "score"]), rel=1e-4)
            tokens = service_attribution.token_scores(ref, query, method, (best,))
            assert tokens["score"].sum() == wanted
            assert service_attribution.shares(ref, query, method, best)["share"].sum() == wanted


def test_a_method_that_reads_texts_says_when_they_are_not_here(stored_pool: Path):
    """One sentence instead of a list; the choice of another method stays on the page."""
    assert stored_pool.is_dir()
    app = open_page("attribution", prompt=PROMPT, method="bm25")
    assert not app.exception
    assert "nowhere" in words(app)
    assert app.selectbox(key="method").value == "bm25"


def test_a_run_without_a_pool_names_the_command_that_makes_it(
    live_run: Path, monkeypatch: pytest.MonkeyPatch
):
    """The validity section is drawn all the same."""
    assert live_run.is_dir()
    monkeypatch.setattr(service, "scores", scored(0.1))
    app = open_page("attribution")
    assert not app.exception
    assert any("headwater attribution-index --run tiny" in code.value for code in app.code)
