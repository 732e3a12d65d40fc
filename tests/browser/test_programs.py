"""An explorer in each program: run, stop, continue, brush, axe-core in both themes, no errors."""

import pytest
from helpers import wait_for
from journeys import paint, status_says, stop_and_go_on, violations

pytestmark = [pytest.mark.browser, pytest.mark.exhaustive]

EXPLORER = """
import nmd_lab as nmd

explorer = nmd.widgets.Explorer(
    nmd.datasets.digits(200), rank=5, nonlinearity="relu", alpha=0.0, iterations=100_000_000,
    rho=1.0, tol=0,
)
explorer
"""


def test_an_explorer(show):
    shown = show(EXPLORER)
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
