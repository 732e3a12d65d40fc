"""Each explorer in a real JupyterLab, with a real browser."""

from __future__ import annotations

import ast
import json
import re

import numpy as np
import pytest
from journeys import (
    ENDED,
    drawn,
    from_menu,
    number_after,
    paint,
    status_says,
    stop_and_go_on,
    wait_for_frames,
)

import nmd_lab as nmd

pytestmark = pytest.mark.browser

DECOMPOSITION = """
import nmd_lab as nmd
settings = {"iterations": 100_000_000, "rho": "1", "tol": 0}
model = {"nonlinearity": "relu", "rank": 10, "alpha": 0.0}
explorer = nmd.widgets.Explorer(**settings, **model)
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
DIGITS = """
import nmd_lab as nmd
explorer = nmd.widgets.explore(
    nmd.datasets.digits(300), rank=6, iterations=60, nonlinearity="relu", alpha=0.0, missing=0
)
explorer.start()
explorer
"""
COMPLETION = """
import nmd_lab as nmd
settings = {"rank": 8, "alpha": 15.0, "iterations": 100_000_000, "patience": 100_000_000}
from nmd_lab.widgets.code import ratings_choices
explorer = nmd.widgets.Explorer(data=next(iter(ratings_choices())), **settings)
explorer
"""
SAMPLE = """
import nmd_lab as nmd
explorer = nmd.widgets.Explorer(data="generated", rank=3, alpha=5.0, draws=20_000)
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


def read_curve(page, key):
    """Return the points of a curve, as the page has them."""
    return page.evaluate(
        "key => { const { x, y } = document.querySelector('.nmd-curves').curves[key];"
        " return [[...x], [...y]]; }",
        key,
    )


def tab(page, name):
    """Open a tab of the inspector."""
    page.locator(".nmd-tablist").get_by_role("tab", name=name).click()


def enter(page, where, value):
    box = page.locator(f"{where} input").first
    box.fill(str(value))
    box.press("Tab")


def pasted_code_agrees(notebook):
    """Copy the code, run it in a new cell, and compare error and factor with the explorer's."""
    page = notebook.page
    page.click(".nmd-copy-button")
    page.wait_for_function("document.querySelector('.nmd-copy-button').textContent === 'copied'")
    code = page.evaluate("navigator.clipboard.readText()")
    printed = notebook.run(f"{code}\nprint(bool((fit.W == explorer.result.W).all()))")
    last = printed.splitlines()[-2]  # a fit before the brush prints its error, too
    shown = notebook.run('print(f"relative error {explorer.result.relative_error:.4g}")')
    assert last == shown
    assert printed.endswith("True")


def refuses(page, where, value, words):
    """Enter a wrong value and see what is said beside it; put a right one back."""
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


def holes(page):
    """Return where the tile of what is seen has holes."""
    return np.isnan(values(page, "seen"))


def colours_of_the_data(page, row, columns):
    """Return the drawn colours of pixels of a picture of 213 x 320, left of the divider."""
    x, y = (np.array([columns.start, columns.stop]) + 0.5) / 320, (row + 0.5) / 213
    code = """([left, right, y]) => {
        const canvas = document.querySelector('.nmd-picture-box canvas');
        const [from, to] = [left, right].map((each) => Math.floor(each * canvas.width));
        const at = Math.floor(y * canvas.height);
        return [...canvas.getContext('2d').getImageData(from, at, to - from, 1).data];
    }"""
    return np.reshape(page.evaluate(code, [*x.tolist(), y]), (-1, 4))[:, 0]


def test_decomposition(notebook):
    notebook.open("decomposition.ipynb", [DECOMPOSITION])
    page = notebook.page
    stop_and_go_on(page, pictures=True)
    page.wait_for_selector(".nmd-errors td")
    pasted_code_agrees(notebook)
    curves_can_be_read(notebook)

    # The slider over snapshots, and the rows of a component
    for act in (
        lambda: page.locator(".nmd-curves-panel svg").first.press("Home"),
        lambda: page.locator(".nmd-rows").nth(2).press("Enter"),
    ):
        before = page.evaluate(SUM)
        act()
        page.wait_for_function(f"before => {SUM} !== before", arg=before)
    page.locator(".nmd-component").nth(1).click()
    page.locator(".nmd-components .nmd-caption", has_text="without component 1").wait_for()
    assert page.locator(".nmd-component").nth(1).get_attribute("aria-pressed") == "false"

    tab(page, "Solver")
    refuses(page, ".nmd-rank", 0, "rank=0 is too small")
    refuses(page, ".nmd-rank", "2.7", "'2.7'")
    refuses(page, ".nmd-alpha", "1,5", "'1,5'")
    enter(page, ".nmd-seed", 1)
    page.wait_for_function("document.querySelector('.nmd-continue').disabled")
    assert "changed" in page.locator(".nmd-continue").get_attribute("title")
    assert not page.locator(".nmd-low input").is_visible()  # it has no effect
    assert notebook.errors == []


