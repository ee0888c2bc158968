"""Models made here to try a catalogue run on: small ones, and derivatives of a real one.

Nine architectures of a small zoo with two derivatives each, and of a model given as a folder:
weights rounded to 8 and 4 bits, 30 % of them set to zero, two fine-tunings, their merge, and a
rewrite of the same function where its architecture allows it. Lineage is written beside each in the
catalogue, so that what a map says can be held against what was done.
"""

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from engine.corpus.documents import Progress, no_progress
from engine.errors import UnsupportedModel
from engine.lm.loading import quiet_loading
from engine.lm.packaged import PACKAGED
from engine.pipeline.models_neighbours import neighbours
from engine.pipeline.models_zoo import build_zoo, open_zoo
from engine.store import Run, atomic_folder, read_table, write_bytes_atomic, write_json_atomic
from engine.zoo.compression import prune_magnitudes, round_weights
from engine.zoo.manifest import ROOT, ModelSpec, Plan
from engine.zoo.merging import merge
from engine.zoo.rewriting import rewrite
from engine.zoo.schedules import Schedules
from engine.zoo.tokenizers import TokenizerKind, tokenizer_kind
from engine.zoo.training import RowStream, Schedule, mix_lines, train
from engine.zoo.worlds import World


CATALOGUE = "catalogue.csv"
ORIGIN = "origin"
ARCHITECTURES = (
    *("llama", "gpt2", "gpt_neox", "opt", "bloom", "mistral", "qwen3", "gemma2", "falcon"),
)
"""Architectures that are made from random weights."""
TUNED = {"tuned-a": "geography", "tuned-b": "animals"}
"""Fine-tunings of the given model, and the facts they are trained on."""
_COLUMNS: tuple[str, ...] = (
    *("id", "path", "hub_id", "parents", "root", "derivation", "architecture", "family"),
    *("copies_weights", "source"),
)
_SMALL_DERIVATIVES = (("int8", "quantised", "int8"), ("pruned", "pruned", "30"))
_HERE = "made here"
_TOKENIZERS = ("bpe512", "bpe2048", "wordpiece1024")


@dataclass(frozen=True, kw_only=True)
class LocalSettings:
    """How much is made, and how long it is trained."""

    small_steps: int = 150
    """Steps of the small models."""
    tuning: Schedule = Schedule(steps=12, learning_rate=3e-5, warmup=2)  # noqa: RUF009  # frozen
    """Fine-tuning of the given model."""
    tuning_rows: int = 2
    """Rows of a fine-tuning step."""
    tuning_context: int = 64
    """Tokens of such a row."""


def make_local_models(
    folder: Path,
    origin: str | None,
    place: Path | None = None,
    settings: LocalSettings | None = None,
    progress: Progress = no_progress,
) -> Path:
    """Make what is missing of the folder.

    Args:
        folder: Where.
        origin: Name of the real model in the catalogue: a packaged model, or any where a place is
            given; None leaves it and its derivatives out.
        place: Folder the real model is read from.
        settings: How long models are trained.
        progress: Wraps what is made of the real model.

    Returns:
        The catalogue.
    """
    settings = settings or LocalSettings()
    rows = _small_models(folder / "small", settings)
    if origin is not None and place is not None:
        rows += _derived(folder / ORIGIN, origin, place, settings, progress)
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_bytes_atomic(folder / CATALOGUE, text.getvalue().encode())
    return folder / CATALOGUE


def relatives_found(run: Run, family: list[str], variant: str = "able") -> pd.DataFrame:
    """Of every member of a family, how many of the others are among its as many nearest models.

    Args:
        run: A map.
        family: Members by name.
        variant: Way of embedding.

    Returns:
        A row a member: model, found (count), of (the other members), outsider_rank (of the nearest
        model that is no member, 1 first), cosine_last (of the farthest member).
    """
    total = len(read_table(run, "model_cards", columns=["model"]))
    rows: list[dict[str, Any]] = []
    for model in family:
        ranked = neighbours(run.path, model, variant, total)["neighbours"]
        names = [each["model"] for each in ranked]
        others = len(family) - 1
        outsiders = [place for place, name in enumerate(names, start=1) if name not in family]
        last = min(each["cosine"] for each in ranked if each["model"] in family)
        rows.append(
            {
                "model": model,
                "found": sum(name in family for name in names[:others]),
                "of": others,
                "outsider_rank": outsiders[0] if outsiders else None,
                "cosine_last": last,
            }
        )
    return pd.DataFrame(rows)


