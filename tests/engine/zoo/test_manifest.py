"""The plan of the zoo: exact counts, every kind of hard negative, parents before children."""

from collections import Counter

import pytest

from engine.errors import ConfigError
from engine.zoo.architectures import ARCHITECTURES
from engine.zoo.facts import DOMAINS
from engine.zoo.manifest import DERIVATIONS, DISTILLED, HEAVY, Plan
from engine.zoo.planning import SLICE_ROOTS, SLICE_SIZE, make_plan, make_slice, origin
from engine.zoo.roots import twin_groups
from engine.zoo.tokenizers import TOKENIZERS
from engine.zoo.worlds import MIXES


@pytest.fixture(scope="module")
def plan():
    return make_plan()


def test_the_full_plan_has_the_counts_of_the_recipe(plan):
    """239 models: 36 roots and every derivation as often as the table says."""
    found = Counter(spec.derivation for spec in plan.models)
    wanted = {name: count for name, (count, _) in DERIVATIONS.items()}
    assert sum(wanted.values()) == 203
    assert found == {"root": 36, **wanted}
    assert len({spec.id for spec in plan.models}) == 239


def test_sizes_stand_in_the_planned_ratio(plan):
    """8 : 14 : 10 : 4, so that size tells little about lineage."""
    assert Counter(root.size for root in plan.roots) == {"XS": 8, "S": 14, "M": 10, "L": 4}


def test_every_architecture_tokenizer_and_mix_is_used(plan):
    """What no root uses would be dead code."""
    assert {root.architecture for root in plan.roots} == set(ARCHITECTURES)
    assert {root.tokenizer for root in plan.roots} == set(TOKENIZERS)
    assert {root.mix for root in plan.roots} == set(MIXES)
    assert sum(root.architecture == "mamba" for root in plan.roots) == 1


def test_half_of_the_roots_are_twins_that_differ_in_one_seed(plan):
    """Six pairs and two triplets; a twin differs in its weights or in its order, not in both."""
    groups = twin_groups(list(plan.roots))
    assert sorted(map(len, groups)) == [2] * 6 + [3] * 2
    for first, *others in groups:
        for other in others:
            assert (first.architecture, first.tokenizer, first.mix, first.size) == (
                other.architecture,
                other.tokenizer,
                other.mix,
                other.size,
            )
            assert (first.seed == other.seed) != (first.order_seed == other.order_seed)


@pytest.mark.parametrize("kind", ["twin", "architecture", "data", "size", "name"])
def test_groups_of_roots_share_what_they_say(plan, kind):
    """Recomputed pair by pair from the attributes."""
    fields = {
        "twin": (("architecture", "tokenizer", "mix", "size"), ("id",)),
        "architecture": (("tokenizer", "mix"), ("architecture",)),
        "data": (("architecture", "tokenizer"), ("mix",)),
        "size": (("architecture", "tokenizer", "mix"), ("size",)),
        "name": (("family",), ("tokenizer", "mix")),
    }[kind]
    shared, different = fields

    def pick(root, names):
        return [getattr(root, name) for name in names]

    for root in plan.roots:
        rivals = [
            other
            for other in plan.roots
            if pick(other, shared) == pick(root, shared)
            and pick(other, different) != pick(root, different)
        ]
        marked = [group for group in root.groups if group.startswith(f"{kind}:")]
        assert len(marked) == bool(rivals)
    assert any(group.startswith(f"{kind}:") for root in plan.roots for group in root.groups)


def test_heavy_fine_tuning_makes_different_roots_alike(plan):
    """Four roots a domain, all different, two of them twins."""
    by_group = {}
    for spec in plan.of(HEAVY):
        by_group.setdefault(spec.groups[0], []).append(spec)
    assert [len(found) for found in by_group.values()] == [4] * 5
    for found in by_group.values():
        roots = [plan.by_id[spec.roots[0]] for spec in found]
        assert len({root.id for root in roots}) == 4
        assert any(len(group) > 1 for group in twin_groups(roots))


def test_students_carry_no_weights_of_their_teacher(plan):
    """Each is a root of its own, with the teacher as parent, half of another make."""
    students = plan.of(DISTILLED)
    assert all(s.roots == (s.id,) and not s.copies_weights for s in students)
    kinds = Counter(s.variant for s in students)
    assert kinds == {"same": 6, "architecture": 4, "tokenizer": 2}
    for student in students:
        teacher = plan.by_id[student.parents[0]]
        assert (student.architecture == teacher.architecture) == (student.variant != "architecture")
        assert (student.tokenizer == teacher.tokenizer) == (student.variant != "tokenizer")


def test_targets_are_new_to_the_root(plan):
    """A mild fine-tuning on a domain of the root's own mix would teach nothing."""
    for spec in plan.models:
        if spec.derivation in ("mild_sft", "chained_sft", "lora", "vocabulary"):
            assert spec.target in DOMAINS
            assert spec.target not in MIXES[spec.mix]


def test_the_same_seed_gives_the_same_plan(plan):
    """And another seed another one."""
    assert make_plan() == plan
    assert make_plan(1) != plan


def test_a_plan_refuses_a_child_before_its_parent(plan):
    """Builders rely on the order."""
    with pytest.raises(ConfigError, match="before its parent"):
        Plan(tuple(reversed(plan.models)))


def test_a_part_holds_all_that_its_models_are_made_of(plan):
    """A merge brings its siblings and its root."""
    merged = plan.of("merged")[0]
    part = plan.part([merged.id], "one")
    assert {s.id for s in part.models} == {merged.id, *merged.parents, *merged.roots}


def test_the_slice_is_four_roots_with_five_derivatives_each(plan):
    """Two of the roots are twins, and most kinds are there."""
    cut = make_slice(plan)
    assert len(cut.models) == SLICE_SIZE
    assert len(cut.roots) == SLICE_ROOTS
    assert set(Counter(origin(cut, s) for s in cut.models).values()) == {6}
    assert any(len(group) > 1 for group in twin_groups(list(cut.roots)))
    assert len({s.derivation for s in cut.models}) >= 12
    assert all(plan.by_id[s.id] == s for s in cut.models)
