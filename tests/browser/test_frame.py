"""The frame of an explorer: its height, that nothing in it moves or is cut, and axe-core."""

import io

import numpy as np
import pytest
from helpers import some, wait_for
from journeys import violations
from PIL import Image

pytestmark = pytest.mark.browser

DIGITS = """
settings = {"rank": 5, "missing": 0.1, "iterations": 30, "draws": 20}
explorer = nmd.widgets.explore(nmd.datasets.digits(150), **settings)
"""
RATINGS = """
explorer = nmd.widgets.explore(
    nmd.datasets.make_ratings(n_users=60, n_items=50, n_ratings=900, random_state=0),
    rank=3, alpha=5.0, draws=20,
)
"""
MIXED = """
from sklearn.datasets import load_wine
frame = load_wine(as_frame=True).data.drop(columns="od280/od315_of_diluted_wines")
frame["large"] = frame["alcohol"].gt(13).astype("boolean")
frame.loc[7, "large"] = None
explorer = nmd.widgets.explore(frame, rank=2, alpha=1.0, nonlinearity="identity", draws=20)
"""
PARTS = {
    "digits": [".nmd-picture-area canvas", ".nmd-tools", ".nmd-plane canvas", ".nmd-gallery"],
    "ratings": [".nmd-known ol", ".nmd-top ol", ".nmd-plane canvas", ".nmd-gallery"],
    "table": [".nmd-grid-box", ".nmd-gallery"],
}
POPOVERS = [".nmd-word-data", ".nmd-word-components", ".nmd-word-shape", ".nmd-word-number"]
POPOVERS += [".nmd-action.nmd-again", ".nmd-action.nmd-more"]
TEXT = ".nmd-popover :is(p, strong, .nmd-read, .nmd-line > span, .nmd-shapes)"
TALLEST, MOST_TAB_STOPS = 760, 20
SQUARE, MOST_WHITE = 40, 0.12  # a plane of few points is white between them
TAB_STOPS = """() => [...document.querySelectorAll('.nmd-explorer *')].filter((each) =>
    each.tabIndex >= 0 && !each.disabled && each.checkVisibility({ visibilityProperty: true })
    && each.matches('a, button, input, select, textarea, summary, [tabindex]')).length"""
CUT = """() => {
  const bottom = (each) => each.getBoundingClientRect().bottom;
  return [...document.querySelectorAll('.nmd-sentence, .nmd-tools, .nmd-number, .nmd-actions')]
      .filter((each) => each.scrollWidth > each.clientWidth + 1
          || bottom(each) > bottom(each.parentElement) + 1)
      .map((each) => each.className + each.textContent);
}"""
ROWS = """where => {
  const box = document.querySelector(where).getBoundingClientRect();
  const inside = ({ bottom, right }) => bottom <= box.bottom + 1 && right <= box.right + 1;
  return [...document.querySelectorAll(`${where} > li, ${where} thead th`)]
    .filter((each) => inside(each.getBoundingClientRect())).length;
}"""
DRAWN = "() => document.querySelector('.nmd-word-number:not(.nmd-old)')"


def places(page, which):
    """Return the boxes of the parts of the frame, in whole pixels of the explorer."""
    top = page.locator(".nmd-explorer").bounding_box()
    found = {}
    for name in [".nmd-bar", ".nmd-stage", ".nmd-components", *PARTS[which]]:
        page.locator(name).first.wait_for()
        box = page.locator(name).first.bounding_box()
        found[name] = [round(box[key] - top.get(key, 0)) for key in ("x", "y")]
        found[name] += [round(box[key]) for key in ("width", "height")]
    return found


def white(page):
    """Return the fraction of squares of the frame in which all pixels are white."""
    picture = Image.open(io.BytesIO(page.locator(".nmd-frame").screenshot())).convert("RGB")
    high, wide = (size // SQUARE for size in (picture.height, picture.width))
    pixels = np.asarray(picture)[: high * SQUARE, : wide * SQUARE]
    squares = pixels.reshape(high, SQUARE, wide, SQUARE, 3)
    return (squares == 255).all(axis=(1, 3, 4)).mean()


def ended(page):
    """Wait until nothing runs."""
    page.wait_for_function(DRAWN)
    page.wait_for_selector(".nmd-action.nmd-again")
    page.wait_for_timeout(500)


@pytest.mark.parametrize("which", some(["table", "digits", "ratings"], 1))
def test_nothing_moves_and_nothing_is_cut(notebook, which):
    page = notebook.page
    for width in (1300, 900):
        page.set_viewport_size({"width": width, "height": 1000})
        if width == 1300:
            notebook.show({"digits": DIGITS, "ratings": RATINGS, "table": MIXED}[which])
            page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
        ended(page)  # it runs by itself
        assert page.locator(".nmd-frame").get_by_role("progressbar").count() == 0
        assert page.locator(".nmd-frame").bounding_box()["height"] <= TALLEST
        assert page.evaluate(TAB_STOPS) <= MOST_TAB_STOPS
        assert page.evaluate(CUT) == []
        wait_for(lambda: white(page) <= MOST_WHITE)  # pictures are drawn after the numbers
        before = places(page, which)
        page.click(".nmd-action.nmd-again")
        page.click(".nmd-popover .nmd-run")
        ended(page)
        assert places(page, which) == before
        for opener in POPOVERS:
            page.click(opener)
            page.wait_for_selector(".nmd-popover")
            assert places(page, which) == before
            if width == 900:
                assert violations(page, ".nmd-explorer") == []
            page.locator(TEXT).locator("visible=true").first.click()
            page.keyboard.press("Escape")
            page.wait_for_selector(".nmd-popover", state="detached")
        page.click(".nmd-component >> nth=0")
        page.wait_for_selector('.nmd-component[aria-pressed="true"]')
        page.click(".nmd-component >> nth=0")
        page.wait_for_selector(".nmd-component[data-off]")
        assert places(page, which) == before
        page.click(".nmd-all-on")
        page.wait_for_selector(".nmd-component[data-off]", state="detached")
        assert places(page, which) == before
        if which == "ratings":
            page.wait_for_selector(".nmd-top .nmd-interval")  # drawn in the background
            assert page.evaluate(ROWS, ".nmd-top ol") >= 14
        if which == "table":
            assert page.evaluate(ROWS, ".nmd-grid-box") >= {1300: 10, 900: 7}[width]
