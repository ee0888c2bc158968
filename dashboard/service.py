"""Live work behind the pages: one engine a run, pure functions of small arguments, no session.

`engine.live` is imported inside the cached function alone, so that a page that only reads Parquet
never loads torch. The engine holds no state of a reader: whatever differs between two readers is
an argument of every call.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from dashboard import data, examples
from dashboard.data import RunRef
from dashboard.figures.tokens import glyphs, veil
from engine.errors import CacheMissing, CorpusError, PackageMissing
from engine.store.concepts import read_concepts


if TYPE_CHECKING:
    from engine.live import (
        Decomposition,
        GenerationStep,
        LiveEngine,
        PromptActivations,
        Scores,
        Shift,
        Suppression,
        Token,
    )

N_RANDOM = 3
"""Matched random sets drawn beside a suppression."""
METER_TOKENS = 1024
"""Benign tokens the side-effect meter reads a set."""
SENSITIVE = 0.5
"""Classifier score from which a text is hidden until revealed."""
SMALL_MODEL = 20_000_000
"""Parameters up to which a page generates without being asked."""
_opening = threading.Lock()


@dataclass(frozen=True)
class Off:
    """What is switched off, and how far."""

    prototypes: tuple[int, ...] = ()
    strength: float = 1.0


@dataclass(frozen=True)
class Draw:
    """How text is generated; equal draws share every random number."""

    seed: int = 0
    n_tokens: int = 48
    temperature: float = 0.8
    top_p: float = 0.95


def engine(ref: RunRef) -> "LiveEngine":
    """The loaded run, shared by every session."""
    with _opening:
        return _engine(ref)


@st.cache_resource(max_entries=2, show_spinner="Loading the model …")
def _engine(ref: RunRef) -> "LiveEngine":
    try:
        from engine.live import LiveEngine
    except ImportError as error:
        raise PackageMissing(
            f"Live work needs the package {error.name}, which is not installed; run `make setup`."
        ) from error
    return LiveEngine.open(ref.path)


def live_engine(name: str) -> "LiveEngine":
    """The loaded run called `name`."""
    for ref in data.run_refs():
        if ref.name == name:
            return engine(ref)
    raise CacheMissing(f"There is no run called {name}; `headwater info` lists those there are.")


def answers_at_once(ref: RunRef) -> bool:
    """Whether the model is small enough to generate and measure without being asked."""
    model = data.run_of(ref).manifest.get("model", {})
    return int(model.get("n_parameters") or 0) <= SMALL_MODEL


def suppression(off: Off) -> "Suppression":
    """The same in the engine's words; out-of-range strengths are refused there."""
    from engine.live import Suppression

    return Suppression(off.prototypes, off.strength)


@st.cache_data(max_entries=256, show_spinner=False)
def tokens(ref: RunRef, prompt: str) -> "list[Token]":
    """Tokens of a prompt."""
    return engine(ref).tokens(prompt)


@st.cache_data(max_entries=128, show_spinner=False)
def activations(ref: RunRef, prompt: str) -> "PromptActivations":
    """Active prototypes and residual share of every token of a prompt."""
    return engine(ref).activations(prompt)


@st.cache_data(max_entries=256, show_spinner=False)
def firing(ref: RunRef, prompt: str) -> pd.DataFrame:
    """What fires on a text, strongest first."""
    return engine(ref).firing(prompt)


@st.cache_data(max_entries=256, show_spinner=False)
def strip(ref: RunRef, prompt: str, prototype: int) -> pd.DataFrame:
    """One prototype over a text."""
    return engine(ref).strip(prompt, prototype)


@st.cache_data(max_entries=256, show_spinner=False)
def next_tokens(
    ref: RunRef, prompt: str, position: int, n: int, off: Off | None = None
) -> pd.DataFrame:
    """Likeliest next tokens, before and after what is switched off."""
    return engine(ref).next_tokens(prompt, position, n, suppression(off or Off()))


