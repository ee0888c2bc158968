"""Generated questions about plain facts: no file, no network, the same on every machine."""

from collections.abc import Callable

import numpy as np

from engine.able.probes import Probe, letter_probe


SOURCE = "facts"
N_CHOICES = 4
Generator = np.random.Generator
Fact = tuple[str, str, list[str]]
"""Question, right choice, others from which the wrong ones are drawn."""

_CAPITALS = {
    "France": "Paris",
    "Germany": "Berlin",
    "Italy": "Rome",
    "Spain": "Madrid",
    "Portugal": "Lisbon",
    "Poland": "Warsaw",
    "Austria": "Vienna",
    "Hungary": "Budapest",
    "Greece": "Athens",
    "Sweden": "Stockholm",
    "Norway": "Oslo",
    "Finland": "Helsinki",
    "Denmark": "Copenhagen",
    "Ireland": "Dublin",
    "Russia": "Moscow",
    "Japan": "Tokyo",
    "China": "Beijing",
    "Egypt": "Cairo",
    "Kenya": "Nairobi",
    "Canada": "Ottawa",
    "Cuba": "Havana",
    "Peru": "Lima",
    "Chile": "Santiago",
    "Argentina": "Buenos Aires",
    "Thailand": "Bangkok",
    "Iran": "Tehran",
    "Iraq": "Baghdad",
    "Belgium": "Brussels",
}
_OPPOSITES = {
    "hot": "cold",
    "big": "small",
    "fast": "slow",
    "early": "late",
    "full": "empty",
    "old": "young",
    "open": "closed",
    "light": "dark",
    "wet": "dry",
    "hard": "soft",
    "high": "low",
    "rich": "poor",
    "strong": "weak",
    "near": "far",
    "clean": "dirty",
    "loud": "quiet",
    "deep": "shallow",
    "wide": "narrow",
}
_YOUNG = {
    "cow": "calf",
    "horse": "foal",
    "sheep": "lamb",
    "dog": "puppy",
    "cat": "kitten",
    "hen": "chick",
    "duck": "duckling",
    "goose": "gosling",
    "bear": "cub",
    "deer": "fawn",
    "frog": "tadpole",
    "kangaroo": "joey",
}
_ELEMENTS = {
    "H": "hydrogen",
    "O": "oxygen",
    "C": "carbon",
    "N": "nitrogen",
    "Fe": "iron",
    "Au": "gold",
    "Ag": "silver",
    "Pb": "lead",
    "Cu": "copper",
    "Na": "sodium",
    "K": "potassium",
    "He": "helium",
    "Zn": "zinc",
    "Sn": "tin",
}
_CLASSES = {
    "a bird": ["eagle", "sparrow", "owl", "robin", "parrot", "crow"],
    "a fish": ["salmon", "trout", "shark", "tuna", "herring", "carp"],
    "a mammal": ["whale", "rabbit", "horse", "bat", "monkey", "goat"],
    "an insect": ["ant", "bee", "beetle", "moth", "wasp", "grasshopper"],
    "a reptile": ["lizard", "snake", "turtle", "crocodile", "gecko", "iguana"],
    "a vegetable": ["carrot", "cabbage", "onion", "spinach", "leek", "turnip"],
    "a metal": ["iron", "copper", "gold", "silver", "tin", "zinc"],
    "a fruit": ["apple", "pear", "plum", "cherry", "peach", "grape"],
}
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August"]
_MONTHS += ["September", "October", "November", "December"]
_ALPHABET = [chr(ord("A") + place) for place in range(26)]


def _addition(rng: Generator) -> Fact:
    first, second = (int(n) for n in rng.integers(11, 90, 2))
    total = first + second
    return f"What is {first} + {second}?", str(total), _near(total)


def _difference(rng: Generator) -> Fact:
    taken, left = (int(n) for n in rng.integers(11, 60, 2))
    return f"What is {taken + left} - {taken}?", str(left), _near(left)


