"""A map of models as one HTML page that needs neither this program nor a network."""

import html

import pandas as pd

from dashboard import data, model_rows, service_models as service, text_models as text, theme
from dashboard.data import RunRef
from dashboard.figures import model_marks as marks, models_map, models_results
from dashboard.figures.models_map import DrawnEdges, OnMap, Said
from engine.atlas.verdicts import CAVEAT


_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:1080px;margin:32px auto;padding:0 16px;"
    "color:#1B2127}table{border-collapse:collapse;font-size:13px}td,th{padding:3px 10px;"
    "border-bottom:1px solid #E6EAED;text-align:left}caption{text-align:left;color:#59636D}"
)
_SHOWN = {
    "model": "Model", "family": "Family", "relation": "Derivation", "of": "Of", "root": "Root",
    "n_parameters": "Parameters", "tokenizer": "Tokenizer", "data": "Data", "accuracy":
    "Probes right", "held_out": "Others right", "evidence": "Evidence",
}  # fmt: skip


def title_of(ref: RunRef, frame: pd.DataFrame) -> str:
    """What a map is called: by the name its run's manifest gives, and said where it is made up."""
    name = str(data.run_of(ref).manifest.get("name") or ref.name)
    synthetic = model_rows.is_synthetic(frame)
    return (text.SYNTHETIC if synthetic else text.NAMED).format(name=name)


def report(ref: RunRef, frame: pd.DataFrame, variant: str, layout: str, chosen: str) -> str:
    """The page: provenance, map, relations, neighbours of a model, and every model.

    Args:
        ref: Run.
        frame: What `service.cards` gives.
        variant: Way of embedding.
        layout: umap, tsne or pca; empty where the map was not drawn.
        chosen: Model whose neighbours are listed.
    """
    manifest = data.run_of(ref).manifest
    title = title_of(ref, frame)
    facts = ", ".join(
        f"{name} {manifest.get(key)}"
        for name, key in (("run", "run_id"), ("made", "created"), ("engine", "engine_version"),
                          ("identity", "identity"))
        if manifest.get(key)
    )  # fmt: skip
    parts = [
        f"<h1>{html.escape(title)}</h1>",
        f"<p>{len(frame)} models, {html.escape(variant)} embeddings. {html.escape(facts)}.</p>",
        f"<p>{html.escape(CAVEAT)}</p>",
        *_pictures(ref, frame, variant, layout),
        *_neighbours(ref, variant, chosen),
        "<h2>Models</h2>",
        _table(frame.assign(of=[", ".join(p) for p in frame["parents"]])[list(_SHOWN)].rename(
            columns=_SHOWN)),
    ]  # fmt: skip
    body = "\n".join(parts)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}'
        f"</title><style>{_STYLE}</style></head><body>{body}</body></html>"
    )


def _pictures(ref: RunRef, frame: pd.DataFrame, variant: str, layout: str) -> list[str]:
    """Map and relations as figures that carry their library."""
    parts: list[str] = []
    library = True
    if layout:
        drawn = service.plane(ref, variant, layout)
        rows = frame.assign(**{str(n): drawn[n] for n in drawn}, hover=frame["model"])
        found = service.edges(ref, "")
        edges = DrawnEdges(found.documented[found.copies], found.documented[~found.copies])
        everything = OnMap(None, pd.Series(True, index=frame.index).to_numpy(bool))
        figure = models_map.models_map(
            rows, marks.by_group(frame["family"], theme.LIGHT), edges, everything, dark=False,
            said=Said(f"{text.LAYOUTS[layout]} of {variant} embeddings", text.MAP_SAID),
        )  # fmt: skip
        parts.append(str(figure.to_html(full_html=False, include_plotlyjs=library)))
        library = False
        quality = service.quality(ref, variant, layout)
        if quality is not None:
            said = ", ".join(f"{w} {float(quality[c]):.3f}" for c, (w, _) in text.QUALITY.items())
            parts.append(f"<p>{html.escape(said)}.</p>")
    if data.has(ref, "model_relation_results"):
        rows = data.table(ref, "model_relation_results")
        own = rows[(rows["classifier"] == "threshold") & (rows["metric"] == "auc")
                   & (rows["group"] == "all")]  # fmt: skip
        if len(own):
            figure = models_results.method_bars(
                own, "auc", dark=False, title="AUC: related pairs against others",
                subtitle=text.RESULTS_SAID,
            )  # fmt: skip
            parts.append(str(figure.to_html(full_html=False, include_plotlyjs=library)))
    return parts


def _neighbours(ref: RunRef, variant: str, chosen: str) -> list[str]:
    rows = service.neighbours(ref, variant, chosen)
    if rows.empty:
        return []
    columns = ["neighbour", "cosine", "percentile_unrelated", "verdict", "known_relation"]
    return [f"<h2>Most like {html.escape(chosen)}</h2>", _table(rows[columns])]


def _table(rows: pd.DataFrame) -> str:
    return str(rows.to_html(index=False, escape=True, na_rep="–", float_format="{:.3f}".format))
