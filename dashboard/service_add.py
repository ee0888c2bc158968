"""Checks of a model before it is added, its command, and what was added to a map."""

from shlex import quote
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from dashboard import background, data
from dashboard.data import RunRef
from engine.config import assets_root, cache_root
from engine.errors import PackageMissing


if TYPE_CHECKING:
    from engine.live.adding import Prospect

OWN = "-own"
"""End of the name of the copy that a shipped map is added to."""


def ships(ref: RunRef) -> bool:
    """Whether the run lies among the assets, which nothing changes."""
    return data.run_of(ref).path.resolve().is_relative_to(assets_root().resolve())


def own_copy(ref: RunRef) -> str:
    """Name of the copy in the cache that the command makes of a shipped map."""
    return f"{data.run_of(ref).path.name}{OWN}"


def copy_command(ref: RunRef) -> str:
    """The command that copies a shipped map into the cache."""
    return f"cp -r {data.run_of(ref).path} {cache_root() / own_copy(ref)}"


def has_own_copy(ref: RunRef) -> bool:
    """Whether that copy is there."""
    return any(other.name == own_copy(ref) for other in data.run_refs())


def prospect(ref: RunRef, place: str, name: str) -> "Prospect":
    """Check a model and estimate what adding it takes."""
    try:
        from engine.live import adding
    except ImportError as error:
        raise PackageMissing(
            f"Live work needs the package {error.name}, which is not installed; run `make setup`."
        ) from error
    return adding.prospect(ref.path, place, name)


def arguments(ref: RunRef, place: str, name: str) -> tuple[str, ...]:
    """What stands behind `headwater` to add a model; a place may not be read as an option."""
    named = ("--name", name) if name else ()
    return ("models", "add", "--run", ref.path, *named, "--", place)


def command(ref: RunRef, place: str, name: str) -> str:
    """The command that a reader types."""
    named = f" --name {_quoted(name)}" if name else ""
    return f"headwater models add {_quoted(place) or 'MODEL'} --run {_quoted(ref.name)}{named}"


def _quoted(word: str) -> str:
    return quote(word) if word else ""


def status(ref: RunRef) -> background.Status | None:
    """How the last command of the run stands, if it added a model."""
    found = background.look(data.run_of(ref).path)
    added = found is not None and found.work.arguments[:2] == ("models", "add")
    return found if added else None


@st.cache_data(max_entries=16, show_spinner=False)
def added(ref: RunRef) -> tuple[str, ...]:
    """Models that were added to the map after it was made, by name."""
    stages = data.run_of(ref).manifest.get("stages", {})
    known = stages.get("add", {}).get("models") or ()
    embedded = set(data.table(ref, "model_embeddings", ("model",))["model"])
    return tuple(str(name) for name in known if name in embedded)


def newest(ref: RunRef) -> str:
    """The model that was added last from a page, else the first by name; one was added."""
    known, found = added(ref), status(ref)
    return found.work.label if found is not None and found.work.label in known else known[0]


def is_read(ref: RunRef, found: background.Status) -> bool:
    """Whether the run's tables have been looked at again since a command ended."""
    fresh = next((other for other in data.run_refs() if other.path == ref.path), ref)
    return fresh.stamp != ref.stamp or found.since_end > data.LOOKED_AT


def places(ref: RunRef, variant: str, layout: str) -> pd.DataFrame:
    """Rows of `model_layouts` of one picture; none where the map was not laid out."""
    if not data.has(ref, "model_layouts"):
        return pd.DataFrame(columns=["model", "x", "y", "added"])
    where = (("variant", variant), ("layout", layout))
    return data.table(ref, "model_layouts", ("model", "x", "y", "added"), where)


def pictures(ref: RunRef, variant: str) -> list[str]:
    """Kinds of pictures of a way of embedding."""
    if not data.has(ref, "model_layouts"):
        return []
    rows = data.table(ref, "model_layouts", ("layout",), (("variant", variant),))
    found = {str(name) for name in rows["layout"]}
    first = [name for name in ("umap", "tsne", "pca") if name in found]
    return [*first, *sorted(found - set(first))]


def neighbours(ref: RunRef, variant: str, model: str) -> pd.DataFrame:
    """Rows of `model_neighbours` of a model, nearest first; none where they were not listed."""
    if not data.has(ref, "model_neighbours"):
        return pd.DataFrame(columns=["neighbour", "cosine"])
    where = (("variant", variant), ("model", model))
    return data.table(ref, "model_neighbours", where=where, order_by="rank")