def _product(rng: Generator) -> Fact:
    first, second = (int(n) for n in rng.integers(3, 13, 2))
    return f"What is {first} times {second}?", str(first * second), _near(first * second)


def _largest(rng: Generator) -> Fact:
    numbers = sorted(int(n) for n in rng.choice(np.arange(100, 1000), N_CHOICES, replace=False))
    word, right = [("largest", numbers[-1]), ("smallest", numbers[0])][int(rng.integers(2))]
    return f"Which number is the {word}?", str(right), [str(n) for n in numbers if n != right]


def _sequence(rng: Generator) -> Fact:
    start, step = int(rng.integers(1, 40)), int(rng.integers(2, 13))
    shown = ", ".join(str(start + step * place) for place in range(4))
    following = start + 4 * step
    return f"Which number comes next: {shown}?", str(following), _near(following)


def _calendar(rng: Generator) -> Fact:
    names, thing = [(_DAYS, "day"), (_MONTHS, "month")][int(rng.integers(2))]
    place, distance = int(rng.integers(len(names))), int(rng.integers(1, 4))
    word, sign = [("after", 1), ("before", -1)][int(rng.integers(2))]
    right = names[(place + sign * distance) % len(names)]
    steps = f"{distance} {thing}{'s' if distance > 1 else ''}"
    return f"Which {thing} comes {steps} {word} {names[place]}?", right, names


def _alphabet(rng: Generator) -> Fact:
    place = int(rng.integers(1, 25))
    word, sign = [("after", 1), ("before", -1)][int(rng.integers(2))]
    right = _ALPHABET[place + sign]
    asked = f"Which letter comes right {word} {_ALPHABET[place]} in the alphabet?"
    return asked, right, _ALPHABET


def _member(rng: Generator) -> Fact:
    names = list(_CLASSES)
    wanted = names[int(rng.integers(len(names)))]
    right = str(rng.choice(_CLASSES[wanted]))
    others = [str(rng.choice(_CLASSES[name])) for name in names if name != wanted]
    return f"Which of these is {wanted}?", right, [o for o in others if o not in _CLASSES[wanted]]


def _looked_up(asked: str, table: dict[str, str]) -> Callable[[Generator], Fact]:
    """A kind of fact that is a row of a table."""

    def draw(rng: Generator) -> Fact:
        key = list(table)[int(rng.integers(len(table)))]
        return asked.format(key), table[key], list(table.values())

    return draw


_KINDS: tuple[Callable[[Generator], Fact], ...] = (
    _looked_up("What is the capital of {}?", _CAPITALS),
    _addition,
    _looked_up("What is the opposite of {}?", _OPPOSITES),
    _calendar,
    _member,
    _sequence,
    _looked_up("What is the young of a {} called?", _YOUNG),
    _difference,
    _looked_up("Which element has the symbol {}?", _ELEMENTS),
    _largest,
    _alphabet,
    _product,
)


def fact_probes(count: int, seed: int = 0) -> list[Probe]:
    """So many different questions, the kinds taking turns; fewer are the first of more.

    Args:
        count: Questions.
        seed: Another seed draws other numbers, rows and orders of choices.
    """
    found: dict[str, Probe] = {}
    turn = 0
    while len(found) < count:
        rng = np.random.default_rng([seed, turn])
        probe = _probe(_KINDS[turn % len(_KINDS)](rng), rng)
        found.setdefault(probe.id, probe)
        turn += 1
    return list(found.values())


def _probe(fact: Fact, rng: Generator) -> Probe:
    question, right, others = fact
    wrong = [other for other in dict.fromkeys(others) if other != right]
    drawn = rng.choice(len(wrong), N_CHOICES - 1, replace=False)
    choices = [wrong[place] for place in drawn]
    answer = int(rng.integers(N_CHOICES))
    choices.insert(answer, right)
    return letter_probe(SOURCE, question, choices, answer)


def _near(number: int) -> list[str]:
    """Numbers that could be taken for the right one."""
    return [str(number + step) for step in (-10, -2, -1, 1, 2, 10) if number + step >= 0]
