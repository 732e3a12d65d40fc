"""Ratings that a user gives on the page: stars are clicked, and lists and plane follow."""

from __future__ import annotations

import pytest
from journeys import violations

pytestmark = pytest.mark.browser

RATINGS = """
import nmd_lab as nmd
frame = nmd.datasets.make_ratings(n_users=60, n_items=50, n_ratings=900, random_state=0)
frame["title"] = [f"Film {item}" for item in frame["item"]]
explorer = nmd.widgets.explore(frame, rank=3, alpha=2.0, offsets="both", nonlinearity="identity")
explorer
"""
PERSON = "document.querySelector('.nmd-scatter').scatter.data.person"


def person(page):
    """Return where the ring in the plane is."""
    return page.evaluate(f"() => [{PERSON}.x, {PERSON}.y]")


def suggested(page):
    """Return the titles and the predictions of the list on the right."""
    return page.locator(".nmd-top tbody tr").all_inner_texts()


def places(page):
    """Return where the lists and the inspector are in the frame."""
    return page.evaluate(
        "() => ['.nmd-frame', '.nmd-known', '.nmd-top', '.nmd-inspector'].map((each) => "
        "document.querySelector(each).getBoundingClientRect()).map(({ x, y, width }, _, [frame]) =>"
        " [x - frame.x, y - frame.y, width].map(Math.round))"
    )


def rated(page, k, number):
    """Wait until the stars of a row show the rating with a number; 0 is none."""
    stars = page.locator(".nmd-known tbody tr").nth(k).locator(f"[aria-valuenow='{number}']")
    stars.wait_for()


def moved(page, before):
    """Wait until the ring is elsewhere, and return where."""
    page.wait_for_function(f"before => {PERSON}.x !== before[0]", arg=before)
    return person(page)


def click_star(page, k, number, count):
    """Click the star of a rating with a number, from 1."""
    stars = page.locator(".nmd-known .nmd-stars").nth(k)
    box = stars.bounding_box()
    position = {"x": (number - 0.5) / count * box["width"], "y": box["height"] / 2}
    stars.click(position=position)


@pytest.mark.parametrize("width", [1300, 900])
def test_stars_move_the_list_and_the_ring(notebook, width):
    page = notebook.page
    page.set_viewport_size({"width": width, "height": 1000})
    notebook.open(f"stars{width}.ipynb", [RATINGS])
    page.locator(".nmd-headline", has_text="item's mean").wait_for()
    ask = page.get_by_role("button", name="rate some yourself")
    place = ask.bounding_box()
    ask.click()
    rated(page, 0, 0)
    assert ask.bounding_box() == place
    before = places(page)
    stars = page.locator(".nmd-known .nmd-stars")
    assert stars.count() == 8
    at = [stars.first.bounding_box(), page.locator(".nmd-top tbody tr").first.bounding_box()]
    count = int(stars.first.get_attribute("aria-valuemax"))
    start, first = person(page), suggested(page)

    click_star(page, 0, count, count)
    rated(page, 0, count)
    one = moved(page, start)
    assert stars.first.bounding_box() == at[0]
    assert page.locator(".nmd-top tbody tr").first.bounding_box() == at[1]
    stars.nth(1).focus()
    page.keyboard.press("ArrowRight")  # the keyboard stays where it is
    rated(page, 1, 1)
    two = moved(page, one)
    page.keyboard.press("ArrowRight")
    rated(page, 1, 2)
    assert suggested(page) != first
    code = "you = explorer.state.person; fit = explorer.result; import numpy as np; "
    code += "row = np.full((1, fit._shape[1]), np.nan); "
    code += "row[0, list(you.ratings)] = list(you.ratings.values()); "
    code += "print(*fit.fold_in(row).values[0, :2])"
    printed = [float(each) for each in notebook.run(code).split()]
    assert moved(page, two) == pytest.approx(printed)

    click_star(page, 0, count, count)  # again: it is taken back
    rated(page, 0, 0)
    page.locator(".nmd-item input").fill("film 7")
    page.locator(".nmd-item option[value='Film 7']").wait_for(state="attached")
    page.locator(".nmd-item input").press("Enter")
    page.locator(".nmd-known tbody tr:first-child", has_text="Film 7").wait_for()
    page.wait_for_function("!document.querySelector('.nmd-item input').value")
    page.get_by_role("tab", name="How sure").click()
    page.locator(".nmd-top thead", has_text="draws").wait_for()
    assert stars.first.bounding_box()["x"] == at[0]["x"]
    assert places(page) == before
    assert violations(page, ".nmd-lists") == []

    page.get_by_role("button", name="rate some yourself").click()
    page.locator(".nmd-known .nmd-stars").first.wait_for(state="detached")
    assert notebook.errors == []
