"""The 36 roots of a zoo: half of them twins, the others rivals of a twin in one respect each."""

import dataclasses
from collections.abc import Callable
from itertools import groupby

from engine.zoo.manifest import ROOT, ModelSpec


Line = tuple[str, str, str, str]
"""Architecture, tokenizer, mix, size."""
TWINS: tuple[tuple[Line, int], ...] = (
    (("llama", "bpe2048", "A", "S"), 3),
    (("gpt2", "bpe512", "B", "S"), 3),
    (("gpt_neox", "bpe2048", "C", "S"), 2),
    (("olmo2", "bpe2048", "A", "M"), 2),
    (("opt", "bpe512", "D", "XS"), 2),
    (("mistral", "fallback1024", "E", "M"), 2),
    (("qwen3", "unigram1024", "F", "M"), 2),
    (("gemma3_text", "unigram1024", "A", "XS"), 2),
)
"""Groups of equal architecture, tokenizer, data and size, and how many roots each has."""
SINGLES: tuple[Line, ...] = (
    ("mistral", "bpe2048", "A", "S"),
    ("phi", "bpe512", "B", "S"),
    ("bloom", "bpe512", "D", "XS"),
    ("llama", "bpe2048", "D", "S"),
    ("gpt2", "bpe512", "F", "S"),
    ("llama", "bpe2048", "A", "L"),
    ("gpt2", "bpe512", "B", "M"),
    ("gpt_neox", "bpe2048", "C", "L"),
    ("qwen3", "unigram1024", "F", "L"),
    ("llama", "fallback1024", "E", "M"),
    ("gpt_neo", "wordpiece1024", "C", "S"),
    ("mpt", "characters160", "A", "XS"),
    ("falcon", "bytes259", "B", "XS"),
    ("olmo2", "wordpiece1024", "E", "M"),
    ("granite", "bpe2048", "F", "L"),
    ("stablelm", "unigram1024", "D", "M"),
    ("gemma2", "fallback1024", "C", "S"),
    ("mamba", "bpe512", "D", "XS"),
)
"""Roots without a twin."""
NAMESAKE = ("llama", "fallback1024", "E", "M")
"""The root that bears the name of another family and shares nothing else with it."""
_NAMED_LIKE = "llama-a"


def make_roots(seed: int) -> list[ModelSpec]:
    """The roots, with the groups of hard negatives that follow from what they share.

    Twins differ in their initial weights or, every second pair and the third of a triplet, in the
    order of their data alone.
    """
    found: list[ModelSpec] = []
    for number, (line, count) in enumerate(TWINS):
        for twin in range(count):
            other_order = twin > 0 and (twin + number) % 2 == 0
            weights, order = (0, twin) if other_order else (twin, 0)
            first = seed + 100 * number
            found.append(_root(line, f"-{twin + 1}", first + weights, first + 50 + order))
    for number, line in enumerate(SINGLES, start=len(TWINS)):
        first = seed + 100 * number
        found.append(_root(line, "", first, first + 50))
    return [dataclasses.replace(root, groups=_groups(root, found)) for root in found]


def _root(line: Line, suffix: str, seed: int, order_seed: int) -> ModelSpec:
    architecture, tokenizer, mix, size = line
    namesake = line == NAMESAKE
    family = _NAMED_LIKE if namesake else f"{architecture}-{mix}".lower()
    prefix = "open-llama-a" if namesake else f"{architecture}-{mix}-{size}".lower()
    name = f"{prefix}{suffix}".replace("_", "-")
    return ModelSpec(
        id=name,
        derivation=ROOT,
        roots=(name,),
        architecture=architecture,
        tokenizer=tokenizer,
        mix=mix,
        size=size,
        seed=seed,
        order_seed=order_seed,
        family=family,
    )


Trait = Callable[[ModelSpec], tuple[str, ...]]
_KINDS: dict[str, tuple[Trait, Trait]] = {
    "twin": (lambda r: (r.architecture, r.tokenizer, r.mix, r.size), lambda r: (r.id,)),
    "architecture": (lambda r: (r.tokenizer, r.mix), lambda r: (r.architecture,)),
    "data": (lambda r: (r.architecture, r.tokenizer), lambda r: (r.mix,)),
    "size": (lambda r: (r.architecture, r.tokenizer, r.mix), lambda r: (r.size,)),
    "name": (lambda r: (r.family,), lambda r: (r.tokenizer, r.mix)),
}
"""Hard negatives among roots: what the members of a group share, and in what they differ."""


def _groups(root: ModelSpec, roots: list[ModelSpec]) -> tuple[str, ...]:
    found: list[str] = []
    for kind, (shared, different) in _KINDS.items():
        members = [other for other in roots if shared(other) == shared(root)]
        if len({different(other) for other in members}) > 1:
            found.append(f"{kind}:{'+'.join(shared(root)).lower()}")
    return tuple(found)


def twin_groups(roots: list[ModelSpec]) -> list[list[ModelSpec]]:
    """Roots that are twins of one another, group by group."""

    def mark(root: ModelSpec) -> str:
        return next((g for g in root.groups if g.startswith("twin:")), "")

    twins = sorted((r for r in roots if mark(r)), key=lambda r: (mark(r), r.id))
    return [list(group) for _, group in groupby(twins, mark)]
