"""One module a page; each holds one function called `page`."""

from collections.abc import Callable
from dataclasses import dataclass

from dashboard.views import overview, prompt, prototypes, runs, suppression


@dataclass(frozen=True)
class Entry:
    """One page of the navigation."""

    path: str
    title: str
    icon: str
    page: Callable[[], None]


PAGES = (
    Entry("overview", "Overview", ":material/dashboard:", overview.page),
    Entry("prototypes", "Prototypes", ":material/scatter_plot:", prototypes.page),
    Entry("prompt", "Prompt", ":material/edit_note:", prompt.page),
    Entry("suppression", "Suppression", ":material/toggle_off:", suppression.page),
    Entry("runs", "Runs", ":material/inventory_2:", runs.page),
)
