"""Token scores on words: sums are kept, and spaces carry nothing from one word to another."""

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from engine.able.words import character_words, check_offsets, word_map
from engine.errors import UnsupportedModel
from tests.engine.able.tiny_causal import TOKENIZERS, texts, tiny_tokenizer


def spans_of(prompt):
    return tuple(match.span() for match in re.finditer(r"\S+", prompt))


def apply(prompt, offsets, scores, rule="stripped"):
    mapped = word_map(prompt, spans_of(prompt), np.array(offsets), rule)
    words, slot = mapped.apply(np.array(scores, dtype=float)[None])
    return words[0], slot[0]


def test_a_token_with_the_space_before_it_gives_all_to_its_word():
    """ " cat" = (5, 9): a quarter of it would go to the word before by the paper's rule."""
    prompt, offsets, scores = "which cat", [(0, 5), (5, 9)], [2.0, 8.0]
    assert apply(prompt, offsets, scores)[0].tolist() == [2, 8]
    assert apply(prompt, offsets, scores, "paper")[0].tolist() == [4, 6]


def test_tokens_that_span_nothing_have_a_slot_of_their_own():
    """A mark of the beginning is no word; the paper gives it to the first one."""
    words, slot = apply("a b", [(0, 0), (0, 1), (1, 3)], [5.0, 1.0, 2.0])
    assert words.tolist() == [1, 2]
    assert slot == 5
    words, slot = apply("a b", [(0, 0), (0, 1), (1, 3)], [5.0, 1.0, 2.0], "paper")
    assert words.tolist() == [7, 1]
    assert slot == 0


def test_a_token_of_spaces_goes_to_the_word_before_it():
    """Some tokenizers join "Answer:" and the newline, others do not; both give it to the word."""
    alone = apply("Answer:\n", [(0, 7), (7, 8)], [1.0, 3.0])
    joined = apply("Answer:\n", [(0, 8)], [4.0])
    assert alone[0].tolist() == joined[0].tolist() == [4]
    assert apply(" a", [(0, 1), (1, 2)], [1.0, 3.0])[0].tolist() == [4]


def test_a_token_over_several_words_is_shared_by_their_letters():
    """Two letters of "of" and three of "the"."""
    words, _ = apply("x of the", [(0, 1), (1, 8)], [1.0, 5.0])
    assert words.tolist() == [1, 2, 3]


def test_bytes_of_one_character_are_added_up():
    """Four tokens of one emoji all span the same character."""
    words, _ = apply("a 🐈", [(0, 1), (1, 3), (2, 3), (2, 3), (2, 3)], [1.0, 2.0, 3.0, 4.0, 5.0])
    assert words.tolist() == [1, 14]


prompts = st.lists(
    st.tuples(st.text("abé9?", min_size=1, max_size=5), st.sampled_from([" ", "\n", "  "])),
    min_size=1,
    max_size=7,
).map(lambda parts: "".join(word + space for word, space in parts))


@st.composite
def tokenised(draw):
    """A prompt cut at random places, with marks that span nothing, and scores."""
    prompt = draw(prompts)
    cuts = sorted(draw(st.sets(st.integers(0, len(prompt)), max_size=9)) | {0, len(prompt)})
    offsets = list(pairwise(cuts))
    for place in draw(st.lists(st.integers(0, len(offsets)), max_size=2)):
        offsets.insert(place, (0, 0))
    number = st.floats(-100, 100, allow_nan=False)
    scores = draw(st.lists(number, min_size=len(offsets), max_size=len(offsets)))
    return prompt, offsets, scores


@given(tokenised(), st.sampled_from(["stripped", "paper"]))
def test_the_sum_is_kept(case, rule):
    """Words and slot together hold what the tokens held."""
    prompt, offsets, scores = case
    words, slot = apply(prompt, offsets, scores, rule)
    assert abs(words.sum() + slot - sum(scores)) <= 1e-9 * (1 + np.abs(scores).sum())


@given(prompts, st.data())
def test_who_owns_the_space_makes_no_difference(prompt, data):
    """One token a word: with the space before it, after it, or without: the same words."""
    spans = spans_of(prompt)
    scores = data.draw(
        st.lists(st.floats(-9, 9, allow_nan=False), min_size=len(spans), max_size=len(spans))
    )
    starts = [0, *(end for _, end in spans[:-1])]
    before = [(start, end) for start, (_, end) in zip(starts, spans, strict=True)]
    after = [
        (first, last)
        for (first, _), last in zip(spans, [*(s for s, _ in spans[1:]), len(prompt)], strict=True)
    ]
    found = [apply(prompt, offsets, scores)[0] for offsets in (spans, before, after)]
    assert found[0].tolist() == found[1].tolist() == found[2].tolist() == scores


@given(tokenised())
def test_the_map_is_what_its_definition_says(case):
    """Character by character, slowly."""
    prompt, offsets, scores = case
    owner = character_words(prompt, spans_of(prompt))
    slow = np.zeros(len(spans_of(prompt)) + 1)
    for (start, end), score in zip(offsets, scores, strict=True):
        places = [c for c in range(start, end) if not prompt[c].isspace()] or list(
            range(start, end)
        )
        for place in places:
            slow[owner[place]] += score / len(places)
        if not places:
            slow[-1] += score
    words, slot = apply(prompt, offsets, scores)
    np.testing.assert_allclose([*words, slot], slow, atol=1e-9)


@pytest.mark.parametrize("style", TOKENIZERS)
def test_tokenizers_of_every_style_pass_the_check(style: str):
    """Spaces before, after, trimmed or dropped; lower-casing; letters."""
    text = texts()[0]
    found = tiny_tokenizer(style)(text, return_offsets_mapping=True)["offset_mapping"]
    check_offsets(text, np.array(found), style)
    ones = np.ones(len(found))
    words, slot = apply(text, found, ones)
    assert words.min() > 0
    assert words.sum() + slot == pytest.approx(len(found))


def test_the_same_scores_by_letter_give_the_same_words_for_every_tokenizer():
    """A token that weighs as many as its letters: words weigh their letters, by any tokenizer."""
    text = texts()[1]
    expected = [end - start for start, end in spans_of(text)]
    for style in TOKENIZERS:
        found = tiny_tokenizer(style)(text, return_offsets_mapping=True)["offset_mapping"]
        scores = [len(text[start:end].replace(" ", "").replace("\n", "")) for start, end in found]
        words, slot = apply(text, found, scores)
        np.testing.assert_allclose(
            words[1:], expected[1:]
        )  # one style begins with a mark of its own
        assert slot == 0


@pytest.mark.parametrize(
    ("offsets", "reason"),
    [
        ([(0, 3), (1, 2)], "fall back"),
        ([(4, 6), (0, 3)], "fall back"),
        ([(0, 0), (0, 2)], "leave out"),
    ],
)
def test_offsets_that_do_not_fit_are_refused(offsets, reason):
    """Releases of `tokenizers` gave (0, 0) for most tokens of a family of models."""
    with pytest.raises(UnsupportedModel, match=reason):
        check_offsets("cat dog", np.array(offsets), "mine")
