"""Who is related to whom, by hand."""

import pytest

from engine.atlas.lineage import Card, Lineage, lineage_of
from tests.engine.atlas.made_families import FAMILY, base, child


@pytest.mark.parametrize(
    ("a", "b", "related"),
    [
        ("one", "one-sft", True),
        ("one-chain", "one", True),
        ("one-merge", "one-chain", True),
        ("one", "two", False),
        ("one", "student", False),
        ("one", "nobody", None),
    ],
)
def test_weights_that_were_copied_make_relatives(a, b, related):
    """Twins and students are none, however alike, and what is not documented stays open."""
    assert FAMILY.related(a, b) is related
    assert FAMILY.related(b, a) is related


@pytest.mark.parametrize(
    ("a", "b", "kind"),
    [
        ("one", "one-lora", "lora"),
        ("one-merge", "one-lora", "merged"),
        ("one-chain", "one", "ancestor"),
        ("one-sft", "one-lora", "siblings"),
        ("one-chain", "one-lora", "relatives"),
        ("one-chain", "one-merge", "siblings"),
    ],
)
def test_related_pairs_are_named_by_how_the_later_was_made(a, b, kind):
    """So that recall can be told per derivation."""
    assert FAMILY.derivation(a, b) == kind
    assert FAMILY.derivation(b, a) == kind


@pytest.mark.parametrize(
    ("a", "b", "kind"),
    [
        ("one", "two", "twin"),
        ("one-lora", "two-sft", "twin"),
        ("one-sft", "two-sft", "twin"),
        ("one-chain", "student", "distilled"),
        ("two", "student", ""),
        ("one", "other", ""),
    ],
)
def test_likeness_of_unrelated_models_has_one_name(a, b, kind):
    """Of several the first in the order of the list counts: twins before convergence."""
    assert FAMILY.likeness(a, b) == kind
    assert FAMILY.likeness(b, a) == kind


def test_convergence_is_of_the_models_and_not_of_their_roots():
    """Two models trained on one domain, whose roots share nothing."""
    a, b = base("a", groups=("convergence:x",)), base("b")
    lineage = Lineage((a, b, child("c", ["b"], "b", groups=("convergence:x",))))
    assert lineage.likeness("a", "c") == "convergence"
    assert lineage.likeness("a", "b") == ""
    deeper = Lineage((a, base("d", groups=("convergence:x",)), child("e", ["d"], "d")))
    assert deeper.likeness("a", "e") == ""


@pytest.mark.parametrize(
    ("model", "other", "word"),
    [
        ("one-sft", "one", "parent"),
        ("one", "one-sft", "child"),
        ("one-chain", "one", "ancestor"),
        ("one", "one-chain", "descendant"),
        ("one-sft", "one-lora", "sibling"),
        ("one-chain", "one-lora", "relative"),
        ("student", "one", "teacher"),
        ("one", "student", "student"),
        ("one-sft", "two", "twin"),
        ("one", "far", "unrelated"),
        ("one", "nobody", "unknown"),
        ("one", "never heard of", "unknown"),
    ],
)
def test_a_word_says_what_the_other_is_to_the_model(model, other, word):
    """The word a page and a script show beside a neighbour."""
    assert FAMILY.known(model, other) == word


def test_no_unit_is_torn():
    """Twins, their derivatives and students of them are one unit; the others are alone."""
    units = dict(zip([card.name for card in FAMILY.cards], FAMILY.units, strict=True))
    whole = [name for name in units if name.startswith(("one", "two"))] + ["student"]
    assert len({int(units[name]) for name in whole}) == 1
    assert len({int(unit) for unit in units.values()}) == 4


def test_edges_are_counted_along_the_documents():
    """A grandchild is two edges away; what nothing connects is infinitely far."""
    edges, place = FAMILY.edges, FAMILY.place
    assert edges[place["one"], place["one-chain"]] == 2
    assert edges[place["one-chain"], place["one-lora"]] == 3
    assert edges[place["one"], place["far"]] == float("inf")


def test_a_circle_of_parents_ends():
    """A wrong catalogue is read, not walked for ever."""
    circle = Lineage((child("a", ["b"], "a"), child("b", ["a"], "a")))
    assert circle.related("a", "b") is True
    assert circle.known("a", "b") in ("parent", "child")


def test_rows_of_the_table_become_cards():
    """Lists come as arrays from the store."""
    row = {
        "model": "x", "relation": "lora", "parents": ["y"], "roots": [], "copies_weights": True,
        "architecture": "opt", "tokenizer": "", "data": "", "size": "", "family": "f", "groups": [],
    }  # fmt: skip
    found = lineage_of([row]).cards
    expected = Card(
        name="x", relation="lora", parents=("y",), copies_weights=True, architecture="opt",
        family="f",
    )  # fmt: skip
    assert found == (expected,)