def curves_can_be_read(notebook):
    """Compare the curves with the fit, and use the cursor, the zoom, the legend and the keys."""
    page = notebook.page
    code = "import json; h, hidden = explorer.result.history, explorer.state.hidden; "
    code += "unit = hidden.sizes.get('relative_error', 1.0); "
    code += "errors = [unit * error for error in h.relative_error.values.tolist()]; "
    code += "print(json.dumps([h.iteration.values.tolist(), errors]))"
    iterations, errors = ast.literal_eval(notebook.run(code))
    x, y = read_curve(page, "relative_error")
    if len(iterations) <= 800:
        assert [x, y] == [iterations, errors]
    for iteration, error in zip(x, y, strict=True):
        assert errors[iterations.index(iteration)] == error

    panel = page.locator(".nmd-curves-panel").first
    drawing, read = panel.locator("svg"), panel.locator("output")
    assert "Last: seen" in drawing.get_attribute("aria-label")
    box = drawing.bounding_box()

    def point(share):
        """Move the mouse to a share of the width; the page may have scrolled."""
        position = {"x": share * box["width"], "y": 0.5 * box["height"]}
        drawing.hover(position=position)

    point(0.5)
    said = read.inner_text()
    at = int(re.search(r"iteration (\d+)", said)[1])
    assert 0.3 * x[-1] < at < 0.7 * x[-1]
    assert number_after("seen", said) == pytest.approx(y[x.index(at)], rel=1e-3)

    assert drawing.locator("path").count() == 2
    assert drawing.locator(".nmd-lowest").count() == 1


@pytest.mark.exhaustive
def test_brush_history_and_upload(notebook, tmp_path):
    notebook.open("picture.ipynb", [PICTURE])
    page = notebook.page
    status_says(page, ENDED)
    assert not holes(page).any()
    paint(page, "hide", (0.4, 0.3), (0.4, 0.7))
    wait_for_frames(page, drawn, 1)
    status_says(page, ENDED)
    page.wait_for_function("!document.querySelector('.nmd-run').disabled")
    hidden = holes(page).reshape(213, 320)
    assert hidden[85, 100:220].all()
    assert not hidden[:40].any()
    assert not hidden[150:].any()
    seen = notebook.run(
        "import numpy as np; print(int(np.isnan(explorer.state.data.observed).sum()))"
    )
    assert int(seen) == hidden.sum()
    assert np.ptp(colours_of_the_data(page, 85, slice(100, 150))) > 20  # the model shines through
    pasted_code_agrees(notebook)

    paint(page, "reveal", (0.4, 0.5), (0.4, 0.55))
    page.wait_for_function(
        "n => document.querySelector('.nmd-pictures').pictures.values.seen"
        ".filter(Number.isNaN).length < n",
        arg=int(hidden.sum()),
    )
    page.locator(".nmd-picture-box canvas").press("Space")  # one disc by the keyboard
    page.get_by_role("button", name="forget paint").click()
    page.wait_for_function(
        "!document.querySelector('.nmd-pictures').pictures.values.seen.some(Number.isNaN)"
    )

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
    canvas.click(position={"x": 0.25 * box["width"], "y": 0.5 * box["height"]})
    page.wait_for_function("document.querySelector('.nmd-pictures').pictures.selection?.row > 0")
    row, column = ast.literal_eval(
        notebook.run('s = explorer.selection; print([s["row"], s["column"]])')
    )
    assert abs(row - 106) <= 2
    assert abs(column - 80) <= 2
    said = page.locator(".nmd-pictures .nmd-read")
    canvas.hover(position={"x": 0.25 * box["width"], "y": 0.5 * box["height"]})
    text = said.inner_text()
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
    assert notebook.run("print(explorer.result._shape)") == "(30, 20)"
    assert notebook.errors == []


