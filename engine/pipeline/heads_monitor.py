"""Watch every head of a model over a list of checkpoints: one file a checkpoint, then the tables.

The results of a checkpoint are kept in `monitor/` of the run as it ends, named after what decides
them: a stopped call goes on with the first checkpoint that is missing, and a longer list measures
the new ones alone. The tokens that probes are drawn from are chosen once and kept beside them.
"""

import logging
import math
import re
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int
from torch import Tensor

from engine.corpus.documents import Progress, no_progress
from engine.devices import Device, resolve_device
from engine.mda.blocks import head_layout
from engine.mda.memory import BatchSize
from engine.mda.monitoring import OWN_TOKENS, contexts, measure, predicted_tokens
from engine.mda.settings import ProbeConfig
from engine.pipeline.heads_corpus import (
    ModelCorpus,
    check_vocabulary,
    keep_tokenizer,
    model_context,
    model_corpus,
)
from engine.pipeline.heads_models import HEADS, Checkpoint, HeadSource, load_decoder
from engine.pipeline.heads_monitor_settings import MonitorConfig
from engine.pipeline.training import corpus_facts
from engine.provenance import fingerprint
from engine.store import (
    Run,
    RunWriter,
    open_run,
    read_json,
    resolve_run,
    write_array_atomic,
    write_json_atomic,
)


logger = logging.getLogger(__name__)

STAGE = "monitor"
MONITOR_VERSION = 1
"""Counts changes in what is measured; results of another version are measured again."""
_SPEED = ("device", "batch_size")
"""Settings that change how fast a result is had, and not what it is."""


@dataclass
class Monitoring:
    """One call under way."""

    source: HeadSource
    config: MonitorConfig
    corpus: ModelCorpus | None
    folder: Path
    device: Device

    def probe(self, model: Any) -> ProbeConfig:
        """Sizes and seed of the random sequences, no longer than the model takes."""
        wanted = self.config.probe
        return replace(wanted, length=model_context(model, wanted.length))

    @property
    def settings(self) -> dict[str, Any]:
        """What decides the result of a checkpoint, its weights apart."""
        values = {n: v for n, v in asdict(self.config).items() if n not in _SPEED}
        tokens = self.corpus.shards.fingerprint if self.corpus else None
        return {"version": MONITOR_VERSION, "config": values, "tokens": tokens}

    def vocabulary(self) -> Int[np.ndarray, " tokens"]:
        """Tokens that probes are drawn from, the same for every checkpoint of the run.

        The frequent ones of the corpus; without a corpus those that the last checkpoint predicts.
        """
        path = self.folder / f"vocabulary-{fingerprint(self.settings)}.npy"
        if not path.is_file():
            if self.corpus is not None:
                found = self.corpus.frequent()
            else:
                last = load_decoder(self.source, self.source.checkpoints[-1], self.device)
                head_layout(last)  # no text is asked of a model without heads
                found = predicted_tokens(
                    last, model_context(last, OWN_TOKENS), self.config.probe.seed
                )
            write_array_atomic(path, found)
        return np.load(path, allow_pickle=False)

    def result(self, checkpoint: Checkpoint, vocabulary: Int[np.ndarray, " tokens"]) -> Any:
        """What was measured of a checkpoint, measured now if it was not."""
        mark = fingerprint([self.settings, checkpoint.identity, vocabulary.tolist()])
        path = self.folder / f"{mark}.json"
        if not path.is_file():
            write_json_atomic(path, self._measured(checkpoint, vocabulary))
        return read_json(path)

    def _measured(
        self, checkpoint: Checkpoint, vocabulary: Int[np.ndarray, " tokens"]
    ) -> dict[str, Any]:
        model = load_decoder(self.source, checkpoint, self.device)
        head_layout(model)  # a model without heads that can be told apart is refused first
        held_out = self._held_out(model)
        size = BatchSize(self.config.batch_size)
        found = size.run(lambda n: measure(model, vocabulary, held_out, self.probe(model), n))
        heads = {name: values.round(6).tolist() for name, values in found["heads"].items()}
        length = held_out.shape[1] - 1 if held_out is not None else None
        return {**found, "heads": heads, "checkpoint": checkpoint.name, "context": length}

    def _held_out(self, model: Any) -> Int[Tensor, "rows length"] | None:
        if self.corpus is None:
            return None
        check_vocabulary(model, self.corpus.shards, self.source.name)
        return self.corpus.held_out(self.config.rows, model_context(model, self.config.context))


