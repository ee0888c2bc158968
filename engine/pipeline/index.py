"""Index a run: one pass of the model over the corpus, then every table the pages read.

Pass 1 scans windows and writes sparse activations shard by shard; a stopped index resumes at the
first shard that is missing. Pass 2 reads the shards three times, in memory that does not grow with
their number: sums and top examples, then quantile examples, then windows and contexts.
"""

import logging
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Int

from engine.config import IndexConfig
from engine.corpus.build import open_corpus
from engine.corpus.documents import Progress, no_progress
from engine.corpus.shards import TokenShards, tokenise_corpus
from engine.corpus.tokenizer import load_tokenizer
from engine.devices import resolve_device
from engine.errors import CacheMissing, ConfigError
from engine.pipeline.examples import (
    Examples,
    Pairs,
    SmallestPerGroup,
    TopPairs,
    gather_examples,
    random_bits,
)
from engine.pipeline.index_concepts import concept_rows, typical_prototypes
from engine.pipeline.index_examples import WindowActivations, late_positions, window_bounds
from engine.pipeline.index_scan import ShardWindows, scan_shard, shard_windows
from engine.pipeline.index_shards import (
    ACTIVATIONS,
    RESIDUALS,
    Shard,
    ShardReader,
    shard_frames,
    shard_paths,
)
from engine.pipeline.index_statistics import PrototypeStatistics
from engine.pipeline.index_tables import (
    domain_columns,
    example_columns,
    histogram_columns,
    neighbour_columns,
    prototype_columns,
    signature_columns,
)
from engine.pipeline.index_windows import UNWANTED, WindowPlan, plan_windows
from engine.pipeline.labels import ContextReader, ContextSample, TokenTally
from engine.pipeline.labels_endpoint import endpoint_labels
from engine.pipeline.map import BankMap
from engine.prism.checkpoints import load_prism
from engine.prism.labels.contexts import FeatureSpace
from engine.prism.labels.label import Label, label_prototypes
from engine.prism.labels.vocabulary import Vocabulary
from engine.prism.model import PrismForCausalLM
from engine.prism.neighbours import nearest_prototypes, signatures
from engine.provenance import fingerprint_model
from engine.store import Run, RunWriter, open_run, resolve_model, resolve_run


logger = logging.getLogger(__name__)

STAGE, SCAN_STAGE = "index", "scan"
"""The second is the pass over the corpus alone, so that new labels need no new pass."""
SCANNED_BY = ("max_tokens", "context", "shard_tokens", "seed")
"""Settings the pass over the corpus depends on."""
UNSEEN_CONTEXT = 8
"""Tokens at a window's start whose context the model mostly did not see."""
INDEX_VERSION = 2
"""Counts changes in what is made of the shards; an index of another version is made again."""
UNCHANGED_BY = ("device", "batch_size")
"""Settings that change how fast an index is made, and not what it says."""


@dataclass
class Indexing:
    """One index under way."""

    config: IndexConfig
    model: PrismForCausalLM
    vocabulary: Vocabulary
    tokens: TokenShards
    plan: WindowPlan
    writer: RunWriter
    progress: Progress

    @property
    def n_prototypes(self) -> int:
        """Prototypes of the bank."""
        return len(self.model.prototypes)

    def shard_slices(self) -> list[slice]:
        """Windows of each shard."""
        return self.plan.shards(self.config.shard_tokens)

    def windows(self, windows: slice) -> ShardWindows:
        """Windows of a shard with their tokens."""
        return shard_windows(self.plan, self.tokens, windows)

    def token_domain(self, shard: Shard) -> Int[np.ndarray, " tokens"]:
        """Number of each token's domain."""
        return self.plan.document_domain[shard.document]


