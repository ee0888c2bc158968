"""A run about heads whose top samples are known: the generated rows, and one kind of table."""

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tokenizers import Tokenizer

from engine.config import CorpusConfig
from engine.corpus.build import build_corpus
from engine.corpus.shards import TokenShards, tokenise_corpus
from engine.corpus.tokenizer import save_tokenizer, train_tokenizer
from engine.mda.settings import MixtureConfig
from engine.mda.stream import MixedStream
from engine.pipeline.training import corpus_facts
from engine.store import RunWriter


CONTEXT, BATCH, STEPS, SEEDS = 97, 7, range(11, 24), (0, 2)
HEADS = ["0.0", "0.1", "1.0"]
CHOSEN = {"induction": "1.0", "previous_token": "0.1"}
N_SELECTED = 13


def write_corpus(house: Path) -> TokenShards:
    """Documents of words without structure and documents of tables, bytes as tokens."""
    folder = house / "town"
    folder.mkdir()
    generator = np.random.default_rng(0)
    words = [
        "".join(chr(97 + int(c)) for c in generator.integers(0, 26, int(n)))
        for n in generator.integers(2, 9, 900)
    ]
    for number in range(6):
        own = words[150 * number : 150 * (number + 1)]
        lines = [f"{a};{b};{i}" for i, (a, b) in enumerate(itertools.pairwise(own))]
        text = "\n".join(lines) if number % 2 else " ".join(own)
        (folder / f"{number}.txt").write_text(text)
    config = CorpusConfig(preset=None, path=str(folder), validation_share=0.1)
    corpus = build_corpus(config, house / "cache" / "corpus")
    return tokenise_corpus(corpus, train_tokenizer(corpus, 257, seed=0))


def write_heads_run(house: Path, name: str = "heads") -> tuple[Path, dict[int, MixedStream]]:
    """A run of two seeds: generated rows raise induction heads, tables raise previous-token heads.

    Returns:
        Its folder, and the rows of each seed.
    """
    shards = write_corpus(house)
    streams = {seed: MixedStream(shards, mixture(shards, seed)) for seed in SEEDS}
    writer = RunWriter.create(
        house / "cache" / name,
        name=name,
        kind="heads",
        identity={"corpus": corpus_facts(shards.corpus)},
    )
    tokenizer = train_tokenizer(shards.corpus, 257, seed=0)
    save_tokenizer(tokenizer, writer.path / "model")
    writer.begin_stage("study", {"planted": True})
    frames = [tables(seed, stream, tokenizer) for seed, stream in streams.items()]
    columns = ["document", "doc_id", "domain", "source", "split", "n_bytes"]
    writer.write_table("documents", shards.corpus.documents[columns])
    for table in frames[0]:
        writer.write_table(table, pd.concat([own[table] for own in frames], ignore_index=True))
    mixtures = {str(seed): dataclasses.asdict(stream.config) for seed, stream in streams.items()}
    writer.finish_stage("study", {"mixtures": mixtures, "seeds": 2})
    return writer.path, streams


def mixture(shards: TokenShards, seed: int) -> MixtureConfig:
    return MixtureConfig(
        domain_weights={shards.domains[0]: 1.0},
        repeat_share=0.4,
        context=CONTEXT,
        batch_size=BATCH,
        shortest=5,
        longest=31,
        seed=seed,
    )


def tables(seed: int, stream: MixedStream, tokenizer: Tokenizer) -> dict[str, pd.DataFrame]:
    """Samples, influence and choices of a seed; influence is above 0 where it was planted."""
    generator = np.random.default_rng(seed)
    samples, influence = [], []
    for step, row in itertools.product(STEPS, range(BATCH)):
        source, text = stream.source(step, row), tokenizer.decode(stream.batch(step)[row].tolist())
        planted = source.segment > 0
        named = {"seed": seed, "step": step, "row": row}
        position = max(source.position - 1, min(source.position, 0))  # the separator not counted
        place = {"document": source.document, "position": position}
        more = {"segment": source.segment, "loss": 1.0, "tags": "prose"}
        samples.append({**named, "domain": source.domain, **place, **more})
        raising = {"induction": planted, "previous_token": is_table(text) and not planted}
        for unit, raises in raising.items():
            values = generator.uniform(-1, -0.5, len(HEADS)).astype(np.float32)
            values[HEADS.index(CHOSEN[unit])] += 2 * raises
            influence.append({**named, "unit": unit, "influence": values})
    frames = {"head_samples": samples, "head_influence": influence, "head_choices": choices(seed)}
    return {name: pd.DataFrame(rows) for name, rows in frames.items()}


def is_table(text: str) -> bool:
    return text.count(";") >= 8


def choices(seed: int) -> list[dict[str, Any]]:
    counts = {"n_selected": N_SELECTED, "n_samples": len(STEPS) * BATCH, "n_planted_selected": 0}
    more = {"n_planted": 0, "n_skipped": 0, "seconds": 1.0, "checkpoint_step": 20}
    return [
        {
            "seed": seed,
            "unit": unit,
            "layer": int(head[0]),
            "head": int(head[2]),
            "heads": HEADS,
            **counts,
            **more,
        }
        for unit, head in CHOSEN.items()
    ]
