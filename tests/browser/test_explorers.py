"""Each explorer in a real JupyterLab, with a real browser, from end to end."""

from __future__ import annotations

import ast
import json
import re

import numpy as np
import pytest
from journeys import (
    ENDED,
    drawn,
    number_after,
    paint,
    status_says,
    stop_and_go_on,
    violations,
    wait_for_frames,
)

import nmd_lab as nmd

pytestmark = pytest.mark.browser

DIGITS = """
import nmd_lab as nmd
settings = {"iterations": 100_000_000, "rho": "1", "tol": 0}
model = {"nonlinearity": "relu", "rank": 10, "alpha": 0.0}
explorer = nmd.widgets.Explorer(nmd.datasets.digits(600), **settings, **model)
explorer
"""
PICTURE = """
import nmd_lab as nmd
explorer = nmd.widgets.Explorer(
    data="photograph of a flower", rank=12, alpha=0.1, iterations=40, nonlinearity="relu", missing=0
)
explorer.start()
explorer
"""
PHOTOGRAPH = """
import nmd_lab as nmd
from sklearn.datasets import load_sample_image
photo = load_sample_image("china.jpg")[100:220, 200:360] / 255
explorer = nmd.widgets.explore(photo, groups=4)
explorer
"""
RATINGS = """
import nmd_lab as nmd
from nmd_lab.widgets.code import ratings_choices
explorer = nmd.widgets.Explorer(
    data=next(iter(ratings_choices())), rank=8, alpha=15.0, draws=20_000, iterations=100_000_000,
    patience=100_000_000,
)
explorer
"""
STUDY = """
import nmd_lab as nmd
study = nmd.Study(
    nmd.datasets.digits(300), nonlinearity="relu", rank=[4, 8], n_splits=2, max_iter=3,
    solver=nmd.ADMM(rho=1.0), tol=0,
)
study.run(progress=False)
explorer = nmd.widgets.Explorer(study)
explorer
"""
SUM = (
    "document.querySelector('.nmd-pictures').pictures.values.reconstruction"
    ".reduce((sum, each, k) => sum + each * (k + 1), 0)"
)
"""A number that changes with the reconstruction."""
IDS = "document.querySelector('.nmd-pictures').pictures.data.ids.join()"
PERSON = "document.querySelector('.nmd-scatter').scatter.data.person"


def changes(page, expression, act):
    """Do something, and wait until an expression of the page has another value."""
    before = page.evaluate(expression)
    act()
    page.wait_for_function(f"before => {expression} !== before", arg=before)


def tab(page, name):
    """Open a tab of the inspector."""
    page.locator(".nmd-tablist").get_by_role("tab", name=name).click()


def enter(page, where, value):
    box = page.locator(f"{where} input").first
    box.fill(str(value))
    box.press("Tab")


def copied(page):
    """Copy the code, and return it."""
    page.click(".nmd-copy-button")
    page.wait_for_function("document.querySelector('.nmd-copy-button').textContent === 'copied'")
    return page.evaluate("navigator.clipboard.readText()")


def pasted_code_agrees(notebook):
    """Run the copied code in a new cell, and compare error and factor with the explorer's."""
    code = copied(notebook.page)
    printed = notebook.run(f"{code}\nprint(bool((fit.W == explorer.result.W).all()))")
    shown = notebook.run('print(f"relative error {explorer.result.relative_error:.4g}")')
    assert printed.splitlines()[-2:] == [shown, "True"]


def refuses(page, where, value, words):
    """Enter a wrong value and read the message next to it; put a right one back."""
    right = page.locator(f"{where} input").first.input_value()
    enter(page, where, value)
    page.locator(f"{where} .nmd-note", has_text=words).wait_for()
    page.wait_for_function("document.querySelector('.nmd-run').disabled")
    enter(page, where, right)
    page.wait_for_function("!document.querySelector('.nmd-run').disabled")


def values(page, tile):
    """Return the numbers of a tile, as the page has them."""
    code = "tile => [...document.querySelector('.nmd-pictures').pictures.values[tile]]"
    code += ".map((each) => (Number.isNaN(each) ? null : each))"
    return np.array(page.evaluate(code, tile), dtype=float)


