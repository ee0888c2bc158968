"""Server-side times of pages and of the questions behind their panels, on a large cache."""

import time
from collections.abc import Callable
from statistics import median

from streamlit.testing.v1 import AppTest

from engine import store
from engine.config import cache_root
from engine.errors import CacheMissing
from engine.pipeline.measurements import record_measurement
from engine.pipeline.synthetic import write_synthetic_run


PAGES = ("overview", "prototypes", "runs")
"""Pages that read tables alone; the live pages need a model, which a synthetic run has not."""
_TABLES = (
    "prototype_examples",
    "prototype_signatures",
    "prototype_histograms",
    "prototype_domains",
    "prototype_neighbours",
)


def measure_pages(n_prototypes: int, n_tokens: int) -> None:
    """Make a synthetic run of that size if there is none, time it, keep the record `pages`."""
    name = f"synthetic-{n_prototypes}-{n_tokens}"
    run = _run(name, n_prototypes, n_tokens)
    rounds = [{"what": f"page {page}", **_page(page, name)} for page in PAGES]
    rounds += [{"what": what, **_question(ask)} for what, ask in _questions(run).items()]
    setting = {
        "prototypes": n_prototypes,
        "tokens": n_tokens,
        "activations": run.tables["prototype_activations"]["rows"],
        "unit": "milliseconds, server side",
    }
    record_measurement("pages", setting, rounds)
    for row in rounds:
        print(f"{row['what']:<40} first {row['first']:8.0f} ms   again {row['again']:8.0f} ms")


def _run(name: str, n_prototypes: int, n_tokens: int) -> store.Run:
    try:
        return store.open_run(name)
    except CacheMissing:
        print(f"Writing {name} ({n_tokens * 16:,} activations), once")
        write_synthetic_run(cache_root() / name, n_prototypes=n_prototypes, n_tokens=n_tokens)
        return store.open_run(name)


def _page(page: str, run: str) -> dict[str, float]:
    """Milliseconds of the first script run of a session and of a rerun."""
    app = AppTest.from_string(
        f"from dashboard.app import main\nmain({page!r})", default_timeout=120
    )
    app.query_params["run"] = run
    first, again = _milliseconds(app.run), _milliseconds(app.run)
    if app.exception:
        raise SystemExit(f"Page {page} failed: {app.exception[0].value}")
    return {"first": first, "again": again}


def _questions(run: store.Run) -> dict[str, Callable[[], object]]:
    """What panels ask, by name; each call asks about another prototype."""
    number = iter(range(7, 10_000, 61))

    def card() -> None:
        prototype = next(number) % run.tables["prototypes"]["rows"]
        for table in _TABLES:
            store.read_table(run, table, where={"prototype": prototype})

    def document() -> None:
        where = {"document": next(number) % run.tables["documents"]["rows"]}
        store.read_table(run, "prototype_activations", where=where)
        store.read_table(run, "token_residuals", where=where)

    def everywhere() -> None:
        sql = "SELECT count(*) AS n FROM prototype_activations WHERE prototype = ?"
        store.query(run, sql, [next(number)])

    return {
        "panel: a prototype's card, five tables": card,
        "panel: a document's activations": document,
        "panel: the table of all prototypes": lambda: store.read_table(run, "prototypes"),
        "scan: one prototype in all activations": everywhere,
    }


def _question(ask: Callable[[], object]) -> dict[str, float]:
    first = _milliseconds(ask)
    return {"first": first, "again": median(_milliseconds(ask) for _ in range(7))}


def _milliseconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return round(1000 * (time.perf_counter() - start), 1)
