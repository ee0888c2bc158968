"""Samples as text and attention on a text; `engine.live` is imported inside cached functions."""

import threading
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from dashboard import data, documents, head_rows, head_tails
from dashboard.components.panel import attempt
from dashboard.data import RunRef
from dashboard.head_tails import SymmetricLog
from engine.errors import PackageMissing


if TYPE_CHECKING:
    from engine.live.heads import HeadPattern, HeadReader, RepeatedSpan

_opening = threading.Lock()
Sample = tuple[int, int]
"""Step and row."""


@dataclass(frozen=True)
class SampleText:
    """A training sample as a reader sees it; without text it has its numbers alone."""

    tokens: tuple[str, ...] = ()
    ids: tuple[int, ...] = ()
    spans: "tuple[RepeatedSpan, ...]" = ()
    n_elsewhere: int = 0
    """Tokens at its end that belong to the documents after this one."""
    problem: str = ""
    """Why it has no text."""

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.tokens)


# --- tables -------------------------------------------------------------------------------------


@st.cache_resource(max_entries=12, show_spinner="Reading the influence …")
def influence(ref: RunRef, seed: int, unit: str) -> pd.DataFrame:
    """step, row and the influence on each head; read-only."""
    choice = choice_of(ref, seed, unit)
    heads = [str(name) for name in choice["heads"]]
    where = (("seed", seed), ("unit", unit))
    rows = data.table(ref, "head_influence", ("step", "row", "influence"), where)
    return head_rows.influence_matrix(rows, heads)


def choice_of(ref: RunRef, seed: int, unit: str) -> pd.Series:
    """The row of `head_choices` of a seed and kind."""
    return data.table(ref, "head_choices", where=(("seed", seed), ("unit", unit))).iloc[0]


def traced(ref: RunRef) -> pd.DataFrame:
    """Rows of `head_choices`; none where no influence was computed."""
    if not data.has(ref, "head_choices") or not data.has(ref, "head_influence"):
        return pd.DataFrame(columns=["seed", "unit", "layer", "head"])
    return data.table(ref, "head_choices")


@st.cache_resource(max_entries=64, show_spinner=False)
def scale(ref: RunRef, seed: int, unit: str, head: str) -> SymmetricLog:
    """The histogram's axis for one head."""
    return SymmetricLog.over(influence(ref, seed, unit)[head].to_numpy(float))


@st.cache_resource(max_entries=12, show_spinner=False)
def generated(ref: RunRef, seed: int) -> np.ndarray:
    """Which samples of a seed were generated, in the order of `influence`; read-only."""
    rows = data.table(ref, "head_samples", ("step", "row", "document"), (("seed", seed),))
    return (rows["document"] < 0).to_numpy()


def values_of(ref: RunRef, seed: int, unit: str, head: str, *, natural: bool) -> np.ndarray:
    """Influence of every sample on a head; NaN where it was skipped or, if `natural`, generated."""
    values = influence(ref, seed, unit)[head].to_numpy(float)
    return np.where(generated(ref, seed), np.nan, values) if natural else values


def bin_samples(
    ref: RunRef, seed: int, unit: str, head: str, chosen: int, *, natural: bool
) -> pd.DataFrame:
    """Samples of one bin, the most extreme first: rows of `head_samples` with `influence`."""
    found = influence(ref, seed, unit)
    values = values_of(ref, seed, unit, head, natural=natural)
    inside = scale(ref, seed, unit, head).bin_of(values) == chosen
    own = found.loc[inside, ["step", "row"]].assign(influence=values[inside])
    samples = data.table(ref, "head_samples", where=(("seed", seed),))
    merged = own.merge(samples, on=["step", "row"], how="left")
    below = chosen < head_tails.BINS // 2
    return merged.sort_values("influence", ascending=below, kind="stable", ignore_index=True)


def top_samples(
    ref: RunRef, seed: int, unit: str, head: str, n: int, *, natural: bool
) -> pd.DataFrame:
    """The samples that raise a head's score most: rows of `head_samples` with `influence`."""
    values = values_of(ref, seed, unit, head, natural=natural)
    found = influence(ref, seed, unit)[["step", "row"]].assign(influence=values)
    best = found.nlargest(n, "influence")
    samples = data.table(ref, "head_samples", where=(("seed", seed),))
    return best.merge(samples, on=["step", "row"], how="left")


