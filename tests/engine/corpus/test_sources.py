"""Readers of package files, on small files in each package's form."""

import json

import pytest

from engine.corpus.presets import STDLIB, Part
from engine.corpus.sources import READERS, read_part
from engine.errors import CorpusError


def read(reader: str, content: str, **options: str) -> list[str]:
    return list(READERS[reader](content.encode(), options))


def test_orange_tables_have_three_header_lines() -> None:
    """Names, types and flags are not texts."""
    table = 'Title\tContent\r\nstring\tstring\r\n\tinclude=True\r\nA\tOnce "upon\r\nB\tThere was'
    assert read("tab", table, column="Content") == ['Once "upon', "There was"]


def test_line_separators_inside_json_do_not_cut_a_row() -> None:
    """U+2028 is legal inside a JSON string and no end of line."""
    assert read("jsonl", '{"t": "a\u2028b"}\n\n{"t": "c"}\n', column="t") == ["a\u2028b", "c"]


def test_toxicity_keeps_rows_above_one_half_on_either_score() -> None:
    """Both toxic and sexually explicit sentences belong to the unwanted domain."""
    rows = [("mild", 0.4, 0.5), ("toxic", 0.6, 0.1), ("explicit", 0.2, 0.9)]
    lines = [json.dumps({"text": t, "toxicity": x, "sexually_explicit": s}) for t, x, s in rows]
    assert read("toxicity", "\n".join(lines)) == ["toxic", "explicit"]


def test_the_longest_string_of_a_module_is_parsed_and_never_run() -> None:
    """Package code must not be executed; backticks stand for apostrophes there."""
    module = 'raise SystemExit\nX = ["short", "In the beginning God`s Spirit"]'
    assert read("longest_string", module) == ["In the beginning God's Spirit"]


def test_help_topics_come_in_order_of_their_keys() -> None:
    """The order must not depend on how the module was generated."""
    assert read("help_topics", "topics = {'b': 'second', 'a': 'first'}") == ["first", "second"]


def test_conversations_are_lines_with_blank_lines_between_and_no_repeats() -> None:
    """YAML marks, quotes and duplicate dialogues are not chat."""
    content = (
        "categories:\n- x\nconversations:\n- - Hi\n  - 'It''s me'\n- - Hi\n  - 'It''s me'\n"
        "- - Long\n  - |\n    first\n    second\n"
    )
    assert read("conversations", content) == ["Hi\nIt's me\n\nLong\nfirst second"]


def test_abstracts_lose_the_numbers_of_their_paragraphs() -> None:
    """The package numbers paragraphs; the articles do not."""
    row = json.dumps({"passage": "Context (1): Aim.\nContext (2): Result."})
    assert read("abstracts", row, column="passage") == ["Aim.\nResult."]


def test_a_dictionary_entry_names_its_words_and_part_of_speech() -> None:
    """Word counts are hexadecimal and adjectives carry syntactic marks in the source."""
    entry = "00002 03 a 02 big(p) 0 very_large 0 001 ! 0 n 0 | of size  "
    assert read("wordnet", f"  1 licence | text\n{entry}\n") == [
        "big, very large (adjective): of size"
    ]


def test_mails_keep_subject_and_body_and_html_is_left_out() -> None:
    """Other headers hold addresses; HTML mails would be markup."""
    plain = json.dumps({"text": "To: a@b\nSubject: Hi\nX: y\n\nBody\n\nEnd"})
    assert read("mail", plain) == ["Subject: Hi\n\nBody\n\nEnd"]
    assert read("mail", json.dumps({"text": "Subject: S\n\n<HTML><td>x</td>"})) == []


def test_a_package_file_in_another_form_gives_one_sentence(fake_package) -> None:
    """A new release with other columns must not end in a KeyError."""
    folder = fake_package("one", "one-1.0.tar.gz", {"data/x.jsonl": '{"other": "text"}'})
    part = Part("one", "data/*.jsonl", "jsonl", {"column": "passage"})
    with pytest.raises(CorpusError, match="not in the form this version reads"):
        list(read_part(part, folder))


def test_excluded_files_are_not_read(fake_package) -> None:
    """Texts in copyright lie beside free ones in one package."""
    folder = fake_package("one", "one-1.0.tar.gz", {"t/a.txt": "free", "t/b.txt": "not"})
    part = Part("one", "t/*.txt", "plain", exclude=("*b.txt",))
    assert list(read_part(part, folder)) == [("t/a.txt", "free")]


def test_the_standard_library_is_read_without_an_archive(tmp_path) -> None:
    """The tiny preset must work offline."""
    part = Part(STDLIB, "json/decoder.py", "plain")
    ((path, text),) = read_part(part, tmp_path)
    assert path == "json/decoder.py"
    assert "class JSONDecoder" in text
