"""The frame of an explorer: its height, and that nothing in it moves."""

from __future__ import annotations

import pytest

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
    "ratings": [".nmd-bar", ".nmd-lists", ".nmd-inspector", ".nmd-components"],
}
TALLEST = 760


def places(page, which):
    """Return the boxes of the parts of the frame, in whole pixels of the explorer."""
    top = page.locator(".nmd-explorer").bounding_box()
    found = {}
    for name in PARTS[which]:
        box = page.locator(name).first.bounding_box()
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


@pytest.mark.parametrize("width", [1300, 900])
@pytest.mark.parametrize("which", ["digits", "ratings"])
def test_nothing_moves(notebook, which, width):
    page = notebook.page
    page.set_viewport_size({"width": width, "height": 1000})
    notebook.open(f"{which}{width}.ipynb", [{"digits": DIGITS, "ratings": RATINGS}[which]])
    ended(page, 1)  # it runs by itself
    assert page.locator(".nmd-frame").bounding_box()["height"] <= TALLEST
    before = places(page, which)
    page.click(".nmd-run")
    ended(page, 2)
    assert places(page, which) == before
    page.click(".nmd-menu summary")
    assert places(page, which) == before
    page.click(".nmd-choose")
    ended(page, 3)
    assert places(page, which) == before
    for name in ("Why this rank", "Runs", "Solver", *["How sure"] * (which == "ratings"), "Error"):
        page.get_by_role("tab", name=name).click()
        page.wait_for_selector(".nmd-run:enabled")
        assert places(page, which) == before
    page.click(".nmd-component >> nth=0")
    page.locator('.nmd-component[aria-pressed="false"]').wait_for()
    assert places(page, which) == before
    assert notebook.errors == []
