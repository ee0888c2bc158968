"""The stage `influence` of a run of heads: samples traced to the heads of a given model."""

import logging
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from engine.corpus.build import open_corpus
from engine.corpus.documents import Progress, no_progress
from engine.corpus.shards import TokenShards
from engine.devices import resolve_device
from engine.errors import CacheStale
from engine.mda.blocks import HeadLayout, head_layout
from engine.pipeline.heads_analysis import analyse_heads
from engine.pipeline.heads_corpus import (
    check_context,
    check_vocabulary,
    keep_tokenizer,
    model_context,
    model_corpus,
)
from engine.pipeline.heads_influence_settings import InfluenceConfig
from engine.pipeline.heads_influence_tables import Asked, influence_tables, write_influence
from engine.pipeline.heads_models import HeadSource, load_decoder
from engine.pipeline.heads_monitor import heads_writer
from engine.pipeline.heads_samples import check_order, choose_samples, sample_order
from engine.pipeline.heads_scoring import Head, HeadScoring
from engine.pipeline.training import corpus_facts
from engine.provenance import fingerprint
from engine.store import Run, RunWriter


logger = logging.getLogger(__name__)

STAGE = "influence"
INFLUENCE_VERSION = 1
"""Counts changes in what is computed; what another version computed is computed again."""


def trace_heads(
    source: HeadSource,
    config: InfluenceConfig,
    *,
    head: Head | None,
    every: bool,
    corpus: str,
    run: str | None = None,
    progress: Progress = no_progress,
) -> Run:
    """Score samples for heads of a model, or what of it is missing, and write the tables.

    Args:
        source: the model; the last of its checkpoints is looked at.
        config: settings.
        head: layer and head that the result is about; the one that shows the kind most if None.
        every: score every head of the model in the same pass, and not that one alone.
        corpus: built corpus that the samples come from.
        run: name or folder of the run; named after the model if None.
        progress: wraps shards.

    Returns:
        The run with `documents`, `head_samples`, `head_influence`, `head_tokens`, `head_choices`
        and what the analysis makes of them. Kinds of heads that were traced before over the same
        samples stay.

    Raises:
        ConfigError: there is no such head, or not even one sample fits into the memory.
        CorpusError: the corpus is not built, or the order of its samples is not known.
        UnsupportedModel: heads cannot be told apart, or no sample has a finite gradient.
        CacheStale: the run holds influence over other samples, or of other weights.
    """
    opened = _open(source, config, head, corpus, run, progress)
    scoring, writer = opened.scoring, opened.writer
    chosen = scoring.strongest() if head is None else head
    folder = scoring.scored(_all(opened.layout) if every else (chosen,))
    asked = {**opened.known, config.unit: Asked(*chosen, folder)}
    step = source.checkpoints[-1].step
    keep_tokenizer(writer, source)
    writer.update("corpus", corpus_facts(opened.shards.corpus))
    done = write_influence(
        writer,
        STAGE,
        {
            "shared": opened.shared,
            "units": {u: _plain(one, writer) for u, one in asked.items()},
            "top": config.top,
        },
        {"settings": asdict(config), "corpus": opened.shards.corpus.name},
        lambda: influence_tables(scoring, opened.shards, asked, step),
    )
    return analyse_heads(str(done.path), progress)


@dataclass(frozen=True)
class _Opened:
    """A model, its samples and its run, all of them checked."""

    writer: RunWriter
    scoring: HeadScoring
    shards: TokenShards
    layout: HeadLayout
    shared: dict[str, Any]
    """What decides which samples are scored, and in which weights."""
    known: dict[str, Asked]
    """Kinds of heads that the run was traced for before."""


def _open(
    source: HeadSource,
    config: InfluenceConfig,
    head: Head | None,
    corpus: str,
    run: str | None,
    progress: Progress,
) -> _Opened:
    """Load the model and deal the samples; what cannot be is refused before anything is slow."""
    device, tokenizer = resolve_device(config.device), source.tokenizer()
    check_order(source, open_corpus(corpus), tokenizer, config.order)
    checkpoint = source.checkpoints[-1]
    model = load_decoder(source, checkpoint, device)
    layout = head_layout(model)
    if head is not None:
        layout.check(*head)
    opened = model_corpus(source, corpus, progress)
    order = sample_order(source, opened.shards, config)
    check_context(model, order, source.name)
    check_vocabulary(model, opened.shards, source.name)
    samples = choose_samples(order, config, checkpoint.step)
    shared = {
        "version": INFLUENCE_VERSION,
        "checkpoint": [checkpoint.name, checkpoint.step, checkpoint.identity],
        "tokens": opened.shards.fingerprint,
        "order": [config.order, order.context, order.rows_a_step],
        "steps": fingerprint(samples.steps.tolist()),
        "shard_samples": config.shard_samples,
    }
    writer = heads_writer(source, run)
    known = _known(writer, shared)
    probe = replace(config.probe, length=model_context(model, config.probe.length))
    folder = writer.path / STAGE / fingerprint(shared)
    scoring = HeadScoring(
        model, samples, tokenizer, opened.frequent(), probe, config, folder, progress
    )
    logger.info("influence in %s, %s: %s", source.name, checkpoint.name, device.reason)
    return _Opened(writer, scoring, opened.shards, layout, shared, known)


def _all(layout: HeadLayout) -> tuple[Head, ...]:
    return tuple((i, j) for i in range(layout.n_layers) for j in range(layout.n_heads))


def _known(writer: RunWriter, shared: dict[str, Any]) -> dict[str, Asked]:
    """Kinds of heads that the run was traced for before.

    Raises:
        CacheStale: over other samples, or in other weights.
    """
    entry = writer.manifest["stages"].get(STAGE, {})
    if "units" not in entry:
        return {}
    if fingerprint(entry["shared"]) != fingerprint(shared):
        raise CacheStale(
            f"Run {writer.path.name} holds influence of other samples or in other weights; choose "
            f"another name with --run, or remove {writer.path}."
        )
    return {
        unit: Asked(one["layer"], one["head"], writer.path / one["folder"])
        for unit, one in entry["units"].items()
        if (writer.path / one["folder"] / "facts.json").is_file()
    }


def _plain(asked: Asked, writer: RunWriter) -> dict[str, Any]:
    folder = Path(asked.folder).relative_to(writer.path).as_posix()
    return {"layer": asked.layer, "head": asked.head, "folder": folder}