@pytest.mark.exhaustive
def test_lasso_and_links(notebook):
    notebook.open("digits.ipynb", [DIGITS])
    page = notebook.page
    status_says(page, ENDED)
    begun = page.evaluate("document.querySelector('.nmd-pictures').pictures.data.ids.join()")
    page.get_by_role("button", name="plane", exact=True).click()
    scatter = page.locator(".nmd-scatter > canvas")
    scatter.scroll_into_view_if_needed()
    box = scatter.bounding_box()
    lefts, rows = page.evaluate(
        "(() => { const s = document.querySelector('.nmd-scatter').scatter;"
        " return [[...s.positions.left], [...s.rows]]; })()"
    )
    middle = np.median(lefts)
    corners = [(middle, 1), (box["width"] - 2, 1), (box["width"] - 2, box["height"] - 2)]
    corners += [(middle, box["height"] - 2), (middle, 1)]
    page.mouse.move(box["x"] + corners[0][0], box["y"] + corners[0][1])
    page.mouse.down()
    for x, y in corners[1:]:
        page.mouse.move(box["x"] + x, box["y"] + y, steps=4)
    page.mouse.up()
    page.wait_for_function(
        "ids => document.querySelector('.nmd-pictures').pictures.data.ids.join() !== ids", arg=begun
    )
    expected = {row for row, left in zip(rows, lefts, strict=True) if left > middle + 1}
    code = "import json; print(json.dumps((explorer.selection or {}).get('rows')))"
    chosen = set(json.loads(notebook.run(code)))
    assert expected <= chosen <= {r for r, x in zip(rows, lefts, strict=True) if x > middle - 1}
    shown = page.evaluate("document.querySelector('.nmd-pictures').pictures.data.ids")
    assert set(shown) <= chosen
    scatter.press("Escape")
    page.wait_for_function(
        "ids => document.querySelector('.nmd-pictures').pictures.data.ids.join() !== ids",
        arg=",".join(map(str, shown)),
    )
    page.locator(".nmd-scatter select").first.select_option("3")
    page.wait_for_function("document.querySelector('.nmd-scatter').scatter.data.a === 3")
    assert notebook.errors == []


def test_completion(notebook):
    notebook.open("completion.ipynb", [COMPLETION])
    page = notebook.page
    stop_and_go_on(page)
    pasted_code_agrees(notebook)

    enter(page, ".nmd-row", "2")
    page.locator(".nmd-known tbody th", has_text="Apollo 13").wait_for()
    assert page.locator(".nmd-top tbody tr").count() == 50
    page.locator(".nmd-known tbody button").first.click()
    page.locator(".nmd-known tr[aria-selected]").wait_for()
    enter(page, ".nmd-row", "nobody")
    page.locator(".nmd-row .nmd-note", has_text="no row is labelled 'nobody'").wait_for()
    tab(page, "Solver")
    refuses(page, ".nmd-alpha", -1, "alpha=-1.0 is out of range")
    page.locator(".nmd-offsets select").select_option("rows")
    page.wait_for_function("document.querySelector('.nmd-continue').disabled")
    assert notebook.errors == []


@pytest.mark.exhaustive
def test_how_sure(notebook):
    notebook.open("sample.ipynb", [SAMPLE])
    page = notebook.page
    page.wait_for_selector(".nmd-run")
    assert page.locator(".nmd-dots:visible").count() == 0
    status_says(page, ENDED)  # it runs by itself
    tab(page, "How sure")  # which asks at once
    said = status_says(page, r"sampling: sweep \d+ of \d+(, about .*)?$")  # after the tuning
    assert number_after("of", said) == 20_100
    assert page.locator(".nmd-run").is_disabled()
    page.click(".nmd-stop")
    said = status_says(page, r"stopped after \d+ draws; \d+ % of the 90 % intervals hold")
    page.locator(".nmd-dots svg").wait_for()
    assert page.evaluate("document.querySelector('.nmd-dots').points.length") == 5
    assert not page.locator(".nmd-pictures").is_visible()  # ratings are no picture
    page.locator(".nmd-top th", has_text="90 % interval").wait_for()
    row = page.locator(".nmd-top tbody tr").first
    low, high = map(float, row.locator("td").last.inner_text().split(" – "))
    assert low < float(row.locator("td").first.inner_text()) < high
    page.click(".nmd-copy-button")
    page.wait_for_function("document.querySelector('.nmd-copy-button').textContent === 'copied'")
    notebook.run(page.evaluate("navigator.clipboard.readText()"))
    assert notebook.run("print(posterior.draws.identical(explorer.posterior.draws))") == "True"
    assert number_after("stopped after", said) == float(
        notebook.run('print(explorer.posterior.trace.sizes["sweep"])')
    )

    # A wrong number of draws is said beside it, and keeps the button from being pressed
    tab(page, "Solver")
    enter(page, ".nmd-draws", 0)
    page.locator(".nmd-draws .nmd-note", has_text="draws=0").wait_for()
    page.wait_for_function("document.querySelector('.nmd-sample').disabled")
    tab(page, "How sure")
    from_menu(page, "reset")
    page.locator(".nmd-dots svg").wait_for(state="hidden")
    assert notebook.errors == []


def test_study(notebook):
    notebook.open("study.ipynb", [STUDY])
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

    before = page.evaluate("document.querySelector('.nmd-dots').points[0].y")
    page.locator(".nmd-metric select").select_option("seconds")
    page.wait_for_function("y => document.querySelector('.nmd-dots').points[0].y !== y", arg=before)
    assert notebook.errors == []


@pytest.mark.exhaustive
def test_a_restarted_kernel_is_said_and_a_saved_notebook_shows_the_last_picture(notebook):
    notebook.open("saved.ipynb", [DIGITS])
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
    page.reload()
    page.locator(".nmd-static").wait_for()
    assert said in page.locator(".nmd-static").inner_text()
    assert page.locator(".nmd-static img").get_attribute("alt").startswith("reconstruction")
