"""Texts of one's own: folders, JSONL, Parquet, and datasets."""

import pandas as pd
import pytest

from engine import store
from engine.config import CorpusConfig
from engine.corpus import user_sources
from engine.corpus.build import build_corpus
from engine.errors import CorpusError


def test_sub_folders_are_domains_and_root_files_take_the_folder_name(
    write_folder, tmp_path
) -> None:
    """The layout of a folder is the plainest way to say what kinds of text it holds."""
    folder = write_folder(
        {
            "root.txt": "At the root",
            "My Poems/a.md": "Roses",
            "My Poems/deep/b.txt": "Violets",
            "logs/c.jsonl": '{"text": "one"}\n{"text": "two"}\n',
            ".hidden/d.txt": "no",
            "logs/e.csv": "no",
        }
    )
    corpus = build_corpus(CorpusConfig(preset=None, path=str(folder)), tmp_path / "corpora")
    assert list(corpus.domains) == ["logs", "my-poems", "texts"]
    assert [corpus.text(i) for i in range(len(corpus))] == [
        "one",
        "two",
        "Roses",
        "Violets",
        "At the root",
    ]
    assert corpus.documents["source"].tolist()[:3] == [
        "logs/c.jsonl:1",
        "logs/c.jsonl:2",
        "My Poems/a.md",
    ]


def test_parquet_is_read_by_column(tmp_path) -> None:
    """Data sets are often Parquet; nulls are skipped."""
    frame = pd.DataFrame({"body": ["first", None, "third"], "n": [1, 2, 3]})
    path = tmp_path / "data.parquet"
    path.write_bytes(store.parquet_bytes(frame))
    config = CorpusConfig(preset=None, path=str(path), text_column="body")
    corpus = build_corpus(config, tmp_path / "corpora")
    assert [corpus.text(i) for i in range(len(corpus))] == ["first", "third"]


def test_difficult_texts_survive(write_folder, tmp_path) -> None:
    """Emoji, right-to-left text, markup and NUL bytes are text like any other."""
    texts = [
        "👩‍👩‍👧 family",
        "שלום עולם",
        "<script>alert(1)</script>",
        "a\x00b",
        "".join(f"{i:05}" for i in range(4_003)),
    ]
    folder = write_folder({f"{i}.txt": text for i, text in enumerate(texts)} | {"empty.txt": " \n"})
    corpus = build_corpus(CorpusConfig(preset=None, path=str(folder)), tmp_path / "corpora")
    read = [corpus.text(i) for i in range(len(corpus))]
    assert read[:4] == ["👩‍👩‍👧 family", "שלום עולם", "<script>alert(1)</script>", "ab"]
    assert "".join(read[4:]) == texts[4]
    assert max(map(len, read)) <= 8_000


def test_a_changed_file_changes_its_domain_and_no_other(write_folder, tmp_path) -> None:
    """Only what changed is built again."""
    folder = write_folder({"a/x.txt": "alpha", "b/y.txt": "beta"})
    config = CorpusConfig(preset=None, path=str(folder))
    before = build_corpus(config, tmp_path / "corpora").domain_fingerprints
    write_folder({"b/y.txt": "gamma"})
    after = build_corpus(config, tmp_path / "corpora").domain_fingerprints
    assert after["a"] == before["a"]
    assert after["b"] != before["b"]


def test_the_byte_limit_is_divided_among_the_domains(write_folder, tmp_path) -> None:
    """Otherwise the first sub-folder could use it up."""
    files = {f"{d}/{i:02}.txt": f"{d}{i:02} " * 11 for d in "ab" for i in range(13)}
    config = CorpusConfig(preset=None, path=str(write_folder(files)), max_bytes=260)
    frame = build_corpus(config, tmp_path / "corpora").documents
    sizes = {d: int(frame.loc[frame["domain"] == d, "n_bytes"].sum()) for d in "ab"}
    assert sizes == {"a": 129, "b": 129}  # 3 documents of 43 bytes each, below 130


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.jsonl": '{"text": "x"}\n{"text": '}, "line 2, is not JSON"),
        (
            {"a.jsonl": '{"body": "x", "n": 1}'},
            "text columns are: body. Name one with --text-column",
        ),
        ({"a.jsonl": '["x"]'}, "is not a JSON object"),
        ({"a.csv": "x"}, "holds no file that ends in .txt"),
        ({"a.txt": " \n "}, "holds no text"),
        ({"a.parquet": "PAR1 cut"}, "cannot be read as Parquet"),
    ],
)
def test_bad_folders_give_one_sentence(write_folder, tmp_path, files, message) -> None:
    """The file, the line and the way out are named."""
    with pytest.raises(CorpusError, match=message):
        build_corpus(CorpusConfig(preset=None, path=str(write_folder(files))), tmp_path / "c")


