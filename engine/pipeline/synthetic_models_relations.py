"""The tables of relations of a synthetic map: random numbers of the right shape, no result."""

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd

from engine.pipeline.synthetic_models import VARIANTS, SyntheticMap, SyntheticModel
from engine.pipeline.synthetic_tables import Columns


_WHOLE = ("able_whole", "square_root_whole")
_OUTPUTS = ("log_likelihoods", "option_probabilities", "phylolm", "weights")
_LABELS = ("tokenizer", "architecture_size", "architecture_tokenizer", "random")
_CLASSIFIED = ("accuracy", "precision", "recall", "f1", "auc")
_TREE = ("triplets", "splits_found", "robinson_foulds", "cophenetic", "kept_distances")
_PARENTS = ("recall_at_1", "mean_reciprocal_rank", "precision", "recall", "no_parent_recall")
_ONCE = ("dev", "held_out", "dev:twin", "held_out:twin")
_UNCLASSIFIED = (
    ("all", "permutation_p"),
    ("same_labels", "permutation_p"),
    *product(("parents",), _PARENTS),
)
_NEIGHBOURS = 5


def relation_tables(generator: np.random.Generator, shape: SyntheticMap) -> dict[str, Columns]:
    """Pairs, scores, results, neighbours, parents and trees of the made-up lineage.

    Args:
        generator: Source of every number.
        shape: The models.
    """
    pairs = pd.DataFrame(list(_pairs(shape)))
    return {
        "model_pairs": _columns(pairs),
        "model_pair_scores": _scores(generator, pairs),
        "model_relation_results": _columns(pd.DataFrame(list(_results(generator)))),
        "model_neighbours": _columns(pd.DataFrame(list(_neighbours(shape)))),
        "model_parents": _columns(pd.DataFrame(list(_parents(generator, shape)))),
        "model_trees": _trees(generator, shape),
    }


def _columns(frame: pd.DataFrame) -> Columns:
    return {str(name): frame[name] for name in frame}


def _pairs(shape: SyntheticMap) -> Iterator[dict[str, Any]]:
    for number, (a, b) in enumerate(combinations(shape.models, 2)):
        related = a.root == b.root and "distilled" not in (a.relation, b.relation)
        twins = a.root != b.root and a.root // 2 == b.root // 2
        distilled = a.root == b.root and not related
        kind = "twin" if twins else "distilled" if distilled else ""
        if related:
            kind = b.relation if a.relation == "root" else "siblings"
        level = "positive" if related else "hard" if kind else ("medium", "easy")[number % 2]
        edges = (1 if a.relation == "root" else 2) if a.root == b.root else 0
        yield {"pair": number, "a": a.name, "b": b.name, "related": related, "level": level,
               "kind": kind, "edges": edges}  # fmt: skip


def _scores(generator: np.random.Generator, pairs: pd.DataFrame) -> Columns:
    methods = sorted((*VARIANTS, *_WHOLE, *_OUTPUTS, *_LABELS))
    related = np.tile(pairs["related"].to_numpy(), len(methods))
    scores = np.clip(0.3 + 0.4 * related + generator.normal(0, 0.15, len(related)), 0, 1)
    return {
        "method": np.repeat(methods, len(pairs)),
        "pair": np.tile(pairs["pair"], len(methods)),
        "score": scores,
    }


def _results(generator: np.random.Generator) -> Iterator[dict[str, Any]]:
    for method in (*VARIANTS, *_WHOLE, *_OUTPUTS, *_LABELS):
        learned = () if method in (*_LABELS, "phylolm", "weights") else ("logistic",)
        for classifier in ("threshold", *learned):
            for group, metric in _judged():
                spread = group not in _ONCE
                yield _result(generator, (method, classifier, group, metric), spread=spread)
        for group, metric in _UNCLASSIFIED:
            yield _result(generator, (method, "none", group, metric), spread=False)
    chosen = ("square_root", "threshold", "dev", "chosen")
    yield _result(generator, chosen, spread=False) | {"value": 1.0}
    for method, metric in product((*VARIANTS, *_WHOLE, *_OUTPUTS), _TREE):
        yield _result(generator, (method, "none", "tree", metric), spread=False)