@st.cache_data(max_entries=256, show_spinner=False)
def shift(ref: RunRef, prompt: str, position: int, off: Off) -> "Shift":
    """How far one next-token distribution moves, and which suppressed prototypes are active."""
    return engine(ref).shift(prompt, position, suppression(off))


@st.cache_data(max_entries=256, show_spinner=False)
def explain(
    ref: RunRef,
    prompt: str,
    position: int,
    target: int,
    distractor: int | None,
    n_slices: int | None,
) -> "Decomposition":
    """The logit of `target`, or its lead over `distractor`, as slices that add up."""
    if distractor is None:
        return engine(ref).decompose(prompt, position, target, n_slices=n_slices)
    return engine(ref).contrast(prompt, position, target, distractor, n_slices=n_slices)


@st.cache_data(max_entries=16, show_spinner=False)
def concepts(ref: RunRef) -> dict[str, tuple[int, ...]]:
    """Saved sets of prototypes by name, read from the run without a model."""
    return read_concepts(data.run_of(ref))


@st.cache_data(max_entries=64, show_spinner=False)
def matched_random(ref: RunRef, prototypes: tuple[int, ...], seed: int) -> tuple[int, ...]:
    """As many prototypes outside the set, matched on firing rate."""
    return engine(ref).matched_random(prototypes, seed)


@st.cache_data(max_entries=8, show_spinner=False)
def benign_texts(ref: RunRef) -> tuple[tuple[str, ...], str]:
    """Texts the side-effect meter reads, and where they come from in words."""
    try:
        texts = engine(ref).benign_texts()
    except (CorpusError, PackageMissing):
        texts = ()
    if texts:
        return texts, f"{len(texts)} held-out texts of the corpus outside the unwanted domain"
    return examples.BENIGN, f"{len(examples.BENIGN)} plain passages that ship with the dashboard"


@st.cache_data(max_entries=64, show_spinner=False)
def side_effects(ref: RunRef, off: Off) -> pd.DataFrame:
    """Side effects of a set and of matched random sets on the same benign texts.

    Returns:
        condition ("suppressed" or "random"), draw, kl (nats per token), perplexity_before,
        perplexity_after, touched_share, n_tokens, n_texts.
    """
    texts, _ = benign_texts(ref)
    sets = [("suppressed", off.prototypes)]
    sets += [("random", matched_random(ref, off.prototypes, seed)) for seed in range(N_RANDOM)]
    rows: list[dict[str, object]] = []
    for draw, (condition, prototypes) in enumerate(sets):
        effect = engine(ref).side_effects(
            suppression(Off(prototypes, off.strength)), texts, METER_TOKENS
        )
        rows.append(
            {
                "condition": condition,
                "draw": draw,
                "kl": effect.kl,
                "perplexity_before": effect.perplexity_before,
                "perplexity_after": effect.perplexity_after,
                "touched_share": effect.tokens_touched_share,
                "n_tokens": effect.n_tokens,
                "n_texts": effect.n_texts,
            }
        )
    return pd.DataFrame(rows)


def generate(ref: RunRef, prompt: str, draw: Draw, off: Off) -> "Iterator[GenerationStep]":
    """Stream a continuation; two calls with one `draw` differ by `off` alone."""
    from engine.live import Sampler

    return engine(ref).generate(
        prompt,
        n_tokens=draw.n_tokens,
        seed=draw.seed,
        sampler=Sampler(draw.temperature, draw.top_p),
        suppression=suppression(off),
    )


@st.cache_data(max_entries=512, show_spinner=False)
def veiled(ref: RunRef, tokens_shown: tuple[str, ...]) -> tuple[str, ...]:
    """Tokens as charts write them: one that the classifier takes for unwanted keeps its start."""
    found = scores(ref, tokens_shown).classifier
    values = found if found is not None else (0.0,) * len(tokens_shown)
    return tuple(
        veil(token) if value >= SENSITIVE else glyphs(token)
        for token, value in zip(tokens_shown, values, strict=True)
    )


def scores(ref: RunRef, texts: tuple[str, ...]) -> "Scores":
    """Both scorers on texts."""
    return engine(ref).score(texts)
