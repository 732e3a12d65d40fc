"""An explorer in each program: run, stop, continue, brush, axe-core in both themes, no errors."""

from __future__ import annotations

import re

import pytest
from axe import violations

pytestmark = [pytest.mark.browser, pytest.mark.exhaustive]

EXPLORER = """
import nmd_lab as nmd

explorer = nmd.widgets.Explorer(
    nmd.datasets.digits(200), rank=5, nonlinearity="relu", alpha=0.0, iterations=100_000_000,
    rho="1", tol=0,
)
explorer
"""
CHOSEN = """
import nmd_lab as nmd

explorer = nmd.widgets.Explorer(
    nmd.datasets.digits(60), nonlinearity="relu", alpha=1.0, iterations=30
)
explorer.start()
explorer.join(300)
explorer
"""


def says(page, pattern):
    """Wait until the status line matches, and return what it says."""
    line = page.locator(".nmd-status")
    line.filter(has_text=re.compile(pattern)).wait_for()
    return line.inner_text()


def frames(page):
    return page.locator(".nmd-curves").evaluate("each => each.frames")


def test_an_explorer(show):
    shown = show(EXPLORER)
    page = shown.page  # it runs by itself
    says(page, r"running: iteration \d+")
    page.locator(".nmd-stop").click()
    first = int(re.search(r"\d+", says(page, r"stopped after \d+ iterations"))[0])
    before = frames(page)
    page.locator(".nmd-menu summary").click()
    page.locator(".nmd-continue").click()
    says(page, r"running: iteration \d+")
    page.locator(".nmd-stop").click()
    assert int(re.search(r"\d+", says(page, r"stopped after \d+ iterations"))[0]) > first
    assert frames(page) > before

    holes = "each => each.pictures.values.seen.filter(Number.isNaN).length"
    pictures = page.locator(".nmd-pictures")
    begun = pictures.evaluate(holes)
    page.get_by_role("button", name="hide", exact=True).click()
    canvas = page.locator(".nmd-picture-box canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 0.1 * box["width"], box["y"] + 0.1 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 0.2 * box["height"], steps=5)
    page.mouse.up()
    says(page, r"^(?!running).*done in")
    assert pictures.evaluate(holes) > begun
    axe_finds_nothing(page)
    assert shown.errors == []


def test_axe_finds_nothing_in_an_explorer_with_all_its_parts(notebook):
    notebook.open("parts.ipynb", [CHOSEN])
    notebook.page.locator(".nmd-picture-box canvas").wait_for()
    for name in ("Error", "Why this rank", "Runs", "Solver"):
        notebook.page.get_by_role("tab", name=name).click()
        assert violations(notebook.page, ".nmd-explorer") == []
    axe_finds_nothing(notebook.page)
    assert notebook.errors == []


def axe_finds_nothing(page):
    """Check with axe-core on a light and on a dark page; pictures have an alternative text."""
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
