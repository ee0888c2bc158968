"""A reader on the map of models: points at a mark, clicks it, draws a lasso.

Needs an installed Chromium (`HEADWATER_CHROMIUM` names another); without one the tests are skipped.
"""

import re
from collections.abc import Iterator

import pytest

from tests.browser.serving import PATIENCE, launched, served, settle


pytestmark = pytest.mark.slow
MARKS = """() => {
  const traces = [...document.querySelectorAll(".js-plotly-plot .scatterlayer .trace")];
  const own = traces.find((t) => t.__data__ && t.__data__[0].trace.name === "models");
  return [...own.querySelectorAll("path.point")].map((mark) => {
    const box = mark.getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2, mark.style.fill];
  });
}"""
"""Middle and colour of every mark of the map."""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """The page over a made-up map, when it is drawn."""
    from engine.pipeline.synthetic_map import write_synthetic_models

    house = tmp_path_factory.mktemp("house")
    (house / "assets").mkdir()
    write_synthetic_models(house / "cache" / "maps")
    with served(house) as address, launched() as browser:
        found = browser.new_context(viewport={"width": 1280, "height": 1000}).new_page()
        found.set_default_timeout(PATIENCE)
        found.goto(f"{address}/models?run=maps")
        found.locator(".js-plotly-plot path.point").first.wait_for()
        found.get_by_text(re.compile("Point at a mark")).wait_for()
        settle(found)
        found.wait_for_timeout(2_000)
        yield found


def point_at(page, mark) -> None:
    page.mouse.move(mark[0] - 3, mark[1])
    page.mouse.move(mark[0], mark[1], steps=4)
    page.wait_for_timeout(1_000)


def test_pointing_at_a_mark_colours_all_by_their_cosine_to_it_and_leaving_puts_it_back(page):
    """The picture is held against the embeddings; the line below names the nearest."""
    before = page.evaluate(MARKS)
    point_at(page, before[7])
    during = page.evaluate(MARKS)
    assert sum(a[2] != b[2] for a, b in zip(before, during, strict=True)) > len(before) / 2
    assert page.get_by_text(re.compile("nearest by cosine")).count() == 1
    page.mouse.move(4, 4)
    page.wait_for_timeout(1_000)
    assert page.evaluate(MARKS) == before


def test_every_click_opens_a_model_and_the_line_goes_on_telling(page):
    """A chart that a click drew anew has forgotten who listened to it."""
    for place in (3, 11):
        marks = page.evaluate(MARKS)
        point_at(page, marks[place])
        told = page.get_by_text(re.compile("nearest by cosine"))
        told.wait_for()
        name = told.inner_text().split(" — ")[0]
        page.mouse.down()
        page.mouse.up()
        page.wait_for_url(re.compile(rf"model={re.escape(name)}(&|$)"))
        settle(page)
        page.wait_for_timeout(1_000)


def test_a_click_opens_a_model_and_a_lasso_fills_the_table(page):
    """Both although the chart is set to draw a lasso, in which it tells nobody of clicks."""
    marks = page.evaluate(MARKS)
    point_at(page, marks[7])
    before = page.url
    page.mouse.down()
    page.mouse.up()
    page.wait_for_url(lambda url: url != before and "model=root-" in url)
    settle(page)
    left, top = (min(mark[axis] for mark in marks) - 12 for axis in (0, 1))
    right, bottom = (max(mark[axis] for mark in marks) + 12 for axis in (0, 1))
    corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
    page.mouse.move(*corners[0])
    page.mouse.down()
    for corner in corners[1:]:
        page.mouse.move(*corner, steps=6)
    page.mouse.up()
    page.wait_for_url(re.compile(r"picked=0"))
    page.get_by_role("button", name=re.compile(rf"Clear selection \({len(marks)}\)")).wait_for()
