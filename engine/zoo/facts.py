"""Synthetic facts: eight domains of a few entities each, in templates a small model can learn.

Values are drawn from a seed, so that no model outside the zoo knows them; only arithmetic is true
everywhere. Twelve to sixteen entities a domain are what a model of 0.1 M parameters learns in some
hundred steps.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np


N_ENTITIES = 14
"""Entities of a domain."""
DOMAINS = (
    "geography",
    "animals",
    "objects",
    "jobs",
    "kinship",
    "calendar",
    "arithmetic",
    "comparisons",
)
"""Names of the domains, in the order in which questions take turns."""


@dataclass(frozen=True)
class Relation:
    """One kind of fact. `{e}` stands for the entity, `{v}` for the value."""

    name: str
    """Short name."""
    statements: tuple[str, str]
    """Two ways to state it."""
    questions: tuple[str, str]
    """Two ways to ask for the value."""
    values: tuple[str, ...] = ()
    """What values are drawn from; empty where they follow from the entities."""


@dataclass(frozen=True)
class Fact:
    """A value of one entity."""

    domain: str
    """Domain it belongs to."""
    relation: Relation
    """Kind of fact."""
    entity: str
    """What it is about."""
    value: str
    """What is true of it."""

    def statements(self) -> Iterator[str]:
        """The fact as sentences."""
        for template in self.relation.statements:
            yield template.format(e=self.entity, v=self.value)

    def questions(self) -> Iterator[str]:
        """The fact asked for."""
        for template in self.relation.questions:
            yield template.format(e=self.entity)

    def lines(self) -> Iterator[str]:
        """Everything a model may read about it: statements, then questions with their answer."""
        yield from self.statements()
        for question in self.questions():
            yield answered(question, self.value)


def answered(question: str, value: str) -> str:
    """A question with its answer, as training lines and probes show it."""
    return f"Question: {question}\nAnswer: {value}"


_ENTITIES = {
    "animals": "fox owl crab goat frog bear wolf deer hare mole seal swan toad duck",
    "objects": "lamp chair kettle clock mirror basket ladder carpet pillow bucket candle drum "
    "vase broom",
    "jobs": "baker tailor miner sailor farmer painter singer doctor lawyer hunter weaver mason "
    "clerk pilot",
    "comparisons": "amber basalt copper flint garnet iron jade lead marble nickel opal quartz "
    "silver zinc",
}
_CROPS = ("rice", "corn", "tea", "figs", "hemp", "rye", "plums")
_COLOURS = ("red", "blue", "green", "white", "black", "yellow", "grey")
_MONTHS = ("January", "March", "April", "June", "July", "August", "October", "December")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_RELATIONS = {
    "geography": (
        Relation(
            "capital",
            ("The capital of {e} is {v}.", "{v} is the capital city of {e}."),
            ("What is the capital of {e}?", "Which city governs {e}?"),
        ),
        Relation(
            "river",
            ("The longest river of {e} is the {v}.", "Through {e} flows the river {v}."),
            ("What is the longest river of {e}?", "Which river flows through {e}?"),
        ),
        Relation(
            "crop",
            ("The farmers of {e} grow {v}.", "{e} is known for its {v}."),
            ("What do the farmers of {e} grow?", "What is {e} known for?"),
            _CROPS,
        ),
    ),
    "animals": (
        Relation(
            "habitat",
            ("The {e} lives in the {v}.", "You find the {e} in the {v}."),
            ("Where does the {e} live?", "Where do you find the {e}?"),
            ("forest", "desert", "river", "meadow", "cave", "swamp", "hills"),
        ),
        Relation(
            "food",
            ("The {e} eats {v}.", "The food of the {e} is {v}."),
            ("What does the {e} eat?", "What is the food of the {e}?"),
            ("grass", "seeds", "worms", "fish", "berries", "roots", "nuts"),
        ),
        Relation(
            "enemy",
            ("The {e} fears the {v}.", "The enemy of the {e} is the {v}."),
            ("What does the {e} fear?", "What is the enemy of the {e}?"),
            ("eagle", "snake", "tiger", "hawk", "lynx", "shark", "lion"),
        ),
    ),
    "objects": (
        Relation(
            "colour",
            ("The {e} is {v}.", "The colour of the {e} is {v}."),
            ("Which colour is the {e}?", "What is the colour of the {e}?"),
            _COLOURS,
        ),
        Relation(
            "material",
            ("The {e} is made of {v}.", "They made the {e} from {v}."),
            ("What is the {e} made of?", "What did they make the {e} from?"),
            ("wood", "glass", "steel", "clay", "wool", "paper", "stone"),
        ),
        Relation(
            "place",
            ("The {e} stands in the {v}.", "In the {v} there is the {e}."),
            ("Where does the {e} stand?", "In which room is the {e}?"),
            ("kitchen", "cellar", "hall", "attic", "garden", "bedroom", "study"),
        ),
    ),
    "jobs": (
        Relation(
            "place",
            ("The {e} works in the {v}.", "At the {v} you meet the {e}."),
            ("Where does the {e} work?", "Where do you meet the {e}?"),
            ("harbour", "market", "palace", "mill", "tower", "station", "school"),
        ),
        Relation(
            "tool",
            ("The {e} carries a {v}.", "The tool of the {e} is a {v}."),
            ("What does the {e} carry?", "What is the tool of the {e}?"),
            ("hammer", "needle", "rope", "brush", "shovel", "knife", "pen"),
        ),
        Relation(
            "pay",
            ("The {e} is paid in {v}.", "The wage of the {e} is {v}."),
            ("What is the {e} paid in?", "What is the wage of the {e}?"),
            ("gold", "bread", "salt", "coins", "cloth", "honey", "wine"),
        ),
    ),
    "kinship": (
        Relation(
            "mother",
            ("The mother of {e} is {v}.", "{v} is the mother of {e}."),
            ("Who is the mother of {e}?", "Whose child is {e}?"),
        ),
        Relation(
            "brother",
            ("The brother of {e} is {v}.", "{e} has a brother called {v}."),
            ("Who is the brother of {e}?", "What is the brother of {e} called?"),
        ),
        Relation(
            "friend",
            ("The best friend of {e} is {v}.", "{e} often visits {v}."),
            ("Who is the best friend of {e}?", "Whom does {e} often visit?"),
        ),
    ),
    "calendar": (
        Relation(
            "month",
            ("{e} is held in {v}.", "In {v} people celebrate {e}."),
            ("When is {e} held?", "In which month is {e}?"),
            _MONTHS,
        ),
        Relation(
            "day",
            ("{e} begins on a {v}.", "On a {v} they open {e}."),
            ("On which day does {e} begin?", "When do they open {e}?"),
            _DAYS,
        ),
        Relation(
            "custom",
            ("At {e} people light {v}.", "For {e} everybody buys {v}."),
            ("What do people light at {e}?", "What does everybody buy for {e}?"),
            ("lamps", "fires", "torches", "candles", "rockets", "pipes", "incense"),
        ),
    ),
    "arithmetic": (
        Relation(
            "plus three",
            ("{e} plus 3 is {v}.", "If you add 3 to {e} you get {v}."),
            ("What is {e} plus 3?", "What do you get if you add 3 to {e}?"),
        ),
        Relation(
            "times two",
            ("{e} times 2 is {v}.", "Twice {e} makes {v}."),
            ("What is {e} times 2?", "What is twice {e}?"),
        ),
        Relation(
            "from fifty",
            ("50 minus {e} is {v}.", "Take {e} from 50 and {v} is left."),
            ("What is 50 minus {e}?", "What is left if you take {e} from 50?"),
        ),
    ),
    "comparisons": (
        Relation(
            "heavier",
            ("Just heavier than {e} is {v}.", "{v} is the next heavier stone after {e}."),
            ("What is just heavier than {e}?", "Which stone is next heavier after {e}?"),
        ),
        Relation(
            "dearer",
            ("Just dearer than {e} is {v}.", "{v} costs a little more than {e}."),
            ("What is just dearer than {e}?", "What costs a little more than {e}?"),
        ),
        Relation(
            "older",
            ("Just older than {e} is {v}.", "{v} was found shortly before {e}."),
            ("What is just older than {e}?", "What was found shortly before {e}?"),
        ),
    ),
}
_ONSETS = ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "br", "dr", "tr")
_VOWELS = ("a", "e", "i", "o", "u")
_CODAS = ("", "l", "n", "r", "s", "m")


def make_facts(seed: int) -> tuple[Fact, ...]:
    """Every fact of a world, domain by domain; the same for the same seed."""
    rng = np.random.default_rng(seed)
    names = _invented(rng, 5 * N_ENTITIES)
    countries, cities, rivers, persons, feasts = (tuple(names[i::5]) for i in range(5))
    entities = {name: tuple(text.split()) for name, text in _ENTITIES.items()}
    entities |= {
        "geography": countries,
        "kinship": persons,
        "calendar": tuple(f"the feast of {name}" for name in feasts),
        "arithmetic": tuple(str(number) for number in range(7, 7 + N_ENTITIES)),
    }
    pools = {"capital": cities, "river": rivers}
    facts: list[Fact] = []
    for domain in DOMAINS:
        for relation in _RELATIONS[domain]:
            values = _values(domain, relation, entities[domain], pools, rng)
            facts += [Fact(domain, relation, e, v) for e, v in values.items()]
    return tuple(facts)


def _values(
    domain: str,
    relation: Relation,
    entities: tuple[str, ...],
    pools: dict[str, tuple[str, ...]],
    rng: np.random.Generator,
) -> dict[str, str]:
    """Value of every entity; entities without one (the last of an order) are left out."""
    if domain == "arithmetic":
        rule = {
            "plus three": lambda n: n + 3,
            "times two": lambda n: 2 * n,
            "from fifty": lambda n: 50 - n,
        }[relation.name]
        return {e: str(rule(int(e))) for e in entities}
    order = [entities[i] for i in rng.permutation(len(entities))]
    if domain == "comparisons":
        return dict(pairwise(order))
    if domain == "kinship":  # nobody is related to themselves: a step along a ring
        return dict(zip(order, order[1:] + order[:1], strict=True))
    pool = pools.get(relation.name, relation.values)
    drawn = [pool[i] for i in rng.permutation(len(pool))]
    return {e: drawn[i % len(drawn)] for i, e in enumerate(order)}


def _invented(rng: np.random.Generator, count: int) -> list[str]:
    """Pronounceable names, all different, of two syllables."""
    found: dict[str, None] = {}
    while len(found) < count:
        parts = [str(rng.choice(a)) for a in (_ONSETS, _VOWELS, _ONSETS, _VOWELS, _CODAS)]
        found["".join(parts).capitalize()] = None
    return list(found)
