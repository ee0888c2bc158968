"""Spans against a slow search; tags on texts written for them."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from engine.mda.structure import (
    PROSE,
    TAGS,
    Span,
    line_shape,
    list_prefix,
    repeated_spans,
    table_delimiter,
    tags,
)


def slow_spans(tokens: list[int], min_length: int) -> list[Span]:
    """Try every start, every length and every earlier start; take the longest, again and again."""
    free = [True] * len(tokens)
    found = []
    while True:
        best = None
        for start in range(len(tokens)):
            longest = matching(tokens, start)
            length = 0
            while length < longest[0] and free[start + length]:
                length += 1
            if length >= min_length and (best is None or length > best.length):
                best = Span(start, start + length, longest[1])
        if best is None:
            return sorted(found)
        found.append(best)
        free[best.start : best.stop] = [False] * best.length


def matching(tokens: list[int], start: int) -> tuple[int, int]:
    """Length of the longest run from `start` that also begins earlier, and where it last does."""
    best = (0, 0)
    for earlier in range(start - 1, -1, -1):
        length = 0
        while start + length < len(tokens) and tokens[start + length] == tokens[earlier + length]:
            length += 1
        if length > best[0]:
            best = (length, earlier)
    return best


@given(st.lists(st.integers(0, 3), max_size=23), st.integers(1, 4))
def test_spans_are_those_of_a_slow_search(tokens: list[int], min_length: int):
    """Ties, overlaps and cut spans included: few values make many of them."""
    assert repeated_spans(np.array(tokens, np.int64), min_length) == slow_spans(tokens, min_length)


@given(st.integers(0, 2**32 - 1), st.integers(5, 19), st.integers(0, 17), st.integers(0, 11))
def test_a_planted_repeat_is_found_exactly(seed: int, length: int, gap: int, after: int):
    """All other tokens are different, so that the plant is the only repeat."""
    drawn = np.random.default_rng(seed).permutation(101)[: length + gap + after]
    segment, between, tail = np.split(drawn, [length, length + gap])
    row = np.concatenate([segment, between, segment, tail])
    again = length + gap
    assert repeated_spans(row, 5) == [Span(again, again + length, 0)]
    assert repeated_spans(row, length + 1) == []


def test_a_periodic_row_is_one_span_with_its_period_as_distance():
    """Copy upon copy is one span that overlaps its earlier occurrence."""
    span = repeated_spans(np.tile(np.arange(13), 5)[:53], 2)
    assert span == [Span(13, 53, 0)]
    assert (span[0].length, span[0].distance) == (40, 13)


SNIPPETS = {
    "code": "    if total is None:\n        total = measure(basket[0])\n    return total.round()",
    "markup": '<shelf id="7"><book>Tides</book><book>Reeds</book></shelf><shelf id="8"><book>Su',
    "latex": "so that $\\frac{a}{b} \\leq \\sqrt{c}$ holds, see \\ref{bound} for its proof",
    "table": "iver,12,brown\nheron,90,grey\notter,75,brown\nswift,17,black\nroach,2",
    "list": "hs below.\n- take the ferry\n- walk to the mill\n- ask for Hanna\n- wait there",
    "key_value": '"name": "Ilse", "boats": 3, "moored": true, "harbour": "west", "paid": nu',
    "template": "[08:15] gate three opened\n[09:40] gate seven closed\n[11:02] gate nine opened\n",
    "numbers": "14 17 29 31 388 12 90 7 615 22 81 3 44 900 18 27 6 5 33 71 20",
    "url": "The tables are kept at https://tables.example.org/rivers and grow each spring",
    "repeat": "qz+vRt 8fLm~ppk qz+vRt 8fLm~ppk qz+vRt 8fLm~ppk qz+vRt 8fLm",
}


@pytest.mark.parametrize("tag", SNIPPETS)
def test_a_snippet_has_the_tag_it_was_written_for(tag: str):
    """One for each tag, cut off as windows are."""
    assert tag in tags(SNIPPETS[tag])


PROSE_TEXTS = (
    "They walked, slowly and without a word, along the river; at the bridge, where Hanna had "
    "waited, nobody stood. He said: let us go home.",
    "The council met on 14 May 1988 and agreed (after two votes) that the dam, the lock and the "
    "mill would stay.\nNobody spoke of the ferry.",
    "Ring the bell,\nring it long,\nlet the valley\nhear the song.",
    "",
)


@pytest.mark.parametrize("text", PROSE_TEXTS)
def test_prose_has_no_other_tag(text: str):
    """Commas, dates, colons and verse are no structure."""
    assert tags(text) == (PROSE,)


@pytest.mark.parametrize("segment", ["a=b, k\tq;\n", "- go;x;y\n", "x=1;y=2;z ", "1. a b\n"])
def test_copies_of_one_line_are_a_repeat_and_no_table_list_or_settings(segment: str):
    """What a generated row shows again and again it shows by copying."""
    row = (segment * 20)[3:132]
    assert "repeat" in tags(row)
    assert not {"table", "list", "key_value", "template"} & set(tags(row))


@given(st.text(max_size=150))
def test_any_text_has_tags_in_their_order(text: str):
    """Windows hold anything; `prose` stands alone."""
    found = tags(text)
    assert list(found) == sorted(found, key=TAGS.index)
    assert (PROSE in found) == (len(found) == 1 and found[0] == PROSE)
    assert len(found) >= 1


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a\tb\nc\td\ne\tf", "\t"),
        ("| a | b |\n| c | d |\n| e | f |", "|"),
        ("name    age   town\nIda     31    Ulm\nOtto    7     Bern", "  "),
        ("a,b,c\nd,e\nf,g,h", None),
        ("cut\tof\n1\t2\t3\n4\t5\t6\n7", "\t"),
        (("word " * 40 + "a, b, c\n") * 4, None),
    ],
)
def test_the_delimiter_of_a_table_is_the_one_its_lines_agree_on(text: str, delimiter: str | None):
    """First and last lines may be cut off; long sentences with as many commas are no table."""
    assert table_delimiter(text) == delimiter


def test_prefixes_count_numbers_as_equal_and_need_lines_in_a_row():
    """1., 2., 3. is a list."""
    assert list_prefix("1. sow\n2. water\n3. reap") == "0."
    assert list_prefix("- sow\n- water\n+ reap\n- eat") is None


def test_a_shape_forgets_words_and_numbers_alone():
    """Marks stay, in their order."""
    assert line_shape("  id=17;  name:  Ada") == line_shape("nr=3; town: Ulm") == "a=0; a: a"
    assert line_shape("nr=3, town: Ulm") != line_shape("nr=3; town: Ulm")
