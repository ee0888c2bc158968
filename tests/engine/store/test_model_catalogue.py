"""The shipped catalogue of public models: what is read of it, and what is said where it is not."""

from pathlib import Path

import pytest

from engine.errors import CacheMissing, CacheStale
from engine.store import model_catalogue as catalogue


ROWS = """hub_id,family,params_b,parent_hub_id,relation,source
a/base,fam,7.24,,base,list
a/chat,fam,7.24,a/base,instruct,general knowledge
b/tune,"fam, other",,a/chat,finetune,a card
"""
SCORES = """hub_id,architecture,params_b,base_model,type,uploaded,precision,ifeval,bbh,source
a/chat,Llama,7.24,a/base,chat,2024-01-01,bfloat16,0.25,,Leaderboard
"""


@pytest.fixture
def shipped(house: Path) -> Path:
    """A small catalogue among the assets of `house`."""
    folder = house / "assets" / "models"
    folder.mkdir()
    (folder / catalogue.CATALOGUE).write_text(ROWS)
    (folder / catalogue.LEADERBOARD).write_text(SCORES)
    return folder


def test_evidence_is_of_the_parent_and_general_knowledge_is_unchecked(shipped: Path):
    """A row without a parent claims nothing; one from general knowledge was never checked."""
    assert shipped.is_dir()
    found = catalogue.read_model_catalogue().set_index("model")
    assert found["evidence"].to_dict() == {
        "a/base": catalogue.MISSING,
        "a/chat": catalogue.UNCHECKED,
        "b/tune": catalogue.CHECKED,
    }
    assert found.loc["a/base", "n_parameters"] == 7_240_000_000
    assert found.loc["b/tune", "n_parameters"] == 0
    assert found.loc["b/tune", "family"] == "fam, other"


def test_scores_are_joined_by_hub_id_and_missing_ones_stay_missing(shipped: Path):
    """No score is 0 because it was not published, and an empty base is no base."""
    assert shipped.is_dir()
    found = catalogue.read_model_catalogue().set_index("model")
    assert found.loc["a/chat", "ifeval"] == 0.25
    assert found["bbh"].isna().all()
    assert found.loc["a/chat", "declared_base"] == "a/base"
    assert found.loc["a/base", "declared_base"] == ""
    assert found["mmlu_pro"].dtype == "float64"


def test_a_catalogue_without_a_leaderboard_is_whole(shipped: Path):
    """The scores are an addition."""
    (shipped / catalogue.LEADERBOARD).unlink()
    found = catalogue.read_model_catalogue()
    assert len(found) == 3
    assert found[list(catalogue.SCORES)].isna().all().all()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hub_id,family\na/b,c\n", "no column 'params_b'"),
        (ROWS.splitlines()[0] + "\n", "names no model"),
        ("", "no column 'hub_id'"),
    ],
)
def test_a_damaged_catalogue_is_one_sentence(shipped: Path, text: str, said: str):
    """It says what is wrong and what to copy."""
    (shipped / catalogue.CATALOGUE).write_text(text)
    with pytest.raises(CacheStale, match=said):
        catalogue.read_model_catalogue()


def test_bytes_that_are_no_text_are_one_sentence(shipped: Path):
    """A binary file in its place is no traceback."""
    (shipped / catalogue.CATALOGUE).write_bytes(b"\xff\xfe\x00,\x80")
    with pytest.raises(CacheStale, match="cannot be read as CSV"):
        catalogue.read_model_catalogue()


def test_a_catalogue_that_is_not_there_is_named(house: Path):
    """A checkout without assets."""
    assert house.is_dir()
    with pytest.raises(CacheMissing, match=r"able239\.csv"):
        catalogue.read_model_catalogue()


def test_the_shipped_catalogue_has_239_models_and_scores_of_87(monkeypatch: pytest.MonkeyPatch):
    """The list of the paper, and what its README says of it."""
    monkeypatch.delenv("HEADWATER_ASSETS")
    found = catalogue.read_model_catalogue()
    assert len(found) == found["model"].nunique() == 239
    assert found[list(catalogue.SCORES)].notna().any(axis=1).sum() == 87
    assert (found["evidence"] == catalogue.UNCHECKED).sum() == 133
