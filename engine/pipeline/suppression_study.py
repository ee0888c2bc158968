"""The suppression study: many generations from held-out prompts, before, after, and by chance.

Each prompt opens a held-out document of the unwanted domain. Every condition continues it with
the same seed and sampler: nothing suppressed, the concept's prototypes suppressed, and a random
set of as many prototypes, matched on firing rate, suppressed. The concept was chosen on training
texts alone, so no prompt had a part in it.
"""

import logging
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from engine.config import require
from engine.corpus.build import Corpus
from engine.corpus.documents import Progress, no_progress
from engine.corpus.presets import UNWANTED
from engine.errors import CacheStale, ConfigError, CorpusError, PackageMissing
from engine.live.engine import LiveEngine
from engine.live.generation import Continued, Request, continue_batch
from engine.live.model import LiveModel
from engine.live.opening import open_model
from engine.live.records import run_corpus
from engine.live.results import Sampler, Suppression
from engine.live.side_effects import token_losses
from engine.live.text import Codec
from engine.provenance import fingerprint
from engine.store import Run, RunWriter, open_run, read_json, read_table, write_json_atomic


logger = logging.getLogger(__name__)
STAGE = "suppression"
TABLE = "suppression"
CONDITIONS = ("baseline", "suppressed", "random")
PROGRESS_FILE = "suppression.partial.json"
"""Figures of the conditions that are done, while the study runs; no text."""
RECITED_TOKENS = 12
"""Length of a verbatim span of training text that counts as recited."""


@dataclass(frozen=True, kw_only=True)
class SuppressionStudy:
    """Settings of a study."""

    concept: str = "NSFW"
    """Saved concept to suppress."""
    generations: int = 240
    """Generations a condition."""
    tokens: int = 40
    """Tokens a generation, at most."""
    prompt_tokens: int = 10
    """Tokens of a held-out text that make a prompt."""
    strength: float = 1.0
    """Strength of suppression."""
    temperature: float = 0.8
    """Temperature of the sampler."""
    top_p: float = 0.95
    """Share of probability the sampler draws from."""
    seed: int = 0
    """Seed of prompts, samplers and the random set."""
    dense_run: str | None = None
    """Run of the dense twin under which perplexity is measured; the run's own decoder if unset."""
    batch_size: int = 48
    """Generations computed at once."""

    def __post_init__(self) -> None:
        for name in ("generations", "tokens", "prompt_tokens", "batch_size"):
            value = getattr(self, name)
            require(value >= 1, f"{name} is {value}; it must be 1 or more.")
        require(self.generations >= 2, "generations is 1; a study needs at least 2.")


@dataclass(frozen=True)
class Prompt:
    """The first tokens of a held-out document."""

    doc_id: str
    ids: tuple[int, ...]
    seed: int
    """Seed of the sampler in every condition."""


@dataclass(frozen=True)
class Judge:
    """The decoder that judges quality: a dense twin, or the run's own with nothing suppressed."""

    model: LiveModel

    def perplexity(self, prompt: tuple[int, ...], done: Continued) -> float:
        """Perplexity of the tokens drawn, given the prompt; they share one tokenizer."""
        ids = [*prompt, *done.token_ids][-self.model.context :]
        tokens = torch.tensor([ids], device=self.model.device)
        with torch.inference_mode():
            states = self.model.run(tokens[:, :-1]).states[0]
            losses = token_losses(self.model, states, tokens[0, 1:])
        return float(losses[-len(done.token_ids) :].mean().exp())


def study_suppression(
    run_name: str, study: SuppressionStudy, progress: Progress = no_progress
) -> dict[str, float]:
    """Write the rows of a concept into the `suppression` table of a run.

    A study that was stopped goes on after the last condition it finished; one that is done with
    the same settings and model is not repeated. Rows of other concepts are kept.

    Args:
        run_name: An indexed run whose corpus is built.
        study: Settings.
        progress: Wraps the batches of each condition.

    Returns:
        Mean score by condition, of the offline classifier.

    Raises:
        PackageMissing: A scorer is not here.
        CorpusError: The corpus has no held-out unwanted texts.
        PromptError: The run has no such concept.
    """
    started = time.perf_counter()
    run = open_run(run_name)
    identity = fingerprint([asdict(study), run.manifest.get("model", {}).get("fingerprint")])
    known = run.manifest["stages"].get(STAGE, {}).get("concepts", {}).get(study.concept, {})
    if known.get("identity") == identity and run.has(TABLE):
        return known["mean_scores"]
    bench = _Bench.prepare(run_name, study)
    notes = _Notes(run.path / PROGRESS_FILE, identity)
    for condition, suppression in bench.conditions().items():
        if condition not in notes.done:
            rows = bench.measure(condition, suppression, progress)
            notes.keep(condition, rows, bench.recited_share(rows))
    frame = pd.concat([notes.frame(name) for name in CONDITIONS], ignore_index=True)
    facts = {
        "identity": identity,
        "settings": asdict(study),
        "seconds": time.perf_counter() - started,
        "mean_scores": _mean_scores(frame),
        "recited_share": {name: notes.done[name]["recited_share"] for name in CONDITIONS},
        "recited_tokens": RECITED_TOKENS,
        "n_prompts": len(set(frame["doc_id"])),
        "n_prototypes": len(bench.concept),
        "control": list(bench.control),
    }
    _publish(run, study.concept, frame, facts)
    notes.path.unlink(missing_ok=True)
    return facts["mean_scores"]