def test_a_matrix(notebook):
    notebook.show(DIGITS)
    page = notebook.page
    stop_and_go_on(page, pictures=True)
    page.wait_for_selector(".nmd-errors td")
    pasted_code_agrees(notebook)
    curves_can_be_read(notebook)

    # The slider over snapshots, the rows of a component, and a component that is off
    changes(page, SUM, lambda: page.locator(".nmd-curves-panel svg").first.press("Home"))
    changes(page, SUM, lambda: page.locator(".nmd-rows").nth(2).press("Enter"))
    page.locator(".nmd-component").nth(1).click()
    page.locator(".nmd-components .nmd-caption", has_text="without component 1").wait_for()
    assert page.locator(".nmd-component").nth(1).get_attribute("aria-pressed") == "false"
    a_lasso_picks_rows(notebook)

    tab(page, "Solver")
    refuses(page, ".nmd-rank", "2.7", "'2.7'")
    enter(page, ".nmd-seed", 1)
    page.wait_for_function("document.querySelector('.nmd-continue').disabled")
    assert not page.locator(".nmd-low input").is_visible()  # it has no effect


def curves_can_be_read(notebook):
    """Compare the curves with the fit, and read them under the pointer."""
    page = notebook.page
    code = "import json; h, hidden = explorer.result.history, explorer.state.hidden; "
    code += "unit = hidden.sizes['relative_error']; "
    code += "errors = [unit * error for error in h.relative_error.values.tolist()]; "
    code += "print(json.dumps(dict(zip(h.iteration.values.tolist(), errors))))"
    errors = json.loads(notebook.run(code))
    curve = "document.querySelector('.nmd-curves').curves.relative_error"
    x, y = page.evaluate(f"[[...{curve}.x], [...{curve}.y]]")
    assert y == [errors[str(int(iteration))] for iteration in x]
    panel = page.locator(".nmd-curves-panel").first
    drawing = panel.locator("svg")
    assert "Last: seen" in drawing.get_attribute("aria-label")
    drawing.hover(position={"x": 0.5 * drawing.bounding_box()["width"], "y": 60})
    said = panel.locator("output").inner_text()
    at = int(re.search(r"iteration (\d+)", said)[1])
    assert 0.3 * x[-1] < at < 0.7 * x[-1]
    assert number_after("seen", said) == pytest.approx(y[x.index(at)], rel=1e-3)
    assert drawing.locator("path").count() == 2
    assert drawing.locator(".nmd-lowest").count() == 1


def a_lasso_picks_rows(notebook):
    """Draw a lasso around the right half of the plane, see its rows, and let them go again."""
    page = notebook.page
    page.get_by_role("button", name="plane", exact=True).click()
    scatter = page.locator(".nmd-scatter > canvas")
    scatter.scroll_into_view_if_needed()
    box = scatter.bounding_box()
    lefts, rows = page.evaluate(
        "(({ positions, rows }) => [[...positions.left], [...rows]])"
        "(document.querySelector('.nmd-scatter').scatter)"
    )
    middle, right, low = np.median(lefts), box["width"] - 2, box["height"] - 2

    def lasso():
        for k, (x, y) in enumerate([(middle, 1), (right, 1), (right, low), (middle, low)]):
            page.mouse.move(box["x"] + x, box["y"] + y, steps=4)
            if not k:
                page.mouse.down()
        page.mouse.up()

    changes(page, IDS, lasso)
    chosen = set(ast.literal_eval(notebook.run("print(explorer.selection['rows'])")))
    expected = {row for row, left in zip(rows, lefts, strict=True) if left > middle + 1}
    assert expected <= chosen <= {r for r, x in zip(rows, lefts, strict=True) if x > middle - 1}
    assert set(map(int, page.evaluate(IDS).split(","))) <= chosen
    changes(page, IDS, lambda: scatter.press("Escape"))
    page.locator(".nmd-scatter select").first.select_option("3")
    page.wait_for_function("document.querySelector('.nmd-scatter').scatter.data.a === 3")


