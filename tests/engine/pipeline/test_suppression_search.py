"""What the search reads of each prototype, and what it says when nothing matches."""

import numpy as np
import pytest
import torch

from engine.errors import PromptError
from engine.live import LiveEngine
from engine.pipeline.suppression_ranking import Positions
from engine.pipeline.suppression_search import (
    PrototypeWords,
    domain_log_ratio,
    scored_log_ratio,
)
from engine.store import open_run, read_table
from tests.engine import tiny_models
from tests.engine.pipeline import planted_suppression


WORDS = PrototypeWords(
    [["law", "court"], ["river", "bank"], [], ["rivers", "rivalry"], ["banker", "court"]]
)


def test_a_keyword_is_a_whole_word():
    """Case does not count, parts of words do not match."""
    assert WORDS.keyword(["River"]).tolist() == [False, True, False, False, False]
    assert WORDS.keyword(["court", "bank"]).tolist() == [True, True, False, False, True]


def test_meaning_is_nearer_for_words_that_share_parts():
    """River and rivers do, law does not; without words there is nothing to compare."""
    found = WORDS.meaning(["river"])
    assert found[1] > found[3] > 0
    assert found[0] == found[2] == 0
    assert PrototypeWords([[], []]).meaning(["a"]).tolist() == [0, 0]


def test_what_matches_nothing_names_the_loosest_query_that_does():
    """The longest beginning of any of the words, and how many prototypes it finds."""
    with pytest.raises(PromptError, match=r"'rive' \(2 prototypes have a word that begins so\)"):
        WORDS.require(["riveting", "lawn"], "rivets")
    with pytest.raises(PromptError, match=r"'law' \(1 prototype has a word"):
        WORDS.require(["lawful", "xyz"], "x")
    with pytest.raises(PromptError, match="no word that begins like it"):
        WORDS.require(["zebra"], "zebra")


def test_words_are_those_of_label_signature_and_contexts(tmp_path):
    """Read by hand from the tables of a tiny run."""
    path = planted_suppression.save_indexed_run(tmp_path / "tiny")
    run, codec = open_run(path), LiveEngine.open(str(path)).codec
    corpus = planted_suppression.PlantedCorpus()
    found = PrototypeWords.read(run, corpus, codec, tiny_models.N_PROTOTYPES)
    examples = read_table(run, "prototype_examples").set_index("prototype")
    signatures = read_table(run, "prototype_signatures").set_index("prototype")
    for number in (0, 5, 36):
        own = found.words[number]
        assert {"grammar", "role"} <= set(own)
        row = examples.loc[number]
        ids = codec.encode(corpus.text(int(row["document"])))
        first, last = max(0, row["position"] - 3), row["position"] + 4
        context = "".join(codec.texts(ids)[first:last])
        token = codec.token_text(int(signatures.loc[number, "token_id"]))
        expected = [w for text in (token, context) for w in text.split() if w.isalpha()]
        assert {w for w in expected if len(w) > 1} <= set(own)


def test_the_log_ratio_of_a_domain_is_that_of_its_firing_rates(tmp_path):
    """Expected firings are the overall rate's; one is added to both."""
    run = open_run(planted_suppression.save_indexed_run(tmp_path / "tiny"))
    found = domain_log_ratio(run, "unwanted", tiny_models.N_PROTOTYPES)
    inside = read_table(run, "prototype_domains")["n_active_tokens"].to_numpy()
    total = read_table(run, "prototypes")["n_active_tokens"].to_numpy()
    assert found == pytest.approx(np.log((inside + 1) / (0.4 * total + 1)), abs=1e-4)
    assert not domain_log_ratio(run, "nowhere", tiny_models.N_PROTOTYPES).any()


def test_a_prototype_that_is_active_where_unwanted_words_are_drawn_has_a_high_ratio():
    """0 everywhere there, 1 everywhere else, 2 in both."""
    unwanted = np.array([True, False, True, False, False])
    indices = torch.tensor([[0, 2] if bad else [1, 2] for bad in unwanted])
    positions = Positions(
        torch.full((5, 2), 0.5),
        indices,
        *(torch.zeros(5, 3) for _ in "ab"),
        torch.zeros(5, dtype=torch.long),
    )
    found = scored_log_ratio(positions, unwanted, 4)
    assert found[0] > 0.2
    assert found[1] < -0.1
    assert found[[2, 3]] == pytest.approx([0, 0], abs=1e-6)
    assert not scored_log_ratio(positions, np.zeros(5, bool), 4).any()
