"""The passes of the stability suite: one model attributed again with something done otherwise.

Each pass gives a vector that is held against the usual one of the same model: over all columns
where these are the same, and over the words of the questions where the words around them differ.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from engine.able.columns import Columns
from engine.able.files import folder_name, read_facts
from engine.able.loading import LoadedModel, load_model
from engine.able.model import DTYPES, AttributionSettings, ModelAttribution, embed_model
from engine.able.probes import ProbeSet
from engine.atlas.rewording import (
    TEMPLATES,
    orders,
    question_columns,
    reworded,
    shuffled,
    take_apart,
)
from engine.devices import memory_given_back
from engine.errors import EngineError, UnsupportedModel
from engine.provenance import fingerprint
from engine.store import atomic_folder, write_array_atomic, write_json_atomic
from engine.zoo.compression import add_noise
from engine.zoo.rewriting import rewrite


WHOLE, QUESTION = "whole", "question"
USUAL, LETTERED = "usual", "letters"
FOLDER = "stability-passes"
"""Folder of a run that holds passes while the suite is unfinished."""
_FAILURES = (RuntimeError, ValueError, TypeError, NotImplementedError, AttributeError)
NOISE = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Noise that is tried unless said otherwise."""
_REWRITES = ("neurons", "heads", "norms")


@dataclass(frozen=True)
class Pass:
    """One thing done otherwise."""

    study: str
    """Study it belongs to."""
    setting: str
    """What was done."""
    x: float | None = None
    """The setting as a number."""
    columns: str = WHOLE
    """whole, or question: the words of the questions alone."""
    against: str = USUAL
    """usual, or letters: the lettered prompt, of which it is a variation."""


@dataclass(frozen=True, kw_only=True)
class Suite:
    """What is asked, and how far things are changed."""

    probes: ProbeSet
    """Probes of the passes, a part of the map's."""
    dtype: str = "float32"
    """Number format of the map."""
    hook: str = "auto"
    """Hook point of the map."""
    noise: tuple[float, ...] = NOISE
    """Standard deviations of noise on every matrix, as shares of the matrix's own."""
    seed: int = 0
    """Seed of orders and noise."""
    device: str = "cpu"
    """Where models compute."""

    @cached_property
    def questions(self) -> list[str]:
        """The questions alone."""
        return [take_apart(p, self.probes.style).question for p in self.probes.probes]

    @cached_property
    def question_words(self) -> np.ndarray:
        """Columns of the questions' words among those of the probes: int [columns]."""
        return question_columns(Columns(self.probes), self.questions)

    @cached_property
    def attribution(self) -> AttributionSettings:
        """How models are attributed usually."""
        return AttributionSettings(dtype=self.dtype, hook=self.hook, device=self.device)

    @property
    def identity(self) -> str:
        """What determines the vectors."""
        shape = [self.probes.fingerprint, self.dtype, self.hook, self.noise, self.seed]
        return fingerprint([*shape, [vars(each) for each in self.passes]])

    @cached_property
    def passes(self) -> tuple[Pass, ...]:
        """Every pass, in the order they run."""
        formats = [name for name in DTYPES if name != self.dtype]
        templates = [name for name in TEMPLATES if name != self.probes.style]
        lettered = self.probes.style == "texts"
        return (
            Pass("copy", "loaded again"),
            Pass("batch", "one row at a time", 1.0),
            Pass("batch", "16,384 tokens at a time", 16_384.0),
            *(Pass("dtype", name) for name in formats),
            *(Pass("template", name, columns=QUESTION) for name in templates),
            Pass("option_order", "shuffled", columns=QUESTION),
            *([Pass("option_order", "lettered, shuffled", None, QUESTION, LETTERED)] * lettered),
            Pass("hook", "embedding"),
            *(Pass("rewrite", way) for way in _REWRITES),
            *(Pass("noise", f"{level:g}", level) for level in self.noise),
        )


@dataclass(frozen=True)
class PassJob:
    """The job that runs every pass of one model; its models do not depend on their order."""

    path: Path
    """Folder of the passes."""
    suite: Suite
    identity: str = ""

    def folder(self, model: str) -> Path:
        """Folder of a model's vectors."""
        return self.path / folder_name(model)

    def is_done(self, item: tuple[str, str]) -> bool:
        """Whether a model's vectors are there, made with these settings."""
        facts = read_facts(self.folder(item[0]))
        return facts is not None and facts.get("identity") == self.identity

    @memory_given_back()
    def run(self, item: tuple[str, str]) -> str:
        """Run every pass of a model, given as its name and place, and keep the vectors.

        A pass that the model does not allow is left out, with its reason.
        """
        name, place = item
        bench = _Bench(name, place, self.suite)
        reasons: dict[str, str] = {}
        with atomic_folder(self.folder(name)) as made:
            write_array_atomic(made / "usual.npy", bench.usual.words)
            write_array_atomic(made / "usual-question.npy", bench.question(bench.usual))
            for number, each in enumerate(self.suite.passes):
                try:
                    vector = bench.run(each)
                except EngineError as error:
                    reasons[str(number)] = str(error)
                except _FAILURES as error:
                    reasons[str(number)] = f"{type(error).__name__}: {error}"
                else:
                    write_array_atomic(made / f"{number}.npy", vector)
            facts = {"model": name, "identity": self.identity, "left_out": reasons}
            write_json_atomic(made / "facts.json", facts)
        return name


