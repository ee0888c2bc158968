"""Motifs hold what was planted, come back from JSON, and leave out what samples do not show."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from engine.errors import CacheStale, ConfigError
from engine.mda.motif_extraction import extract, text_structure
from engine.mda.motifs import Distribution, read_motif, vocabulary


def bytes_of(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8).astype(np.int64)


def periodic(length: int, row: int = 131, seed: int = 0) -> np.ndarray:
    segment = np.random.default_rng((seed, length)).permutation(211)[:length]
    return np.resize(segment, row)


def test_repeats_hold_the_planted_distances_and_segments():
    """Rows in which a segment of 11, 23 or 53 tokens repeats to the end, and rows without one."""
    lengths = (11, 23, 23, 53)
    rows = [periodic(n, seed=i) for i, n in enumerate(lengths)]
    rows += [np.random.default_rng(i).permutation(211)[:131] for i in range(3)]
    (motif,) = extract(rows)
    assert (motif.name, motif.n_samples, motif.share) == ("repeat", 4, 4 / 7)
    assert motif.structure.distances == Distribution((11, 23, 53), (1, 2, 1))
    assert motif.structure.segments == motif.structure.distances
    assert motif.structure.copies.values == ((11, 11, 0), (23, 23, 0), (53, 53, 0))
    fresh = np.concatenate([row[:n] for row, n in zip(rows, lengths, strict=False)])
    assert sum(motif.vocabulary.tokens.counts) == len(fresh)
    assert set(motif.vocabulary.tokens.values) == set(fresh.tolist())


def test_a_copy_that_ends_keeps_its_length():
    """A segment of 13 tokens, 7 others, the segment again, 5 others, and again."""
    drawn = np.random.default_rng(2).permutation(211)
    segment, between, after = np.split(drawn[:25], [13, 20])
    row = np.concatenate([segment, between, segment, after, segment[:11], drawn[25:27]])
    (motif,) = extract([row] * 3)
    assert motif.structure.copies == Distribution(((5, 18, 11), (20, 20, 13)), (3, 3))
    assert motif.structure.segments == Distribution((11, 13), (3, 3))


TEXTS = {
    "table": "a1;red;30\nb2;red;41\nc3;blue;52\nd4;blue;63\n",
    "key_value": "colour: red\nweight: 12\ncolour: blue\nweight: 31\n",
    "markup": '<shelf no="1"><book>Of Tides</book><book>Of Reeds</book></shelf><lamp/>',
    "latex": "\\begin{proof}\\label{first} By \\cite{other} and \\eqref{bound}. \\end{proof}",
    "list": "3. sow the seeds\n4. water them\n5. reap in autumn\n",
    "template": "at 08:15 gate A opened!\nat 09:40 gate B closed!\nat 11:02 gate C opened!\n",
}


def motif_of(name: str):
    texts = [TEXTS[name]] * 3
    return next(m for m in extract([bytes_of(t) for t in texts], texts) if m.name == name)


def test_a_table_has_its_delimiter_fields_and_what_is_equal_to_the_line_above():
    """Of 9 fields below another one, 2 are equal to it."""
    table = motif_of("table").structure
    assert (table.delimiters.values, table.n_fields.values) == ((";",), (3,))
    assert set(table.shapes.values) == {"a0", "a", "0"}
    assert table.reuse == pytest.approx(2 / 9)


def test_pairs_have_their_separator_and_the_share_of_known_keys():
    """Two of four keys stand earlier in the sample."""
    pairs = motif_of("key_value").structure
    assert (pairs.openings.values, pairs.ends.values) == (("a: ",), ("\n",))
    assert pairs.values == Distribution(("0", "a"), (3, 6))
    assert pairs.reuse == 0.5


def test_markup_has_its_depths_reuse_attributes_and_empty_elements():
    """shelf > book, book; lamp stands alone."""
    markup = motif_of("markup").structure
    assert markup.depths == Distribution((1, 2), (6, 6))
    assert (markup.reuse, markup.alone, markup.attributes) == (0.25, 0.25, 0.25)
    assert markup.contents == Distribution((0, 2), (6, 6))


def test_latex_tells_environments_from_commands():
    """One environment, three commands inside it."""
    latex = motif_of("latex").structure
    assert latex.depths == Distribution((1, 2), (3, 9))
    assert (latex.alone, latex.attributes) == (0.75, 1.0)


def test_a_list_has_its_prefix_and_a_template_its_shape():
    """Numbers count as equal; of 10 words and numbers below others, 5 are equal to them."""
    assert motif_of("list").structure.prefixes.values == ("0.",)
    assert motif_of("list").structure.words == Distribution((2, 3), (3, 6))
    template = motif_of("template").structure
    assert template.shapes.values == ("a 0:0 a a a!",)
    assert template.reuse == pytest.approx(4 / 12)


def test_the_vocabulary_counts_kinds_of_characters():
    """Shares of all characters; words and numbers by length."""
    found = vocabulary(["ab 12, ab\n"], [5, 5, 7])
    assert (found.letters, found.digits, found.punctuation, found.whitespace) == (
        0.4,
        0.2,
        0.1,
        0.3,
    )
    assert found.word_lengths == Distribution((2,), (2,))
    assert found.number_lengths == Distribution((2,), (1,))
    assert found.characters == Distribution(("a", "b"), (2, 2))
    assert found.tokens == Distribution((5, 7), (2, 1))


def test_a_motif_that_few_samples_show_is_left_out():
    """Two samples are no motif."""
    texts = [TEXTS["table"]] * 2 + ["The ferry left late."] * 5
    assert extract([bytes_of(t) for t in texts], texts) == []


def test_a_sample_that_is_one_repeat_shows_nothing_else():
    """A periodic row with a tab and a line end would be a table by its copies."""
    text = "ab\tcdefg\thij\n" * 9
    assert [m.name for m in extract([bytes_of(text)] * 3, [text] * 3)] == ["repeat"]


@pytest.mark.parametrize("name", TEXTS)
def test_a_motif_comes_back_from_its_json(name: str):
    """Tuples, distributions and structures alike."""
    motif = motif_of(name)
    again = read_motif(motif.name, motif.n_samples, motif.share, motif.parameters())
    assert again == motif


@pytest.mark.parametrize(
    ("name", "text"), [("table", "{}"), ("ballad", "{}"), ("table", "none"), ("list", '{"a": 1}')]
)
def test_other_json_is_refused(name: str, text: str):
    """With the way out."""
    with pytest.raises(CacheStale, match="extract the motifs again"):
        read_motif(name, 1, 0.5, text)


def test_rows_and_texts_must_be_as_many():
    with pytest.raises(ConfigError, match="3 rows have 2 texts"):
        extract([periodic(11)] * 3, ["a", "b"])


def test_no_structure_comes_of_texts_that_do_not_show_it():
    assert text_structure("table", ["The ferry left late."]) is None
    mixed = [TEXTS["table"], "The ferry left late.", TEXTS["table"], TEXTS["table"]]
    assert text_structure("table", mixed) == motif_of("table").structure


@given(st.lists(st.integers(0, 9), min_size=1, max_size=29), st.integers(0, 2**32 - 1))
def test_draws_follow_the_counts(found: list[int], seed: int):
    """Only values that were seen; about as often as they were."""
    distribution = Distribution.of(found)
    drawn = distribution.draw(np.random.default_rng(seed), 4001)
    assert set(drawn) <= set(found)
    assert abs(np.mean(drawn) - np.mean(found)) < 0.3
    assert distribution.mean == pytest.approx(np.mean(found))
