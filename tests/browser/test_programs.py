"""An explorer in each program: run, stop, continue, brush, axe-core in both themes, no errors."""

import pytest
from helpers import wait_for
from journeys import paint, status_says, stop_and_go_on, violations
from own_lab import PROGRAMS, Shown

pytestmark = [pytest.mark.browser, pytest.mark.exhaustive]

EXPLORER = """
import nmd_lab as nmd

explorer = nmd.widgets.Explorer(
    nmd.datasets.digits(200), rank=5, nonlinearity="relu", alpha=0.0, iterations=100_000_000,
    rho=1.0, tol=0,
)
explorer
"""


@pytest.fixture(params=PROGRAMS)
def shown(request, chromium, tmp_path):
    """The explorer in one of the programs."""
    pytest.importorskip(request.param)
    way = PROGRAMS[request.param]
    if isinstance(way, str):
        notebook = request.getfixturevalue("notebook")
        notebook.open(f"{tmp_path.name}.ipynb", [EXPLORER], way)
        yield notebook
        return
    size = {"width": 1100, "height": 1500}
    with way(tmp_path, [EXPLORER]) as address, chromium.new_context(viewport=size) as context:
        opened = Shown(context.new_page(), address)
        opened.page.goto(address)
        yield opened


def test_an_explorer(shown):
    page = shown.page  # it runs by itself
    stop_and_go_on(page)
    holes = "each => each.pictures.values.seen.filter(Number.isNaN).length"
    pictures = page.locator(".nmd-pictures")
    begun = pictures.evaluate(holes)
    paint(page, "solid", (0.02, 0.02), (0.06, 0.06))  # away from a divider
    wait_for(lambda: pictures.evaluate(holes) > begun)
    status_says(page, r"^(?!running).*(done in|(stopped|not settled) after)")  # a stroke fits again
    assert shown.errors == []
    explorer = page.locator(".nmd-explorer")
    for theme in ("light", "dark"):
        if theme == "dark":
            explorer.evaluate(DARKEN)
        page.locator(f'.nmd-explorer[data-theme="{theme}"]').wait_for()
        assert violations(page, ".nmd-explorer") == []
    pictures = page.locator(".nmd-explorer :is(canvas:not([aria-hidden]), svg[role]):visible")
    assert pictures.count() >= 2
    for k in range(pictures.count()):
        assert pictures.nth(k).get_attribute("aria-label")


DARKEN = """explorer => {
  const above = (element) => element.parentElement ?? element.getRootNode().host;
  for (let at = above(explorer); at; at = above(at)) {
    at.style.setProperty('background', '#111', 'important');
    at.style.setProperty('color', '#eee', 'important');
  }
}"""
"""Make a page dark around an explorer; a program's own theme does it by a style sheet."""