@pytest.mark.exhaustive
def test_a_picture_under_the_brush_runs_and_an_upload(notebook, tmp_path):
    notebook.show(PICTURE)
    page = notebook.page
    status_says(page, ENDED)
    assert not np.isnan(values(page, "seen")).any()
    paint(page, "hide", (0.4, 0.3), (0.4, 0.7))
    wait_for_frames(page, drawn, 1)
    status_says(page, ENDED)
    page.wait_for_function("!document.querySelector('.nmd-run').disabled")
    hidden = np.isnan(values(page, "seen")).reshape(213, 320)
    assert hidden[85, 100:220].all()
    assert not hidden[:40].any()
    assert not hidden[150:].any()
    seen = notebook.run(
        "import numpy as np; print(int(np.isnan(explorer.state.data.observed).sum()))"
    )
    assert int(seen) == hidden.sum()
    pasted_code_agrees(notebook)

    holes = "document.querySelector('.nmd-pictures').pictures.values.seen"
    holes += ".filter(Number.isNaN).length"
    changes(page, holes, lambda: paint(page, "reveal", (0.4, 0.5), (0.4, 0.55)))
    page.locator(".nmd-picture-box canvas").press("Space")  # one disc by the keyboard
    page.get_by_role("button", name="forget paint").click()
    page.wait_for_function(f"{holes} === 0")

    # The run before the brush is back; lay that of the brush beside it, and go back to that
    status_says(page, ENDED)
    tab(page, "Runs")
    assert page.locator(".nmd-runs tbody tr").count() == 2
    page.get_by_role("button", name="run 2: draw its curves, too").click()
    page.wait_for_function(
        "document.querySelector('.nmd-curves').curves['relative_error run 2']?.x.length > 0"
    )
    page.get_by_role("button", name="run 2: show its picture beside").click()
    page.get_by_role("button", name="run 2", exact=True).wait_for()
    page.get_by_role("button", name="run 2: go back to it").click()
    page.locator(".nmd-runs tr[aria-current] th", has_text="2").wait_for()
    status_says(page, "done in")
    np.testing.assert_array_equal(values(page, "beside"), values(page, "reconstruction"))

    # A pixel that is picked, and zoom
    page.get_by_role("button", name="look", exact=True).click()
    canvas = page.locator(".nmd-picture-box canvas")
    box = canvas.bounding_box()
    place = {"x": 0.25 * box["width"], "y": 0.5 * box["height"]}
    canvas.click(position=place)
    page.wait_for_function("document.querySelector('.nmd-pictures').pictures.selection?.row > 0")
    at = ast.literal_eval(notebook.run('s = explorer.selection; print([s["row"], s["column"]])'))
    np.testing.assert_allclose(at, [106, 80], atol=2)
    canvas.hover(position=place)
    text = page.locator(".nmd-pictures .nmd-read").inner_text()
    assert re.match(r"row \d+, column \d+: data [\d.]+, model", text)
    at = [int(number) for number in re.findall(r"\d+", text)[:2]]
    X = nmd.datasets.photograph("flower", size=(213, 320)).values
    assert number_after("data", text) == pytest.approx(X[at[0], at[1]], rel=5e-3)
    canvas.press("+")
    page.wait_for_selector(".nmd-zoomed")
    canvas.press("Escape")
    page.wait_for_selector(".nmd-pictures:not(.nmd-zoomed)")

    # A file takes the place of the data
    np.save(tmp_path / "uploaded.npy", np.random.default_rng(0).random((30, 20)))
    tab(page, "Solver")
    page.click(".nmd-opener summary")
    page.set_input_files(".nmd-opener input[type=file]", tmp_path / "uploaded.npy")
    status_says(page, "30 x 20|30 rows|uploaded")
    page.click(".nmd-run")
    status_says(page, ENDED)
    assert notebook.run("print(explorer.result.W.shape[0])") == "30"