@dataclass
class _Bench:
    """One model under test."""

    name: str
    place: str
    suite: Suite

    @cached_property
    def loaded(self) -> LoadedModel:
        """The model as it is."""
        return self._load(self.suite.dtype)

    @cached_property
    def usual(self) -> ModelAttribution:
        """Attributed as in the map."""
        return embed_model(self.loaded, self.suite.probes, self.suite.attribution)

    def question(self, found: ModelAttribution, given: Any = None) -> Float[np.ndarray, " kept"]:
        """Attributions of the words of the questions."""
        kept = question_columns(found.columns, self.suite.questions, given)
        return found.words[kept]

    def run(self, each: Pass) -> Float[np.ndarray, " columns"]:
        """The vector of a pass.

        Raises:
            UnsupportedModel: The model does not allow it.
        """
        return _WAYS[each.study](self, each)

    def attributed(self, loaded: LoadedModel, **changes: Any) -> Float[np.ndarray, " columns"]:
        """Attributions of a model, with other settings than usual."""
        return embed_model(
            loaded, self.suite.probes, replace(self.suite.attribution, **changes)
        ).words

    def fresh(self) -> LoadedModel:
        """A copy that may be changed."""
        return self._load(self.suite.dtype)

    def in_format(self, dtype: str) -> LoadedModel:
        """The model in another number format."""
        return self._load(dtype)

    def _load(self, dtype: str) -> LoadedModel:
        device, _ = self.suite.attribution.resolve()
        return load_model(self.place, name=self.name, dtype=DTYPES[dtype], device=device)


def _copy(bench: _Bench, _each: Pass) -> np.ndarray:
    return bench.attributed(bench.fresh())


def _batch(bench: _Bench, each: Pass) -> np.ndarray:
    return bench.attributed(bench.loaded, batch_tokens=int(each.x or 0))


def _dtype(bench: _Bench, each: Pass) -> np.ndarray:
    return bench.attributed(bench.in_format(each.setting), dtype=each.setting)


def _template(bench: _Bench, each: Pass) -> np.ndarray:
    probes = reworded(bench.suite.probes, each.setting)
    return bench.question(embed_model(bench.loaded, probes, bench.suite.attribution))


def _order(bench: _Bench, each: Pass) -> np.ndarray:
    usual = bench.suite.probes
    probes = usual if each.against == USUAL else reworded(usual, LETTERED)
    given = orders(probes, bench.suite.seed)
    found = embed_model(bench.loaded, shuffled(probes, given), bench.suite.attribution)
    return bench.question(found, given)


def _hook(bench: _Bench, _each: Pass) -> np.ndarray:
    if bench.usual.facts["hook"] == "embedding":
        raise UnsupportedModel(f"{bench.name} is attributed at its embedding as it is.")
    return bench.attributed(bench.loaded, hook="embedding")


def _rewrite(bench: _Bench, each: Pass) -> np.ndarray:
    copy = bench.fresh()
    rewrite(copy.model, each.setting, bench.suite.seed)
    return bench.attributed(copy)


def _noise(bench: _Bench, each: Pass) -> np.ndarray:
    copy = bench.fresh()
    add_noise(copy.model, each.x or 0.0, bench.suite.seed)
    return bench.attributed(copy)


_WAYS: dict[str, Callable[[_Bench, Pass], np.ndarray]] = {
    "copy": _copy,
    "batch": _batch,
    "dtype": _dtype,
    "template": _template,
    "option_order": _order,
    "hook": _hook,
    "rewrite": _rewrite,
    "noise": _noise,
}


@dataclass(frozen=True)
class PassResults:
    """Vectors of a pass, of the models that allow it."""

    each: Pass
    models: tuple[str, ...]
    vectors: Float[np.ndarray, "models columns"]
    usual: Float[np.ndarray, "models columns"]


def read_passes(job: PassJob, models: list[str]) -> Iterator[PassResults]:
    """Vectors of every pass that one model allows at least, with those they are held against."""
    suite = job.suite
    lettered = next(
        (n for n, p in enumerate(suite.passes) if (p.study, p.setting) == ("template", LETTERED)), 0
    )
    for number, each in enumerate(suite.passes):
        usual = "usual.npy" if each.columns == WHOLE else "usual-question.npy"
        usual = usual if each.against == USUAL else f"{lettered}.npy"
        able = [m for m in models if (job.folder(m) / f"{number}.npy").is_file()]
        if not able:
            continue
        vectors, before = (
            np.stack([np.load(job.folder(m) / f, allow_pickle=False) for m in able])
            for f in (f"{number}.npy", usual)
        )
        yield PassResults(each, tuple(able), vectors.astype(np.float64), before.astype(np.float64))


def part_of(probes: ProbeSet, n_probes: int) -> tuple[ProbeSet, list[int]]:
    """So many probes, evenly spread over a set, and their places in it."""
    n = min(n_probes, len(probes))
    places = [place * len(probes) // n for place in range(n)]
    chosen = tuple(probes.probes[place] for place in places)
    return ProbeSet(f"{n} of {probes.name}", chosen, probes.style), places


def columns_of(probes: ProbeSet, places: list[int]) -> np.ndarray:
    """Columns of some probes of a set, in the order of the places: int [columns]."""
    columns = Columns(probes)
    blocks = [columns.block(place) for place in places]
    return np.concatenate([np.arange(block.start, block.stop) for block in blocks])