def test_parquet_whose_pages_are_damaged_gives_one_sentence(tmp_path) -> None:
    """The footer may be whole where the rows are not."""
    folder = tmp_path / "texts"
    folder.mkdir()
    rows = pd.DataFrame({"text": [f"row {number}" * 7 for number in range(101)]})
    content = bytearray(store.parquet_bytes(rows))
    content[20:400] = bytes(380)
    (folder / "a.parquet").write_bytes(bytes(content))
    with pytest.raises(CorpusError, match="not all of its rows can be read"):
        build_corpus(CorpusConfig(preset=None, path=str(folder)), tmp_path / "c")


def test_a_path_that_does_not_exist_is_named(tmp_path) -> None:
    """A typing error must not build an empty corpus."""
    with pytest.raises(CorpusError, match="does not exist"):
        build_corpus(CorpusConfig(preset=None, path=str(tmp_path / "nowhere")), tmp_path)


def test_a_dataset_is_streamed_up_to_the_limit(monkeypatch, tmp_path) -> None:
    """A large dataset must not be read beyond what was asked for."""
    read = []

    def stream(name, config_name):
        for number in range(1_000_003):
            read.append(number)
            yield {"text": f"document {number:07}"}

    monkeypatch.setattr(user_sources, "_stream", stream)
    config = CorpusConfig(preset=None, dataset="HuggingFaceFW/fineweb", max_bytes=101)
    corpus = build_corpus(config, tmp_path)
    assert list(corpus.domains) == ["fineweb"]
    assert len(corpus) == 6  # 16 bytes each
    assert len(read) == 7


def test_a_dataset_that_cannot_be_reached_gives_one_sentence(monkeypatch, tmp_path) -> None:
    """Whatever the library raises, the user reads what to check."""

    def stream(name, config_name):
        yield {"text": "first"}
        raise ConnectionError("offline\nlong trace")

    monkeypatch.setattr(user_sources, "_stream", stream)
    with pytest.raises(CorpusError, match=r"no/where cannot be read \(offline\). Check its id"):
        build_corpus(CorpusConfig(preset=None, dataset="no/where"), tmp_path)


@pytest.mark.parametrize("content", [bytes(range(128, 256)) * 3, "caf\xe9".encode("latin-1")])
def test_a_file_that_is_not_utf_8_is_named_and_not_read_as_noise(tmp_path, content) -> None:
    """A binary file or another encoding must not become training text without a word."""
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(CorpusError, match=r"a\.txt is not UTF-8 text.* Save it as UTF-8"):
        build_corpus(CorpusConfig(preset=None, path=str(tmp_path / "a.txt")), tmp_path / "c")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_honoured(tmp_path, encoding) -> None:
    """Windows editors write these marks; they are no part of the text."""
    (tmp_path / "a.txt").write_bytes("h\xe9llo".encode(encoding))
    corpus = build_corpus(CorpusConfig(preset=None, path=str(tmp_path / "a.txt")), tmp_path / "c")
    assert corpus.text(0) == "h\xe9llo"


def test_one_stray_byte_in_a_long_file_is_let_pass(tmp_path) -> None:
    """A scan with one bad byte is still text."""
    (tmp_path / "a.txt").write_bytes(b"plain words \xff " + b"more plain words " * 101)
    corpus = build_corpus(CorpusConfig(preset=None, path=str(tmp_path / "a.txt")), tmp_path / "c")
    assert corpus.text(0).startswith("plain words \ufffd")
