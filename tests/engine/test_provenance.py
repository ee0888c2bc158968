"""Fingerprints are equal for equal values and for nothing else."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from engine import provenance


@dataclass(frozen=True)
class Settings:
    n_active: int
    path: Path


def test_a_fingerprint_is_the_start_of_the_hash_of_canonical_json():
    """sha256 of {"a":1,"b":[2]}, worked out once with sha256sum."""
    assert provenance.canonical_json({"b": (2,), "a": 1}) == '{"a":1,"b":[2]}'
    assert provenance.fingerprint({"b": [2], "a": 1}) == "0855bfc20eb6cfaa"


def test_order_of_keys_and_kind_of_sequence_do_not_count():
    """A configuration read back from JSON has the fingerprint it was saved with."""
    settings = Settings(3, Path("a/b"))
    assert provenance.fingerprint(settings) == provenance.fingerprint(
        {"path": "a/b", "n_active": np.int64(3)}
    )
    assert provenance.fingerprint({2, 1}) == provenance.fingerprint([1, 2])


def test_every_change_counts():
    """Text that differs in form, and numbers that differ in type, differ."""
    values = [1, 1.5, "1", "é", "e\u0301", None, True, [1], {"a": 1}, {"a": 2}]
    assert len({provenance.fingerprint(value) for value in values}) == len(values)


def test_what_has_no_json_is_refused():
    """A NaN equals nothing, so it identifies nothing."""
    with pytest.raises(ValueError, match="JSON"):
        provenance.fingerprint(float("nan"))
    with pytest.raises(TypeError):
        provenance.fingerprint(object())


def test_the_fingerprint_of_a_model_ignores_notes(tmp_path: Path):
    """Weights, configuration and tokenizer count; a README does not."""
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"1")
    first = provenance.fingerprint_model(tmp_path)
    (tmp_path / "README.md").write_text("note")
    assert provenance.fingerprint_model(tmp_path) == first
    (tmp_path / "model.safetensors").write_bytes(b"2")
    assert provenance.fingerprint_model(tmp_path) != first
