"""Pictures and stability of a synthetic map: random numbers of the right shape, no result."""

from typing import Any

import numpy as np
import pandas as pd

from engine.pipeline.synthetic_models import VARIANTS, SyntheticMap
from engine.pipeline.synthetic_tables import Columns


LAYOUTS = ("umap", "tsne", "pca")
_CURVES = {
    "probe_count": ("agreement", (4.0, 16.0, 64.0)),
    "convergence": ("half_gap", (4.0, 16.0, 64.0)),
    "dimension": ("agreement", (32.0, 128.0, 512.0)),
    "noise": ("distance", (0.001, 0.01, 0.1)),
}
_WORDS = {
    "dtype": ("cosine", ("bfloat16", "float16")),
    "batch": ("cosine", ("one row at a time",)),
    "option_order": ("agreement", ("shuffled", "lettered, shuffled")),
    "template": ("agreement", ("letters", "short", "chat")),
    "copy": ("distance", ("loaded again",)),
    "rewrite": ("distance", ("neurons", "heads", "norms")),
    "space_rule": ("cosine", ("paper",)),
    "hook": ("cosine", ("embedding",)),
    "projector_seed": ("agreement", ("other seeds",)),
}


def atlas_tables(generator: np.random.Generator, shape: SyntheticMap) -> dict[str, Columns]:
    """Tables of pictures and of stability."""
    return {
        "model_layouts": _layouts(generator, shape),
        "model_layout_results": _layout_results(generator, shape),
        "model_stability": _stability(generator),
    }


def _layouts(generator: np.random.Generator, shape: SyntheticMap) -> Columns:
    """Models of a root near one another; the last model as one that was added."""
    roots = np.array([model.root for model in shape.models])
    angles = 2 * np.pi * roots / shape.n_roots
    parts: list[pd.DataFrame] = []
    for variant in VARIANTS:
        for layout in LAYOUTS:
            noise = generator.normal(scale=0.6, size=(2, len(roots)))
            columns: dict[str, Any] = {"variant": variant, "layout": layout, "model": shape.names}
            columns |= {"x": 5 * np.cos(angles) + noise[0], "y": 5 * np.sin(angles) + noise[1]}
            parts.append(pd.DataFrame(columns | {"added": np.arange(len(roots)) == len(roots) - 1}))
    return _columns(pd.concat(parts, ignore_index=True))


def _layout_results(generator: np.random.Generator, shape: SyntheticMap) -> Columns:
    keys = [(variant, layout) for variant in VARIANTS for layout in LAYOUTS]
    shares = generator.uniform(0.6, 1.0, (3, len(keys)))
    return {
        "variant": [variant for variant, _ in keys],
        "layout": [layout for _, layout in keys],
        "trustworthiness": shares[0],
        "continuity": shares[1],
        "neighbours_kept": shares[2],
        "n_neighbours": [3] * len(keys),
        "n": [len(shape.models)] * len(keys),
    }


def _stability(generator: np.random.Generator) -> Columns:
    rows: list[dict[str, Any]] = []
    for study, (measure, levels) in _CURVES.items():
        rows += [{"study": study, "setting": f"{x:g}", "x": x, "measure": measure} for x in levels]
    for study, (measure, names) in _WORDS.items():
        rows += [{"study": study, "setting": n, "x": None, "measure": measure} for n in names]
    values = generator.uniform(0.2, 0.8, len(rows))
    width = generator.uniform(0, 0.1, len(rows))
    frame = pd.DataFrame(rows).astype({"x": float})
    return _columns(frame.assign(value=values, low=values - width, high=values + width, n=11))


def _columns(frame: pd.DataFrame) -> Columns:
    return {str(name): frame[name].to_list() for name in frame}
