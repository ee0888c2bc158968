from pathlib import Path

import pytest

from engine.errors import EngineError, PackageMissing
from engine.scoring import classifier
from engine.scoring.classifier import PINNED, ProfanityClassifier, check_files, package_folder


@pytest.fixture(scope="module")
def scorer():
    if not package_folder().is_dir():
        pytest.skip("alt-profanity-check is not installed")
    scorer = ProfanityClassifier()
    yield scorer
    scorer.close()


def test_insults_score_above_kindness(scorer: ProfanityClassifier):
    """Probabilities in [0, 1], one a text, in order; odd texts are scored too."""
    texts = ["what a lovely day", "you stupid idiot, shut up", "", "🌊\x00", "half \ud800"]
    scores = scorer.score(texts)
    assert len(scores) == len(texts)
    assert all(0 <= score <= 1 for score in scores)
    assert scores[1] > 0.8 > 0.2 > scores[0]
    assert scorer.score(texts) == scores
    assert scorer.score([]) == []


def test_the_pickles_are_opened_in_another_process_alone(scorer: ProfanityClassifier):
    """Neither the package nor joblib's unpickler is imported here."""
    import sys

    assert scorer.score(["hello"])
    assert classifier.PACKAGE not in sys.modules


def test_a_file_with_another_hash_is_never_opened(tmp_path: Path):
    """A changed pickle is refused before a process is started."""
    for name in PINNED:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes((package_folder() / name).read_bytes())
    check_files(tmp_path)
    (tmp_path / "data" / "model.joblib").write_bytes(b"changed")
    with pytest.raises(PackageMissing, match=r"model\.joblib is not the file"):
        check_files(tmp_path)


def test_a_package_that_is_not_installed_is_one_sentence(monkeypatch: pytest.MonkeyPatch):
    """With the command that installs it."""
    monkeypatch.setattr(classifier, "PACKAGE", "no_such_package_here")
    with pytest.raises(PackageMissing, match="pip install alt-profanity-check"):
        ProfanityClassifier()


def test_a_process_that_died_is_one_sentence():
    """No traceback of a broken pipe."""
    scorer = ProfanityClassifier()
    scorer.close()
    with pytest.raises(EngineError, match="stopped"):
        scorer.score(["text"])
