"""Generations of a suppression study in batches: figures of each are kept, its text is not."""

import logging
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from engine.corpus.documents import Progress
from engine.errors import CacheStale, EngineError
from engine.live.generation import Continued, Request, continue_batch
from engine.live.model import LiveModel
from engine.live.results import Sampler, Suppression
from engine.live.text import Codec
from engine.pipeline.suppression_prompts import Prompt, recites
from engine.scoring import Scorer
from engine.store import read_json, write_json_atomic


logger = logging.getLogger(__name__)
MEASURES = ("perplexity", "distinct_1", "distinct_2", "distinct_3", "repetition", "n_tokens")
"""Figures of quality of each generation."""
NEAR = 16
"""Tokens before a token among which its repetition counts."""
Rows = dict[str, list[Any]]
"""Columns of figures, a place a generation."""


class Notes:
    """What a study has found so far, one small file a step, so that it goes on where it stopped."""

    def __init__(self, folder: Path, identity: str) -> None:
        """Open the folder; what another study left there is removed."""
        self.folder = folder
        mark = folder / "identity.json"
        try:
            known = read_json(mark) if mark.is_file() else None
        except CacheStale:
            known = None
        if known != identity:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            write_json_atomic(mark, identity)

    def remember(self, step: str, make: Callable[[], Any]) -> Any:
        """What a step gave, from its file or made now; JSON gives every number back as it was."""
        path = self.folder / f"{step}.json"
        if path.is_file():
            try:
                return read_json(path)
            except CacheStale:
                logger.info("%s is damaged and made again", path)
        found = make()
        write_json_atomic(path, found)
        return read_json(path)

    def remove(self) -> None:
        """The study is done."""
        shutil.rmtree(self.folder)


class ScorerPool:
    """Several scorers; the first must work, one of the others that fails is left out and named."""

    def __init__(self, openers: dict[str, Callable[[], Scorer]]) -> None:
        """Open them all.

        Args:
            openers: What opens each scorer, by name; the first took part in the choice.

        Raises:
            EngineError: The first cannot be opened.
        """
        self.names = tuple(openers)
        self.failed: dict[str, str] = {}
        self._open: dict[str, Scorer] = {}
        for name, opener in openers.items():
            try:
                self._open[name] = opener()
            except EngineError as error:
                self._fail(name, error)

    @property
    def first(self) -> Scorer:
        """The scorer that takes part in the choice."""
        return self._open[self.names[0]]

    def meaning(self, name: str) -> str:
        """What a scorer's value is; empty for one that could not be opened."""
        return self._open[name].meaning if name in self._open else ""

    def score(self, texts: Sequence[str]) -> dict[str, list[float] | None]:
        """Values by scorer; None for one that failed now or before."""
        found: dict[str, list[float] | None] = {}
        for name in self.names:
            found[name] = None
            if name in self.failed:
                continue
            try:
                found[name] = self._open[name].score(texts)
            except EngineError as error:
                self._fail(name, error)
        return found

    def _fail(self, name: str, error: EngineError) -> None:
        if name == self.names[0]:
            raise error
        logger.warning("the scorer %s failed: %s", name, error)
        self.failed[name] = str(error)