def token_influence(
    ref: RunRef, seed: int, unit: str, head: str, sample: pd.Series
) -> np.ndarray | None:
    """What each token of a sample adds to its influence on a head; None where it is not known."""
    if not data.has(ref, "head_tokens"):
        return None
    layer, place = (int(part) for part in head.split("."))
    where = (("seed", seed), ("unit", unit), ("layer", layer), ("head", place))
    where = (*where, ("step", int(sample["step"])), ("row", int(sample["row"])))
    rows = data.table(ref, "head_tokens", ("influence",), where)
    if rows.empty:
        return None
    values = np.ma.asarray(rows["influence"].iloc[0], dtype=np.float64)
    return np.ma.filled(values, 0.0)


# --- texts --------------------------------------------------------------------------------------


def sample_text(ref: RunRef, sample: pd.Series) -> SampleText:
    """The words of a sample; of one that a study generated, made again.

    Args:
        ref: Run.
        sample: Row of `head_samples`.
    """
    if int(sample["document"]) < 0:
        return _generated(ref, int(sample["seed"]), int(sample["step"]), int(sample["row"]))
    return _natural(ref, int(sample["document"]), int(sample["position"]))


def _generated(ref: RunRef, seed: int, step: int, row: int) -> SampleText:
    live = _live()
    run = data.run_of(ref)
    ids, problem = attempt(live.generated_row, run, seed, step, row)
    if ids is None:
        return SampleText(problem=problem or "")
    texts, problem = attempt(live.row_texts, run, ids)
    if texts is None:
        return SampleText(problem=problem or "")
    return SampleText(tuple(texts), tuple(ids), _spans(ref, ids))


def _natural(ref: RunRef, document: int, position: int) -> SampleText:
    doc_id = doc_id_of(ref, document)
    if doc_id is None:
        return SampleText(problem=f"This run has no document {document}.")
    length = row_length(ref)
    found, problem = attempt(documents.tokens_from, ref.path, doc_id, position, length)
    if not found:
        return SampleText(problem=problem or "This document is not in the corpus here.")
    ids = [token_id for token_id, _ in found]
    texts = tuple(text for _, text in found)
    return SampleText(texts, tuple(ids), _spans(ref, ids), length - len(ids))


def row_length(ref: RunRef) -> int:
    """Tokens of a row: the context and the first token, which is not predicted."""
    stages = data.run_of(ref).manifest.get("stages", {})
    traced = stages.get("influence", {}).get("settings") or {}
    return int(study_of(ref).get("context") or traced.get("context") or 128) + 1


def study_of(ref: RunRef) -> dict[str, Any]:
    """Settings of the study of a run; empty where it is none."""
    stages = data.run_of(ref).manifest.get("stages", {})
    return dict(stages.get("study", {}).get("study") or {})


def doc_id_of(ref: RunRef, document: int) -> str | None:
    """Id of a document of the run; None where it has none of this row."""
    if document < 0 or not data.has(ref, "documents"):
        return None
    rows = data.table(ref, "documents", ("doc_id",), (("document", document),))
    return None if rows.empty else str(rows["doc_id"].iloc[0])


def _spans(ref: RunRef, ids: list[int]) -> "tuple[RepeatedSpan, ...]":
    vocabulary = int(data.run_of(ref).manifest.get("tokenizer", {}).get("vocab_size") or 0)
    return tuple(_live().repeated_in(ids, vocabulary))


# --- live ---------------------------------------------------------------------------------------


def _live() -> ModuleType:
    """The engine's door to heads; it loads torch."""
    try:
        from engine.live import heads
    except ImportError as error:
        raise PackageMissing(
            f"Live work needs the package {error.name}, which is not installed; run `make setup`."
        ) from error
    return heads


def reader(ref: RunRef, seed: int) -> "HeadReader":
    """The decoder of a seed, shared by every session."""
    with _opening:
        return _reader(ref, seed)


@st.cache_resource(max_entries=4, show_spinner="Loading the model …")
def _reader(ref: RunRef, seed: int) -> "HeadReader":
    return _live().HeadReader.open(ref.path, seed)


@st.cache_data(max_entries=64, show_spinner=False)
def pattern(ref: RunRef, seed: int, head: str, text: str) -> "HeadPattern":
    """What a head attends to on a typed text."""
    layer, place = (int(part) for part in head.split("."))
    return reader(ref, seed).pattern(text, layer, place)


@st.cache_data(max_entries=64, show_spinner=False)
def sample_pattern(ref: RunRef, seed: int, head: str, ids: tuple[int, ...]) -> "HeadPattern":
    """What a head attends to on a training sample."""
    layer, place = (int(part) for part in head.split("."))
    return reader(ref, seed).pattern_of(ids, layer, place)
