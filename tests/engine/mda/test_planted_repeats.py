"""On a two-layer decoder with an induction head, samples that repeat a segment top its list."""

import numpy as np
import pytest
import torch

from engine.config import PROJECT_ROOT
from engine.lm.loading import load_weights
from engine.mda.influence import score_samples
from engine.mda.settings import ProbeConfig
from engine.mda.tracing import directions_of
from engine.mda.units import UNITS, TracedHeads
from engine.store import read_json


SHIPPED = PROJECT_ROOT / "assets" / "heads"
N, LENGTH = 29, 97


def planted_rows(frequent: np.ndarray) -> tuple[torch.Tensor, np.ndarray]:
    """Rows that repeat a random segment, rows that repeat nothing, mixed; which are which."""
    generator = np.random.default_rng(0)
    repeated = [
        np.resize(generator.choice(frequent, int(generator.integers(8, 41))), LENGTH)
        for _ in range(N)
    ]
    plain = [generator.choice(frequent, LENGTH) for _ in range(N)]
    order = generator.permutation(2 * N)
    return torch.as_tensor(np.stack(repeated + plain)[order]), (order < N)


@pytest.fixture(scope="module")
def frequent() -> np.ndarray:
    facts = read_json(SHIPPED / "run.json")["stages"]["study"]
    return np.asarray(facts["frequent"]["0"], np.int64)


def test_repeated_samples_top_the_list_and_the_other_sign_inverts_it(frequent: np.ndarray):
    """The shipped study's decoder: whose own training planted such rows."""
    model = load_weights({"path": str(SHIPPED / "model")})[0]
    unit, vocabulary = UNITS["induction"], frequent
    every = TracedHeads(unit, vocabulary, ProbeConfig()).measure(model)
    layer, head = divmod(int(every.argmax()), int(model.config.num_attention_heads))
    assert float(every.max()) > 0.4, "the shipped decoder has an induction head"
    assert layer == 1
    rows, planted = planted_rows(frequent)
    traced = TracedHeads(unit, vocabulary, ProbeConfig(), ((layer, head),))
    spaces, directions = directions_of(model, traced, lambda: rows.split(31))

    def ranked(sign: float) -> np.ndarray:
        found = score_samples(model, spaces, [sign * d for d in directions], rows.split(31))
        scores = torch.cat([batch.scores for batch in found]).sum(2)[:, 0].numpy()
        return np.argsort(-scores, kind="stable")

    top = ranked(1.0)
    assert planted[top[:N]].mean() >= 0.9
    assert planted[top[-N:]].mean() <= 0.1
    assert (ranked(-1.0) == top[::-1]).all()
