"""The Add a model page: checks, start, progress, stop, what was added, and maps that ship."""

import json
import shutil
from pathlib import Path

import pytest

from dashboard import background, data, service_add
from dashboard.components.add_progress import shown_progress
from engine.live.adding import Check, Prospect
from tests.dashboard.live_pages import open_page, pages, words


PLACE = "/models/new"


def prospect(*checks: Check, seconds: float | None = 12.0) -> Prospect:
    return Prospect("new", PLACE, checks, 0, 3_000_000, 10**9, 10**9, seconds, 7)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Commands that were started, none of which runs."""
    calls: list[tuple[str, ...]] = []

    def start(_run: Path, arguments: tuple[str, ...], _label: str) -> None:
        calls.append(tuple(arguments))

    monkeypatch.setattr(background, "start", start)
    return calls


def stand(run: Path, state: str, log: str) -> None:
    """Leave the traces of a command in a run."""
    folder = run / background.FOLDER
    folder.mkdir()
    work = {"arguments": ["models", "add", "--run", str(run), "--", PLACE], "label": "new",
            "pid": 1, "created": 1.0, "started": 1.0}  # fmt: skip
    (folder / "work.json").write_text(json.dumps(work))
    (folder / "log.txt").write_text(log)
    codes = {"finished": 0, "failed": 2, "stopped": 130}
    (folder / "end.json").write_text(json.dumps({"code": codes[state]}))


def test_a_model_is_checked_and_then_added(models_run: Path, started: list, monkeypatch):
    """Checks and estimate first; the place can be no option of the command."""
    checks = (Check("Place", "passed", "Folder."), Check("Gradients", "later", "Later."))
    monkeypatch.setattr(service_add, "prospect", lambda *_: prospect(*checks))
    app = open_page("add", run=models_run.name, place=PLACE, name="my new")
    assert not app.exception
    assert any("headwater models add /models/new --run maps" in c.value for c in app.code)
    app.button(key="add_check").click().run()
    assert not app.exception
    table = next(d.value for d in app.dataframe if "Finding" in d.value)
    assert table["Check"].tolist() == ["Place", "Gradients"]
    assert "12.0 s" in "".join(pages(app))
    app.button(key="add_start").click().run()
    wanted = ("models", "add", "--run", str(models_run), "--name", "my new", "--", PLACE)
    assert started == [wanted]


@pytest.mark.slow
def test_a_failed_check_or_a_sentence_leaves_nothing_to_start(
    models_run: Path, started: list, monkeypatch
):
    """Why is said."""
    failed = prospect(Check("Kind", "failed", "It is an encoder."))
    monkeypatch.setattr(service_add, "prospect", lambda *_: failed)
    app = open_page("add", place=PLACE)
    app.button(key="add_check").click().run()
    assert any("check failed" in error.value for error in app.error)
    assert "add_start" not in {button.key for button in app.button}
    assert not started
    assert models_run.is_dir()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("state", "log", "said"),
    [
        ("stopped", "12:00:00 Attributing new: 3 of 7, 1/s, 4 s left\n", "was stopped"),
        ("failed", "It has no tokenizer.\n", "It has no tokenizer"),
    ],
)
def test_what_stopped_or_failed_says_so_and_goes_on(
    models_run: Path, started: list, state: str, log: str, said: str
):
    """Going on starts the same command."""
    stand(models_run, state, log)
    app = open_page("add")
    assert not app.exception
    assert said in words(app)
    app.button(key="add_resume").click().run()
    assert started[0][:2] == ("models", "add")
    assert started[0][-1] == PLACE


def test_progress_is_a_bar_with_words(models_run: Path):
    """The last loop's; before it the last line."""
    stand(models_run, "stopped", "12:00:00 Attributing new: 3 of 12, 1/s, 9 s left\n")
    found = background.look(models_run)
    assert found is not None
    assert shown_progress(found) == (0.25, "Attributing new: 3 of 12")
    (models_run / background.FOLDER / "log.txt").write_text("")
    found = background.look(models_run)
    assert found is not None
    assert shown_progress(found)[0] == 0


def test_an_added_model_is_shown_beside_its_neighbours(models_run: Path):
    """Named by the stage that added it; a door to the pair, the others unmoved."""
    manifest = json.loads((models_run / "run.json").read_text())
    manifest["stages"]["add"] = {"models": ["root-2"], "finished": "2026-01-01T00:00:00+00:00"}
    (models_run / "run.json").write_text(json.dumps(manifest))
    app = open_page("add")
    assert not app.exception
    assert app.selectbox(key="model").value == "root-2"
    assert len(app.get("plotly_chart")) == 1
    assert "the 19 other models are where they were" in words(app)
    listed = next(d.value for d in app.dataframe if "neighbour" in d.value)
    assert listed["neighbour"].iloc[0].startswith("root-2-")


def test_a_map_that_ships_is_not_changed(models_run: Path, house: Path):
    """The command that copies it, and the copy once it is there."""
    shutil.move(models_run, house / "assets" / "shipped")
    app = open_page("add")
    assert not app.exception
    assert "is not changed" in words(app)
    assert "add_check" not in {button.key for button in app.button}
    assert any(code.value.startswith("cp -r ") for code in app.code)
    shutil.copytree(house / "assets" / "shipped", house / "cache" / "shipped-own")
    data._run_refs.clear()
    app = open_page("add", run="shipped")
    app.button(key="add_switch").click().run()
    assert app.selectbox(key="run").value == "shipped-own"
    assert not app.exception
