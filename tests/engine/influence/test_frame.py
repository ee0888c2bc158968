"""The frame refuses what does not fit, and the draw is balanced, seeded and inside documents."""

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from engine.corpus.build import Corpus
from engine.corpus.shards import TokenShards
from engine.errors import CorpusError, PromptError
from engine.influence.frame import Sequences, count_windows, draw_sequences, sequences_from_rows
from tests.engine.influence.small_sequences import LENGTH, random_sequences


class PlantedCorpus(Corpus):
    """Twelve documents: a long one, many short ones, and one held out."""

    path = Path("planted")
    lengths = (101, 13, 11, 12, 13, 17, 3, 41, 12, 19, 31, 23)
    documents = pd.DataFrame(
        {
            "document": range(12),
            "domain": ["long"] * 5 + ["short"] * 4 + ["tiny"] * 3,
            "split": ["train"] * 11 + ["validation"],
        }
    )

    def __init__(self) -> None:
        pass


class PlantedShards(TokenShards):
    """Token p of document i is 1000 i + p + 1, so a window tells where it is from."""

    separator = 0

    def __init__(self) -> None:
        self.corpus = PlantedCorpus()
        self.offsets = np.cumsum([0, *(n + 1 for n in self.corpus.lengths)])

    def run(self, document: int) -> np.ndarray:
        return np.r_[0, 1000 * document + 1 + np.arange(self.corpus.lengths[document])]


@pytest.mark.parametrize("n", [1, 7, 15])
def test_a_window_lies_in_one_document_and_overlaps_no_other(n: int):
    """Every token is where start and document say, no place twice, separator in front."""
    drawn = draw_sequences(PlantedShards(), n, length=12, split="train", seed=5)
    place = 1000 * drawn.document[:, None] + 1 + drawn.start[:, None] + np.arange(11)
    assert (drawn.tokens[:, 1:] == place).all()
    assert (drawn.tokens[:, 0] == 0).all()
    assert len(np.unique(drawn.tokens[:, 1:])) == n * 11
    assert drawn.predicted.all()
    assert (drawn.length == 12).all()


def test_domains_share_the_draw_and_documents_take_turns():
    """What the small domain cannot give comes from the others; no document gives a second early."""
    shards = PlantedShards()
    drawn = draw_sequences(shards, 12, length=12, split="train", seed=5)
    assert Counter(drawn.domain) == {"long": 5, "short": 4, "tiny": 3}
    assert len(set(drawn.document[drawn.domain == "long"])) == 5
    assert set(draw_sequences(shards, 3, length=12, split="train", seed=5).domain) == {
        "long",
        "short",
        "tiny",
    }


def test_the_seed_alone_decides_the_draw():
    """The same seed gives the same windows, another seed others; order is by document."""
    shards = PlantedShards()
    draw = [draw_sequences(shards, 6, length=12, split="train", seed=seed) for seed in (5, 5, 6)]
    assert draw[0].fingerprint == draw[1].fingerprint != draw[2].fingerprint
    order = list(zip(draw[0].document, draw[0].start, strict=True))
    assert order == sorted(order)


def test_held_out_documents_are_drawn_for_queries_only():
    """The split decides, and a domain can be asked for."""
    shards = PlantedShards()
    assert count_windows(shards, 12, "validation") == 2
    held_out = draw_sequences(shards, 2, length=12, split="validation", seed=0)
    assert set(held_out.document) == {11}
    short = draw_sequences(shards, 5, length=12, split="train", seed=0, domains=["short"])
    assert set(short.domain) == {"short"}


def test_more_sequences_than_there_are_is_said():
    """The sentence names how many there are."""
    with pytest.raises(CorpusError, match=r"hold 2; ask for 1 to 2"):
        draw_sequences(PlantedShards(), 3, length=12, split="validation", seed=0)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"length": np.full(5, 1)}, "Sequence 0 has 1 tokens"),
        ({"tokens": np.full((5, LENGTH), -3)}, "Token -3"),
        ({"predicted": np.zeros((5, LENGTH - 1), bool)}, "predicts no token"),
        ({"predicted": np.ones((5, LENGTH - 1), bool)}, "its padding"),
    ],
)
def test_sequences_that_do_not_fit_are_refused(change: dict[str, np.ndarray], says: str):
    """One sentence a fault."""
    whole = random_sequences(5, seed=1)
    names = ("tokens", "predicted", "domain", "document", "start", "length")
    parts = {name: getattr(whole, name) for name in names}
    with pytest.raises(PromptError, match=says):
        Sequences(**{**parts, **change})


def test_rows_become_sequences_and_slices_keep_their_parts():
    """Padding predicts nothing; a mask of ours is kept; the order counts in the fingerprint."""
    made = sequences_from_rows([[0, 5, 6, 7], [0, 8]], [[False, True, True], [True]], domain="x")
    assert made.length.tolist() == [4, 2]
    assert made.predicted.tolist() == [[False, True, True], [True, False, False]]
    assert made.n_predicted == 3
    assert made[1:].tokens.tolist() == [[0, 8, 0, 0]]
    assert made.fingerprint != made[np.array([1, 0])].fingerprint
    assert [len(made[rows]) for rows in made.batches(1)] == [1, 1]
