"""The Prompt page: what it explains, and every input that a reader may type."""

from dataclasses import replace
from pathlib import Path

import pytest

from dashboard import data, service
from tests.dashboard.live_pages import open_page, scored, words


PROMPT = "the dog sleeps by the river"


@pytest.fixture(autouse=True)
def _harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    """No scorer process in these tests: every text scores 0.1."""
    monkeypatch.setattr(service, "scores", scored(0.1))


def last_token(prompt: str) -> int:
    """Position of a prompt's last token."""
    return len(service.tokens(data.run_refs()[0], prompt)) - 1


def test_the_page_opens_on_a_worked_example_that_adds_up(live_run: Path):
    """Never an empty form: tokens, slices, their sum and the gap."""
    assert live_run.is_dir()
    app = open_page("prompt")
    assert not app.exception
    said = words(app)
    assert "slices = " in said
    assert "with a gap of" in said
    assert not app.error


def test_a_typed_prompt_is_explained(live_run: Path):
    """The page reads it to its last token."""
    assert live_run.is_dir()
    app = open_page("prompt")
    app.text_area(key="prompt").set_value(PROMPT).run()
    assert not app.exception
    assert f"after token {last_token(PROMPT)} " in words(app)


def test_position_target_and_rival_come_from_the_link(live_run: Path):
    """A link names the token read, the token explained and the one it is compared with."""
    assert live_run.is_dir()
    app = open_page("prompt", prompt=PROMPT, position="1", target="17", against="19")
    assert not app.exception
    assert "after token 1 " in words(app)
    chosen = {box.value for box in app.selectbox}
    assert {17, 19} <= chosen


@pytest.mark.parametrize("parameter", ["target", "against"])
def test_a_token_that_the_run_lacks_is_said_and_left_out(live_run: Path, parameter: str):
    """A link made on another run still opens a page that explains something."""
    assert live_run.is_dir()
    app = open_page("prompt", prompt=PROMPT, **{parameter: "999999"})
    assert not app.exception
    assert "Token 999999 is not in the vocabulary" in words(app)
    assert "slices = " in words(app)


def test_a_slice_of_the_link_opens_its_prototype(live_run: Path):
    """Its card is read below the waterfall."""
    assert live_run.is_dir()
    app = open_page("prompt", prompt=PROMPT, slice="30")
    assert not app.exception
    assert "#30" in words(app)


def test_slices_that_do_not_add_up_fail_in_full_view(
    live_run: Path, monkeypatch: pytest.MonkeyPatch
):
    """A gap above the tolerance is an error on the page, not a footnote."""
    assert live_run.is_dir()
    honest = service.explain

    def broken(*args: object, **kwargs: object) -> object:
        return replace(honest(*args, **kwargs), gap=0.01, gap_logit=0.2)

    monkeypatch.setattr(service, "explain", broken)
    app = open_page("prompt", prompt=PROMPT)
    assert not app.exception
    assert "do not add up" in app.error[0].value


@pytest.mark.parametrize(
    "prompt",
    ["x", "🙂 🙃", "שלום עולם", "<script>alert(1)</script>", "a " * 3000, "$x$ **y** `z` :red[q]"],
)
def test_any_text_is_read(live_run: Path, prompt: str):
    """One token, emoji, right to left, markup, thousands of tokens: no traceback."""
    assert live_run.is_dir()
    app = open_page("prompt", prompt=prompt)
    assert not app.exception
    assert "with a gap of" in words(app)


@pytest.mark.parametrize(("prompt", "said"), [("", "empty"), ("a\0b", "NUL")])
def test_a_prompt_that_cannot_be_read_gets_one_sentence(live_run: Path, prompt: str, said: str):
    """The box stays, so that the reader can mend it."""
    assert live_run.is_dir()
    app = open_page("prompt")
    app.text_area(key="prompt").set_value(prompt).run()
    assert not app.exception
    assert said in words(app)
    assert len(app.text_area) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [("position", "99"), ("position", "x"), ("target", "-3"), ("slice", "many"), ("shown", "7")],
)
def test_nonsense_in_the_link_gives_defaults(live_run: Path, name: str, value: str):
    """A cut link opens the page, and a sentence says what was left out."""
    assert live_run.is_dir()
    app = open_page("prompt", prompt=PROMPT, **{name: value})
    assert not app.exception
    assert "with a gap of" in words(app)


@pytest.mark.parametrize("name", ["target", "slice"])
def test_ids_that_the_model_lacks_get_one_sentence(live_run: Path, name: str):
    """An id out of range is the reader's mistake, not a crash."""
    assert live_run.is_dir()
    app = open_page("prompt", prompt=PROMPT, **{name: "99999"})
    assert not app.exception
    assert not app.error
