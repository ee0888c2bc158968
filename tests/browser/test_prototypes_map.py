"""A reader on the map of prototypes: clicks points, although the map opens ready for a lasso.

Needs an installed Chromium (`HEADWATER_CHROMIUM` names another); without one the test is skipped.
"""

import re
from collections.abc import Iterator

import pytest

from tests.browser.serving import PATIENCE, launched, served, settle


pytestmark = pytest.mark.slow
POINTS = """() => {
  const has = (g) => g._fullData && g._fullData.some((t) => t.name === "prototypes");
  const chart = [...document.querySelectorAll(".js-plotly-plot")].find(has);
  const trace = chart._fullData.find((t) => t.name === "prototypes");
  const ids = trace.customdata._inputArray || trace.customdata;
  const box = chart.getBoundingClientRect();
  const { xaxis, yaxis, dragmode } = chart._fullLayout;
  const at = (x, k) => [
    box.x + xaxis._offset + xaxis.d2p(x), box.y + yaxis._offset + yaxis.d2p(trace.y[k]), ids[k],
  ];
  return { mode: dragmode, points: Array.from(trace.x).map(at) };
}"""
"""Middle and id of every point of the map, and what dragging does."""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """The page over a made-up run, when its map is drawn."""
    from engine.pipeline.synthetic import write_synthetic_run

    house = tmp_path_factory.mktemp("house")
    (house / "assets").mkdir()
    write_synthetic_run(house / "cache" / "made-up", n_prototypes=101, n_tokens=3_001, n_active=5)
    with served(house) as address, launched() as browser:
        found = browser.new_context(viewport={"width": 1280, "height": 1000}).new_page()
        found.set_default_timeout(PATIENCE)
        found.goto(f"{address}/prototypes?run=made-up")
        found.locator(".js-plotly-plot").first.wait_for()
        settle(found)
        found.wait_for_timeout(2_000)
        yield found


def loneliest(points, n: int):
    """Points farthest from any other, so that a click means one of them."""

    def room(point) -> float:
        others = (o for o in points if o is not point)
        return min((o[0] - point[0]) ** 2 + (o[1] - point[1]) ** 2 for o in others)

    return sorted(points, key=room, reverse=True)[:n]


def test_a_click_opens_a_prototype_while_the_map_is_set_to_draw_a_lasso(page):
    """One after the other: the first click must not end the listening."""
    drawn = page.evaluate(POINTS)
    assert drawn["mode"] == "lasso"
    for x, y, prototype in loneliest(drawn["points"], 2):
        page.mouse.move(x - 3, y)
        page.mouse.move(x, y, steps=4)
        page.wait_for_timeout(800)
        page.mouse.down()
        page.mouse.up()
        page.wait_for_url(re.compile(rf"prototype={prototype}(&|$)"))
        settle(page)
        page.get_by_text(re.compile(rf"#{prototype}\b")).first.wait_for()
