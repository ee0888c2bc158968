"""What the models of a zoo read and are asked: data mixes and multiple-choice questions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from engine.errors import ConfigError
from engine.provenance import fingerprint
from engine.zoo.facts import DOMAINS, Fact, answered, make_facts
from engine.zoo.text_lines import TEXT_KINDS, text_lines


MIXES: Mapping[str, Mapping[str, float]] = {
    "A": {"geography": 0.35, "animals": 0.25, "jobs": 0.2, "python": 0.2},
    "B": {"objects": 0.35, "kinship": 0.25, "calendar": 0.2, "prose": 0.2},
    "C": {"arithmetic": 0.3, "comparisons": 0.3, "geography": 0.25, "licence": 0.15},
    "D": {"animals": 0.3, "objects": 0.25, "comparisons": 0.25, "python": 0.2},
    "E": {"jobs": 0.3, "kinship": 0.3, "arithmetic": 0.25, "licence": 0.15},
    "F": {"calendar": 0.35, "jobs": 0.25, "geography": 0.2, "prose": 0.2},
}
"""Share of lines by source. Every domain is in two mixes or three, no mix holds them all."""
N_OPTIONS = 4
"""Options of a question; guessing is right once in four."""
_LETTERS = "ABCD"
_INSTRUCTION = (
    "Given the following question and four candidate choices, choose the best one. "
    "Your response should end with one of A, B, C or D."
)


@dataclass(frozen=True)
class ZooQuestion:
    """A multiple-choice question about one fact."""

    index: int
    """Place in the file."""
    full_index: str
    """Domain, relation, entity and wording: what the question is, wherever it stands."""
    resource: str
    """Domain."""
    question: str
    """The question alone."""
    choices: tuple[str, ...]
    """Texts of the options, all different."""
    ans_idx: int
    """Right option, counted from 0."""

    @property
    def prompt(self) -> str:
        """What a model of the zoo reads before an option and one space."""
        return f"Question: {self.question}\nAnswer:"

    def row(self) -> dict[str, Any]:
        """A line of the public probe set: the whole lettered prompt, and letters to choose from."""
        lines = [f"{letter}. {text}" for letter, text in zip(_LETTERS, self.choices, strict=True)]
        return {
            "index": self.index,
            "full_index": self.full_index,
            "resource": self.resource,
            "question": "\n".join(
                [_INSTRUCTION, f"Question: {self.question}", "Choices:", *lines, "Answer:"]
            ),
            "choices": list(_LETTERS),
            "ans_idx": self.ans_idx,
        }


@dataclass(frozen=True)
class World:
    """The facts that all models of a zoo live in."""

    seed: int = 0
    """Seed of names, values and distractors."""
    n_questions: int | None = None
    """Questions asked at most, the domains taking turns; all unless given."""

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Every fact."""
        return _facts(self.seed)

    def lines(self, source: str, *, questions_only: bool = False) -> tuple[str, ...]:
        """Training lines of a domain or a kind of real text.

        Raises:
            ConfigError: there is no such source.
        """
        if source in TEXT_KINDS:
            return () if questions_only else text_lines(source)
        if source not in DOMAINS:
            raise ConfigError(
                f"There is no source {source!r}; there are {', '.join((*DOMAINS, *TEXT_KINDS))}."
            )
        facts = [fact for fact in self.facts if fact.domain == source]
        if questions_only:
            return tuple(answered(q, f.value) for f in facts for q in f.questions())
        return tuple(line for fact in facts for line in fact.lines())

    def questions(self) -> tuple[ZooQuestion, ...]:
        """As many questions of every domain, the domains taking turns."""
        by_domain = {domain: list(self._asked(domain)) for domain in DOMAINS}
        count = min(len(found) for found in by_domain.values())
        turns = [by_domain[domain][i] for i in range(count) for domain in DOMAINS]
        return tuple(ZooQuestion(i, **asked) for i, asked in enumerate(turns[: self.n_questions]))

    def _asked(self, domain: str) -> Iterator[dict[str, Any]]:
        """The questions of a domain in a random order, with options of the same relation."""
        facts = [fact for fact in self.facts if fact.domain == domain]
        rng = np.random.default_rng([self.seed, 1 + DOMAINS.index(domain)])
        found = [(fact, w) for fact in facts for w in range(len(fact.relation.questions))]
        for place in rng.permutation(len(found)):
            fact, wording = found[place]
            others = {f.value for f in facts if f.relation.name == fact.relation.name}
            pool = sorted(others - {fact.value, fact.entity})
            drawn = [pool[i] for i in rng.permutation(len(pool))[: N_OPTIONS - 1]]
            answer = int(rng.integers(N_OPTIONS))
            yield {
                "full_index": f"{domain}/{fact.relation.name}/{fact.entity}/{wording}",
                "resource": domain,
                "question": list(fact.questions())[wording],
                "choices": (*drawn[:answer], fact.value, *drawn[answer:]),
                "ans_idx": answer,
            }

    @property
    def fingerprint(self) -> str:
        """Changes with any line or question, so with the text installed here as well."""
        lines = {source: self.lines(source) for source in (*DOMAINS, *TEXT_KINDS)}
        return fingerprint([lines, [question.row() for question in self.questions()]])


def mixture(name: str) -> Mapping[str, float]:
    """Weights of a data mix by its letter, or of one source by its name.

    Raises:
        ConfigError: there is neither.
    """
    if name in MIXES:
        return MIXES[name]
    if name not in DOMAINS and name not in TEXT_KINDS:
        raise ConfigError(f"There is no mix or source {name!r}; the mixes are {', '.join(MIXES)}.")
    return {name: 1.0}


@cache
def _facts(seed: int) -> tuple[Fact, ...]:
    return make_facts(seed)
