"""A made-up lineage with every kind of relation, and pairs of larger ones for judges."""

import numpy as np

from engine.atlas.lineage import Card, Lineage
from engine.atlas.pairs import make_pairs


def base(name, **facts):
    return Card(name=name, roots=(name,), **{"relation": "root", **facts})


def child(name, parents, root, relation="mild_sft", **facts):
    return Card(
        name=name,
        parents=tuple(parents),
        roots=(root,),
        relation=relation,
        **{"copies_weights": True, **facts},
    )


LLAMA = {"architecture": "llama", "tokenizer": "bpe", "data": "A", "size": "S"}
TWINS = ("twin:llama-a", "name:llama-a")
FAMILY = Lineage(
    (
        base("one", groups=TWINS, **LLAMA),
        base("two", groups=TWINS, **LLAMA),
        child("one-sft", ["one"], "one", groups=("convergence:jobs",), **LLAMA),
        child("one-lora", ["one"], "one", "lora", **LLAMA),
        child("one-chain", ["one-sft"], "one", "chained_sft", **LLAMA),
        child("one-merge", ["one-sft", "one-lora"], "one", "merged", **LLAMA),
        child("two-sft", ["two"], "two", groups=("convergence:jobs",), **LLAMA),
        Card(
            name="student",
            parents=("one",),
            roots=("student",),
            relation="distilled",
            **{**LLAMA, "architecture": "gpt2"},
        ),
        base("other", architecture="opt", tokenizer="bpe", data="B", size="S"),
        base("far", architecture="opt", tokenizer="bytes", data="C", size="S"),
        Card(name="nobody", relation="", tokenizer="bpe"),
    )
)


def made_pairs(n_roots=8, n_children=3):
    """Pairs of families of equal size, of which the first four are two pairs of twins."""
    cards = []
    for root in range(n_roots):
        name = f"r{root}"
        groups = (f"twin:{root // 2}",) if root < 4 else ()
        labels = {"tokenizer": f"t{root // 2}", "data": "A" if root % 3 else "B"}
        cards.append(base(name, groups=groups, **labels))
        cards += [child(f"{name}c{k}", [name], name, **labels) for k in range(n_children)]
    lineage = Lineage(tuple(cards))
    return make_pairs(lineage, [card.name for card in cards])


def planted(pairs, strength, seed=0):
    """A symmetric similarity in which related pairs are higher by `strength` deviations."""
    generator = np.random.default_rng(seed)
    n = len(pairs.names)
    found = generator.normal(size=(n, n))
    found[pairs.a, pairs.b] += strength * pairs.related
    upper = np.triu(found, 1)
    return upper + upper.T
