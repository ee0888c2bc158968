"""The cast to the contract, and what it refuses."""

from pathlib import Path

import hypothesis
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st

from engine import store
from engine.errors import CacheMissing, CacheStale, CorpusError, SchemaMismatch
from engine.schema import TABLES
from tests.strategies import seeds


NEIGHBOURS = TABLES["prototype_neighbours"]
DOMAINS = TABLES["prototype_domains"]
EXAMPLES = TABLES["prototype_examples"]
PROTOTYPES = TABLES["prototypes"]


def neighbours(**changed: object) -> dict[str, object]:
    columns = {"prototype": [1, 0], "rank": [0, 0], "neighbour": [0, 1], "cosine": [0.5, -0.25]}
    return columns | changed


def test_a_table_is_sorted_by_its_key_and_typed_as_the_contract_says(tmp_path: Path):
    """Lookups by key read one row group because of it."""
    path = tmp_path / "t.parquet"
    assert store.write_parquet(path, pd.DataFrame(neighbours()), NEIGHBOURS) == 2
    frame = store.read_parquet(path, NEIGHBOURS)
    assert frame["prototype"].tolist() == [0, 1]
    assert frame["cosine"].tolist() == [-0.25, 0.5]
    assert [str(dtype) for dtype in frame.dtypes] == ["int32", "int16", "int32", "float32"]


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"cosine": [0.5, np.nan]}, "1 empty values"),
        ({"cosine": [0.5, np.inf]}, "not finite"),
        ({"cosine": [0.5, 1.01]}, "above 1"),
        ({"cosine": [0.5, -1.01]}, "below -1"),
        ({"neighbour": [0, -1]}, "below 0"),
        ({"prototype": [1, 1]}, "repeats a key"),
        ({"neighbour": [0, 2**40]}, "must be int32"),
        ({"neighbour": [0, 0.5]}, "must be int32"),
        ({"neighbour": ["a", "b"]}, "must be int32"),
        ({"cosine": ["a", "b"]}, "must be float"),
        ({"extra": [0, 0]}, "unknown: extra"),
        ({"cosine": [0.5]}, "different lengths"),
    ],
)
def test_what_breaks_the_contract_is_not_written(tmp_path: Path, changed: dict, sentence: str):
    """A reader may rely on every rule of the contract."""
    path = tmp_path / "t.parquet"
    with pytest.raises(SchemaMismatch, match=sentence):
        store.write_parquet(path, neighbours(**changed), NEIGHBOURS)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_column_is_named(tmp_path: Path):
    """The message says which column, so that nobody must compare lists."""
    columns = neighbours()
    del columns["cosine"]
    with pytest.raises(SchemaMismatch, match="missing: cosine"):
        store.write_parquet(tmp_path / "t.parquet", columns, NEIGHBOURS)


def test_a_cosine_past_its_bound_by_rounding_is_written(tmp_path: Path):
    """float32 cosines of a vector with itself come out as 1.0000001."""
    store.write_parquet(tmp_path / "t.parquet", neighbours(cosine=[1 + 1e-6, 0]), NEIGHBOURS)


def test_text_keys_are_compared_as_text(tmp_path: Path):
    """The second key column breaks ties of the first, and only those."""
    columns = {
        "prototype": [0, 0, 1],
        "domain": ["b", "a", "a"],
        "n_active_tokens": [1, 2, 3],
        "share": [0.1, 0.2, 0.3],
        "lift": [1.0, 1.0, 1.0],
    }
    path = tmp_path / "t.parquet"
    store.write_parquet(path, columns, DOMAINS)
    assert store.read_parquet(path, DOMAINS)["n_active_tokens"].tolist() == [2, 1, 3]


def test_lists_inside_cells_are_checked_too(tmp_path: Path):
    """A window of activations obeys the bounds of an activation."""
    columns = {name: [0] for name in ("prototype", "band", "rank", "document", "position")}
    columns |= {"activation": [0.5], "window_start": [0]}
    path = tmp_path / "t.parquet"
    store.write_parquet(path, {**columns, "window_activations": [np.array([0.5, 0.0])]}, EXAMPLES)
    assert store.read_parquet(path, EXAMPLES)["window_activations"][0].tolist() == [0.5, 0.0]
    for value, sentence in ((1.5, "above 1"), (np.inf, "not finite")):
        window = [np.array([0.5, value])]
        with pytest.raises(SchemaMismatch, match=sentence):
            store.write_parquet(path, {**columns, "window_activations": window}, EXAMPLES)


def test_an_empty_value_is_kept_where_the_contract_allows_one(synthetic_path: Path):
    """Not measured is not zero."""
    path = synthetic_path / "prototypes.parquet"
    frame = store.read_parquet(path, PROTOTYPES)
    frame.loc[0, "label_score"] = np.nan
    copy = synthetic_path.parent / "copy.parquet"
    store.write_parquet(copy, frame, PROTOTYPES)
    assert np.isnan(store.read_parquet(copy, PROTOTYPES)["label_score"][0])


