"""Where a study works: its corpus as tokens, its folder, and its seeds."""

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from engine.config import cache_root
from engine.corpus.build import open_corpus
from engine.corpus.documents import Progress, no_progress
from engine.corpus.shards import TokenShards, tokenise_corpus
from engine.corpus.tokenizer import corpus_tokenizer, load_tokenizer
from engine.devices import resolve_device
from engine.lm.loading import quiet_loading
from engine.pipeline.heads_seed import SeedStudy
from engine.pipeline.heads_settings import HeadStudy
from engine.provenance import fingerprint


FOLDER = "head-studies"
"""Folder of the cache in which studies work."""
_EXTENT = ("seeds", "units", "arms", "exchange_seeds")
"""Settings that say how much of a study is done, and change no part of it."""


@dataclass
class Workspace:
    """A study at work. Its states stay in the cache; what its run ships is read out of it."""

    study: HeadStudy
    shards: TokenShards
    tokenizer: Path
    device: torch.device
    progress: Progress
    source: "Workspace | None" = None
    """Study whose samples give the motifs of synthetic rows; this one if None."""

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What determines the result of every part."""
        settings = dataclasses.asdict(self.study)
        found = {
            "study": {name: value for name, value in settings.items() if name not in _EXTENT},
            "corpus": self.shards.corpus.fingerprint,
            "tokenizer": self.shards.manifest["tokenizer"],
        }
        return found if self.source is None else {**found, "source": self.source.identity}

    @property
    def folder(self) -> Path:
        """Folder of the study's parts; studies that differ in their extent alone share it."""
        return cache_root() / FOLDER / fingerprint(self.identity)

    def seed(self, seed: int) -> SeedStudy:
        """One seed."""
        folder = self.folder / f"seed-{seed}"
        tokenizer = load_tokenizer(self.tokenizer)
        return SeedStudy(
            self.study,
            seed,
            self.shards,
            tokenizer,
            folder,
            self.device,
            self.progress,
            None if self.source is None else self.source.seed(seed),
        )


def open_workspace(
    study: HeadStudy,
    device: str = "auto",
    progress: Progress = no_progress,
    source: HeadStudy | None = None,
) -> Workspace:
    """Prepare the corpus of a study.

    Args:
        study: settings.
        device: device name, or auto.
        progress: wraps documents and steps.
        source: settings of a study, of another size say, whose samples give the motifs of
            synthetic rows.

    Raises:
        CorpusError: the corpus is not built, or lacks a domain.
    """
    quiet_loading()
    corpus = open_corpus(study.corpus)
    tokenizer = corpus_tokenizer(corpus, study.vocab_size)
    shards = tokenise_corpus(corpus, load_tokenizer(tokenizer), progress)
    chosen = resolve_device(device).device
    origin = None if source is None else open_workspace(source, device, progress)
    return Workspace(study, shards, tokenizer.parent, chosen, progress, origin)
