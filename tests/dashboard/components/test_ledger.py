"""Which claims stand beside a panel."""

import pytest

from dashboard.components.ledger import claims_of


CLAIMS = [
    {"id": "mda.exponent", "evidence": "assets/heads/head_tails.parquet", "value": 6.0},
    {"id": "mda.natural-exponent", "evidence": "assets/natural/head_tails.parquet", "value": 7.0},
    {"id": "mda.cost-exponent", "evidence": "docs/measurements.json", "value": 0.9},
    {"id": "mda.transfer", "evidence": "assets/heads/head_scores.parquet", "value": 0},
    {"id": "mda.natural-transfer", "evidence": "assets/natural/head_scores.parquet", "value": None},
]


@pytest.mark.parametrize(
    ("run", "topics", "ids"),
    [
        ("heads", ("exponent",), ["mda.exponent"]),
        ("natural", ("exponent", "transfer"), ["mda.natural-exponent"]),
        ("heads", ("",), ["mda.exponent", "mda.transfer"]),
        ("head", ("exponent",), []),
        ("heads", ("fer",), []),
    ],
)
def test_a_panel_shows_the_claims_of_its_run_and_topic(run, topics, ids):
    """Of a study beside the main one too; without a figure there is nothing to show."""
    assert [claim["id"] for claim in claims_of(CLAIMS, run, topics)] == ids