@dataclass(frozen=True)
class _Bench:
    """Everything the conditions share."""

    engine: LiveEngine
    study: SuppressionStudy
    prompts: list[Prompt]
    concept: tuple[int, ...]
    control: tuple[int, ...]
    judge: Judge
    recitable: frozenset[tuple[int, ...]]

    @classmethod
    def prepare(cls, run_name: str, study: SuppressionStudy) -> "_Bench":
        """Load the model and the texts; what is missing is said before anything is generated."""
        engine = LiveEngine.open(run_name)
        scores = engine.score(["a", "b"])
        if scores.missing:
            raise PackageMissing(" ".join(scores.missing))
        concept = engine.concept(study.concept)
        corpus = run_corpus(engine.run, engine.name)
        return cls(
            engine=engine,
            study=study,
            prompts=held_out_prompts(corpus, engine.codec, study),
            concept=concept,
            control=engine.matched_random(concept, study.seed),
            judge=_judge(engine, study.dense_run),
            recitable=training_spans(corpus, engine.codec),
        )

    def conditions(self) -> dict[str, Suppression]:
        """What each condition suppresses."""
        sets = ((), self.concept, self.control)
        return {
            name: Suppression(chosen, self.study.strength)
            for name, chosen in zip(CONDITIONS, sets, strict=True)
        }

    def measure(
        self, condition: str, suppression: Suppression, progress: Progress
    ) -> list[dict[str, Any]]:
        """Rows of one condition."""
        size = self.study.batch_size
        batches = [self.prompts[i : i + size] for i in range(0, len(self.prompts), size)]
        rows: list[dict[str, Any]] = []
        for batch in progress(batches, label=f"Generating: {condition}", total=len(batches)):
            rows += self._batch(batch, suppression)
        for number, row in enumerate(rows):
            row.update(concept=self.study.concept, condition=condition, generation=number)
        return rows

    def _batch(self, prompts: list[Prompt], suppression: Suppression) -> list[dict[str, Any]]:
        request = Request(
            torch.tensor([prompt.ids for prompt in prompts]),
            [prompt.seed for prompt in prompts],
            Sampler(temperature=self.study.temperature, top_p=self.study.top_p),
            suppression,
        )
        done = continue_batch(self.engine.model, request, self.study.tokens)
        texts = ["".join(self.engine.codec.texts(row.text_ids)) for row in done]
        scores = self.engine.score(texts)
        if scores.classifier is None or scores.wordlist is None:
            raise PackageMissing(" ".join(scores.missing))
        figures = zip(prompts, done, scores.classifier, scores.wordlist, strict=True)
        return [
            {
                "doc_id": prompt.doc_id,
                "seed": prompt.seed,
                "strength": suppression.strength if suppression.active else 0.0,
                "classifier_score": classifier,
                "wordlist_score": wordlist,
                "perplexity": self.judge.perplexity(prompt.ids, row),
                "n_tokens": len(row.token_ids),
                "tokens_touched": row.touched,
                "recited": recites(row.text_ids, self.recitable),
            }
            for prompt, row, classifier, wordlist in figures
        ]

    @staticmethod
    def recited_share(rows: list[dict[str, Any]]) -> float:
        """Share of generations that hold a verbatim span of unwanted training text."""
        return sum(row["recited"] for row in rows) / len(rows)


