"""The tables of a synthetic map of models: random numbers of the right shape, no result."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from engine.pipeline.synthetic_tables import Columns


VARIANTS = ("able", "paper", "square_root", "per_probe", "correct_only", "contrast")
DERIVATIONS = ("mild_sft", "quantised", "distilled")
DOMAINS = ("animals", "calendar", "jobs")
FAILED = "broken"
"""A model of the catalogue that could not be embedded."""
_ARCHITECTURES, _TOKENIZERS, _SIZES = ("llama", "gpt2", "opt"), ("bpe512", "bytes"), ("S", "M")
_OPTIONS = 4


@dataclass(frozen=True)
class SyntheticModel:
    """A model of the made-up lineage."""

    name: str
    root: int
    relation: str
    parents: tuple[str, ...]

    @property
    def copies_weights(self) -> bool:
        """Whether it has its parent's weights."""
        return self.relation not in ("root", "distilled")


@dataclass(frozen=True)
class SyntheticMap:
    """Sizes of a made-up map, no two alike, and its models."""

    n_roots: int = 5
    n_probes: int = 7
    n_questions: int = 23
    n_words: int = 3
    n_dimensions: int = 13

    @cached_property
    def models(self) -> tuple[SyntheticModel, ...]:
        """Roots, each with its derivatives behind it."""
        return tuple(self._models())

    def _models(self) -> Iterator[SyntheticModel]:
        for root in range(self.n_roots):
            name = f"root-{root}"
            yield SyntheticModel(name, root, "root", ())
            for relation in DERIVATIONS:
                yield SyntheticModel(f"{name}-{relation}", root, relation, (name,))

    @property
    def names(self) -> list[str]:
        """Names of the models that are embedded."""
        return [model.name for model in self.models]

    @cached_property
    def embeddings(self) -> np.ndarray:
        """Unit vectors by variant and model: those of a root's models lie close together."""
        generator = np.random.default_rng(self.n_roots)
        shape = (len(VARIANTS), len(self.models), self.n_dimensions)
        centres = generator.normal(size=(self.n_roots, self.n_dimensions))
        found = centres[[model.root for model in self.models]] + 0.3 * generator.normal(size=shape)
        return found / np.linalg.norm(found, axis=2, keepdims=True)


def map_tables(generator: np.random.Generator, shape: SyntheticMap) -> dict[str, Columns]:
    """Tables that embedding a catalogue makes, and the answers."""
    return {
        "model_probes": _probes(shape),
        "model_catalogue": _catalogue(generator, shape),
        "model_embeddings": _embeddings(shape),
        "model_words": _words(generator, shape),
        "model_options": _options(generator, shape),
        "model_cards": _cards(shape),
        "model_questions": _questions(shape),
        "model_answers": _answers(generator, shape),
    }


def _probes(shape: SyntheticMap) -> Columns:
    found = _asked(shape.n_probes)
    found["source"] = found.pop("domain")
    return {"probe": range(shape.n_probes), **found, "n_words": [shape.n_words] * shape.n_probes}


def _questions(shape: SyntheticMap) -> Columns:
    n = shape.n_questions
    return {
        "question": range(n),
        **_asked(n),
        "is_probe": [number < shape.n_probes for number in range(n)],
    }


def _asked(n: int) -> Columns:
    return {
        "key": [f"{number:016x}" for number in range(n)],
        "domain": [DOMAINS[number % len(DOMAINS)] for number in range(n)],
        "prompt": [f"Question: number {number}?" for number in range(n)],
        "options": [[f"first {k}", f"second {k}", f"third {k}", f"last {k}"] for k in range(n)],
        "answer": [number % _OPTIONS for number in range(n)],
    }


def _catalogue(generator: np.random.Generator, shape: SyntheticMap) -> Columns:
    rows = [
        {
            "model": name,
            "place": f"models/{name}",
            "status": "embedded",
            "reason": "",
            "architecture": "LlamaForCausalLM",
            "n_parameters": 1000 + 97 * number,
            "hook": "embedding",
            "homogeneity": 0.1,
            "two_parts": False,
            "dtype": "float32",
            "n_probes": shape.n_probes,
            "n_skipped": 0,
            "accuracy": float(generator.random()),
            "seconds": 1.0,
            "bytes": 4000,
        }
        for number, name in enumerate(shape.names)
    ]
    failed = dict.fromkeys(rows[0], 0) | {"homogeneity": None, "accuracy": None, "two_parts": False}
    failed |= {"model": FAILED, "place": "models/broken", "status": "failed", "dtype": ""}
    failed |= {"reason": "Its folder holds no weights.", "architecture": "", "hook": ""}
    return _columns([*rows, failed])


def _embeddings(shape: SyntheticMap) -> Columns:
    return {
        "model": [name for name in shape.names for _ in VARIANTS],
        "variant": list(VARIANTS) * len(shape.names),
        "vector": [vector for own in shape.embeddings.swapaxes(0, 1) for vector in own],
    }


def _words(generator: np.random.Generator, shape: SyntheticMap) -> Columns:
    n = len(shape.names) * shape.n_probes
    return {
        "model": np.repeat(shape.names, shape.n_probes),
        "probe": np.tile(np.arange(shape.n_probes), len(shape.names)),
        "scale": generator.random(n),
        "values": list(generator.integers(-127, 128, (n, _OPTIONS * shape.n_words))),
        "slot": list(generator.normal(size=(n, _OPTIONS))),
    }


def _options(generator: np.random.Generator, shape: SyntheticMap) -> Columns:
    n = len(shape.names) * shape.n_probes
    scores = -generator.gamma(2.0, 1.0, (n, _OPTIONS))
    probes = np.tile(np.arange(shape.n_probes), len(shape.names))
    choices = scores.argmax(1)
    return {
        "model": np.repeat(shape.names, shape.n_probes),
        "probe": probes,
        "log_probabilities": list(scores),
        "choice": choices,
        "correct": choices == probes % _OPTIONS,
    }


def _cards(shape: SyntheticMap) -> Columns:
    rows = [
        {
            "model": model.name,
            "place": f"models/{model.name}",
            "family": f"family {model.root // 2}",
            "relation": model.relation,
            "parents": list(model.parents),
            "roots": [f"root-{model.root}" if model.relation != "distilled" else model.name],
            "copies_weights": model.copies_weights,
            "evidence": "synthetic",
            # roots 0 and 1 are twins: alike in everything but the seed
            "architecture": _ARCHITECTURES[model.root // 2 % len(_ARCHITECTURES)],
            "tokenizer": _TOKENIZERS[model.root // 2 % len(_TOKENIZERS)],
            "data": "A",
            "size": _SIZES[model.root // 2 % len(_SIZES)],
            "target": "animals" if model.relation == "mild_sft" else "",
            "groups": [f"twin:{model.root // 2}"] if model.relation == "root" else [],
            "n_parameters": 1000 + 97 * number,
        }
        for number, model in enumerate(shape.models)
    ]
    broken = rows[0] | {"model": FAILED, "place": "models/broken", "roots": [], "groups": []}
    broken |= {"relation": "finetune", "parents": ["root-0"]}
    return _columns([*rows, broken])


def _answers(generator: np.random.Generator, shape: SyntheticMap) -> Columns:
    right = generator.random((len(shape.names), shape.n_questions)) < 0.5
    return {"model": shape.names, "correct": list(right)}


def _columns(rows: list[dict[str, Any]]) -> Columns:
    """Rows as columns."""
    return {name: [row[name] for row in rows] for name in rows[0]}
