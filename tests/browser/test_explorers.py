"""Each explorer in a real JupyterLab, with a real browser, from end to end."""

import ast
import re

import numpy as np
import pytest
from journeys import PICTURES, number_after, paint, press, status_says, stop_and_go_on, violations

pytestmark = pytest.mark.browser

DIGITS = """
settings = {"iterations": 100_000_000, "rho": 1.0, "tol": 0}
model = {"nonlinearity": "relu", "rank": 10, "alpha": 0.0}
explorer = nmd.widgets.Explorer(nmd.datasets.digits(600), **settings, **model)
"""
PHOTOGRAPH = """
from sklearn.datasets import load_sample_image
photo = load_sample_image("china.jpg")[100:220, 200:360] / 255
explorer = nmd.widgets.explore(photo, groups=4)
"""
RATINGS = """
from nmd_lab.widgets.explorer import library
explorer = nmd.widgets.Explorer(
    data=[*library()][3], rank=8, alpha=15.0, draws=20_000, iterations=100_000_000,
    patience=100_000_000,
)
"""
STUDY = """
study = nmd.Study(
    nmd.datasets.digits(300), nonlinearity="relu", rank=[4, 8], n_splits=2, max_iter=3,
    solver=nmd.ADMM(rho=1.0), tol=0,
)
study.run(progress=False)
explorer = nmd.widgets.Explorer(study)
"""
SUM = f"{PICTURES}.values.model.reduce((sum, each, k) => sum + each * (k + 1), 0)"
"""A number that changes with the model."""
IDS = f"{PICTURES}.data.ids.join()"
PLANE = "document.querySelector('.nmd-plane').plane"


def changes(page, expression, act):
    """Do something, and wait until an expression of the page has another value."""
    before = page.evaluate(expression)
    act()
    page.wait_for_function(f"before => {expression} !== before", arg=before)


def enter(page, where, value):
    box = page.locator(f"{where} input").first
    box.fill(str(value))
    box.press("Tab")


def copied(page):
    """Copy the code, and return it."""
    page.click(".nmd-copy")
    page.wait_for_function("document.querySelector('.nmd-copy').textContent === 'copied'")
    return page.evaluate("navigator.clipboard.readText()")


def pasted_code_agrees(notebook):
    """Run the copied code in a new cell, and compare number and factor with the explorer's."""
    code = copied(notebook.page)
    printed = notebook.run(f"{code}\nprint(bool((fit.W == explorer.result.W).all()))")
    shown = notebook.run("print(f\"{explorer.status['headline']['off']:.3g}\")")
    assert f"±{shown}" in printed
    assert printed.splitlines()[-1] == "True"


def values(page, expression):
    """Return the numbers that the page has."""
    code = f"[...{expression}].map((each) => (Number.isNaN(each) ? null : each))"
    return np.array(page.evaluate(code), dtype=float)


def test_a_matrix(notebook):
    notebook.show(DIGITS)
    page = notebook.page
    stop_and_go_on(page, pictures=True)
    page.locator(".nmd-sentence", has_text="average ±").wait_for()
    pasted_code_agrees(notebook)

    # The number of the first components is that of the kernel
    page.locator(".nmd-build input").fill("3")
    page.locator(".nmd-build output", has_text="first 3 of 10").wait_for()
    off = number_after("±", page.inner_text(".nmd-build output").replace("±", "± "))
    expected = notebook.run("print(explorer.drawing['errors'][3])")
    assert off == pytest.approx(float(expected), rel=0.05)
    page.locator(".nmd-build input").fill("10")
    page.hover(".nmd-component >> nth=2")
    page.locator(".nmd-pictures > .nmd-read", has_text="component 2: orange +").wait_for()

    # A click pins it, another one switches it off; any divider moves all of them, space blinks
    changes(page, IDS, lambda: page.click(".nmd-component >> nth=2"))
    page.wait_for_selector('.nmd-component[aria-pressed="true"]')
    changes(page, SUM, lambda: page.click(".nmd-component >> nth=2"))
    page.locator(".nmd-sentence", has_text="without component 2").wait_for()
    page.wait_for_selector(".nmd-old", state="detached")  # the number is that of what is shown
    number = notebook.run("print(explorer.status['headline']['value'])")
    assert page.inner_text(".nmd-word-number") == number
    page.click(".nmd-all-on")
    canvas = page.locator(".nmd-picture-area canvas")
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 30, box["y"] + 22, steps=4)
    page.mouse.up()
    assert 0 < page.evaluate(f"{PICTURES}.share") < 0.5
    for share in (1, 0):
        canvas.press("Space")
        assert page.evaluate(f"{PICTURES}.share") == share

    # The run of before, left of the dividers of another one
    notebook.run("explorer.state.set('iterations', 20); explorer.rank = 4")
    notebook.run("explorer.start(); explorer.join()")
    page.locator(".nmd-runs").press("ArrowRight")
    page.wait_for_function(f"{PICTURES}.data.beside_title.includes('10 components')")
    a_lasso_picks_rows(notebook)


