"""Cached reading of the shipped catalogue of public models, and of what runs hold of it."""

from collections.abc import Collection
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from dashboard import data, text_catalogue as text
from dashboard.data import RunRef
from dashboard.lineage import GraphLayout, Lineage, graph_layout, map_layout
from engine.store.model_catalogue import (
    CATALOGUE,
    LEADERBOARD,
    SCORES,
    catalogue_path,
    read_model_catalogue,
)


VARIANTS, LAYOUTS = ("able", "square_root"), ("umap", "tsne", "pca")
"""What of a run's pictures stands for its map, the first that is there."""


def models() -> pd.DataFrame:
    """`read_model_catalogue` with `name`, `label`, `declared` and `published`; read-only.

    Raises:
        CacheMissing: The catalogue is not among the assets.
        CacheStale: It cannot be read.
    """
    path = catalogue_path()
    files = [path, path.with_name(LEADERBOARD)]
    return _models(str(path), tuple(f.stat().st_mtime if f.is_file() else 0.0 for f in files))


@st.cache_resource(max_entries=2, show_spinner=False)
def _models(path: str, changed: tuple[float, ...]) -> pd.DataFrame:
    """`models` of a file in the state of a moment."""
    del path, changed  # the key of the answer; the store reads the assets' folder
    found = read_model_catalogue()
    lineage = lineage_of(found)
    return found.assign(
        name=[model.rpartition("/")[2] for model in found["model"]],
        label=[text.UNLABELLED if family == "null" else family for family in found["family"]],
        declared=[
            declared_word(
                str(row["declared_base"]), lineage.ancestors(str(row["model"])), lineage.parents
            )
            for row in found.to_dict("records")
        ],
        published=found[list(SCORES)].notna().any(axis=1),
    )


def declared_word(base: str, ancestors: list[str], known: Collection[str]) -> str:
    """What a declared base says of the ancestors; an empty one is missing, no disagreement."""
    if not base:
        return "missing"
    if base in ancestors:
        return "agrees" if base == ancestors[0] else "earlier"
    return "unclear" if ancestors and ancestors[-1] not in known else "differs"


def lineage_of(frame: pd.DataFrame) -> Lineage:
    """Documented parents of the models of the catalogue."""
    pairs = zip(frame["model"], frame["parent"], strict=True)
    return Lineage({str(model): (str(parent),) if parent else () for model, parent in pairs})


@dataclass(frozen=True)
class Held:
    """What a run holds of a model of the catalogue."""

    run: RunRef
    model: str
    """Its name in the run."""
    status: str
    """embedded or failed."""
    reason: str
    """Why it failed; empty where it did not."""


def held() -> dict[str, Held]:
    """What runs on this machine hold, by hub id; an embedded model stands before a failed one."""
    known = set(models()["model"])
    found: dict[str, Held] = {}
    for ref in data.run_refs():
        if not data.has(ref, "model_catalogue"):
            continue
        columns = ("model", "place", "status", "reason")
        for row in data.table(ref, "model_catalogue", columns).to_dict("records"):
            hub_id = str(row["place"])
            if hub_id not in known or (hub_id in found and found[hub_id].status == "embedded"):
                continue
            found[hub_id] = Held(ref, str(row["model"]), str(row["status"]), str(row["reason"]))
    return found


def places(frame: pd.DataFrame) -> GraphLayout:
    """Places for legibility of every model of the catalogue."""
    return _places(tuple(frame["model"]), tuple(frame["parent"]))


@st.cache_resource(max_entries=2, show_spinner=False)
def _places(names: tuple[str, ...], parents: tuple[str, ...]) -> GraphLayout:
    del parents  # part of the key of the answer
    frame = models()
    frame = frame[frame["model"].isin(names)]
    return graph_layout(lineage_of(frame), _labels(frame), _order(frame))


def _labels(frame: pd.DataFrame) -> dict[str, str]:
    return dict(zip(frame["model"], frame["label"], strict=True))


def _order(frame: pd.DataFrame) -> dict[str, float]:
    return dict(zip(frame["model"], frame["n_parameters"].astype(float), strict=True))


@dataclass(frozen=True)
class MapPlaces:
    """Places of a run's picture, and what of it they are."""

    layout: GraphLayout
    run: str
    variant: str
    name: str
    """umap, tsne or pca."""


def map_places(frame: pd.DataFrame) -> MapPlaces | None:
    """Places of the picture of the run that holds most of the catalogue; None without one."""
    found = {hub_id: h for hub_id, h in held().items() if h.status == "embedded"}
    drawn = [h.run for h in found.values() if data.has(h.run, "model_layouts")]
    if not drawn:
        return None
    ref = max(dict.fromkeys(drawn), key=drawn.count)
    keys = data.table(ref, "model_layouts", ("variant", "layout")).drop_duplicates()
    pairs = set(keys.itertuples(index=False, name=None))
    wanted = [(v, way) for v in VARIANTS for way in LAYOUTS if (v, way) in pairs]
    if not wanted:
        return None
    variant, way = wanted[0]
    rows = data.table(ref, "model_layouts", where=(("variant", variant), ("layout", way)))
    by_name = {str(r["model"]): (float(r["x"]), float(r["y"])) for r in rows.to_dict("records")}
    points = {
        hub_id: by_name[h.model]
        for hub_id, h in found.items()
        if h.run == ref and h.model in by_name
    }
    rest = [str(model) for model in frame["model"] if model not in points]
    layout = map_layout(points, rest, _labels(frame), _order(frame))
    return MapPlaces(layout, ref.name, variant, way)


def command_for_all() -> str:
    """The command that embeds every model of the catalogue that can be reached."""
    return (
        f"headwater models embed --catalogue assets/models/{CATALOGUE} --run able239 "
        "--probes public"
    )


def command_for(model: str) -> str:
    """The command that embeds one model into the same run."""
    return f"headwater models add {model} --run able239"