def index_run(
    run: str | Path,
    config: IndexConfig,
    progress: Progress = no_progress,
    *,
    corpus: str | Path | None = None,
) -> Run:
    """Write every table of an index into a run.

    Args:
        run: Name or folder of a run that holds a model with prototypes.
        config: Settings.
        progress: Wraps each long loop.
        corpus: Corpus to scan; the one the run was made from if None.

    Returns:
        The run, opened.

    Raises:
        CacheMissing: The run holds no model, or names no corpus.
    """
    path = resolve_run(run)
    folder = resolve_model(path)
    writer = RunWriter.resume(path)
    device = resolve_device(config.device)
    model, tokenizer_folder = load_prism(folder, dtype=device.dtype, device=device.device)
    tokenizer_path = Path(tokenizer_folder) / "tokenizer.json"
    opened = open_corpus(corpus or _corpus_name(writer))
    tokens = tokenise_corpus(opened, load_tokenizer(tokenizer_path), progress)
    source = {"model": fingerprint_model(folder), "tokens": tokens.fingerprint}
    settings = {k: v for k, v in asdict(config).items() if k not in UNCHANGED_BY}
    identity = {"version": INDEX_VERSION, "config": settings, **source}
    if writer.begin_stage(STAGE, identity):
        return open_run(path)
    logger.info("index of %s starts: %s", path.name, device.reason)
    vocabulary = Vocabulary.load(tokenizer_path, _vocab_size(model, tokens))
    plan = plan_windows(
        opened.documents,
        np.diff(tokens.offsets) - 1,
        max_tokens=config.max_tokens,
        context=_context(model, config),
        seed=config.seed,
    )
    work = Indexing(config, model, vocabulary, tokens, plan, writer, progress)
    scanned = {**source, "config": {name: settings[name] for name in SCANNED_BY}}
    if not writer.begin_stage(SCAN_STAGE, scanned):
        _finish_scan(work, scan(work))
    writer.begin_stage(STAGE, identity)
    seconds = _write_index(work)
    writer.update("config", {**writer.manifest.get("config", {}), "index": asdict(config)})
    facts = {
        "seconds": round(sum(seconds.values()), 2),
        "seconds_by_part": {name: round(value, 2) for name, value in seconds.items()},
        "tokens_scanned": plan.n_tokens,
        "documents": len(plan.documents),
        "corpus": {"name": opened.name, "fingerprint": opened.fingerprint},
    }
    writer.finish_stage(STAGE, facts)
    logger.info("index of %s ends: %d tokens, %.0f s", path.name, plan.n_tokens, facts["seconds"])
    return open_run(path)


def _finish_scan(work: Indexing, seconds: float) -> None:
    """Publish the shards; the rate counts the shards of this call alone."""
    facts = {
        "seconds": round(seconds, 2),
        "tokens_scanned": work.plan.n_tokens,
        "device": str(work.model.device),
    }
    work.writer.finish_stage(SCAN_STAGE, facts)


def _corpus_name(writer: RunWriter) -> str:
    name = (writer.manifest.get("corpus") or {}).get("name")
    if not name:
        raise CacheMissing(
            f"Run {writer.path.name} does not say which corpus it was made from; "
            "train it again with `headwater train`."
        )
    return str(name)


def _context(model: PrismForCausalLM, config: IndexConfig) -> int:
    """Tokens of a window, the separator included."""
    limit = getattr(model.config.decoder, "max_position_embeddings", None) or config.context
    return max(2, min(config.context, int(limit)))


def _vocab_size(model: PrismForCausalLM, tokens: TokenShards) -> int:
    """Tokens the model can predict, the tokenizer's and perhaps more."""
    size = model.get_output_embeddings().get_parameter("weight").shape[0]
    if tokens.vocab_size > size:
        raise ConfigError(
            f"The tokenizer has {tokens.vocab_size} tokens and the model {size}; "
            "the folder's tokenizer.json belongs to another model."
        )
    return int(size)


def _write_index(work: Indexing) -> dict[str, float]:
    """Pass 2 and what follows from it; returns the seconds of each part."""
    seconds: dict[str, float] = {}
    started = time.perf_counter()

    def lap(part: str) -> None:
        nonlocal started
        seconds[part] = time.perf_counter() - started
        started = time.perf_counter()

    directions = torch.nn.functional.normalize(work.model.prototypes.detach().float(), dim=1)
    drawing = BankMap(directions.cpu().numpy(), work.config.seed)
    try:
        summary = summarise(work)
        lap("summary")
        raised = _write_bank_tables(work)
        lap("bank")
        labels = label(work, summary, raised)
        lap("labels")
        coordinates = drawing.coordinates()
        lap("map")
    finally:
        drawing.stop()
    _write_tables(work, summary, labels, coordinates)
    lap("tables")
    return seconds


def scan(work: Indexing) -> float:
    """Pass 1: write the shards that are not there yet; returns the seconds it took."""
    started = time.perf_counter()
    slices = work.shard_slices()
    for index, windows in work.progress(
        list(enumerate(slices)), label="Scanning", total=len(slices)
    ):
        done = [work.writer.shard_done(table, index) for table in (ACTIVATIONS, RESIDUALS)]
        if all(done):
            continue
        own = work.windows(windows)
        found = scan_shard(
            work.model,
            own,
            separator=work.tokens.separator,
            batch_size=work.config.batch_size,
        )
        activations, residuals = shard_frames(own, found)
        work.writer.write_shard(ACTIVATIONS, index, activations)
        work.writer.write_shard(RESIDUALS, index, residuals)
    return time.perf_counter() - started


@dataclass(frozen=True)
class Summary:
    """What the shards say of the bank."""

    statistics: PrototypeStatistics
    examples: Examples
    windows: WindowActivations
    contexts: ContextReader
    masked_tokens: frozenset[int]


