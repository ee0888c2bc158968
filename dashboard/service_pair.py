"""Cached reads of a map of models for the page Pair: words, cosines, what is documented."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from dashboard import data, model_words
from dashboard.data import RunRef
from dashboard.model_words import ModelWords
from engine.atlas.verdicts import percentiles, verdict


@dataclass(frozen=True)
class Relation:
    """How alike two models are, and what is known of them."""

    cosine: float
    percentile: float | None
    """Percent of unrelated pairs that are less alike; None where none is documented."""
    verdict: str
    known: str
    """What the second is to the first by the documents; empty where nothing is said."""


@st.cache_resource(max_entries=8, show_spinner=False)
def probes(ref: RunRef) -> pd.DataFrame:
    """Rows of `model_probes` with `words`, the words of each prompt; read-only."""
    rows = data.table(ref, "model_probes", order_by="probe").copy()
    rows["words"] = [model_words.prompt_words(prompt) for prompt in rows["prompt"]]
    return rows


@st.cache_resource(max_entries=48, show_spinner="Reading the words …")
def words_of(ref: RunRef, model: str) -> ModelWords:
    """What the answers of a model depend on; read-only."""
    rows = data.table(ref, "model_words", where=(("model", model),))
    return model_words.model_words(rows, probes(ref))


@st.cache_resource(max_entries=64, show_spinner=False)
def shares(ref: RunRef, a: str, b: str, variant: str) -> pd.DataFrame:
    """Share of each probe in the squared difference of two models; read-only."""
    return model_words.probe_shares(words_of(ref, a), words_of(ref, b), probes(ref), variant)


@st.cache_resource(max_entries=64, show_spinner=False)
def options_of(ref: RunRef, model: str) -> pd.DataFrame:
    """Rows of `model_options` of a model, by probe; read-only."""
    return data.table(ref, "model_options", where=(("model", model),)).set_index("probe")


@st.cache_resource(max_entries=16, show_spinner=False)
def vectors(ref: RunRef, variant: str) -> pd.DataFrame:
    """Unit vectors of the embedded models, a row a model; read-only."""
    rows = data.table(ref, "model_embeddings", ("model", "vector"), (("variant", variant),))
    if rows.empty:
        return pd.DataFrame()
    matrix = np.stack([np.asarray(vector, np.float64) for vector in rows["vector"]])
    matrix /= np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-300)
    return pd.DataFrame(matrix, index=rows["model"].astype(str))


@st.cache_data(max_entries=16, show_spinner=False)
def models(ref: RunRef) -> tuple[str, ...]:
    """Names of the embedded models: in the order of the cards, then by name."""
    embedded = data.table(ref, "model_embeddings", ("model",))["model"].astype(str)
    known = dict.fromkeys(embedded)
    if not data.has(ref, "model_cards"):
        return tuple(known)
    order = [str(name) for name in data.table(ref, "model_cards", ("model",))["model"]]
    return tuple(dict.fromkeys([*(n for n in order if n in known), *known]))


@st.cache_data(max_entries=16, show_spinner=False)
def variants(ref: RunRef) -> tuple[str, ...]:
    """Ways of embedding that the run holds of every embedded model."""
    found = data.table(ref, "model_embeddings", ("variant",))["variant"].astype(str)
    counts = found.value_counts()
    return tuple(name for name in dict.fromkeys(found) if counts[name] == counts.max())


@st.cache_resource(max_entries=16, show_spinner=False)
def unrelated(ref: RunRef, variant: str) -> np.ndarray:
    """Cosines of the pairs that are documented as unrelated; read-only."""
    if not data.has(ref, "model_pairs"):
        return np.zeros(0)
    pairs = data.table(ref, "model_pairs", ("a", "b"), (("related", False),))
    found = vectors(ref, variant)
    known = pairs["a"].isin(found.index) & pairs["b"].isin(found.index)
    first, second = (found.loc[pairs.loc[known, side]].to_numpy() for side in ("a", "b"))
    return np.einsum("ij,ij->i", first, second)


def relation(ref: RunRef, a: str, b: str, variant: str) -> Relation:
    """How alike two models are, among the unrelated pairs of the map."""
    found = vectors(ref, variant)
    cosine = float(found.loc[a].to_numpy() @ found.loc[b].to_numpy())
    places = percentiles(np.array([cosine]), unrelated(ref, variant))
    percentile = None if places is None else float(places[0])
    return Relation(cosine, percentile, verdict(percentile), known_relation(ref, a, b))


def known_relation(ref: RunRef, a: str, b: str) -> str:
    """What the second model is to the first, from the neighbours' table or the pairs'."""
    if data.has(ref, "model_neighbours"):
        where = (("model", a), ("neighbour", b))
        rows = data.table(ref, "model_neighbours", ("known_relation",), where)
        if len(rows):
            return str(rows["known_relation"].iloc[0])
    if data.has(ref, "model_pairs"):
        for first, second in ((a, b), (b, a)):
            where = (("a", first), ("b", second))
            rows = data.table(ref, "model_pairs", ("related", "kind", "edges"), where)
            if len(rows):
                return _pair_words(rows.iloc[0])
    return _by_roots(card_of(ref, a), card_of(ref, b))


def _by_roots(first: pd.Series, second: pd.Series) -> str:
    """What the roots on two cards say; nothing where one names none."""
    own, other = (set(card.get("roots", ())) for card in (first, second))
    if not own or not other:
        return ""
    return "a root in common" if own & other else "no root in common"


def _pair_words(row: pd.Series) -> str:
    kind = str(row["kind"]).replace("_", " ")
    if row["related"]:
        steps = int(row["edges"])
        return f"related, {steps} step{'' if steps == 1 else 's'} apart ({kind})"
    return f"unrelated ({kind})" if kind else "unrelated"


def card_of(ref: RunRef, model: str) -> pd.Series:
    """What is documented of a model; empty where it has no card."""
    if not data.has(ref, "model_cards"):
        return pd.Series(dtype=object)
    rows = data.table(ref, "model_cards", where=(("model", model),))
    return rows.iloc[0] if len(rows) else pd.Series(dtype=object)


def style_of(ref: RunRef) -> str:
    """What is scored: letters or texts."""
    return str(data.run_of(ref).manifest.get("probes", {}).get("style") or "letters")


def opening_pair(ref: RunRef) -> tuple[str, str]:
    """The pair a page opens on: the first model with weights of an embedded one, and that one."""
    known = models(ref)
    if data.has(ref, "model_cards"):
        columns = ("model", "parents", "copies_weights")
        cards = data.table(ref, "model_cards", columns).set_index("model")
        copies = cards[cards["copies_weights"].astype(bool)]["parents"]
        for name in known:
            for parent in copies.get(name, ()):
                if str(parent) in known:
                    return name, str(parent)
    return known[0], known[1]
