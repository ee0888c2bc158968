"""Small multiples over clustering strength: curvature above, signs of collapse below."""

from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dashboard import theme


@dataclass(frozen=True)
class Panel:
    """One small picture."""

    column: str
    title: str
    unit: str
    log: bool = False
    form: str = ".3g"


ABOVE = (
    Panel("coupling", "Coupling", "share of mass"),
    Panel("coupling_normalised", "Coupling, normalised", "share of mass"),
    Panel("block_diagonal_share", "On the block diagonal", "share of squared norm"),
    Panel("condition_number", "Condition number", "ratio, damped", log=True),
)
BELOW = (
    Panel("loss_above", "Loss above dense", "%", form="+.2f"),
    Panel("spread", "Spread of states", "participation ÷ dense"),
    Panel("coverage_r2", "Coverage R2", "mean cosine"),
    Panel("dead_share", "Dead prototypes", "share of the bank"),
)
COLUMNS = len(ABOVE)


def joined(arms: pd.DataFrame, figures: pd.DataFrame) -> pd.DataFrame:
    """Arms with the figures of one term, clustering weight, and what collapse is read from.

    Args:
        arms: Rows of `curvature_arms`, of arms alone.
        figures: Rows of `curvature` of one term.
    """
    both = arms.merge(figures, on="arm", validate="one_to_one")
    weight = both[["prototype_to_token_weight", "token_to_prototype_weight"]].mean(axis=1)
    return both.assign(
        weight=weight.round(6),
        loss_above=100 * (both["validation_loss"] / both["dense_loss"] - 1),
        spread=both["participation_ratio"] / both["dense_participation_ratio"],
    ).sort_values(["seed", "weight"])


def strength(rows: pd.DataFrame, *, dark: bool) -> go.Figure:
    """Each measure against the clustering weight: a thin line a seed, a thick one for their mean.

    Args:
        rows: What `joined` gives, of at least one arm; all have one shape.
        dark: Theme.
    """
    colours = theme.palette(dark)
    panels = [*ABOVE, *BELOW]
    figure = make_subplots(
        rows=2,
        cols=COLUMNS,
        shared_xaxes=True,
        horizontal_spacing=0.065,
        vertical_spacing=0.2,
        subplot_titles=[panel.title for panel in panels],
    )
    seeds, first = rows["seed"].nunique(), rows.iloc[0]
    shape, tokens = f"K {first['n_prototypes']:,}, d {first['d_model']}", int(first["tokens"])
    figure.update_layout(
        theme.layout(
            dark,
            height=424,
            title={
                "text": "Curvature over clustering strength, and whether it is bought by collapse",
                "subtitle": {
                    "text": f"n = {len(rows)} arms: {rows['weight'].nunique()} weights × {seeds} "
                    f"seed{'s' * (seeds != 1)}, {shape}; {tokens:,} training tokens each; thin: a "
                    "seed, thick: mean"
                },
            },
            showlegend=False,
            margin={"l": 8, "r": 8, "t": 78, "b": 8},
        )
    )
    figure.update_annotations(font={"size": 12, "color": colours.text})
    weights = [f"{w:g}" for w in sorted(rows["weight"].unique())]
    for place, panel in enumerate(panels):
        _draw(figure, rows, panel, weights, place, colours)
    return figure


def _draw(
    figure: go.Figure,
    rows: pd.DataFrame,
    panel: Panel,
    weights: list[str],
    place: int,
    colours: theme.Palette,
) -> None:
    row, col = 1 + place // COLUMNS, 1 + place % COLUMNS
    shade = colours.accent if place < COLUMNS else colours.raises
    known = rows.dropna(subset=[panel.column])
    for seed, part in known.groupby("seed"):
        figure.add_trace(_line(part, panel, f"seed {seed}", colours.rest, 1), row=row, col=col)
    means = known.groupby("weight")[[panel.column]].mean().reset_index()
    figure.add_trace(_line(means, panel, "mean", shade, 2.4), row=row, col=col)
    if known.empty:
        figure.add_annotation(
            text="not measured for this term", showarrow=False, x=0.5, y=0.5, row=row, col=col,
            xref="x domain", yref="y domain", font={"size": 11, "color": colours.muted},
        )  # fmt: skip
    figure.update_xaxes(
        type="category",
        categoryorder="array",
        categoryarray=weights,
        title_text="weight of R1 and R2" if place >= COLUMNS else None,
        row=row,
        col=col,
    )
    figure.update_yaxes(
        title_text=panel.unit, type="log" if panel.log else "linear", nticks=5, row=row, col=col
    )
    if len(known) and not known[panel.column].any():  # around nothing but zeros an axis goes below
        figure.update_yaxes(range=(-0.05, 1), row=row, col=col)


def _line(rows: pd.DataFrame, panel: Panel, name: str, shade: str, width: float) -> go.Scatter:
    return go.Scatter(
        x=[f"{weight:g}" for weight in rows["weight"]],
        y=rows[panel.column],
        mode="lines+markers",
        line={"width": width, "color": shade},
        marker={"size": 3 + 2 * width, "color": shade},
        name=name,
        hovertemplate=f"weight %{{x}}, {name}<br>{panel.title} %{{y:{panel.form}}}<extra></extra>",
        cliponaxis=False,
    )


def strength_alt(rows: pd.DataFrame) -> str:
    """The picture in words: both ends of each measure."""
    low, high = rows["weight"].min(), rows["weight"].max()
    ends = rows.groupby("weight")[[p.column for p in (*ABOVE, *BELOW)]].mean()
    parts = [
        f"{panel.title} {ends.at[low, panel.column]:.3g} to {ends.at[high, panel.column]:.3g}"
        for panel in (*ABOVE, *BELOW)
        if ends[panel.column].notna().all()
    ]
    return f"From clustering weight {low:g} to {high:g}: {'; '.join(parts)}."
