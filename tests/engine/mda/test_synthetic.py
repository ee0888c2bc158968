"""Generated rows carry their motif, controls carry the same tokens without it."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from engine.errors import ConfigError
from engine.mda.motif_extraction import SHORTEST_COPY, extract
from engine.mda.motifs import Distribution, Motif, Repeat, Vocabulary
from engine.mda.structure import MARKUP_TAG, covers, nontrivial_spans, table_delimiter, tags
from engine.mda.synthetic import control, generate
from tests.engine.mda.test_motifs import TEXTS, bytes_of, motif_of, periodic


def tokenise(text: str) -> list[int]:
    return list(text.encode())


def text_of(row: np.ndarray) -> str:
    return bytes(row.tolist()).decode()


def spans_of(row: np.ndarray) -> list:
    return nontrivial_spans(row, SHORTEST_COPY)


def repeats(*lengths: int) -> list[Motif]:
    return extract([periodic(n, seed=i) for i, n in enumerate(lengths)])


def test_generated_repeats_have_the_planted_distances_and_tokens():
    """A row of 131 tokens is a new segment of 11, 23 or 53 tokens again and again."""
    motifs = repeats(11, 23, 53)
    rows = generate(motifs, 97, 130, seed=5)
    assert rows.shape == (97, 131)
    found = [spans_of(row) for row in rows]
    assert all(len(spans) == 1 and spans[0].stop == 131 for spans in found)
    counts = Counter(spans[0].distance for spans in found)
    assert set(counts) == {11, 23, 53}
    assert min(counts.values()) > 97 / 3 / 2
    assert set(rows.ravel().tolist()) <= set(motifs[0].vocabulary.tokens.values)
    assert len({row.tobytes() for row in rows}) == 97


def test_controls_have_the_tokens_of_their_row_and_no_repeat():
    """As often each, in another order."""
    motifs = repeats(11, 23, 53)
    rows, controls = (make(motifs, 89, 130, seed=5) for make in (generate, control))
    assert np.array_equal(np.sort(rows), np.sort(controls))
    assert not np.array_equal(rows, controls)
    assert all(covers(spans_of(row), 131) for row in rows)
    assert not any(covers(spans_of(row), 131) for row in controls)


@given(st.integers(0, 2**32 - 1), st.integers(31, 211), st.integers(2, 19))
@settings(max_examples=11)
def test_rows_depend_on_seed_and_number_alone(seed: int, context: int, n: int):
    """Fewer rows are the first of more; another seed gives others."""
    motifs = repeats(11, 23, 17)
    for make in (generate, control):
        rows = make(motifs, n, context, seed)
        assert np.array_equal(rows[:1], make(motifs, 1, context, seed))
        assert not np.array_equal(rows, make(motifs, n, context, seed + 1))


def test_copies_that_end_are_made_with_their_gaps():
    """17 new tokens and a copy of 9 from 13 back, again and again, in a row of any length."""
    tokens = Distribution(tuple(range(5_000)), (1,) * 5_000)
    nothing = Distribution((), ())
    words = Vocabulary(0.0, 0.0, 0.0, 0.0, nothing, nothing, nothing, tokens)
    repeat = Repeat(Distribution(((17, 13, 9),), (4,)), nothing, nothing)
    (row,) = generate([Motif("repeat", 4, 1.0, repeat, words)], 1, 302, seed=3)
    spans = spans_of(row)
    assert [(s.start, s.length, s.distance) for s in spans] == [
        (start, 9, 13) for start in range(17, 303 - 9, 26)
    ]


def test_a_copy_never_reaches_behind_the_start():
    """The second copy goes back further than the first has made room for."""
    tokens = Distribution(tuple(range(5_000)), (1,) * 5_000)
    nothing = Distribution((), ())
    words = Vocabulary(0.0, 0.0, 0.0, 0.0, nothing, nothing, nothing, tokens)
    repeat = Repeat(Distribution(((0, 61, 8), (11, 11, 8)), (1, 1)), nothing, nothing)
    rows = generate([Motif("repeat", 4, 1.0, repeat, words)], 13, 150, seed=3)
    found = [spans_of(row) for row in rows]
    assert all((spans[0].start, spans[0].distance) == (11, 11) for spans in found)
    assert any(span.distance == 61 for spans in found for span in spans)


def agreement(name: str, text: str) -> float:
    """How far a text has the structure of a kind, in [0, 1]; 0 without it."""
    lines = text.split("\n")[:-1]
    if name == "table":
        delimiter = table_delimiter(text)
        return 0.0 if delimiter is None else same([line.count(delimiter) for line in lines])
    if name == "key_value":
        return sum(": " in line for line in lines) / max(1, len(lines))
    if name == "markup":
        return closed([(bool(s), n) for s, n, _, e in MARKUP_TAG.findall(text) if not e])
    if name == "latex":
        parts = text.replace("\\begin{", "\x00<").replace("\\end{", "\x00>").split("\x00")[1:]
        return closed([(part[0] == ">", part[1:].partition("}")[0]) for part in parts])
    return float(name in tags(text))


def same(values: list[int]) -> float:
    return Counter(values).most_common(1)[0][1] / len(values) if values else 0.0


def closed(found: list[tuple[bool, str]]) -> float:
    """Share of closing tags that close the innermost open one."""
    opened: list[str] = []
    good = closing = 0
    for closes, name in found:
        if not closes:
            opened.append(name)
            continue
        closing += 1
        good += bool(opened) and opened.pop() == name
    return good / closing if closing else 0.0


@pytest.mark.parametrize("name", TEXTS)
def test_written_rows_have_their_structure_and_controls_do_not(name: str):
    """On most rows of the one and on hardly any of the other."""
    motifs = [motif_of(name)]
    rows, controls = (make(motifs, 17, 250, 7, tokenise) for make in (generate, control))
    assert rows.shape == controls.shape == (17, 251)
    assert np.array_equal(np.sort(rows), np.sort(controls))
    with_motif = np.mean([agreement(name, text_of(row)) > 0.7 for row in rows])
    without = np.mean([agreement(name, text_of(row)) > 0.7 for row in controls])
    assert with_motif > 0.85
    assert without < 0.15
    assert np.mean([name in tags(text_of(row)) for row in rows]) > 0.85


def test_written_rows_copy_no_word_of_the_samples():
    """The structure is taken over, the content is not."""
    motifs = [motif_of("markup")]
    text = "".join(text_of(row) for row in generate(motifs, 7, 250, 7, tokenise))
    assert not any(word in text for word in ("shelf", "book", "Tides", "Reeds"))


def test_each_row_shows_one_motif_in_proportion_to_the_shares():
    """Three of four samples repeat, one of four is a list."""
    texts = ["\x01"] * 9 + [TEXTS["list"]] * 3
    rows = [periodic(17, seed=i) for i in range(9)] + [bytes_of(TEXTS["list"])] * 3
    motifs = [m for m in extract(rows, texts) if m.name in ("repeat", "list")]
    made = generate(motifs, 199, 130, 11, tokenise)
    share = np.mean([covers(spans_of(row), 131) for row in made])
    assert share == pytest.approx(0.75, abs=0.1)


def test_a_tokeniser_of_long_tokens_gives_rows_as_long():
    """Twelve characters a token: text is written until there are enough."""
    motifs = [motif_of("template")]
    rows = generate(motifs, 3, 101, 2, lambda text: [len(w) for w in text.split("\n")][:-1])
    assert rows.shape == (3, 102)
    assert rows.min() >= 10


def test_what_cannot_be_made_is_refused():
    """No motif, no tokeniser, a tokeniser that drops its text."""
    with pytest.raises(ConfigError, match="no motif"):
        generate([], 3, 10, 0)
    with pytest.raises(ConfigError, match="table are written as text"):
        generate([motif_of("table")], 3, 10, 0)
    with pytest.raises(ConfigError, match="leaves text out"):
        generate([motif_of("table")], 3, 10, 0, lambda text: [1])