def a_lasso_picks_rows(notebook):
    """Draw a lasso around the right half of the plane, see its rows, and let them go again."""
    page = notebook.page
    page.locator(".nmd-picture-area canvas").press("Escape")
    plane = page.locator(".nmd-plane canvas").first
    plane.scroll_into_view_if_needed()
    box = plane.bounding_box()
    lefts, rows = page.evaluate(f"[[...{PLANE}.positions.left], [...{PLANE}.rows]]")
    middle, right, low = np.median(lefts), box["width"] - 2, box["height"] - 2

    def lasso():
        for k, (x, y) in enumerate([(middle, 1), (right, 1), (right, low), (middle, low)]):
            page.mouse.move(box["x"] + x, box["y"] + y, steps=4)
            if not k:
                page.mouse.down()
        page.mouse.up()

    changes(page, IDS, lasso)
    page.wait_for_selector(".nmd-old", state="detached")  # the kernel has it, too
    chosen = set(ast.literal_eval(notebook.run("print(explorer.selection['rows'])")))
    expected = {row for row, left in zip(rows, lefts, strict=True) if left > middle + 1}
    assert expected <= chosen <= {r for r, x in zip(rows, lefts, strict=True) if x > middle - 1}
    assert set(map(int, page.evaluate(IDS).split(","))) <= chosen
    said = page.inner_text(".nmd-words")  # the pictures are those that have room
    assert said.startswith(f"{len(chosen)} rows picked"), said
    assert f"; {page.evaluate(f'{PICTURES}.mosaic.count')} images shown" in said
    changes(page, IDS, lambda: plane.press("Escape"))


def test_photograph_by_patches_with_rain(notebook):
    notebook.show(PHOTOGRAPH)
    page, seen = notebook.page, f"{PICTURES}.values.seen"
    status_says(page, "^done$")
    assert "Held-out pixels are predicted to ±" in page.inner_text(".nmd-sentence")

    # Rain falls while the pointer moves, is filled at once, and everything again after it
    before = np.isnan(values(page, seen)).sum()
    paint(page, "rain", (0.4, 0.3), (0.4, 0.6))
    status_says(page, "groups so far|^done")
    status_says(page, "^done$")
    page.locator(".nmd-pictures > .nmd-read", has_text="under rain: ±").wait_for()
    assert np.isnan(values(page, seen)).sum() > before + 100
    assert not np.isnan(values(page, f"{PICTURES}.values.model")).any()

    # Uncertainty is a colour on the picture
    page.click(".nmd-tools button:has-text('uncertainty')")
    legend = page.locator(".nmd-pictures > .nmd-read", has_text="or more (purple)")
    legend.wait_for()
    said = legend.inner_text()
    assert "(purple): one standard deviation, mean of the channels, in the unit of the data" in said
    page.get_by_role("button", name="rain", exact=True).click()  # puts the brush down
    page.locator(".nmd-picture-area canvas").hover(position={"x": 9, "y": 9})
    read = page.locator(".nmd-pictures > .nmd-read", has_text=re.compile(r"SD \S+ / \S+ / \S+$"))
    read.wait_for()  # one for each channel, as the data and the model
    page.click(".nmd-tools button:has-text('data | model')")
    assert violations(page, ".nmd-explorer") == []

    # As a matrix on request
    press(page, "data", "turn")
    page.wait_for_function(
        "document.querySelector('.nmd-word-components')?.textContent.includes('components')"
    )


def click_star(page, k, number, count):
    """Click the star of a rating with a number, from 1; the same one again takes it back."""
    stars = page.locator(".nmd-known .nmd-stars").nth(k)
    box = stars.bounding_box()
    stars.click(position={"x": (number - 0.5) / count * box["width"], "y": box["height"] / 2})


def rated(page, k, number):
    """Wait until the stars of a row show the rating with a number; 0 is none."""
    page.locator(".nmd-known li").nth(k).locator(f"[aria-valuenow='{number}']").wait_for()