def summarise(work: Indexing) -> Summary:
    """Pass 2: three reads of the shards."""
    config, plan = work.config, work.plan
    slices = work.shard_slices()
    paths = shard_paths(work.writer.manifest, work.writer.path)
    reader = ShardReader(paths, work.model.config.n_active)
    unwanted = plan.domains.index(UNWANTED) if UNWANTED in plan.domains else None
    statistics = PrototypeStatistics(work.n_prototypes, len(plan.domains), config.n_bins)
    top = TopPairs(config.n_top)
    sample = ContextSample(work.n_prototypes, config.seed)
    tally = TokenTally(work.tokens.vocab_size, unwanted)
    for index in work.progress(range(len(slices)), label="Counting", total=len(slices)):
        shard, windows = reader.read(index), work.windows(slices[index])
        pairs, domain = shard_pairs(shard), work.token_domain(shard)
        token = shard.entries().token
        statistics.update(pairs, domain[token], domain)
        top.update(pairs, _unseen_context(shard, windows)[token])
        sample.update(pairs, shard)
        tally.update(windows.tokens, domain)
    bands = statistics.bands(config.n_quantiles)
    banded = SmallestPerGroup(work.n_prototypes * config.n_quantiles, config.per_quantile)
    for index in work.progress(range(len(slices)), label="Quantiles", total=len(slices)):
        pairs = shard_pairs(reader.read(index))
        banded.update(bands.groups(pairs), random_bits(pairs, config.seed), pairs)
    band, rank, chosen = gather_examples(top.pairs, banded.pairs, banded.group, config.n_quantiles)
    bounds = window_bounds(plan, chosen, before=config.window_before, after=config.window_after)
    examples = Examples(band, rank, chosen, *bounds)
    collected = WindowActivations(examples)
    contexts = ContextReader(sample, work.vocabulary)
    for index in work.progress(range(len(slices)), label="Contexts", total=len(slices)):
        shard = reader.read(index)
        collected.read(shard)
        contexts.read(shard, work.windows(slices[index]), work.token_domain(shard))
    return Summary(statistics, examples, collected, contexts, tally.masked(work.vocabulary))


def shard_pairs(shard: Shard) -> Pairs:
    """Active pairs of a shard."""
    entries = shard.entries()
    return Pairs(
        entries.prototype,
        shard.document[entries.token],
        shard.position[entries.token],
        entries.activation,
    )


def _unseen_context(shard: Shard, windows: ShardWindows) -> Bool[np.ndarray, " tokens"]:
    start = np.repeat(windows.start, windows.length)
    return late_positions(shard.position, start, UNSEEN_CONTEXT)


def label(
    work: Indexing, summary: Summary, raised: Int[np.ndarray, "prototypes tokens"]
) -> list[Label]:
    """Label the bank from the sampled contexts; `raised` are the tops of the signatures."""
    examples = summary.contexts.examples()
    if work.config.label_endpoint is not None:
        return endpoint_labels(
            work.config, work.vocabulary, work.plan, work.tokens, examples, work.progress
        )
    unwanted = typical_prototypes(summary.statistics, work.plan.domains, UNWANTED)
    return label_prototypes(
        FeatureSpace(work.vocabulary, work.plan.domains),
        examples,
        seed=work.config.seed,
        masked_tokens=summary.masked_tokens,
        unwanted=unwanted,
        raised=raised,
        progress=work.progress,
    )


def _write_bank_tables(work: Indexing) -> Int[np.ndarray, "prototypes tokens"]:
    """Write the tables that follow from the bank alone; returns the tops of the signatures."""
    nearest = nearest_prototypes(work.model.prototypes, work.config.n_neighbours)
    work.writer.write_table("prototype_neighbours", neighbour_columns(nearest))
    ends = signatures(work.model, work.config.n_signature)
    work.writer.write_table("prototype_signatures", signature_columns(ends))
    return ends.top_tokens.cpu().numpy()


def _write_tables(
    work: Indexing, summary: Summary, labels: list[Label], coordinates: np.ndarray
) -> None:
    """Tables that follow from the shards."""
    statistics, domains = summary.statistics, work.plan.domains
    norms = work.model.prototypes.detach().float().norm(dim=1).cpu().numpy()
    work.writer.write_table("documents", work.plan.documents)
    work.writer.write_table("prototype_histograms", histogram_columns(statistics))
    work.writer.write_table("prototype_domains", domain_columns(statistics, domains))
    work.writer.write_table(
        "prototype_examples", example_columns(summary.examples, summary.windows)
    )
    work.writer.write_table("concepts", concept_rows(statistics, domains, UNWANTED))
    work.writer.write_table(
        "prototypes", prototype_columns(statistics, domains, labels, norms, coordinates)
    )