def _judged() -> Iterator[tuple[str, str]]:
    """Groups and metrics of a classifier."""
    yield from product(("all",), _CLASSIFIED)
    yield from product(("hard", "twin", *_ONCE), ("auc",))
    yield from product(("hard:twin", "hard:distilled"), ("false_positive_rate",))
    yield from product(("derivation:mild_sft", "derivation:quantised"), ("recall",))


def _result(
    generator: np.random.Generator, key: tuple[str, str, str, str], *, spread: bool
) -> dict[str, Any]:
    value = float(generator.uniform(0.5, 1))
    over_splits = {"sd": 0.04, "low": None, "high": None}
    once = {"sd": None, "low": max(0.0, value - 0.1), "high": min(1.0, value + 0.1)}
    named = dict(zip(("method", "classifier", "group", "metric"), key, strict=True))
    return named | {"value": value} | (over_splits if spread else once) | {"n": 31}


def _neighbours(shape: SyntheticMap) -> Iterator[dict[str, Any]]:
    for variant, vectors in zip(VARIANTS, shape.embeddings, strict=True):
        cosines = vectors @ vectors.T
        for place, model in enumerate(shape.models):
            nearest = [int(k) for k in np.argsort(-cosines[place]) if k != place][:_NEIGHBOURS]
            for rank, other in enumerate(nearest):
                percentile = max(0.0, 99.95 - 5.0 * rank)
                yield {
                    "variant": variant,
                    "model": model.name,
                    "rank": rank,
                    "neighbour": shape.models[other].name,
                    "cosine": cosines[place, other],
                    "percentile_unrelated": percentile,
                    "verdict": ("strong", "weak", "none")[min(rank, 2)],
                    "known_relation": _known(model, shape.models[other]),
                }


def _known(model: SyntheticModel, other: SyntheticModel) -> str:
    if model.root != other.root:
        return "twin" if model.root // 2 == other.root // 2 else "unrelated"
    if model.relation == "root":
        return "student" if other.relation == "distilled" else "child"
    if other.relation == "root":
        return "teacher" if model.relation == "distilled" else "parent"
    return "unrelated" if "distilled" in (model.relation, other.relation) else "sibling"


def _parents(generator: np.random.Generator, shape: SyntheticMap) -> Iterator[dict[str, Any]]:
    for method in ("able", "log_likelihoods"):
        for number, model in enumerate(shape.models):
            root = f"root-{model.root}"
            own = model.copies_weights
            wrong = number % 7 == 3
            predicted = "root-4" if wrong else root if own else ""
            base = root if own else model.name
            yield {
                "method": method,
                "model": model.name,
                "predicted": predicted,
                "score": float(generator.uniform(0.2, 1)),
                "p_value": 0.01 if predicted else 0.4,
                "parents": list(model.parents),
                "roots": [base],
                "correct": predicted == (base if own else ""),
                "rank_of_parent": 1 + number % 3 if own else None,
            }


def _trees(generator: np.random.Generator, shape: SyntheticMap) -> Columns:
    """A tree of roots below one top; every model is a leaf of its root's node."""
    n, roots = len(shape.models), shape.n_roots
    one = {
        "node": list(range(n + roots + 1)),
        "parent": [*(n + model.root for model in shape.models), *([n + roots] * roots), None],
        "model": [*shape.names, *([""] * (roots + 1))],
    }
    rows = {name: values * len(VARIANTS) for name, values in one.items()}
    length = generator.random(len(rows["node"])) * [p is not None for p in rows["parent"]]
    return {"variant": [v for v in VARIANTS for _ in one["node"]], **rows, "length": length}
