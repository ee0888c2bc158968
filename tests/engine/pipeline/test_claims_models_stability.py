"""Claims on stability and pictures, from tables whose figures are known."""

import json

import pandas as pd
import pytest

from engine.claims import NOT_MEASURED
from engine.errors import CacheMissing
from engine.pipeline.claims import compute_claims
from engine.pipeline.claims_models_stability import (
    DEFINITIONS,
    RELATIVES,
    measure_convergence,
    measure_dtype,
    measure_largest,
    measure_lettered_order,
    measure_noise,
    measure_picture,
    measure_projection,
    measure_projection_cost,
    measure_relatives,
    measure_wording,
)
from engine.store import RunWriter


ROWS = [
    ("copy", "loaded again", None, "distance", 0.0, 0.0, 0.0),
    ("rewrite", "heads", None, "distance", 1e-6, 0.0, 2e-6),
    ("rewrite", "norms", None, "distance", 3e-6, None, None),
    ("option_order", "shuffled", None, "distance", 0.0, 0.0, 1e-7),
    ("option_order", "shuffled", None, "agreement", 1.0, None, None),
    ("option_order", "lettered, shuffled", None, "agreement", 0.97, None, None),
    ("template", "short", None, "agreement", 0.8, None, None),
    ("template", "chat", None, "agreement", 0.3, None, None),
    ("template", "chat", None, "finds_itself", 0.9, None, None),
    ("dtype", "bfloat16", None, "finds_itself", 0.96, None, None),
    ("dtype", "bfloat16", None, "cosine", 0.99, 0.95, 1.0),
    ("noise", "0.01", 0.01, "distance", 0.02, 0.01, 0.03),
    ("noise", "0.1", 0.1, "distance", 0.3, 0.2, 0.4),
    ("noise", "1", 1.0, "distance", 1.1, 1.0, 1.2),
    ("noise", "0.01", 0.01, "quotient", 2.0, 1.0, 3.0),
    ("noise", "0.1", 0.1, "quotient", 3.0, 2.0, 4.0),
    ("noise", "1", 1.0, "quotient", 1.1, 1.0, 1.2),
    ("convergence", "16", 16.0, "half_gap", 0.2, 0.1, 0.3),
    ("convergence", "4", 4.0, "half_gap", 0.4, 0.3, 0.5),
    ("dimension", "256", 256.0, "relative_error", 0.09, 0.08, 0.1),
    ("dimension", "256", 256.0, "expected", 0.0884, None, None),
    ("dimension", "256", 256.0, "lineage_auc", 0.89, 0.88, 0.9),
    ("dimension", "none", None, "lineage_auc", 0.9, None, None),
]


@pytest.fixture
def evidence(tmp_path):
    """A run with a few rows, and the path of its table."""
    run = tmp_path / "assets" / "zoo"
    run.mkdir(parents=True)
    writer = RunWriter.create(run, name="zoo", kind="models", identity={})
    writer.begin_stage("stability", 1)
    columns = ["study", "setting", "x", "measure", "value", "low", "high"]
    writer.write_table("model_stability", pd.DataFrame(ROWS, columns=columns).assign(n=11))
    writer.finish_stage("stability", {"n_models": 239, "n_probes": 104})
    writer.begin_stage("layouts", 1)
    shares = {"trustworthiness": [0.95, 0.9], "continuity": [0.9, 0.8]}
    layouts = {"variant": ["able"] * 2, "layout": ["umap", "pca"], **shares}
    layouts |= {"neighbours_kept": [0.5, 0.4], "n_neighbours": [10, 10], "n": [239, 239]}
    writer.write_table("model_layout_results", layouts)
    writer.finish_stage("layouts", {})
    return run / "model_stability.parquet"


def test_figures_follow_from_the_tables_by_hand(evidence):
    """Largest, smallest, ratio, exponent, difference."""
    assert measure_largest(evidence, study="copy").value == 0
    assert measure_largest(evidence, study="rewrite").value == pytest.approx(3e-6)
    only = measure_largest(evidence, study="option_order", settings=("shuffled",))
    assert only.value == pytest.approx(1e-7)
    assert measure_lettered_order(evidence).value == pytest.approx(0.97)
    wording = measure_wording(evidence)
    assert wording.value == pytest.approx(0.3)
    assert wording.control["chat_finds_itself"] == pytest.approx(0.9)
    assert measure_dtype(evidence).value == pytest.approx(0.96)
    assert measure_dtype(evidence).control["bfloat16_cosine_low"] == pytest.approx(0.95)
    noise = measure_noise(evidence)
    assert noise.value == pytest.approx(1.5)  # noise of 1 is no small noise
    assert noise.control["rising"] == 1
    assert measure_convergence(evidence).value == pytest.approx(-0.5)
    projected = measure_projection(evidence)
    assert projected.value == pytest.approx(0.09)
    assert projected.control["expected"] == pytest.approx(0.0884)
    assert measure_projection_cost(evidence).value == pytest.approx(0.01, abs=1e-6)
    picture = measure_picture(evidence.parent / "model_layout_results.parquet")
    assert picture.value == pytest.approx(0.95)
    assert picture.control["pca_trustworthiness"] == pytest.approx(0.9)
    assert "239 models" in picture.setting


def test_relatives_are_judged_by_the_worst_model_of_the_worst_family(tmp_path):
    """One relative that is no neighbour is one too many; origins may be judged by themselves."""
    rounds = [
        {"family": "a", "model": "a", "origin": True, "found": 2, "of": 2},
        {"family": "b", "model": "b", "origin": False, "found": 3, "of": 4},
        {"family": "b", "model": "c", "origin": True, "found": 4, "of": 4},
    ]
    rounds = [{**row, "variant": "able"} for row in rounds]
    setting = {"models": 8, "families": 2, "questions": 24, "style": "texts"}
    record = {"name": RELATIVES, "setting": setting, "rounds": rounds, "machine": "here"}
    path = tmp_path / "measurements.json"
    path.write_text(json.dumps([record]))
    found = measure_relatives(path, variant="able", origins=False)
    assert found.value == 0.75
    assert found.control == {"a": 1.0, "b": 0.75}
    assert measure_relatives(path, variant="able", origins=True).value == 1
    with pytest.raises(CacheMissing, match="with the variant paper"):
        measure_relatives(path, variant="paper", origins=True)


def test_claims_hold_on_these_tables_or_wait_for_theirs(evidence):
    """Every definition is computed without an error, and judged by its own criterion."""
    found = {claim.id: claim for claim in compute_claims(DEFINITIONS, evidence.parents[2])}
    assert len(found) == len(DEFINITIONS)
    assert found["able.copy"].holds is True
    assert found["able.lipschitz"].holds is True
    assert found["able.convergence"].holds is True
    assert found["able.projection"].holds is True
    assert found["able.wording"].holds is False
    assert found["able.local-relatives"].holds == NOT_MEASURED
    assert found["able.batch"].holds == NOT_MEASURED