@hypothesis.given(seeds(), st.integers(0, 41))
def test_any_valid_table_comes_back_as_it_went(
    tmp_path_factory: pytest.TempPathFactory, seed: int, rows: int
):
    """Round trip, rows in any order, frame or Arrow table."""
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "prototype": np.arange(rows, dtype=np.int32),
            "rank": np.zeros(rows, dtype=np.int16),
            "neighbour": generator.integers(0, 2**31, rows, dtype=np.int32),
            "cosine": generator.uniform(-1, 1, rows).astype(np.float32),
        }
    )
    shuffled = frame.sample(frac=1, random_state=seed % 1000)
    path = tmp_path_factory.getbasetemp() / "round.parquet"
    for written in (shuffled, pa.Table.from_pandas(shuffled, preserve_index=False)):
        store.write_parquet(path, written, NEIGHBOURS)
        pd.testing.assert_frame_equal(store.read_parquet(path, NEIGHBOURS), frame)


def test_a_file_that_is_missing_truncated_or_foreign_is_refused(tmp_path: Path):
    """Three failures, three sentences."""
    path = tmp_path / "t.parquet"
    with pytest.raises(CacheMissing, match="does not exist"):
        store.read_parquet(path, NEIGHBOURS)
    store.write_parquet(path, neighbours(), NEIGHBOURS)
    with pytest.raises(SchemaMismatch, match="does not have the columns"):
        store.read_parquet(path, DOMAINS)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(CacheStale, match="damaged"):
        store.read_parquet(path, NEIGHBOURS)
    path.write_bytes(store.parquet_bytes(pd.DataFrame(neighbours())))
    with pytest.raises(SchemaMismatch, match="schema version none"):
        store.read_parquet(path, NEIGHBOURS)


def test_foreign_texts_are_read_a_column_at_a_time(tmp_path: Path):
    """A user's Parquet corpus has columns of its own."""
    path = tmp_path / "user.parquet"
    path.write_bytes(store.parquet_bytes(pd.DataFrame({"body": ["a", None, "ü"], "n": [1, 2, 3]})))
    assert list(store.iter_foreign_column(path, "body")) == ["a", "ü"]
    with pytest.raises(CorpusError, match="it has: body, n"):
        list(store.iter_foreign_column(path, "text"))
    path.write_bytes(b"PAR1 no")
    with pytest.raises(CorpusError, match="cannot be read as Parquet"):
        list(store.iter_foreign_column(path, "body"))


def test_lists_of_real_numbers_come_back_bit_for_bit_and_take_less_room(tmp_path: Path):
    """They are stored byte by byte; NaN and signs stay what they were."""
    spec = TABLES["head_influence"]
    values = np.random.default_rng(0).normal(40, 5, (3_001, 7)).astype(np.float32)
    values[17, 3], values[18, 0] = np.nan, -0.0
    frame = {
        "seed": np.zeros(3_001, int),
        "unit": ["induction"] * 3_001,
        "step": np.arange(3_001),
        "row": np.zeros(3_001, int),
        "influence": list(values),
    }
    path = tmp_path / "t.parquet"
    store.write_parquet(path, frame, spec)
    back = np.stack(list(store.read_parquet(path, spec)["influence"]))
    assert back.tobytes() == values.tobytes()
    plain = store.parquet_bytes(store.read_parquet(path, spec))
    assert path.stat().st_size < 0.95 * len(plain)


def test_numbers_that_vary_take_less_room_and_ones_that_repeat_stay_in_dictionaries(tmp_path: Path):
    """Bit for bit what went in, smaller than with a dictionary of everything."""
    generator = np.random.default_rng(0)
    rows = 5_003
    columns = {
        "prototype": np.arange(rows) // 7,
        "rank": np.arange(rows) % 7,
        "neighbour": generator.integers(0, 3, rows),
        "cosine": (generator.integers(0, 2**12, rows) / 2**12).astype(np.float32),
    }
    path = tmp_path / "t.parquet"
    store.write_parquet(path, columns, NEIGHBOURS)
    frame = store.read_parquet(path, NEIGHBOURS)
    assert np.array_equal(frame["cosine"].to_numpy(), columns["cosine"])
    assert frame["neighbour"].tolist() == columns["neighbour"].tolist()
    group = pq.ParquetFile(path).metadata.row_group(0)
    encodings = {group.column(i).path_in_schema: group.column(i).encodings for i in range(4)}
    assert "BYTE_STREAM_SPLIT" in encodings["cosine"]
    assert "RLE_DICTIONARY" in encodings["neighbour"]
    assert path.stat().st_size < 0.8 * len(store.parquet_bytes(frame))