def _small_models(folder: Path, settings: LocalSettings) -> list[dict[str, Any]]:
    plan = small_plan()
    schedules = Schedules().shortened(settings.small_steps)
    build_zoo(open_zoo(folder, plan=plan, schedules=schedules, n_questions=16))
    return [
        {
            "id": spec.id,
            "path": f"small/models/{spec.id}",
            "parents": ";".join(spec.parents),
            "root": ";".join(spec.roots),
            "derivation": spec.derivation,
            "architecture": spec.architecture,
            "family": spec.family,
            "copies_weights": int(spec.copies_weights),
            "source": _HERE,
        }
        for spec in plan.models
    ]


def small_plan() -> Plan:
    """Nine roots, each with a rounded and a pruned copy."""
    models: list[ModelSpec] = []
    for number, architecture in enumerate(ARCHITECTURES):
        root = architecture.replace("_", "-")
        shared: dict[str, Any] = {
            "roots": (root,),
            "architecture": architecture,
            "tokenizer": _TOKENIZERS[number % len(_TOKENIZERS)],
            "mix": "AB"[number % 2],
            "size": "XS",
            "seed": 100 + number,
            "order_seed": 200 + number,
            "family": root,
        }
        models.append(ModelSpec(id=root, derivation=ROOT, **shared))
        for called, derivation, variant in _SMALL_DERIVATIVES:
            made = {"derivation": derivation, "variant": variant, "parents": (root,)}
            made |= {"id": f"{root}-{called}"}
            models.append(ModelSpec(**made, **shared))
    return Plan(tuple(models), "local")


def _derived(
    folder: Path, origin: str, place: Path, settings: LocalSettings, progress: Progress
) -> list[dict[str, Any]]:
    """Derivatives of a real model; each folder appears whole, and one that is there stays."""
    quiet_loading()
    makers = _makers(folder, place, settings)
    rows: list[dict[str, Any]] = []
    listed = progress(makers.items(), label=f"Deriving from {origin}", total=len(makers))
    for name, (derivation, parents, make) in listed:
        target = folder / name
        if not (target / "made.json").is_file():
            model = _load(place)
            try:
                make(model)
            except UnsupportedModel:
                continue
            with atomic_folder(target) as made:
                model.save_pretrained(made)
                AutoTokenizer.from_pretrained(place).save_pretrained(made)
                write_json_atomic(made / "made.json", {"derivation": derivation, "of": origin})
        called = f"{origin}-{name}"
        rows.append(
            {
                "id": called,
                "path": f"{ORIGIN}/{name}",
                "parents": ";".join(f"{origin}-{p}" if p else origin for p in parents),
                "root": origin,
                "derivation": derivation,
                "copies_weights": 1,
            }
        )
    first = {"id": origin, "root": origin, "derivation": ROOT, "copies_weights": 0}
    first |= {"hub_id": origin} if origin in PACKAGED else {"path": str(place.resolve())}
    kind = AutoConfig.from_pretrained(place).model_type
    shared = {"architecture": kind, "family": origin, "source": _HERE}
    return [row | shared for row in (first, *rows)]


Maker = tuple[str, tuple[str, ...], Callable[[PreTrainedModel], None]]


def _makers(folder: Path, place: Path, settings: LocalSettings) -> dict[str, Maker]:
    """What is made of the real model: derivation, parents (empty: the model itself), and how."""

    def tuned(domain: str) -> Callable[[PreTrainedModel], None]:
        return lambda model: _tune(model, place, domain, settings)

    found: dict[str, Maker] = {
        "int8": ("quantised", ("",), lambda model: round_weights(model, 8)),
        "int4": ("quantised", ("",), lambda model: round_weights(model, 4)),
        "pruned": ("pruned", ("",), lambda model: prune_magnitudes(model, 0.3)),
    }
    found |= {name: ("mild_sft", ("",), tuned(domain)) for name, domain in TUNED.items()}
    found["merged"] = ("merged", tuple(TUNED), lambda model: _merge(model, folder))
    found["reordered"] = ("rewritten", ("",), lambda model: rewrite(model, "neurons", 0))
    return found


def _tune(model: PreTrainedModel, place: Path, domain: str, settings: LocalSettings) -> None:
    """Train every weight on the facts of one domain for a few steps."""
    tokenizer = Tokenizer.from_file(str(place / "tokenizer.json"))
    base = tokenizer_kind("bpe512")
    kind = TokenizerKind(
        name="own",
        meaning="",
        vocab_size=tokenizer.get_vocab_size(),
        context=settings.tuning_context,
        rows=settings.tuning_rows,
        train=base.train,
    )
    rows = RowStream(mix_lines(World(0), {domain: 1.0}), tokenizer, kind, seed=0)
    train(model, rows, settings.tuning)


def _merge(model: PreTrainedModel, folder: Path) -> None:
    weights = [_load(folder / name).state_dict() for name in TUNED]
    model.load_state_dict(merge("linear", weights, model.state_dict(), 0))


def _load(place: Path) -> Any:
    found = AutoModelForCausalLM.from_pretrained(place, dtype=torch.float32, local_files_only=True)
    return found.eval()
