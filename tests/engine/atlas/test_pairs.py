"""Pairs, balanced draws and splits that tear no family."""

import numpy as np
import pytest

from engine.atlas.lineage import Lineage
from engine.atlas.pairs import _by_kind, balanced, halves, make_pairs, random_splits
from engine.errors import ConfigError
from tests.engine.atlas.made_families import FAMILY, base, made_pairs


NAMES = [card.name for card in FAMILY.cards]


def test_every_pair_of_known_relation_stands_once():
    """Eleven models, of which nothing is known of one: 10 * 9 / 2 pairs, levels by hand."""
    pairs = make_pairs(FAMILY, NAMES)
    assert len(pairs.frame) == 45
    assert "nobody" not in set(pairs.frame["a"]) | set(pairs.frame["b"])
    level = {
        (a, b): v for a, b, v in zip(*(pairs.frame[c] for c in "ab"), pairs.level, strict=True)
    }
    assert level["one", "one-sft"] == "positive"
    assert level["one", "two"] == "hard"
    assert level["one", "other"] == "medium"  # the same tokenizer
    assert level["one", "far"] == "easy"
    edges = dict(
        zip(zip(*(pairs.frame[c] for c in "ab"), strict=True), pairs.frame["edges"], strict=True)
    )
    assert edges["one", "one-chain"] == 2
    assert edges["one", "far"] == 0


def test_models_that_are_not_embedded_make_no_pairs_but_join_others():
    """Two children of a base that could not be embedded are still siblings."""
    pairs = make_pairs(FAMILY, ["one-sft", "one-lora", "far"])
    assert pairs.related.tolist() == [True, False, False]
    assert pairs.kind[0] == "siblings"


def test_lineage_of_one_kind_alone_is_refused():
    """There is nothing to tell apart."""
    with pytest.raises(ConfigError, match="no related or no unrelated pair"):
        make_pairs(Lineage((base("a"), base("b"))), ["a", "b"])


def test_draws_are_balanced_and_keep_the_shares():
    """As many unrelated pairs as related ones; half hard, where there are so many."""
    pairs = made_pairs()
    everything = np.ones(len(pairs.frame), bool)
    drawn = balanced(pairs, everything, np.random.default_rng(0))
    assert len(set(drawn.tolist())) == len(drawn)
    related = pairs.related[drawn]
    assert related.sum() == pairs.related.sum() == (~related).sum()
    levels = pairs.level[drawn[~related]].tolist()
    assert levels.count("hard") == round(0.5 * related.sum())
    assert levels.count("medium") == round(0.3 * related.sum())


def test_kinds_take_turns():
    """The rarest kind comes first as often as the most frequent."""
    kinds = np.array(["twin"] * 17 + ["name"] * 3, dtype=object)
    order = _by_kind(kinds, np.random.default_rng(0))
    assert sorted(order.tolist()) == list(range(20))
    assert sorted(kinds[order[:6]].tolist()) == ["name"] * 3 + ["twin"] * 3


def test_splits_tear_no_unit_and_hold_a_third_of_the_roots():
    """Roots of the test part never appear in the training part, nor do their twins."""
    pairs = made_pairs(n_roots=13)
    assert sorted(pairs.roots.tolist()) == [1] * 9 + [2, 2]
    seen = []
    for train, test in random_splits(pairs, 7):
        assert not set(train.tolist()) & set(test.tolist())
        assert len(train) + len(test) == len(pairs.roots)
        assert 13 / 3 <= pairs.roots[test].sum() <= 13 / 3 + 2
        assert not (pairs.inside(train) & pairs.inside(test)).any()
        seen.append(tuple(test.tolist()))
    assert len(set(seen)) > 1
    assert seen == [tuple(test.tolist()) for _, test in random_splits(pairs, 7)]


def test_each_half_gets_half_of_the_twins():
    """Otherwise a variant could be chosen on no twins, or reported on none."""
    pairs = made_pairs()
    dev, held = halves(pairs)
    assert sorted([*dev.tolist(), *held.tolist()]) == list(range(len(pairs.roots)))
    assert (pairs.roots[dev] > 1).sum() == (pairs.roots[held] > 1).sum() == 1
