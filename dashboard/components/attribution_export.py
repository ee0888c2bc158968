"""The texts listed as files: rows as CSV and Parquet, everything with its settings as JSON."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pandas as pd

from dashboard.components.export import export_buttons
from dashboard.data import RunRef
from dashboard.rankings import Listing
from dashboard.service_attribution import Query


if TYPE_CHECKING:
    from engine.live import AttributionScores

COLUMNS = ("place", "sequence", "document", "doc_id", "domain", "position", "n_tokens", "score")


def export(
    ref: RunRef,
    query: Query,
    traced: "AttributionScores",
    found: Listing,
    shares: Callable[[int], pd.DataFrame],
) -> None:
    """Buttons that save the list; the prototypes of each text are looked up when one is pressed."""
    rows = found.rows[list(COLUMNS)].assign(method=traced.method, tail=found.tail)
    export_buttons(
        rows,
        name="attribution",
        key="attribution_file",
        as_json=lambda: as_json(ref, query, traced, found, shares),
    )


def as_json(
    ref: RunRef,
    query: Query,
    traced: "AttributionScores",
    found: Listing,
    shares: Callable[[int], pd.DataFrame],
) -> str:
    """The list with everything needed to make it again."""
    results: list[dict[str, Any]] = []
    for row in found.rows[list(COLUMNS)].to_dict("records"):
        own = shares(int(row["sequence"]))
        pairs = zip(own["prototype"].tolist(), own["share"].tolist(), strict=True)
        known = {str(name): value for name, value in row.items()}
        results.append({**known, "prototypes": [[int(p), float(s)] for p, s in pairs]})
    content = {
        "run": ref.name,
        "run_fingerprint": ref.stamp,
        "prompt": query.prompt,
        "position": query.position if query.span is None else None,
        "target": query.target,
        "traced": traced.target,
        "span": query.span,
        "loss": traced.loss,
        "method": traced.method,
        "unit": traced.unit,
        "sign": "positive: weighting the text up lowers the loss of the query",
        "tail": found.tail,
        "domain": found.domain or None,
        "pool": {"sequences": found.n_pool, "tokens": traced.n_tokens},
        "seconds": dict(traced.seconds),
        "results": results,
    }
    return json.dumps(content, ensure_ascii=False, indent=2)
