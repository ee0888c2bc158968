"""One module a page; each holds one function called `page`."""

from collections.abc import Callable
from dataclasses import dataclass

from dashboard.views import (
    add,
    attribution,
    catalogue,
    control,
    curvature,
    emergence,
    forecast,
    heads,
    models,
    overview,
    pair,
    prompt,
    prototypes,
    routing,
    runs,
    suppression,
)


PROTOTYPES, HEADS, MODELS = "Prototypes", "Attention heads", "Models"
"""Headings of the navigation."""


@dataclass(frozen=True)
class Entry:
    """One page of the navigation."""

    path: str
    title: str
    icon: str
    page: Callable[[], None]
    section: str = ""
    """Heading it stands under in the navigation; those without one stand above all headings."""
    needs_run: bool = True
    """Whether it shows nothing while there is no run."""

    @property
    def prototypes(self) -> bool:
        """Whether it shows prototypes alone: runs of heads and of models have nothing for it."""
        return self.section == PROTOTYPES


PAGES = (
    Entry("overview", "Overview", ":material/dashboard:", overview.page),
    Entry("prototypes", "Prototypes", ":material/scatter_plot:", prototypes.page, PROTOTYPES),
    Entry("prompt", "Prompt", ":material/edit_note:", prompt.page, PROTOTYPES),
    Entry("attribution", "Attribution", ":material/travel_explore:", attribution.page, PROTOTYPES),
    Entry("suppression", "Suppression", ":material/toggle_off:", suppression.page, PROTOTYPES),
    Entry("control", "Control", ":material/tune:", control.page, PROTOTYPES),
    Entry("curvature", "Curvature", ":material/grid_on:", curvature.page, PROTOTYPES),
    Entry("heads", "Heads", ":material/visibility:", heads.page, HEADS),
    Entry("emergence", "Emergence", ":material/trending_up:", emergence.page, HEADS),
    Entry(
        "catalogue", "Catalogue", ":material/account_tree:", catalogue.page, MODELS, needs_run=False
    ),
    Entry("models", "Models", ":material/hub:", models.page, MODELS),
    Entry("pair", "Pair", ":material/compare:", pair.page, MODELS),
    Entry("routing", "Routing", ":material/alt_route:", routing.page, MODELS),
    Entry("forecast", "Forecast", ":material/query_stats:", forecast.page, MODELS),
    Entry("add", "Add a model", ":material/add_circle:", add.page, MODELS),
    Entry("runs", "Runs", ":material/inventory_2:", runs.page, needs_run=False),
)
