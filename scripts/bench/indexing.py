"""Indexing speed against the bare forward pass: the same windows, shard by shard, in turns."""

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.config import IndexConfig
from engine.corpus.build import open_corpus
from engine.corpus.shards import tokenise_corpus
from engine.corpus.tokenizer import load_tokenizer
from engine.pipeline.index import Indexing, scan, summarise
from engine.pipeline.index_scan import ShardWindows
from engine.pipeline.index_windows import plan_windows
from engine.pipeline.measurements import record_measurement
from engine.prism.checkpoints import load_prism
from engine.prism.labels.vocabulary import Vocabulary
from engine.store import RunWriter, open_run, resolve_model
from scripts.bench.clock import cpu_seconds, ratio, timed


SHARD_TOKENS = 32_768


def measure_indexing(run: str, rounds: int) -> None:
    """Index `rounds` shards into a temporary run and keep the record `indexing`.

    The time of a shard is that of the scan, of writing it, and its share of the passes that read
    the shards back. Labels and map are left out: they depend on the bank and not on the corpus.
    """
    folder = Path(tempfile.mkdtemp(prefix="headwater-bench-"))
    try:
        work, corpus = _prepare(run, folder / "bench", rounds)
        found = _turns(work)
        second = timed(cpu_seconds, lambda: summarise(work)) / len(found)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for record in found:
        record["indexing_seconds"] += second
    setting = {
        "device": "cpu",
        "run": run,
        "corpus": corpus,
        "prototypes": work.n_prototypes,
        "tokens_a_round": SHARD_TOKENS,
        "context": work.config.context,
        "batch": work.config.batch_size,
        "threads": torch.get_num_threads(),
        "second_passes_seconds": round(second, 3),
    }
    record_measurement("indexing", setting, found)
    speed = work.plan.n_tokens / sum(r["indexing_seconds"] for r in found)
    value = ratio(found, "forward_seconds", "indexing_seconds")
    print(f"indexing {run}: {value:.3f} of the forward pass's tokens/s; {speed:,.0f} tokens/s")


def _prepare(run: str, path: Path, rounds: int) -> tuple[Indexing, str]:
    opened, folder = open_run(run), resolve_model(run)
    model, tokenizer_folder = load_prism(folder)
    tokenizer = Path(tokenizer_folder) / "tokenizer.json"
    corpus = open_corpus(opened.manifest["corpus"]["name"])
    tokens = tokenise_corpus(corpus, load_tokenizer(tokenizer))
    config = IndexConfig(max_tokens=rounds * SHARD_TOKENS, shard_tokens=SHARD_TOKENS, device="cpu")
    plan = plan_windows(
        corpus.documents,
        np.diff(tokens.offsets) - 1,
        max_tokens=config.max_tokens,
        context=config.context,
        seed=config.seed,
    )
    writer = RunWriter.create(path, name="Bench", kind=opened.kind, identity={})
    writer.begin_stage("index", {})
    vocabulary = Vocabulary.load(tokenizer, tokens.vocab_size)
    return Indexing(config, model, vocabulary, tokens, plan, writer, _silent), corpus.name


def _silent(items: Iterable[Any], **_: Any) -> Iterable[Any]:
    return items


def _turns(work: Indexing) -> list[dict[str, float]]:
    """Scan shard after shard; after each, run the bare model over the same windows."""
    rounds: list[dict[str, float]] = []
    slices = work.shard_slices()

    def turns(items: Iterable[Any], **_: Any) -> Iterator[Any]:
        for index, item in enumerate(items):
            start = cpu_seconds()
            yield item
            indexing = cpu_seconds() - start
            windows = work.windows(slices[index])
            forward = timed(cpu_seconds, lambda windows=windows: _forward(work, windows))
            rounds.append({"forward_seconds": forward, "indexing_seconds": indexing})

    scan(
        Indexing(
            work.config, work.model, work.vocabulary, work.tokens, work.plan, work.writer, turns
        )
    )
    return rounds


@torch.inference_mode()
def _forward(work: Indexing, windows: ShardWindows) -> None:
    """Logits of every token of the windows, in batches of like length, and nothing else."""
    order = np.argsort(-windows.length, kind="stable")
    for begin in range(0, len(order), work.config.batch_size):
        chosen = order[begin : begin + work.config.batch_size]
        longest = int(windows.length[chosen].max())
        inputs = torch.full((len(chosen), longest + 1), work.tokens.separator)
        for line, window in enumerate(chosen):
            first, size = int(windows.first[window]), int(windows.length[window])
            inputs[line, 1 : size + 1] = torch.from_numpy(windows.tokens[first : first + size])
        work.model.backbone(input_ids=inputs, use_cache=False)