class _Notes:
    """Figures of finished conditions, on disk while a study runs."""

    def __init__(self, path: Path, identity: str) -> None:
        self.path = path
        self.identity = identity
        self.done: dict[str, dict[str, Any]] = {}
        if path.is_file():
            try:
                found = read_json(path)
            except CacheStale:
                found = {}
            if found.get("identity") == identity:
                self.done = found["conditions"]

    def keep(self, condition: str, rows: list[dict[str, Any]], recited_share: float) -> None:
        """Note a condition as done."""
        logger.info("%s: %d generations measured", condition, len(rows))
        self.done[condition] = {"rows": rows, "recited_share": recited_share}
        write_json_atomic(self.path, {"identity": self.identity, "conditions": self.done})

    def frame(self, condition: str) -> pd.DataFrame:
        """Rows of a condition as the table holds them."""
        return pd.DataFrame(self.done[condition]["rows"]).drop(columns="recited")


def held_out_prompts(corpus: Corpus, codec: Codec, study: SuppressionStudy) -> list[Prompt]:
    """Openings of held-out unwanted documents, drawn without replacement while they last.

    Raises:
        CorpusError: There is no such document that is longer than a prompt.
    """
    openings = [
        (doc_id, tuple(ids[: study.prompt_tokens]))
        for doc_id, ids in _unwanted(corpus, codec, "validation")
        if len(ids) > study.prompt_tokens
    ]
    if not openings:
        raise CorpusError(
            f"The corpus {corpus.name} has no held-out texts of the domain {UNWANTED} of more "
            f"than {study.prompt_tokens} tokens; build the preset small or full with its package."
        )
    order = np.random.default_rng(study.seed).permutation(len(openings))
    chosen = [openings[order[number % len(order)]] for number in range(study.generations)]
    return [
        Prompt(doc_id, ids, study.seed * 1_000_003 + number)
        for number, (doc_id, ids) in enumerate(chosen)
    ]


def training_spans(corpus: Corpus, codec: Codec) -> frozenset[tuple[int, ...]]:
    """Every span of `RECITED_TOKENS` tokens of the unwanted training texts."""
    return frozenset(
        tuple(ids[start : start + RECITED_TOKENS])
        for _, ids in _unwanted(corpus, codec, "train")
        for start in range(len(ids) - RECITED_TOKENS + 1)
    )


def recites(ids: list[int], spans: frozenset[tuple[int, ...]]) -> bool:
    """Whether a generation holds one of the spans."""
    starts = range(len(ids) - RECITED_TOKENS + 1)
    return any(tuple(ids[start : start + RECITED_TOKENS]) in spans for start in starts)


def _unwanted(corpus: Corpus, codec: Codec, split: str) -> list[tuple[str, list[int]]]:
    """Id and tokens of the unwanted documents of a split, in the corpus's order."""
    columns = corpus.documents[["document", "doc_id", "domain", "split"]]
    return [
        (str(doc_id), codec.encode(corpus.text(int(document)), "document"))
        for document, doc_id, domain, where in columns.itertuples(index=False, name=None)
        if domain == UNWANTED and where == split
    ]


def _judge(engine: LiveEngine, dense_run: str | None) -> Judge:
    """The judge of a study.

    Raises:
        ConfigError: The twin has another tokenizer, so its perplexity is of other tokens.
    """
    if dense_run is None:
        return Judge(engine.model)
    twin = open_model(dense_run)
    if twin.codec.tokenizer.get_vocab() != engine.codec.tokenizer.get_vocab():
        raise ConfigError(
            f"{dense_run} has another vocabulary than {engine.name}, so it cannot judge its "
            "tokens; name the dense twin that was trained with the same tokenizer."
        )
    return Judge(twin.model)


def _mean_scores(frame: pd.DataFrame) -> dict[str, float]:
    scores = {n: frame.loc[frame["condition"] == n, "classifier_score"] for n in CONDITIONS}
    return {name: float(np.mean(values.to_numpy())) for name, values in scores.items()}


def _publish(run: Run, concept: str, frame: pd.DataFrame, facts: dict[str, Any]) -> None:
    """Write the table, the rows of other concepts included, and the facts of each concept."""
    stage = run.manifest["stages"].get(STAGE, {})
    concepts = {**stage.get("concepts", {}), concept: facts}
    if run.has(TABLE):
        names = set(read_table(run, TABLE, columns=["concept"])["concept"]) - {concept}
        others = read_table(run, TABLE, where={"concept": sorted(names)})
        frame = pd.concat([others, frame], ignore_index=True) if len(others) else frame
    writer = RunWriter.resume(run.path)
    writer.begin_stage(STAGE, {name: known["identity"] for name, known in concepts.items()})
    writer.write_table(TABLE, frame)
    latest = {name: facts[name] for name in ("settings", "seconds", "mean_scores", "recited_share")}
    writer.finish_stage(STAGE, {**latest, "concepts": concepts})
