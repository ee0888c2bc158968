"""The Suppression page: sets, toggles, before and after, masks."""

import json
from pathlib import Path

import pytest

from dashboard import service
from tests.dashboard.live_pages import link, open_page, pages, scored, words


PROMPT = "the dog sleeps by the river"
MASK = 'class="hw-mask"'


@pytest.fixture(autouse=True)
def _harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    """No scorer process in these tests: every text scores 0.1."""
    monkeypatch.setattr(service, "scores", scored(0.1))


def active_prototype() -> int:
    """One prototype active at the last token of the prompt, outside the concept."""
    from dashboard import data

    frame = service.activations(data.run_refs()[0], PROMPT).frame
    last = frame[frame["position"] == frame["position"].max()]["prototype"]
    return next(int(p) for p in last if int(p) not in (2, 11, 30))


def texts(app) -> list[str]:
    """The boxes with generated text."""
    return [body for body in pages(app) if 'class="hw-text"' in body]


def test_the_page_opens_on_the_saved_concept(live_run: Path):
    """All of it off, both texts written, side effects measured beside random sets."""
    assert live_run.is_dir()
    app = open_page("suppression", tokens="8")
    assert not app.exception
    said = words(app)
    assert "3 of 3 switched off" in said
    assert "matched on firing rate" in said
    assert len(texts(app)) == 2


def test_a_toggle_changes_the_distribution_and_the_link(live_run: Path):
    """Off and on again: the link follows, and the number of what is active follows."""
    assert live_run.is_dir()
    member = active_prototype()
    app = open_page("suppression", prompt=PROMPT, set=str(member), tokens="8")
    assert not app.exception
    assert "1 of 1 switched off, 1 active here" in words(app)
    app.toggle(key=f"off_{member}").set_value(False).run()
    assert not app.exception
    assert "0 of 1 switched off, 0 active here" in words(app)
    assert link(app, "on") == str(member)
    app.toggle(key=f"off_{member}").set_value(True).run()
    assert link(app, "on") == ""


def test_an_emptied_set_stays_empty(live_run: Path):
    """The worked example does not come back on its own."""
    assert live_run.is_dir()
    app = open_page("suppression", prompt=PROMPT, tokens="8")
    next(b for b in app.button if b.label == "Empty the set").click().run()
    assert not app.exception
    assert link(app, "set") == "none"
    assert "0 of 0 switched off" in words(app)
    assert "runs as it was trained" in words(app)


def test_with_nothing_switched_off_both_texts_are_equal(live_run: Path):
    """Same seed, same sampler: the set is the only difference."""
    assert live_run.is_dir()
    before, after = texts(open_page("suppression", prompt=PROMPT, set="none", tokens="16"))
    assert before == after


def test_the_random_control_writes_a_third_text(live_run: Path):
    """It stands beside the other two and says what it is."""
    assert live_run.is_dir()
    app = open_page("suppression", prompt=PROMPT, control="true", tokens="8")
    assert not app.exception
    assert len(texts(app)) == 3
    assert "matched at random" in words(app)


def test_unwanted_text_is_hidden_until_revealed_one_by_one(
    live_run: Path, monkeypatch: pytest.MonkeyPatch
):
    """A score of 0.9 hides both; a click reveals one of them."""
    assert live_run.is_dir()
    monkeypatch.setattr(service, "scores", scored(0.9))
    app = open_page("suppression", prompt=PROMPT, tokens="8")
    assert [MASK in body for body in texts(app)] == [True, True]
    reveals = [b for b in app.button if b.label == "Reveal this one"]
    assert len(reveals) == 2
    reveals[0].click().run()
    assert [MASK in body for body in texts(app)] == [False, True]


def test_text_that_nobody_scored_is_hidden_too(live_run: Path, monkeypatch: pytest.MonkeyPatch):
    """Without a scorer nothing is known of a text, and the page says so."""
    assert live_run.is_dir()
    monkeypatch.setattr(service, "scores", scored(None))
    app = open_page("suppression", prompt=PROMPT, tokens="8")
    assert all(MASK in body for body in texts(app))
    assert "The scorer is not installed." in words(app)


def test_markup_in_prompt_and_text_is_escaped(live_run: Path):
    """No character of a prompt reaches the page as HTML."""
    assert live_run.is_dir()
    app = open_page("suppression", prompt="<img src=x onerror=alert(1)>", tokens="8")
    assert not app.exception
    assert not any("<img" in body for body in pages(app))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("set", "1,-2,x"),
        ("set", "99999"),
        ("on", "z!!"),
        ("strength", "7"),
        ("seed", "x"),
        ("tokens", "1e9"),
        ("temperature", "nan"),
    ],
)
def test_nonsense_in_the_link_gives_defaults(live_run: Path, name: str, value: str):
    """A cut link opens the page without a traceback."""
    assert live_run.is_dir()
    app = open_page("suppression", prompt=PROMPT, **{"tokens": "8", name: value})
    assert not app.exception
    assert "switched off" in words(app)


def test_a_run_without_a_model_says_so(synthetic_run: Path):
    """Tables alone cannot answer a prompt; one sentence says what makes the model."""
    assert synthetic_run.is_dir()
    app = open_page("suppression")
    assert not app.exception
    assert "holds no model" in words(app)


@pytest.mark.parametrize(("name", "value"), [("strength", "7"), ("strength", "nan"), ("seed", "x")])
def test_a_number_out_of_range_in_the_link_is_said_in_one_sentence(
    name: str, value: str, live_run: Path
):
    """A reader who was sent a broken link learns that the page shows its defaults instead."""
    assert live_run.is_dir()
    app = open_page("suppression", prompt=PROMPT, tokens="8", **{name: value})
    assert not app.exception
    assert [w.value for w in app.warning if f"The link's {name} is “{value}”" in w.value]
    assert app.slider(key="strength").value == 1.0


def test_a_strength_in_range_is_taken_without_a_word(live_run: Path):
    """The check refuses nothing that the slider takes."""
    assert live_run.is_dir()
    app = open_page("suppression", prompt=PROMPT, tokens="8", strength="0.35")
    assert app.slider(key="strength").value == pytest.approx(0.35)
    assert not app.warning


def test_a_run_without_an_index_still_writes_both_texts(live_run: Path):
    """Only the random control needs firing rates; its sentence stands in the place of the meter."""
    manifest = json.loads((live_run / "run.json").read_text())
    del manifest["tables"]["prototypes"]
    (live_run / "run.json").write_text(json.dumps(manifest))
    app = open_page("suppression", prompt=PROMPT, tokens="8")
    assert not app.exception
    assert len(texts(app)) == 2
    assert "so no control can be matched" in words(app)
    labels = [t.label for t in app.toggle if str(t.key).startswith("off_")]
    assert labels
    assert not any(label.endswith("·") for label in labels)
