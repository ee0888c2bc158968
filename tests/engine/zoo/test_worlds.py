"""Facts, lines and questions: seeded, balanced, answerable, and in the format of the probes."""

import json
from collections import Counter

import numpy as np
import pytest

from engine.able.probe_sources import read_probes
from engine.errors import ConfigError
from engine.zoo.facts import DOMAINS, N_ENTITIES, make_facts
from engine.zoo.text_lines import LINES_OF_A_KIND, TEXT_KINDS
from engine.zoo.worlds import MIXES, N_OPTIONS, World, mixture


def test_every_domain_has_12_to_16_entities():
    """More are not learnt by models of this size, fewer make no benchmark."""
    assert 12 <= N_ENTITIES <= 16
    for domain in DOMAINS:
        entities = {fact.entity for fact in make_facts(0) if fact.domain == domain}
        assert N_ENTITIES - 1 <= len(entities) <= N_ENTITIES


def test_a_relation_gives_an_entity_one_value():
    """A question with two right answers would be none."""
    keys = [(f.domain, f.relation.name, f.entity) for f in make_facts(0)]
    assert len(set(keys)) == len(keys)


def test_arithmetic_is_right_and_nobody_is_their_own_mother():
    """The two domains whose values follow from the entities."""
    rules = {
        "plus three": lambda n: n + 3,
        "times two": lambda n: n * 2,
        "from fifty": lambda n: 50 - n,
    }
    for fact in make_facts(3):
        if fact.domain == "arithmetic":
            assert int(fact.value) == rules[fact.relation.name](int(fact.entity))
        if fact.domain == "kinship":
            assert fact.entity != fact.value


def test_comparisons_are_an_order():
    """Following a comparison from its start meets every stone once."""
    for name in ("heavier", "dearer", "older"):
        above = {f.entity: f.value for f in make_facts(0) if f.relation.name == name}
        start = (set(above) - set(above.values())).pop()
        seen = [start]
        while seen[-1] in above:
            seen.append(above[seen[-1]])
        assert len(seen) == len(set(seen)) == N_ENTITIES


def test_worlds_follow_their_seed(world):
    """The same seed gives the same text, another one other facts."""
    assert World(0).fingerprint == world.fingerprint
    assert World(1).fingerprint != world.fingerprint


def test_no_mix_covers_all_and_every_domain_is_read():
    """Otherwise routing between models would have nothing to gain."""
    counts = Counter(source for mix in MIXES.values() for source in mix if source in DOMAINS)
    assert set(counts) == set(DOMAINS)
    assert all(2 <= count <= 3 for count in counts.values())
    for mix in MIXES.values():
        assert sum(mix.values()) == pytest.approx(1.0)
        assert sum(source in TEXT_KINDS for source in mix) == 1
        assert len(set(mix.values())) > 1


def test_a_mix_is_named_by_letter_or_source():
    """A domain is a mix of its own; anything else is refused."""
    assert mixture("animals") == {"animals": 1.0}
    assert mixture("A") == MIXES["A"]
    with pytest.raises(ConfigError, match="no mix or source 'Z'"):
        mixture("Z")


def test_real_text_is_printable_and_all_different(world):
    """Lines of installed packages, as many of each kind."""
    for kind in TEXT_KINDS:
        lines = world.lines(kind)
        assert len(lines) == len(set(lines)) == LINES_OF_A_KIND
        assert all(line.isascii() and line.isprintable() for line in lines)


def test_questions_are_balanced_and_their_answer_is_taught(world):
    """Every domain equally often in any prefix; the right option is in the training lines."""
    questions = world.questions()
    assert [q.resource for q in questions[: len(DOMAINS)]] == list(DOMAINS)
    assert len(set(Counter(q.resource for q in questions).values())) == 1
    assert [q.index for q in questions] == list(range(len(questions)))
    lines = {domain: set(world.lines(domain)) for domain in DOMAINS}
    for q in questions:
        assert len(set(q.choices)) == N_OPTIONS
        taught = [f"{q.prompt} {choice}" in lines[q.resource] for choice in q.choices]
        assert taught == [place == q.ans_idx for place in range(N_OPTIONS)]


def test_the_right_place_tells_nothing(world):
    """Places of right options are even within what chance allows (4 standard deviations)."""
    places = np.bincount([q.ans_idx for q in world.questions()], minlength=N_OPTIONS)
    total = places.sum()
    spread = np.sqrt(total * 0.25 * 0.75)
    assert np.abs(places - total / N_OPTIONS).max() < 4 * spread


def test_questions_are_read_as_probes(world, tmp_path):
    """In both styles; by text they are what the models were trained on."""
    path = tmp_path / "questions.jsonl"
    questions = world.questions()[:23]
    path.write_text("".join(json.dumps(q.row()) + "\n" for q in questions))
    letters, texts = (read_probes(str(path), style=style) for style in ("letters", "texts"))
    assert len(letters) == len(texts) == len(questions)
    for probe, question in zip(texts.probes, questions, strict=True):
        assert probe.source == question.resource
        assert probe.prompt == f"{question.prompt} "
        assert probe.options == question.choices
        assert probe.answer == question.ans_idx


def test_an_unknown_source_is_named(world):
    """With those that there are."""
    with pytest.raises(ConfigError, match="no source 'weather'"):
        world.lines("weather")


def test_questions_alone_leave_out_statements_and_real_text(world):
    """What instruction tuning reads."""
    asked = world.lines("jobs", questions_only=True)
    assert all(line.startswith("Question: ") for line in asked)
    assert 2 * len(asked) == len(world.lines("jobs"))
    assert world.lines("prose", questions_only=True) == ()
