"""The ledger: criteria are read as comparisons and nothing else; failing claims stay."""

import dataclasses
import json

import pytest

from engine.claims import (
    LEDGER,
    NOT_COMPARABLE,
    NOT_MEASURED,
    Claim,
    judge,
    read_claims,
    write_claims,
)
from engine.config import PROJECT_ROOT
from engine.errors import CacheMissing, CacheStale, ConfigError


FIELDS = (
    "id",
    "paper",
    "claim",
    "paper_value",
    "value",
    "unit",
    "interval",
    "control",
    "setting",
    "criterion",
    "evidence",
    "command",
    "holds",
)


def a_claim(**changes):
    plain = Claim(
        id="prism.example",
        paper="a paper",
        claim="A sentence.",
        paper_value=0.94,
        value=0.91,
        unit="cosine",
        interval=(0.9, 0.92),
        control={"random": 0.28},
        setting="two layers",
        criterion="value >= 0.94",
        evidence="assets/demo/coverage.parquet",
        command="make it",
        holds=False,
    )
    return dataclasses.replace(plain, **changes)


@pytest.mark.parametrize(
    ("criterion", "expected"),
    [
        ("value >= 0.5", True),
        ("value > 0.5", False),
        ("value <= 0.5", True),
        ("value == 0.5", True),
        ("0 < value < 1", True),
        ("0.6 < value < 1", False),
        ("low > 0 and high < 1", True),
        ("low > 0 and value >= 0.7", False),
        ("value >= 2 * control.random", True),
        ("value - control.random >= 0.26", False),
        ("value >= -1", True),
        ("value / control.kmeans == 0.5", True),
    ],
)
def test_a_criterion_is_judged_by_hand_worked_arithmetic(criterion, expected):
    """value 0.5, interval (0.4, 0.6), random 0.25, kmeans 1."""
    assert judge(criterion, 0.5, (0.4, 0.6), {"random": 0.25, "kmeans": 1.0}) is expected


@pytest.mark.parametrize(
    "criterion",
    [
        "value",
        "value >=",
        "value >= missing",
        "value >= control.absent",
        "low > 0",
        "__import__('os').system('true') == 0",
        "value >= (lambda: 1)()",
        "value in control",
        "value >= 'a'",
        "value >= True",
        "value or value > 1",
        "value ** 9 > 1",
        "control.random.real > 0",
    ],
)
def test_a_criterion_that_is_no_plain_comparison_is_refused(criterion):
    """A ledger is data: nothing in it may run, and a typing error may not pass as a verdict."""
    with pytest.raises(ConfigError):
        judge(criterion, 0.5, None, {"random": 0.25})


def test_a_failing_claim_is_written_and_read_back_with_its_figure(tmp_path):
    """A row that fails says so; it is never dropped."""
    path = write_claims([a_claim()], tmp_path / "claims.json")
    (read,) = read_claims(path)
    assert read == a_claim()
    assert read.holds is False
    assert read.value == 0.91


def test_rows_hold_exactly_the_fields_of_the_contract(tmp_path):
    """`headwater claims --json` promises these names."""
    path = write_claims([a_claim(interval=None, control=None)], tmp_path / "claims.json")
    (row,) = json.loads(path.read_text())
    assert tuple(row) == FIELDS


def test_a_missing_ledger_names_the_command_that_makes_it(tmp_path):
    """A sentence instead of a traceback."""
    with pytest.raises(CacheMissing, match="headwater claims --update"):
        read_claims(tmp_path / "claims.json")


@pytest.mark.parametrize("text", ["[{}]", '[{"id": "x"}]', "[1]", '{"a": 1}'])
def test_a_foreign_ledger_is_refused(tmp_path, text):
    """It is never read by halves."""
    path = tmp_path / "claims.json"
    path.write_text(text)
    with pytest.raises(CacheStale, match="headwater claims --update"):
        read_claims(path)


def test_the_shipped_ledger_follows_from_its_own_rows():
    """Every verdict is the criterion's, and every figure has its evidence in the repository."""
    rows = read_claims()
    assert len({row.id for row in rows}) == len(rows)
    for row in rows:
        if row.value is None:
            assert row.holds == NOT_MEASURED, row.id
            continue
        assert (PROJECT_ROOT / row.evidence).exists(), row.id
        judged = judge(row.criterion, row.value, row.interval, row.control)
        assert row.holds in (judged, NOT_COMPARABLE), row.id


def test_the_shipped_ledger_has_every_claim_that_is_defined():
    """A claim that was written down cannot be left out later."""
    from engine.cli.claims import definitions

    defined = definitions()
    rows = {row.id: row for row in read_claims(LEDGER)}
    assert list(rows) == [definition.id for definition in defined]
    for definition in defined:
        assert rows[definition.id].criterion == definition.criterion