def run_name(source: HeadSource) -> str:
    """The run that results about a model's heads go to unless another is named."""
    return "heads-" + re.sub(r"[^A-Za-z0-9._-]+", "-", source.name)[:80]


def heads_writer(source: HeadSource, run: str | None) -> RunWriter:
    """The run of a model's heads, new or taken up again.

    Raises:
        CacheStale: it is a run of something else.
    """
    path = resolve_run(run or run_name(source))
    return RunWriter.create(
        path, name=path.name, kind=HEADS, identity={"base": dict(source.reference)}
    )


def monitor_heads(
    source: HeadSource,
    config: MonitorConfig,
    *,
    run: str | None = None,
    corpus: str | None = None,
    progress: Progress = no_progress,
) -> Run:
    """Measure every head of every checkpoint, or what of it is missing, and write the tables.

    Args:
        source: the model and its checkpoints.
        config: settings.
        run: name or folder of the run; named after the model if None.
        corpus: built corpus for frequent tokens and held-out rows; without one, tokens are those
            that the model itself predicts, and there is no loss and no ICL score.
        progress: wraps the checkpoints.

    Returns:
        The run with `head_scores` and `head_losses`: seed 0, arm baseline.
    """
    started = time.perf_counter()
    writer = heads_writer(source, run)
    opened = model_corpus(source, corpus, progress) if corpus else None
    work = Monitoring(source, config, opened, writer.path / STAGE, resolve_device(config.device))
    identity = {
        "settings": work.settings,
        "checkpoints": [[c.name, c.step, c.identity] for c in source.checkpoints],
    }
    if writer.begin_stage(STAGE, identity):
        return open_run(writer.path)
    logger.info("monitoring %s: %s", source.name, work.device.reason)
    vocabulary = work.vocabulary()
    measured = [
        work.result(checkpoint, vocabulary)
        for checkpoint in progress(source.checkpoints, label="Checkpoints")
    ]
    _write(writer, work, measured)
    facts = {
        "seconds": round(time.perf_counter() - started, 2),
        "settings": asdict(config),
        "checkpoints": {c.name: c.step for c in source.checkpoints},
        "corpus": opened and opened.shards.corpus.name,
        "probe_tokens": {
            "from": "frequent tokens of the corpus" if opened else "the model's own predictions",
            "n": len(vocabulary),
        },
        "icl": contexts(measured[-1]["context"]).definition if opened else None,
    }
    writer.finish_stage(STAGE, facts)
    return open_run(writer.path)


def _write(writer: RunWriter, work: Monitoring, measured: list[dict[str, Any]]) -> None:
    source = work.source
    if work.corpus is not None:
        keep_tokenizer(writer, source)
        writer.update("corpus", corpus_facts(work.corpus.shards.corpus))
    pairs = list(zip(source.checkpoints, measured, strict=True))
    writer.write_table("head_scores", pd.concat([_score_rows(c, found) for c, found in pairs]))
    losses = [_loss_row(source, checkpoint, found) for checkpoint, found in pairs]
    writer.write_table("head_losses", pd.DataFrame(losses))


def _score_rows(checkpoint: Checkpoint, found: dict[str, Any]) -> pd.DataFrame:
    heads = {name: np.array(values) for name, values in found["heads"].items()}
    layers, n_heads = next(iter(heads.values())).shape
    layer, head = np.divmod(np.arange(layers * n_heads), n_heads)
    place = {"seed": 0, "arm": "baseline", "unit": "", "step": checkpoint.step}
    scores = {name: values.ravel() for name, values in heads.items()}
    return pd.DataFrame({**place, "layer": layer, "head": head, **scores})


def _loss_row(source: HeadSource, checkpoint: Checkpoint, found: dict[str, Any]) -> dict[str, Any]:
    return {
        "seed": 0,
        "arm": "baseline",
        "unit": "",
        "step": checkpoint.step,
        "checkpoint": checkpoint.name,
        "tokens_seen": checkpoint.step * tokens_a_step(source.manifest),
        **{name: found[name] for name in ("loss", "copy_loss", "icl")},
    }


def tokens_a_step(manifest: dict[str, Any] | None) -> int:
    """Tokens that a run of ours trained on in a step; 0 where that is not known."""
    settings = (manifest or {}).get("config", {}).get("train")
    if settings is None:
        return 0
    return math.prod(int(settings[n]) for n in ("accumulate", "batch_size", "context"))
