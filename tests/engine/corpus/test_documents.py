"""Ids, splits, cleaning and pieces of documents."""

import hashlib

import pytest
from hypothesis import given, strategies as st

from engine.corpus.documents import (
    clean_text,
    document_id,
    make_document,
    same_text_key,
    split_of,
    split_pieces,
    unwrap_paragraphs,
)


def test_an_id_is_the_hash_of_domain_and_text() -> None:
    """Indexes name documents by it, so its definition must never change."""
    expected = hashlib.sha256(b"code\x00x = 1").hexdigest()[:16]
    assert document_id("code", "x = 1") == expected
    assert document_id("docs", "x = 1") != expected


def test_the_held_out_share_is_near_what_was_asked_for() -> None:
    """2,003 ids at 0.3: standard deviation 0.0102, so 0.05 is beyond four of them."""
    ids = [document_id("d", str(i)) for i in range(2_003)]
    held_out = {i for i in ids if split_of(i, 0.3) == "validation"}
    assert abs(len(held_out) / len(ids) - 0.3) < 0.05
    assert {i for i in ids if split_of(i, 0.1) == "validation"} < held_out


def test_cleaning_leaves_one_newline_convention_and_no_control_characters() -> None:
    """NUL bytes and lone surrogates would otherwise break storage and tokenizers."""
    assert clean_text("\ufeffa\r\nb\rc\x00d\x0b\ud800e\n\n") == "a\nb\ncd?e"
    assert clean_text("\n  indented\n") == "  indented"


def test_wrapped_paragraphs_become_lines_and_verse_stays() -> None:
    """Hard-wrapped books would teach line lengths; short lines are the author's own."""
    long_line = "word " * 12
    wrapped = f"{long_line}\n{long_line}\n\nRoses are red,\nviolets are blue"
    assert unwrap_paragraphs(wrapped) == (
        f"{long_line.strip()} {long_line.strip()}\n\nRoses are red,\nviolets are blue"
    )


def test_copies_that_differ_in_case_and_spaces_are_the_same_text() -> None:
    """Duplicates between the splits would flatter the validation loss."""
    assert same_text_key("A  b\nC ") == same_text_key("a b c")
    assert same_text_key("a b c") != same_text_key("a bc")


def test_long_texts_are_cut_at_the_widest_border_there_is() -> None:
    """Paragraphs first, so that a piece reads well on its own."""
    # Paragraphs of 11, 11 and 11 bytes; 25 bytes hold two with their joint of 2.
    assert split_pieces("aaaa bbbb c\n\ndddd eeee f\n\ngggg hhhh i", 25) == [
        "aaaa bbbb c\n\ndddd eeee f",
        "gggg hhhh i",
    ]
    assert split_pieces("One two. Three four.", 12) == ["One two.", "Three four."]
    assert split_pieces("short", 12) == ["short"]


@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=400),
    st.integers(8, 97),
)
def test_pieces_keep_every_character_but_spaces_at_borders(text: str, max_bytes: int) -> None:
    """Nothing of a source may be lost by cutting it."""
    text = clean_text(text)
    pieces = split_pieces(text, max_bytes)
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(len(piece.encode()) <= max_bytes + 2 for piece in pieces)


@pytest.mark.parametrize("share", [0.03, 0.3])
def test_a_document_carries_the_split_of_its_id(share: float) -> None:
    """The split is a function of the text alone, whatever else the corpus holds."""
    document = make_document("law", "a/b.txt", "Whereas …", share)
    assert document.split == split_of(document.doc_id, share)
    assert document.doc_id == document_id("law", "Whereas …")