def test_photograph_by_patches_with_rain(notebook):
    notebook.show(PHOTOGRAPH)
    page = notebook.page
    status_says(page, "^done: .* intervals")
    before = page.locator(".nmd-headline strong").inner_text()
    assert page.locator(".nmd-headline").inner_text().startswith(f"{before} off where hidden")

    # Rain falls while the pointer moves, is filled at once, and everything again after it
    seen = np.isnan(values(page, "seen")).sum()
    paint(page, "rain", (0.4, 0.3), (0.4, 0.6))
    status_says(page, "groups so far|^done")
    status_says(page, "^done: .* intervals")
    page.locator(".nmd-headline", has_text="where you painted").wait_for()
    assert np.isnan(values(page, "seen")).sum() > seen + 100
    assert not np.isnan(values(page, "reconstruction")).any()

    # Doubt is a colour on the picture, a group shows its pixels, and the code repeats all
    page.click(".nmd-layers button:has-text('doubt')")
    assert "none (grey) to " in page.inner_text(".nmd-corner.nmd-right")
    page.locator("button.nmd-component").nth(1).click()
    page.locator(".nmd-corner.nmd-right", has_text="group 1").wait_for()
    notebook.run("exec(explorer.state.code('photo'))")
    assert notebook.run("print(filled.identical(explorer.result))") == "True"
    assert page.locator(".nmd-scatter").is_hidden()
    assert violations(page, ".nmd-explorer") == []

    # As a matrix on request
    page.click(".nmd-menu summary")
    page.click(".nmd-menu .nmd-turn")
    page.locator(".nmd-about", has_text="120 × 480").wait_for()


def click_star(page, k, number, count):
    """Click the star of a rating with a number, from 1; the same one again takes it back."""
    stars = page.locator(".nmd-known .nmd-stars").nth(k)
    box = stars.bounding_box()
    stars.click(position={"x": (number - 0.5) / count * box["width"], "y": box["height"] / 2})


def rated(page, k, number):
    """Wait until the stars of a row show the rating with a number; 0 is none."""
    stars = page.locator(".nmd-known tbody tr").nth(k).locator(f"[aria-valuenow='{number}']")
    stars.wait_for()


def test_ratings_with_stars_and_intervals(notebook):
    notebook.show(RATINGS)
    page = notebook.page
    stop_and_go_on(page)
    page.locator(".nmd-headline", has_text="item's mean").wait_for()
    pasted_code_agrees(notebook)
    enter(page, ".nmd-row", "2")
    page.locator(".nmd-known tbody th", has_text="Apollo 13").wait_for()
    page.locator(".nmd-known tbody button").first.click()
    page.locator(".nmd-known tr[aria-selected]").wait_for()
    enter(page, ".nmd-row", "nobody")
    page.locator(".nmd-row .nmd-note", has_text="no row is labelled 'nobody'").wait_for()
    enter(page, ".nmd-row", "3")

    # Stars: by the pointer and the keyboard, taken back, and of a film that was looked for
    page.get_by_role("button", name="rate some yourself").click()
    rated(page, 0, 0)
    first, suggested = page.locator(".nmd-known .nmd-stars").first, page.locator(".nmd-top tbody")
    at, before = first.bounding_box(), suggested.inner_text()
    count = int(first.get_attribute("aria-valuemax"))
    changes(page, f"{PERSON}.x", lambda: click_star(page, 0, count, count))
    rated(page, 0, count)
    page.locator(".nmd-known .nmd-stars").nth(1).focus()
    for number in (1, 2):  # the keyboard stays where it is
        changes(page, f"{PERSON}.x", lambda: page.keyboard.press("ArrowRight"))
        rated(page, 1, number)
    assert first.bounding_box() == at
    assert suggested.inner_text() != before
    code = "you = explorer.state.person; fit = explorer.result; import numpy as np; "
    code += "row = np.full((1, explorer.state.shape[1]), np.nan); "
    code += "row[0, list(you.ratings)] = list(you.ratings.values()); "
    code += "print(*np.abs(fit.fold_in(row).values[0, :2]))"
    folded = [float(each) for each in notebook.run(code).split()]
    shown = page.evaluate(f"[{PERSON}.x, {PERSON}.y].map(Math.abs)")
    assert shown == pytest.approx(folded)
    click_star(page, 0, count, count)
    rated(page, 0, 0)
    page.locator(".nmd-item input").fill("apollo")
    page.locator(".nmd-item option[value='Apollo 13 (1995)']").wait_for(state="attached")
    page.locator(".nmd-item input").press("Enter")
    page.locator(".nmd-known tbody tr:first-child", has_text="Apollo 13").wait_for()
    page.wait_for_function("!document.querySelector('.nmd-item input').value")
    assert violations(page, ".nmd-lists") == []

    # How sure
    assert page.locator(".nmd-dots:visible").count() == 0
    tab(page, "How sure")  # which asks at once
    said = status_says(page, r"sampling: sweep \d+ of \d+(, about .*)?$")  # after the tuning
    assert number_after("of", said) == 20_100
    assert page.locator(".nmd-run").is_disabled()
    page.click(".nmd-stop")
    said = status_says(page, r"stopped after \d+ draws; \d+ % of the 90 % intervals cover")
    page.locator(".nmd-dots svg").wait_for()
    assert page.evaluate("document.querySelector('.nmd-dots').points.length") == 5
    page.locator(".nmd-top th", has_text="draws").wait_for()
    cells = page.locator(".nmd-top tbody tr").first.locator("td")
    low, high = map(float, cells.last.inner_text().split(" – "))
    assert low <= float(cells.first.inner_text()) <= high  # within the scale
    assert first.bounding_box()["x"] == at["x"]
    notebook.run(copied(page))
    assert notebook.run("print(posterior.draws.identical(explorer.posterior.draws))") == "True"
    sweeps = notebook.run('print(explorer.posterior.trace.sizes["sweep"])')
    assert number_after("stopped after", said) == float(sweeps)
    page.get_by_role("button", name="rate some yourself").click()
    page.locator(".nmd-known .nmd-stars").first.wait_for(state="detached")
    tab(page, "Solver")
    refuses(page, ".nmd-draws", 0, "draws=0")


