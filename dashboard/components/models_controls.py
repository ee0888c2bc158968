"""What the Models page looks at: picture, colour, edges, filters and model, all in the URL."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from dashboard import (
    model_rows,
    service_models as service,
    service_pair,
    state,
    text_models as text,
)
from dashboard.data import RunRef
from dashboard.model_rows import Asked, Kept


@dataclass(frozen=True)
class ModelsView:
    """What is looked at."""

    variant: str
    layout: str
    """umap, tsne or pca; empty where the map was not drawn."""
    colour: str
    edges: str
    """A key of `text.EDGES`."""
    method: str
    """Method whose bases are drawn; empty where none predicted any."""
    kept: Kept
    filters: str
    """Filters in use, in words."""
    chosen: str
    picked: tuple[int, ...]
    """Places of the models of the lasso."""
    marked: tuple[int, ...]
    """Places of the rows ticked in the table."""


def choose(model: str) -> None:
    """Make a model the one of the card."""
    state.write(model=model)


def controls(ref: RunRef, frame: pd.DataFrame) -> ModelsView:
    """Draw the controls of the page.

    Args:
        ref: Run.
        frame: What `service.cards` gives.
    """
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        variant, layout = _picture(ref)
        colours = colours_of(ref, frame)
        colour = _named("Colour", "colour", colours, width=196)
        methods = service.parent_methods(ref)
        shown = text.EDGES if methods else {
            k: text.EDGES[k] for k in ("documented", "own", "none")
        }  # fmt: skip
        edges = _named("Edges", "edges", shown, text.EDGES_HELP, width=150)
        method = _method(methods, variant)
    asked = _filters(frame)
    kept = model_rows.kept(frame, asked)
    return ModelsView(
        variant, layout, colour, edges, method, kept,
        ", ".join(asked.masks(frame)), _model(frame),
        state.read_ids("picked", below=len(frame)), state.read_ids("marked", below=len(frame)),
    )  # fmt: skip


def _picture(ref: RunRef) -> tuple[str, str]:
    """Way of embedding, and picture of it."""
    held = service_pair.variants(ref)
    default = "able" if "able" in held else held[0]
    state.read_choice("variant", held, default)
    variant = st.selectbox(
        "Embedding", held, held.index(default), key="variant", bind="query-params", width=132,
        help="; ".join(f"{name}: {text.VARIANTS.get(name, name)}" for name in held),
    )  # fmt: skip
    variant = str(variant or default)
    drawn = service.layouts(ref).get(variant, ())
    names = {name: words for name, words in text.LAYOUTS.items() if name in drawn}
    if not names:
        return variant, ""
    words = list(names.values())
    state.read_choice("layout", words, words[0])
    shown = st.segmented_control(
        "Picture", words, default=words[0], required=True, key="layout", bind="query-params",
        help=text.LAYOUT_HELP,
    )  # fmt: skip
    return variant, next((name for name, said in names.items() if said == shown), next(iter(names)))


def colours_of(ref: RunRef, frame: pd.DataFrame) -> dict[str, str]:
    """What the map can show by colour: columns that say something of this run."""
    numbers = [c for c in ("accuracy", "held_out") if frame[c].notna().any()]
    words = ("family", "root", "relation", "architecture", "tokenizer", "data")
    texts = [c for c in words if frame[c].nunique() > 1]
    known = {*numbers, *texts, "n_parameters", text.NEAR}
    if service.layouts(ref):
        known.add("kept")
    return {name: said for name, said in text.COLOURS.items() if name in known}


def _named(
    label: str, key: str, names: dict[str, str], help_text: str = "", width: int = 160
) -> str:
    """A choice shown, and written into the link, in words; returns its name."""
    words = list(names.values())
    state.read_choice(key, words, words[0])
    shown = st.selectbox(
        label, words, key=key, bind="query-params", width=width, help=help_text or None
    )
    return next((name for name, said in names.items() if said == shown), next(iter(names)))


def _method(methods: Sequence[str], variant: str) -> str:
    if not methods:
        return ""
    default = variant if variant in methods else methods[0]
    names = {method: text.method_name(method) for method in (default, *methods)}
    return _named("Bases predicted by", "method", names, text.METHOD_HELP, width=196)


def _filters(frame: pd.DataFrame) -> Asked:
    """Search and filters; a filter without a choice is not drawn."""
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        query = st.text_input(
            "Search", key="q", bind="query-params", placeholder="Model or family", width=172
        )
        families = _several("Family", "families", frame["family"])
        relations = _several("Derivation", "derivations", frame["relation"])
        tokenizers = _several("Tokenizer", "tokenizers", frame["tokenizer"])
        data = _several("Data", "mixes", frame["data"])
    return Asked(query or "", families, relations, tokenizers, data)


def _several(label: str, key: str, values: pd.Series) -> tuple[str, ...]:
    options = sorted({str(value) for value in values if value})
    if len(options) < 2:
        return ()
    chosen = st.multiselect(
        label, options, key=key, bind="query-params", placeholder="any", width=172
    )
    return tuple(chosen)


def _model(frame: pd.DataFrame) -> str:
    """The model of the link, else the one that most others were made of."""
    asked = state.read_text("model")
    if asked and asked in set(frame["model"]):
        return asked
    if asked:
        state.refuse("model", asked, "a model that this run holds embedded")
    return model_rows.landmark(frame)
