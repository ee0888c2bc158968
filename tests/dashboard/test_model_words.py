"""What moves the distance between two models: shares against the long vectors themselves."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from dashboard import model_words
from dashboard.components.pair_words import lines_of
from dashboard.model_words import ModelWords
from engine.able.files import compact, expand
from engine.errors import CacheStale


ANSWERS, SOURCES = (1, 0, 2), ("a", "b", "a")
SHAPES = ((3, 5), (2, 7), (5, 2))
"""Options and words of each probe; no two sizes alike."""


def probes() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "probe": range(3),
            "source": SOURCES,
            "answer": ANSWERS,
            "options": [["o"] * n for n, _ in SHAPES],
            "words": [("w",) * n for _, n in SHAPES],
        }
    )


def some(seed: int, *missing: int) -> ModelWords:
    generator = np.random.default_rng(seed)
    blocks = {p: generator.normal(size=shape) for p, shape in enumerate(SHAPES)}
    kept = {p: block for p, block in blocks.items() if p not in missing}
    slots = {p: generator.normal(size=len(block)) for p, block in kept.items()}
    return ModelWords(kept, slots, dict.fromkeys(kept, 0.0))


def long_vector(words: ModelWords, variant: str) -> np.ndarray:
    """The slow way: every column of every probe, then its length taken away."""
    parts = []
    for probe, answer in enumerate(ANSWERS):
        block = words.blocks.get(probe, np.zeros(SHAPES[probe])).copy()
        if variant == "contrast":
            block = block - block.mean(0)
        if variant in ("square_root", "contrast"):
            block = np.sign(block) * np.sqrt(np.abs(block))
        if variant == "correct_only":
            block[[o for o in range(len(block)) if o != answer]] = 0
        if variant == "per_probe":
            block = block / (np.linalg.norm(block) or 1)
        parts.append(block.ravel())
    whole = np.concatenate(parts)
    return whole / np.linalg.norm(whole)


@pytest.mark.parametrize("variant", model_words.UNPROJECTED)
@pytest.mark.parametrize("missing", [(), (1,)])
def test_shares_of_probes_add_up_to_the_squared_difference(variant: str, missing: tuple[int, ...]):
    """2 - 2 cos of the long unit vectors, probe by probe; one that a model skipped counts as 0."""
    a, b = some(1, *missing), some(2)
    found = model_words.probe_shares(a, b, probes(), variant)
    u, v = long_vector(a, variant), long_vector(b, variant)
    assert found["difference"].sum() == pytest.approx(2 - 2 * u @ v)
    assert found["product"].sum() == pytest.approx(u @ v)
    assert found["share"].sum() == pytest.approx(1)
    ends = np.cumsum([0, *(n * m for n, m in SHAPES)])
    for probe, (start, end) in enumerate(pairwise(ends)):
        gap = u[start:end] - v[start:end]
        assert found["difference"][probe] == pytest.approx(gap @ gap)


def test_the_same_model_differs_nowhere():
    """No share of nothing, and every cosine 1."""
    found = model_words.probe_shares(some(1), some(1), probes(), "able")
    assert found["difference"].to_numpy() == pytest.approx(0, abs=1e-12)
    assert found["cosine"].to_numpy() == pytest.approx(1)


def test_a_probe_whose_words_are_kept_of_neither_is_left_out():
    """A published map keeps the words of some probes."""
    found = model_words.probe_shares(some(1, 1), some(2, 1), probes(), "able")
    assert found["probe"].tolist() == [0, 2]
    assert found["share"].sum() == pytest.approx(1)


def test_domains_add_up_their_probes():
    """Shares and lengths are sums, the cosine is of the sums."""
    shares = model_words.probe_shares(some(1), some(2), probes(), "able")
    found = model_words.domain_shares(shares).set_index("source")
    own = shares[shares["source"] == "a"]
    assert found.loc["a", "n"] == 2
    assert found.loc["a", "share"] == pytest.approx(own["share"].sum())
    length = np.sqrt(own["length_a"].sum() * own["length_b"].sum())
    assert found.loc["a", "cosine"] == pytest.approx(own["product"].sum() / length)


def test_stored_words_are_read_as_the_engine_wrote_them():
    """The same levels, and no word farther off than is said."""
    exact = np.random.default_rng(5).normal(size=41) ** 3
    scale, values = compact(exact)
    found = model_words.expand(scale, values)
    assert found == pytest.approx(expand(scale, values))
    assert np.abs(found - exact).max() <= model_words.largest_rounding(scale)


def test_rows_of_words_become_blocks_and_others_are_refused():
    """By option, then by word; a row of another prompt is stale."""
    row = {"model": "m", "probe": 0, "scale": 127.0**2, "values": np.arange(15), "slot": [1, 2, 3]}
    found = model_words.model_words(pd.DataFrame([row]), probes())
    assert found.blocks[0] == pytest.approx((np.arange(15.0) ** 2).reshape(3, 5))
    with pytest.raises(CacheStale, match="embed the model again"):
        model_words.model_words(pd.DataFrame([row | {"probe": 1}]), probes())


def test_sums_add_up_by_hand():
    """Raises + lowers = words; words + slot = total."""
    block = np.array([[1.0, -3.0, 0.5], [0.0, 2.0, 0.0]])
    found = model_words.totals(block, np.array([0.25, -1.0]))
    assert found.iloc[0].tolist() == [1.5, -3.0, -1.5, 0.25, -1.25]
    assert found.iloc[1].tolist() == [2.0, 0.0, 2.0, -1.0, 1.0]
    assert model_words.against_others(block).sum(0) == pytest.approx(0)


def test_lines_of_a_prompt_end_where_it_breaks_and_blank_ones_are_skipped():
    """Words are the prompt's words, whatever spaces stand between them."""
    prompt = "One  two\n\n three\u00a0x \nAnswer: "
    found = lines_of(prompt)
    assert [word for word, _ in found] == list(model_words.prompt_words(prompt))
    assert [ends for _, ends in found] == [0, 1, 0, 1, 0]