def test_a_study(notebook):
    notebook.show(STUDY)
    page = notebook.page
    page.wait_for_selector(".nmd-run")
    tab(page, "Solver")
    assert page.locator(".nmd-controls select").count() == 4
    assert page.locator(".nmd-controls select:visible").count() == 1  # it varies the rank alone
    assert "click a point" in page.locator(".nmd-run").get_attribute("title")
    page.locator('.nmd-dots circle[role="button"]').nth(1).press("Enter")
    page.locator(".nmd-details-box", has_text="rank 8").wait_for(state="attached")
    page.wait_for_function("!document.querySelector('.nmd-run').disabled")
    refuses(page, ".nmd-iterations", 0, "max_iter=0 is too small")
    enter(page, ".nmd-iterations", 100_000_000)
    page.click(".nmd-run")
    stop_and_go_on(page)
    pasted_code_agrees(notebook)
    first = "document.querySelector('.nmd-dots').points[0].y"
    changes(page, first, lambda: page.locator(".nmd-metric select").select_option("seconds"))


@pytest.mark.exhaustive
def test_a_restarted_kernel_is_said_and_a_saved_notebook_shows_the_last_picture(notebook):
    notebook.open("saved.ipynb", [PICTURE])
    page = notebook.page
    said = status_says(page, ENDED)
    assert page.locator(".nmd-static").count() == 1
    assert not page.locator(".nmd-static").is_visible()  # beside the living explorer
    page.locator(".nmd-static", has_text=said).wait_for(state="attached")
    page.evaluate("async () => { await window.jupyterapp.commands.execute('docmanager:save'); }")
    page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
    )
    status_says(page, "the kernel was restarted|The kernel was restarted")
    assert page.locator(".nmd-run").is_disabled()
    live = page.locator(".nmd-frame :is(button:not([role=tab]), input, select):enabled")
    assert live.all_inner_texts() == ["code"]  # which needs no kernel
    page.reload()
    page.locator(".nmd-static").wait_for()
    assert said in page.locator(".nmd-static").inner_text()
    assert page.locator(".nmd-static img").get_attribute("alt").startswith("reconstruction")
