"""Live work behind the pages: pure, shared, and never loaded without need."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from dashboard import data, examples, service
from dashboard.service import Draw, Off
from engine.errors import CacheMissing
from tests.dashboard.live_pages import scored


PROMPT = "the dog sleeps by the river"


@pytest.fixture
def ref(live_run: Path) -> data.RunRef:
    """The run as a page names it."""
    assert live_run.is_dir()
    return data.run_refs()[0]


def test_importing_the_service_loads_no_torch():
    """A page that only reads Parquet must start fast."""
    code = "import dashboard.service, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_session_gets_the_same_engine(ref: data.RunRef):
    """The weights are in memory once, whoever asks first."""
    with ThreadPoolExecutor(5) as pool:
        engines = list(pool.map(service.engine, [ref] * 5))
    assert all(engine is engines[0] for engine in engines)


def test_a_run_that_is_not_there_is_named(ref: data.RunRef):
    """One plain sentence."""
    assert service.live_engine(ref.name) is service.engine(ref)
    with pytest.raises(CacheMissing, match="nowhere"):
        service.live_engine("nowhere")


@pytest.mark.parametrize("off", [Off(), Off((2, 11), 0.0)])
def test_nothing_switched_off_is_bit_identical(ref: data.RunRef, off: Off):
    """Suppression off is the model as it was trained, not nearly so."""
    tokens = service.next_tokens(ref, PROMPT, -1, 13, off)
    assert (tokens["logit"] == tokens["logit_suppressed"]).all()
    assert (tokens["probability"] == tokens["probability_suppressed"]).all()


def test_readers_with_different_sets_at_once_never_mix(ref: data.RunRef):
    """Many threads, each with its own set, get what each would get alone."""
    active = service.activations(ref, PROMPT).frame["prototype"].unique()[:7]
    sets = [Off((int(p),), 1.0) for p in active] + [Off()]
    alone = [service.engine(ref).next_tokens(PROMPT, -1, 13, service.suppression(o)) for o in sets]
    work = [o for _ in range(6) for o in sets]
    with ThreadPoolExecutor(8) as pool:
        found = list(
            pool.map(
                lambda o: service.engine(ref).next_tokens(PROMPT, -1, 13, service.suppression(o)),
                work,
            )
        )
    for i, frame in enumerate(found):
        expected = alone[i % len(sets)]["probability_suppressed"]
        assert np.array_equal(frame["probability_suppressed"], expected)


def test_texts_differ_by_the_set_alone(ref: data.RunRef):
    """The same draw gives the same text; what is switched off is the only difference."""
    draw = Draw(seed=5, n_tokens=11)
    read = [
        [s.token_id for s in service.generate(ref, PROMPT, draw, off)]
        for off in (Off(), Off(), Off((2, 11, 30), 0.0))
    ]
    assert read[0] == read[1] == read[2]
    other = [s.token_id for s in service.generate(ref, PROMPT, Draw(seed=6, n_tokens=11), Off())]
    assert other != read[0]


def test_side_effects_come_with_random_controls(ref: data.RunRef):
    """One row for the set, one for each control, on the same texts and with the same before."""
    effects = service.side_effects(ref, Off((2, 11, 30), 1.0))
    assert effects["condition"].tolist() == ["suppressed"] + ["random"] * service.N_RANDOM
    assert effects["perplexity_before"].nunique() == 1
    assert effects["n_tokens"].nunique() == 1
    assert np.isfinite(effects[["kl", "perplexity_after", "touched_share"]]).all(axis=None)


def test_an_unwanted_token_is_written_with_its_start_alone(
    ref: data.RunRef, monkeypatch: pytest.MonkeyPatch
):
    """A chart shows no word that the classifier takes for unwanted; hovering tells it."""
    monkeypatch.setattr(service, "scores", scored(0.9))
    assert service.veiled(ref, (" dog", "x")) == ("·d•••", "x•••")
    monkeypatch.setattr(service, "scores", scored(None))
    assert service.veiled(ref, (" cat",)) == ("·cat",)


def test_benign_text_falls_back_on_our_own_passages(ref: data.RunRef):
    """Without a corpus the meter still reads something, and says what."""
    texts, source = service.benign_texts(ref)
    assert texts == examples.BENIGN
    assert "ship with the dashboard" in source
