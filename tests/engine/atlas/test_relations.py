"""Thresholds, areas, intervals and learned classifiers, against slow and obvious ones."""

from itertools import product

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from engine.atlas.pairs import make_pairs
from engine.atlas.relation_scores import (
    Classifier,
    auc,
    classified,
    fit_logistic,
    fit_threshold,
    permutation_p,
    resampled_auc,
)
from engine.atlas.relations import Comparison, Judge, Result, choose
from engine.errors import ConfigError
from tests.assertions import assert_close
from tests.engine.atlas.made_families import FAMILY, made_pairs, planted


def test_the_threshold_is_the_most_accurate_of_all():
    """Against every cut there is, ties among scores included."""
    generator = np.random.default_rng(0)
    for _ in range(30):
        scores = generator.integers(0, 6, 17) / 3.0
        related = generator.random(17) < 0.5
        threshold = fit_threshold(scores, related)
        best = max(((scores >= cut) == related).mean() for cut in [*scores, 9.0])
        assert ((scores >= threshold) == related).mean() == pytest.approx(best)
    assert fit_threshold(np.array([0.0, 0.0, 1.0]), np.array([False, False, True])) == 0.5


def test_the_area_is_that_of_the_library():
    """With ties; without one of the kinds there is none."""
    generator = np.random.default_rng(1)
    scores = generator.integers(0, 9, 71).astype(float)
    related = generator.random(71) < 0.3
    assert_close(auc(scores, related), roc_auc_score(related, scores), rtol=1e-12)
    assert np.isnan(auc(scores, np.ones(71, bool)))


def test_measures_by_hand():
    """Two of three found, one of four wrong."""
    pairs = make_pairs(FAMILY, ["one", "one-sft", "two", "two-sft"])
    assert pairs.related.tolist() == [False, True, False, False, True, False]
    found = Classifier(np.array([0.8, 0.9, 0.1, 0.2, 0.4, 0.3]), 0.5)
    got = classified(found, pairs, np.arange(6))
    assert got["accuracy"] == pytest.approx(4 / 6)
    assert got["precision"] == pytest.approx(0.5)
    assert got["recall"] == pytest.approx(0.5)
    assert got["f1"] == pytest.approx(0.5)
    assert got["auc"] == pytest.approx(7 / 8)
    nothing = classified(Classifier(found.scores, 2.0), pairs, np.arange(6))
    assert nothing["precision"] == nothing["f1"] == 0


def test_resampled_areas_are_those_of_repeated_pairs():
    """A weighted area equals the area of pairs written down as often as they count."""
    generator = np.random.default_rng(2)
    n_units = 5
    units = np.array([(a, b) for a, b in product(range(n_units), repeat=2) if a <= b])
    related = units[:, 0] == units[:, 1]
    scores = generator.integers(0, 4, len(units)) + 1.0 * related
    low, high = resampled_auc(scores, related, units)
    slow = []
    again = np.random.default_rng([0, 4])
    for counts in again.multinomial(n_units, np.full(n_units, 1 / n_units), size=1000):
        weight = [counts[a] if a == b else counts[a] * counts[b] for a, b in units]
        repeated = np.repeat(np.arange(len(units)), weight)
        area = auc(scores[repeated], related[repeated])
        if np.isfinite(area):
            slow.append(area)
    assert_close([low, high], np.quantile(slow, [0.025, 0.975]), rtol=1e-12)
    assert low <= auc(scores, related) <= high


def test_shuffled_roots_tell_a_planted_relation_from_none():
    """A p-value as small as the shuffles allow, and one that is not small."""
    pairs = made_pairs()
    roots = np.array([int(name[1]) for name in pairs.names])
    one_class = np.zeros(len(roots), np.int64)
    sure = permutation_p(pairs.of(planted(pairs, 4.0)), pairs, roots, one_class, n=199)
    assert sure == 1 / 200
    chance = permutation_p(pairs.of(planted(pairs, 0.0)), pairs, roots, one_class, n=199)
    assert chance > 0.05
    alone = np.arange(len(roots))  # every model a class of its own: nothing can be shuffled
    assert permutation_p(pairs.of(planted(pairs, 4.0)), pairs, roots, alone, n=19) == 1.0


def test_a_learned_classifier_sees_training_units_alone():
    """Changing features of all other pairs changes nothing but their own decisions."""
    pairs = made_pairs()
    generator = np.random.default_rng(3)
    features = generator.normal(size=(len(pairs.frame), 5)) + 2.0 * pairs.related[:, None]
    units = np.arange(len(pairs.roots))[::2]
    inside = pairs.inside(units)
    first = fit_logistic(features, pairs, units, np.random.default_rng(4))
    changed = np.where(inside[:, None], features, -features)
    second = fit_logistic(changed, pairs, units, np.random.default_rng(4))
    assert_close(first[inside], second[inside], rtol=1e-12)
    assert not np.allclose(first[~inside], second[~inside])
    assert auc(first[~inside], pairs.related[~inside]) > 0.9


def test_a_planted_relation_is_found_and_chance_is_not():
    """Every group is there, and figures of a perfect score are perfect."""
    judge = Judge(made_pairs(n_roots=12), n_splits=3)
    pairs = judge.pairs
    perfect = Comparison(planted(pairs, 50.0), lambda: pairs.related[:, None] * 1.0)
    found = {(r.classifier, r.group, r.metric): r for r in judge.judge(perfect)}
    groups = {key[1] for key in found}
    assert groups == {
        "all", "hard", "twin", "hard:twin", "derivation:mild_sft", "derivation:siblings",
        "dev", "held_out", "dev:twin", "held_out:twin",
    }  # fmt: skip
    for (classifier, group, metric), result in found.items():
        expected = 0.0 if metric == "false_positive_rate" else 1.0
        assert result.value == expected, (classifier, group, metric)
    assert found["threshold", "all", "auc"].sd == 0
    held = found["threshold", "held_out:twin", "auc"]
    assert (held.low, held.high, held.sd) == (1.0, 1.0, None)
    assert ("logistic", "dev", "auc") not in found  # it was learned from these very pairs
    blind = {
        (r.group, r.metric): r.value for r in judge.judge(Comparison(planted(pairs, 0.0, seed=5)))
    }
    assert 0.3 < blind["all", "auc"] < 0.7


def test_the_best_on_development_roots_is_chosen():
    """Whatever it does on held-out roots."""

    def of(dev, twins, held):
        rows = (("dev", dev), ("dev:twin", twins), ("held_out", held))
        return [Result("threshold", group, "auc", value, 7) for group, value in rows]

    assert choose({"a": of(0.9, 0.7, 0.1), "b": of(0.8, 0.7, 1.0)}) == "a"
    assert choose({"a": of(0.9, 0.7, 0.1), "b": of(0.8, 0.9, 0.0)}) == "b"


def test_too_small_a_map_is_refused_in_a_sentence():
    """Two families cannot be halved and split."""
    with pytest.raises(ConfigError, match="embed more models"):
        Judge(made_pairs(n_roots=2))