@dataclass(frozen=True)
class Bench:
    """What every condition shares."""

    model: LiveModel
    codec: Codec
    judge: LiveModel
    """The decoder under which perplexity is measured."""
    scorers: ScorerPool
    sampler: Sampler
    tokens: int
    batch_size: int
    notes: Notes
    progress: Progress
    spans: frozenset[tuple[int, ...]] = field(repr=False)
    """Spans of training text that count as recited."""

    def continued(
        self, step: str, prompts: Sequence[Prompt], suppression: Suppression
    ) -> list[tuple[list[int], list[int]]]:
        """Tokens drawn after each prompt, with and without the one that ends the text."""
        found: list[tuple[list[int], list[int]]] = []
        for name, batch in self._batches(step, prompts):
            made = self.notes.remember(
                name,
                lambda batch=batch: [
                    (row.token_ids, row.text_ids) for row in self._draw(batch, suppression)
                ],
            )
            found += [(drawn, text) for drawn, text in made]
        return found

    def measured(self, step: str, prompts: Sequence[Prompt], suppression: Suppression) -> Rows:
        """Figures of a continuation of each prompt, in their order."""
        rows: Rows = {}
        for name, batch in self._batches(step, prompts):
            made = self.notes.remember(name, lambda batch=batch: self._figures(batch, suppression))
            for scorer, reason in made.pop("failed").items():
                self.scorers.failed.setdefault(scorer, reason)
            for column, values in made.items():
                rows.setdefault(column, []).extend(values)
        return rows

    def _batches(
        self, step: str, prompts: Sequence[Prompt]
    ) -> Iterator[tuple[str, Sequence[Prompt]]]:
        """Prompts computed at once, and a name for each batch."""
        starts = range(0, len(prompts), self.batch_size)
        for start in self.progress(starts, label=f"Generating: {step}", total=len(starts)):
            yield f"{step}-{start:06d}", prompts[start : start + self.batch_size]

    def _draw(self, prompts: Sequence[Prompt], suppression: Suppression) -> list[Continued]:
        request = Request(
            torch.tensor([prompt.ids for prompt in prompts]),
            [prompt.seed for prompt in prompts],
            self.sampler,
            suppression,
        )
        return continue_batch(self.model, request, self.tokens)

    def _figures(self, prompts: Sequence[Prompt], suppression: Suppression) -> dict[str, Any]:
        done = self._draw(prompts, suppression)
        scores = self.scorers.score(["".join(self.codec.texts(row.text_ids)) for row in done])
        perplexity = perplexities(self.judge, [p.ids for p in prompts], done)
        rows: Rows = {
            f"score:{name}": values if values is not None else [None] * len(done)
            for name, values in scores.items()
        }
        return {
            **rows,
            "perplexity": perplexity.tolist(),
            **{f"distinct_{n}": [distinct(row.text_ids, n) for row in done] for n in (1, 2, 3)},
            "repetition": [repetition(row.text_ids) for row in done],
            "n_tokens": [len(row.token_ids) for row in done],
            "tokens_touched": [row.touched for row in done],
            "recited": [recites(row.text_ids, self.spans) for row in done],
            "failed": dict(self.scorers.failed),
        }


@torch.inference_mode()
def perplexities(
    judge: LiveModel, prompts: Sequence[tuple[int, ...]], done: Sequence[Continued]
) -> Float[Tensor, " rows"]:
    """Perplexity of the tokens drawn, given prompts of one length, under a model of one tokenizer.

    What the judge's context cannot hold is read from the last tokens that it can.
    """
    length, longest = len(prompts[0]), max(len(row.token_ids) for row in done)
    ids = torch.zeros(len(done), length + longest, dtype=torch.long)
    drawn = torch.zeros(len(done), length + longest, dtype=torch.bool)
    for number, (prompt, row) in enumerate(zip(prompts, done, strict=True)):
        end = length + len(row.token_ids)
        ids[number, :end] = torch.tensor([*prompt, *row.token_ids])
        drawn[number, length:end] = True
    first = max(0, length + longest - judge.context)
    ids, drawn = ids[:, first:].to(judge.device), drawn[:, first + 1 :].to(judge.device)
    # A causal model does not see what stands behind a position, padding among it.
    states = judge.run(ids[:, :-1]).states[drawn]
    targets = ids[:, 1:][drawn]
    losses = torch.cat(
        [
            torch.nn.functional.cross_entropy(judge.logits(part), wanted, reduction="none")
            for part, wanted in zip(states.split(2048), targets.split(2048), strict=True)
        ]
    ).double()
    rows = drawn.nonzero()[:, 0]
    total = torch.zeros(len(done), dtype=torch.float64, device=judge.device)
    total.index_add_(0, rows, losses)
    return (total / drawn.sum(1)).exp().cpu()


def distinct(ids: Sequence[int], n: int) -> float:
    """Different n-grams over n-grams of a text; 1 for a text without one."""
    grams = [tuple(ids[start : start + n]) for start in range(len(ids) - n + 1)]
    return len(set(grams)) / len(grams) if grams else 1.0


def repetition(ids: Sequence[int]) -> float:
    """Share of tokens that occurred among the `NEAR` before; 0 for a text without tokens."""
    again = sum(token in ids[max(0, place - NEAR) : place] for place, token in enumerate(ids))
    return again / len(ids) if ids else 0.0
