"""What the tests of the live pages share: pages, words, a scorer that obeys."""

from collections.abc import Sequence

from streamlit.testing.v1 import AppTest

from engine.live.results import Scores


TIMEOUT = 120


def open_page(page: str, **parameters: str) -> AppTest:
    """Run one page with URL parameters."""
    app = AppTest.from_string(
        f"from dashboard.app import main\nmain({page!r})", default_timeout=TIMEOUT
    )
    for name, value in parameters.items():
        app.query_params[name] = value
    return app.run()


def words(app: AppTest) -> str:
    """Everything an element of the page says."""
    kinds = ("markdown", "caption", "text", "code", "info", "warning", "success", "error")
    plain = [str(e.value) for kind in kinds for e in app.get(kind) if hasattr(e, "value")]
    return "\n".join(plain + pages(app))


def pages(app: AppTest) -> list[str]:
    """Bodies of the page's HTML blocks."""
    return [element.proto.body for element in app.get("html")]


def link(app: AppTest, name: str) -> str:
    """A parameter of the page's URL; empty when it is not there."""
    if name not in app.query_params:
        return ""
    value = app.query_params[name]
    return value[0] if isinstance(value, list) else value


def scored(value: float | None):
    """A stand-in for `service.scores` that gives every text `value`."""

    def scores(_ref: object, texts: Sequence[str]) -> Scores:
        if value is None:
            return Scores(None, None, ("The scorer is not installed.",))
        return Scores(tuple(value for _ in texts), tuple(0.0 for _ in texts))

    return scores
