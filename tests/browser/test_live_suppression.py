"""A reader in a real browser: types, clicks a slice, switches a prototype off; two readers at once.

Needs an installed Chromium (`HEADWATER_CHROMIUM` names another); without one the tests are skipped.
"""

import re
from collections.abc import Iterator

import pytest

from tests.browser.serving import PATIENCE, launched, served, settle


pytestmark = pytest.mark.slow

PROMPT = "the dog sleeps by the river"
ON = re.compile("[?&]on=")
"""A link in which members of the set are switched on again."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a dashboard over one small run with a model."""
    from tests.engine.tiny_models import save_run

    house = tmp_path_factory.mktemp("house")
    (house / "assets").mkdir()
    save_run(house / "cache" / "tiny")
    with served(house) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    """One Chromium; each reader gets a context of their own."""
    with launched() as running:
        yield running


def reader(browser, url: str):
    """A new reader on a page, when it is drawn."""
    page = browser.new_context(viewport={"width": 1280, "height": 1000}).new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(url)
    page.get_by_role("textbox", name="Prompt").wait_for()
    page.locator(".js-plotly-plot").first.wait_for()
    settle(page)
    return page


def drawn(page) -> list[float]:
    """Probabilities after suppression, as the chart in the page holds them."""
    page.locator(".st-key-before_after .js-plotly-plot").wait_for()
    values = page.evaluate(
        "Array.from(document.querySelector('.st-key-before_after .js-plotly-plot')._fullData[1].x)"
    )
    return [float(value) for value in values]


def test_a_reader_types_clicks_a_slice_and_switches_it_off(browser, address: str):
    """The whole loop: prompt, slice, training neighbours, off, a new distribution."""
    page = reader(browser, f"{address}/prompt?run=tiny")
    box = page.get_by_role("textbox", name="Prompt")
    box.fill(PROMPT)
    box.press("Control+Enter")
    page.wait_for_url(re.compile("prompt=the"))
    settle(page)
    bar = page.locator(".st-key-slices .barlayer .trace").first.locator(".point path").nth(2)
    bar.click(force=True)
    page.wait_for_url(re.compile(r"slice=\d+"))
    settle(page)
    chosen = re.search(r"slice=(\d+)", page.url).group(1)
    page.get_by_role("heading", name=re.compile(rf"^#{chosen}\b")).wait_for()
    page.get_by_role("link", name="Suppress it").click()
    page.wait_for_url(re.compile(rf"suppression.*set={chosen}"))
    page.locator(f".st-key-off_{chosen} label").wait_for()
    settle(page)
    assert page.get_by_role("textbox", name="Prompt").input_value() == PROMPT
    off = drawn(page)
    page.locator(f".st-key-off_{chosen} label").click()
    page.wait_for_url(re.compile(rf"[?&]on={chosen}"))
    settle(page)
    on = drawn(page)
    assert on != off
    page.locator(f".st-key-off_{chosen} label").click()
    page.wait_for_url(lambda url: not ON.search(url))
    settle(page)
    assert drawn(page) == off
    page.context.close()


def test_two_readers_with_different_sets_never_mix(browser, address: str):
    """Each sees their own set's distribution, however the other toggles meanwhile."""
    start = f"{address}/suppression?run=tiny&prompt={PROMPT.replace(' ', '%20')}&set="
    alone = reader(browser, start + "none")
    untouched = drawn(alone)
    first = reader(browser, start + "0,1,2,3,4,5,6,7,8,9,10,11")
    second = reader(browser, start + "12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28")
    one, two = drawn(first), drawn(second)
    assert one != two
    for _ in range(2):
        for page in (first, second):  # both act before either has been answered
            page.get_by_role("button", name="All on").click()
        for page in (first, second):
            page.wait_for_url(ON)
            settle(page)
            assert drawn(page)[:5] == pytest.approx(untouched[:5], abs=0)
        for page in (first, second):
            page.get_by_role("button", name="All off").click()
        for page in (first, second):
            page.wait_for_url(lambda url: not ON.search(url))
            settle(page)
        assert drawn(first) == one
        assert drawn(second) == two
    for page in (alone, first, second):
        page.context.close()
