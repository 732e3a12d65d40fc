"""The frame of an explorer: its height, that nothing in it moves, and axe-core on each tab."""

from __future__ import annotations

import ast

import numpy as np
import pytest
from journeys import violations

pytestmark = pytest.mark.browser

DIGITS = """
import nmd_lab as nmd
explorer = nmd.widgets.explore(nmd.datasets.digits(150), rank=5, missing=0.1, iterations=30)
explorer
"""
RATINGS = """
import nmd_lab as nmd
explorer = nmd.widgets.explore(
    nmd.datasets.make_ratings(n_users=60, n_items=50, n_ratings=900, random_state=0),
    rank=3, alpha=5.0, draws=20,
)
explorer
"""
PARTS = {
    "digits": [".nmd-bar", ".nmd-picture-box", ".nmd-layers", ".nmd-inspector", ".nmd-components"],
    "ratings": [
        *(".nmd-bar", ".nmd-lists", ".nmd-known-box", ".nmd-top-box", ".nmd-scatter > canvas"),
        *(".nmd-inspector", ".nmd-components"),
    ],
    "table": [".nmd-bar", ".nmd-grid-box", ".nmd-inspector", ".nmd-components"],
}
TALLEST, MOST_TAB_STOPS = 760, 30
TAB_STOPS = """() => [...document.querySelectorAll('.nmd-explorer *')].filter((each) =>
    each.tabIndex >= 0 && !each.disabled && each.checkVisibility({ visibilityProperty: true })
    && each.matches('a, button, input, select, textarea, summary, [tabindex]')).length"""


def places(page, which):
    """Return the boxes of the parts of the frame, in whole pixels of the explorer."""
    top = page.locator(".nmd-explorer").bounding_box()
    found = {}
    for name in PARTS[which]:
        if (name, page.viewport_size["width"]) != (".nmd-scatter > canvas", 900):
            page.wait_for_function(HAS_ROOM, arg=name)  # a part drawn anew is away for a moment
        if box := page.locator(name).first.bounding_box():  # else no room beside lists
            found[name] = [round(box[key] - top.get(key, 0)) for key in ("x", "y")]
            found[name] += [round(box[key]) for key in ("width", "height")]
    return found


def ended(page, number):
    """Wait until so many runs have ended."""
    page.wait_for_function(
        "n => document.querySelectorAll('.nmd-runs tbody tr').length >= n"
        " && !document.querySelector('.nmd-run').disabled",
        arg=number,
    )


MIXED = """
import nmd_lab as nmd, numpy as np, pandas as pd
z = np.random.default_rng(0).normal(size=250)
frame = pd.DataFrame({"size": z, "price": 2 * z + 1, "large": pd.array(z > 0, "boolean")})
frame.loc[7, "large"] = pd.NA
explorer = nmd.widgets.explore(frame, rank=1, alpha=1.0, nonlinearity="identity")
explorer
"""


DRAWN = "() => [...document.querySelector('.nmd-scatter').scatter.drawing.values ?? []]"
STILL = "() => window.once === (window.once = document.querySelector('.nmd-frame').innerHTML)"
HAS_ROOM = "name => document.querySelector(name)?.getClientRects().length"  # with rank 1 hidden
AT = "() => (({ rows, at }) => rows[at])(document.querySelector('.nmd-scatter').scatter)"


def all_boxes(page):
    """Return the boxes of all elements of the frame."""
    return page.locator(".nmd-frame *").evaluate_all(
        "all => all.map((each) => JSON.stringify(each.getBoundingClientRect()))"
    )


@pytest.mark.parametrize("width", [1600, 900])
def test_the_plane_draws_under_the_pointer_and_moves_nothing(notebook, width):
    page = notebook.page
    page.set_viewport_size({"width": width, "height": 1000})
    notebook.show(DIGITS)
    ended(page, 1)
    turn = page.get_by_role("button", name="plane", exact=True)
    assert turn.is_visible() == (width == 900)
    if turn.is_visible():
        turn.click()
    plane = page.locator(".nmd-scatter > canvas")
    plane.scroll_into_view_if_needed()
    page.wait_for_function(STILL, polling=1000)  # the kernel has had its last words
    box, before = plane.bounding_box(), all_boxes(page)
    seen = [page.evaluate(DRAWN)]
    for across, down in [(0.3, 0.3), (0.5, 0.7), (0.8, 0.4)]:
        page.mouse.move(box["x"] + across * box["width"], box["y"] + down * box["height"])
        seen.append(page.evaluate(DRAWN))
        assert all_boxes(page) == before
    assert len({tuple(each) for each in seen}) == 4
    assert page.locator(".nmd-drawing canvas").first.bounding_box()["height"] > 60
    plane.focus()
    page.keyboard.press("ArrowRight")
    row, values = page.evaluate(AT), page.evaluate(DRAWN)
    assert values not in seen
    printed = notebook.run(f"print(explorer.result.reconstruct().values[{row}].ravel().tolist())")
    np.testing.assert_allclose(values, ast.literal_eval(printed), atol=0.01)
    assert notebook.errors == []


@pytest.mark.parametrize("which", ["digits", "ratings", "table"])
def test_nothing_moves(notebook, which):
    page, runs = notebook.page, 0
    for width in (1300, 900):
        page.set_viewport_size({"width": width, "height": 1000})
        if not runs:
            notebook.show({"digits": DIGITS, "ratings": RATINGS, "table": MIXED}[which])
            ended(page, runs := 1)  # it runs by itself
        assert page.locator(".nmd-frame").bounding_box()["height"] <= TALLEST
        assert page.evaluate(TAB_STOPS) <= MOST_TAB_STOPS
        before = places(page, which)
        page.click(".nmd-run")
        ended(page, runs := runs + 1)
        assert places(page, which) == before
        page.click(".nmd-menu summary")
        assert places(page, which) == before
        page.click(".nmd-choose")
        ended(page, runs := runs + 1)
        assert places(page, which) == before
        tabs = ["Why this rank", "Runs", "Solver", *["How sure"] * (which != "digits"), "Error"]
        for name in tabs:
            page.get_by_role("tab", name=name).click()
            page.wait_for_selector(".nmd-run:enabled")
            assert places(page, which) == before
            if width == 900 or name == "Error":
                assert violations(page, ".nmd-explorer") == []
        page.click(".nmd-component >> nth=0")
        page.locator('.nmd-component[aria-pressed="false"]').wait_for()
        assert places(page, which) == before
        page.click(".nmd-all-on")
        page.locator('.nmd-component[aria-pressed="false"]').wait_for(state="detached")
        assert places(page, which) == before