def test_ratings_with_stars_and_intervals(notebook):
    notebook.show(RATINGS)
    page = notebook.page
    stop_and_go_on(page)
    page.locator(".nmd-sentence", has_text="average ±").wait_for()
    pasted_code_agrees(notebook)
    enter(page, ".nmd-row", "2")
    page.locator(".nmd-known li", has_text="Apollo 13").wait_for()
    page.locator(".nmd-known li button").first.click()
    page.locator(".nmd-known li[aria-current]").wait_for()
    enter(page, ".nmd-row", "nobody")
    page.locator(".nmd-row .nmd-note", has_text="no row is labelled 'nobody'").wait_for()
    enter(page, ".nmd-row", "3")
    page.locator(".nmd-row .nmd-note").wait_for(state="detached")
    tops = page.locator(".nmd-lists ol").evaluate_all(
        "(lists) => lists.map((each) => each.offsetTop)"
    )
    assert len(set(tops)) == 1  # both lists begin at one height

    # Stars: by the pointer and the keyboard, taken back, and of a film that was looked for
    page.click(".nmd-turn")
    rated(page, 0, 0)
    first, suggested = page.locator(".nmd-known .nmd-stars").first, page.locator(".nmd-top ol")
    at, before = first.bounding_box(), suggested.inner_text()
    count = int(first.get_attribute("aria-valuemax"))
    click_star(page, 0, count, count)
    rated(page, 0, count)
    page.locator(".nmd-known .nmd-stars").nth(1).focus()
    for number in (1, 2):  # the keyboard stays where it is
        changes(page, f"{PLANE}.ring.x", lambda: page.keyboard.press("ArrowRight"))
        rated(page, 1, number)
    assert first.bounding_box() == at
    assert suggested.inner_text() != before
    page.locator(".nmd-about-you", has_text="you rate").wait_for()
    added = [float(each) for each in page.locator(".nmd-top li .nmd-for-you").all_inner_texts()]
    assert added == sorted(added, reverse=True)

    # A film lights up those that are like it on the map, and films slide along a component
    page.hover(".nmd-top li >> nth=0")
    page.wait_for_function(f"{PLANE}.lit.length === 7")
    page.hover(".nmd-component >> nth=2")
    page.wait_for_function(f"{PLANE}.slid === 2 && {PLANE}.lit.length === 0")
    page.mouse.move(1, 1)
    page.wait_for_function(f"{PLANE}.slid === null")
    click_star(page, 0, count, count)
    rated(page, 0, 0)
    page.locator(".nmd-item input").fill("apollo")
    page.locator(".nmd-item option[value='Apollo 13 (1995)']").wait_for(state="attached")
    page.locator(".nmd-item input").press("Enter")
    page.locator(".nmd-known li:first-child", has_text="Apollo 13").wait_for()
    assert violations(page, ".nmd-lists") == []

    # Intervals
    press(page, "more", "sample")
    said = status_says(page, r"drawing: \d+ of \d+(, about .*)?$")  # after the tuning
    assert number_after("of", said) == 20_100
    page.click(".nmd-stop")
    status_says(page, r"stopped after \d+ draws")
    page.click(".nmd-action.nmd-more")
    page.locator(".nmd-popover .nmd-chart svg").wait_for()
    page.keyboard.press("Escape")
    first = page.locator(".nmd-top li .nmd-predicted").first
    low, high = map(float, re.findall(r"[\d.]+", first.get_attribute("title"))[1:])
    assert low <= float(first.inner_text()) <= high + 0.05


def test_a_study(notebook):
    notebook.show(STUDY)
    page = notebook.page
    page.locator(".nmd-sentence", has_text="best is").wait_for()
    bands = page.locator(".nmd-chart strong", has_text="bands: ± SD over seeds")
    bands.wait_for()
    page.set_viewport_size({"width": 1400, "height": 1500})
    for box in page.locator(".nmd-table-box").all():  # no table is cut
        assert box.evaluate("(box) => box.scrollWidth <= box.clientWidth")
    page.locator('.nmd-chart [role="button"]').nth(1).press("Enter")
    page.locator(".nmd-table-box", has_text="rank 8").wait_for()
    mean = notebook.run("print(explorer.state.score(explorer.state.selected)[0])")
    assert float(notebook.run(copied(page)).split()[-1]) == float(mean)
    page.click(".nmd-word-data")
    first = "document.querySelector('.nmd-stage > .nmd-chart').chart.points[0].y"
    changes(page, first, lambda: page.locator(".nmd-metric select").select_option("seconds"))
    assert violations(page, ".nmd-explorer") == []


FIRST_CELL = "() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 0; }"
RESTART = "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
COUNTED = "from ipywidgets.widgets.widget import _instances; print(len(_instances))"
SMALL = """
settings = {"nonlinearity": "relu", "rank": 6, "alpha": 0.1, "iterations": 30, "draws": 10}
explorer = nmd.widgets.explore(nmd.datasets.digits(300), **settings)
"""


def switch_off(page, k):
    """Pin a component and switch it off: the sentence has the error that the build has."""
    for _ in range(2):
        page.locator(".nmd-component").nth(k).click()
    page.locator(".nmd-sentence", has_text=f"without component {k}.").wait_for()
    after = page.locator(".nmd-word-number").inner_text()
    page.locator(".nmd-build output", has_text=f"1 off: {after} held out").wait_for()


@pytest.mark.exhaustive
def test_a_page_outlives_its_kernel_and_the_notebook_keeps_it(notebook):
    notebook.open("kept.ipynb", [f"import nmd_lab as nmd\n{SMALL}\nexplorer"])
    page = notebook.page
    frame = page.locator(".nmd-static iframe")
    frame.wait_for(state="attached")
    assert not page.locator(".nmd-static").is_visible()  # next to the living explorer
    page.evaluate(FIRST_CELL)
    notebook.command("notebook:run-cell")  # which ends the explorer of before
    assert notebook.run(COUNTED) == "1"
    page.locator(".nmd-sentence", has_text="90 % intervals cover").wait_for()
    page.wait_for_timeout(1000)
    sentence = page.inner_text(".nmd-sentence").split()

    # The kernel ends: what needs none stays alive
    notebook.command("docmanager:save")
    page.evaluate(RESTART)
    status_says(page, "The kernel was restarted")
    switch_off(page, 2)
    page.locator(".nmd-build input").fill("3")
    page.locator(".nmd-build output", has_text="first 3 of 6").wait_for()
    assert page.locator(":is(.nmd-again, .nmd-brushes button):enabled").count() == 0
    assert page.locator(".nmd-old").count() == 0  # the number is that of what is shown

    # The notebook is opened again
    page.reload()
    inside = page.frame_locator(".nmd-static iframe")
    inside.locator(".nmd-sentence").wait_for()
    assert inside.locator(".nmd-sentence").inner_text().split() == sentence
    assert not page.get_by_text("model not found").is_visible()
    assert not page.locator(".nmd-still").is_visible()
    switch_off(inside, 2)
    # One line for each view is from ipywidgets, which does not know that the page is there
    notebook.errors[:] = [each for each in notebook.errors if "model not found" not in each]


@pytest.mark.exhaustive
def test_files_are_named_and_refused_next_to_their_name(notebook):
    notebook.show(SMALL)
    page = notebook.page
    page.locator(".nmd-sentence", has_text="90 % intervals cover").wait_for()
    page.click(".nmd-action.nmd-more")
    popover = page.locator(".nmd-popover")
    assert ".html the page, .nc the result" in popover.inner_text()
    press = [lambda: popover.locator(".nmd-save").click(), lambda: page.keyboard.press("Enter")]
    names = {"mine.doc": "unknown ending", "mine.html": "saved as"}
    for (name, words), save in zip(names.items(), press, strict=True):
        popover.get_by_label("file", exact=True).fill(name)
        save()
        popover.get_by_role("status").filter(has_text=words).wait_for()
        assert popover.get_by_label("file", exact=True).input_value() == name
        assert page.inner_text(".nmd-status") == ""
    popover.locator(".nmd-as-page").click()
    popover.get_by_role("status").filter(has_text="fit.html").wait_for()
    page.keyboard.press("Escape")

    # Nothing jumps under the pointer when the divider goes
    places = "() => [...document.querySelectorAll('.nmd-tools button')].map((b) => b.offsetLeft)"
    before = page.evaluate(places)
    page.click(".nmd-tools button:has-text('difference')")
    page.locator(".nmd-right", has_text="difference").wait_for()
    assert page.evaluate(places) == before


TABLE = """
import numpy as np
import pandas as pd
rng = np.random.default_rng(0)
z = rng.normal(size=60)
table = pd.DataFrame({"id": range(1, 61), "name": [f"Mr. {k}" for k in range(60)], "age": z})
table["seen"] = pd.Timestamp("2021-03-01") + pd.to_timedelta(np.round(9 * z), unit="D")
explorer = nmd.widgets.explore(table, rank=1, alpha=0.5, nonlinearity="identity")
"""


def test_columns_that_are_left_out_are_named_and_one_click_takes_them_in(notebook):
    notebook.show(TABLE)
    page = notebook.page
    page.locator(".nmd-sentence").get_by_text("left out: id, name (all different)").wait_for()
    page.locator(".nmd-cell", has_text="2021-0").first.wait_for()
    page.get_by_role("button", name="take them in").click()
    page.locator(".nmd-sentence").get_by_text("taken in: id, name").wait_for()
    page.get_by_role("button", name="leave them out").click()
    page.locator(".nmd-sentence").get_by_text("left out: id, name (all different)").wait_for()
    assert "X = table.drop(columns=" in copied(page)
