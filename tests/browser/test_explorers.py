"""Each explorer in a real JupyterLab, with a real browser."""

from __future__ import annotations

import ast
import re

import pytest

pytestmark = pytest.mark.browser

DECOMPOSITION = """
import nmd_lab as nmd
settings = {"iterations": 100_000_000, "penalty": "1", "tol": 0}
explorer = nmd.widgets.DecompositionExplorer(missing=0.1, **settings)
explorer
"""
COMPLETION = """
import nmd_lab as nmd
settings = {"rank": 8, "alpha": 15.0, "iterations": 100_000_000, "patience": 100_000_000}
explorer = nmd.widgets.CompletionExplorer(**settings)
explorer
"""
CHOICE = """
import nmd_lab as nmd
explorer = nmd.widgets.CompletionExplorer(data="generated", rank=7, alpha=99.0)
explorer
"""
SAMPLE = """
import nmd_lab as nmd
explorer = nmd.widgets.CompletionExplorer(data="generated", rank=3, alpha=5.0, draws=20_000)
explorer
"""
STUDY = """
import nmd_lab as nmd
study = nmd.Study(
    nmd.datasets.digits(1000), nonlinearity="relu", rank=[4, 8], n_splits=2, max_iter=3,
    penalty=1.0, tol=0,
)
study.run(progress=False)
explorer = nmd.widgets.StudyExplorer(study)
explorer
"""

STATUS = ".nmd-status"


def status_says(page, pattern):
    """Wait until the status line matches, and return what it says."""
    page.wait_for_function(
        "([where, pattern]) => new RegExp(pattern).test("
        "document.querySelector(where)?.textContent ?? '')",
        arg=[STATUS, pattern],
        polling=50,
    )
    return page.inner_text(STATUS)


def number_after(word, text):
    return float(re.search(rf"{word} ([\d.e-]+)", text).group(1))


CURVES = ".nmd-curves .nmd-curves-panel"


def read_curve(page, key):
    """Return the points of a curve, as the page has them."""
    return page.evaluate(
        "key => { const { x, y } = document.querySelector('.nmd-curves-view').curves[key];"
        " return [[...x], [...y]]; }",
        key,
    )


def watch_and_stop(page, pictures):
    """See pictures and curves change while it runs; stop; return the iteration at which it is."""
    status_says(page, r"running: iteration \d+")
    seen = page.evaluate("document.querySelector('.nmd-curves-view').frames")
    page.wait_for_function(
        "seen => document.querySelector('.nmd-curves-view').frames > seen + 2", arg=seen
    )
    for picture in pictures:
        seen = page.locator(picture).first.get_attribute("src")
        page.wait_for_function(
            "([where, seen]) => document.querySelector(where).src !== seen",
            arg=[picture, seen],
        )
    said = page.inner_text(STATUS)
    assert said.startswith("running")
    assert page.locator(".nmd-run").is_disabled()
    page.click(".nmd-stop")
    planned = number_after("of", said)
    said = status_says(page, r"stopped after \d+ iterations")
    assert number_after("stopped after", said) < planned
    return int(number_after("stopped after", said))


def enter(page, where, value):
    box = page.locator(f"{where} input").first
    box.fill(str(value))
    box.press("Tab")


def pasted_code_agrees(notebook):
    """Copy the code, run it in a new cell, and compare the error that both show."""
    page = notebook.page
    said = page.inner_text(STATUS)
    page.click(".nmd-copy-button")
    page.wait_for_function("document.querySelector('.nmd-copy-button').textContent === 'Copied'")
    code = page.evaluate("navigator.clipboard.readText()")
    printed = notebook.run(code)
    assert number_after("relative error", printed) == number_after("relative error", said)


def refuses(page, where, value, words):
    """Enter a wrong value and see what is said beside it; put a right one back."""
    right = page.locator(f"{where} input").first.input_value()
    enter(page, where, value)
    page.locator(f"{where} .nmd-note", has_text=words).wait_for()
    page.wait_for_function("document.querySelector('.nmd-run').disabled")
    enter(page, where, right)
    page.wait_for_function("!document.querySelector('.nmd-run').disabled")


def test_decomposition(notebook):
    notebook.open("decomposition.ipynb", [DECOMPOSITION])
    page = notebook.page
    page.click(".nmd-run")
    pictures = [".nmd-tile:nth-child(3) img.nmd-plot"]
    first = watch_and_stop(page, pictures)
    page.click(".nmd-continue")
    assert watch_and_stop(page, pictures) > first
    page.wait_for_selector(".nmd-errors td")
    pasted_code_agrees(notebook)

    curves_can_be_read(notebook)

    # The slider over snapshots, and a component's rows
    reconstruction = page.locator(pictures[0])
    for act in (
        lambda: page.locator(".nmd-slider .noUi-handle").press("Home"),
        lambda: page.locator(".nmd-component").nth(2).press("Enter"),
    ):
        seen = reconstruction.get_attribute("src")
        act()
        page.wait_for_function(
            "([where, seen]) => document.querySelector(where).src !== seen",
            arg=[pictures[0], seen],
        )

    refuses(page, ".nmd-rank", 0, "rank=0 is too small")
    enter(page, ".nmd-seed", 1)
    page.wait_for_function("document.querySelector('.nmd-continue').disabled")
    assert "changed" in page.locator(".nmd-continue").get_attribute("title")
    assert page.locator(".nmd-low input").is_disabled()
    assert page.locator(".nmd-low .nmd-note").inner_text() == "relu has no bounds"
    assert notebook.errors == []


def curves_can_be_read(notebook):
    """Compare the curves with the fit, and use the cursor, the zoom, the legend and the keys."""
    page = notebook.page
    code = "import json; h = explorer.result.history; "
    code += "print(json.dumps([h.iteration.values.tolist(), h.relative_error.values.tolist()]))"
    iterations, errors = ast.literal_eval(notebook.run(code))
    x, y = read_curve(page, "relative_error")
    if len(iterations) <= 800:
        assert [x, y] == [iterations, errors]
    for iteration, error in zip(x, y, strict=True):
        assert errors[iterations.index(iteration)] == error

    panel = page.locator(CURVES).first
    drawing, read = panel.locator("svg"), panel.locator("output")
    assert "Last: observed" in drawing.get_attribute("aria-label")
    box = drawing.bounding_box()

    def point(share):
        """Move the mouse to a share of the width; the page may have scrolled."""
        position = {"x": share * box["width"], "y": 0.5 * box["height"]}
        drawing.hover(position=position)

    point(0.5)
    said = read.inner_text()
    at = int(re.search(r"iteration (\d+)", said)[1])
    assert 0.3 * x[-1] < at < 0.7 * x[-1]
    assert number_after("observed", said) == pytest.approx(y[x.index(at)], rel=1e-3)
    drawing.press("ArrowRight")
    after = x[x.index(at) + 1]
    assert read.inner_text().startswith(f"iteration {after}: observed ")

    wide = drawing.locator("path").first.get_attribute("d")
    point(0.5)
    page.mouse.down()
    point(0.8)
    page.mouse.up()
    assert drawing.locator("path").first.get_attribute("d") != wide
    drawing.press("Escape")
    assert drawing.locator("path").first.get_attribute("d") == wide

    assert drawing.locator("path").count() == 2
    assert drawing.locator(".nmd-lowest").count() == 1
    panel.locator("button", has_text="held out").click()
    assert drawing.locator("path").count() == 1
    assert drawing.locator(".nmd-lowest").count() == 0
    panel.locator("button", has_text="held out").press("Enter")
    assert drawing.locator("path").count() == 2


def test_completion(notebook):
    notebook.open("completion.ipynb", [COMPLETION])
    page = notebook.page
    page.click(".nmd-run")
    first = watch_and_stop(page, [])
    page.click(".nmd-continue")
    assert watch_and_stop(page, []) > first
    pasted_code_agrees(notebook)

    enter(page, ".nmd-row", "2")
    page.locator(".nmd-known td", has_text="Apollo 13").wait_for()
    assert page.locator(".nmd-top tbody tr").count() == 10
    enter(page, ".nmd-row", "nobody")
    page.locator(".nmd-row .nmd-note", has_text="no row is labelled 'nobody'").wait_for()
    refuses(page, ".nmd-alpha", -1, "alpha=-1.0 is out of range")
    page.locator(".nmd-offsets select").select_option("rows")
    page.wait_for_function("document.querySelector('.nmd-continue').disabled")
    assert notebook.errors == []


def test_choose_for_me(notebook):
    notebook.open("choice.ipynb", [CHOICE])
    page = notebook.page
    page.wait_for_selector(".nmd-choose")
    rank, alpha = (page.locator(f".nmd-{name} input").first for name in ("rank", "alpha"))
    assert (rank.input_value(), alpha.input_value()) == ("7", "99")
    page.click(".nmd-choose")
    page.locator(".nmd-choice", has_text="chosen: f identity, rank ").wait_for()
    status_says(page, r"^(?!running).*relative error \d")  # the fit that follows has ended
    names = ("rank", "alpha", "offsets", "offset_alpha")
    printed = notebook.run(f"print([explorer.state.values[name] for name in {names}])")
    chosen = ast.literal_eval(printed)
    shown = [float(each.input_value()) for each in (rank, alpha)]
    shown.append(page.locator(".nmd-offsets select option:checked").inner_text())
    shown.append(float(page.locator(".nmd-offset-alpha input").first.input_value()))
    assert shown == chosen
    assert chosen[0] != 7
    said = page.inner_text(".nmd-choice")
    assert f"rank {chosen[0]}, alpha {chosen[1]:g}, offsets {chosen[2]}" in said
    pasted_code_agrees(notebook)

    # Beside each number is a button that makes it "auto" again
    assert not rank.is_disabled()
    page.click(".nmd-rank .nmd-auto")
    page.wait_for_function("document.querySelector('.nmd-rank input').disabled")
    color = page.evaluate("getComputedStyle(document.querySelector('.nmd-rank input')).color")
    assert color == "rgba(0, 0, 0, 0)"  # a number that does not count is not to be read
    assert notebook.run('print(explorer.state.values["rank"])') == "auto"
    assert notebook.errors == []
    page.set_viewport_size({"width": 720, "height": 1500})
    page.wait_for_function("document.querySelector('.nmd-rank input').clientWidth > 60")
    assert notebook.errors == []


def test_how_sure(notebook):
    notebook.open("sample.ipynb", [SAMPLE])
    page = notebook.page
    page.wait_for_selector(".nmd-sample")
    assert not page.locator("img.nmd-intervals").is_visible()
    page.click(".nmd-sample")
    said = status_says(page, r"sampling: sweep \d+ of \d+$")  # after the tuning
    assert number_after("of", said) == 20_100
    assert page.locator(".nmd-run").is_disabled()
    page.click(".nmd-stop")
    said = status_says(page, r"stopped after \d+ draws; \d+ % of the 90 % intervals hold")
    page.locator("img.nmd-intervals").wait_for()
    assert not page.locator(".nmd-maps").is_visible()  # ratings are no picture
    page.locator(".nmd-top th", has_text="90 % interval").wait_for()
    low, high = map(float, page.locator(".nmd-top tbody td").nth(2).inner_text().split(" – "))
    assert low < float(page.locator(".nmd-top tbody td").nth(1).inner_text()) < high
    page.click(".nmd-copy-button")
    page.wait_for_function("document.querySelector('.nmd-copy-button').textContent === 'Copied'")
    notebook.run(page.evaluate("navigator.clipboard.readText()"))
    assert notebook.run("print(posterior.draws.identical(explorer.posterior.draws))") == "True"
    assert number_after("stopped after", said) == float(
        notebook.run('print(explorer.posterior.trace.sizes["sweep"])')
    )

    # A wrong number of draws is said beside it, and keeps the button from being pressed
    enter(page, ".nmd-draws", 0)
    page.locator(".nmd-draws .nmd-note", has_text="draws=0").wait_for()
    page.wait_for_function("document.querySelector('.nmd-sample').disabled")
    page.click(".nmd-reset")
    page.locator("img.nmd-intervals").wait_for(state="hidden")
    assert notebook.errors == []


def test_study(notebook):
    notebook.open("study.ipynb", [STUDY])
    page = notebook.page
    page.wait_for_selector(".nmd-run")
    controls = page.locator(".nmd-controls select")
    assert controls.count() == 4
    assert all(controls.nth(k).bounding_box()["height"] > 20 for k in range(4))
    assert "click a point" in page.locator(".nmd-run").get_attribute("title")
    page.locator(".nmd-point").nth(1).click()
    page.locator(".nmd-details", has_text="rank 8").wait_for()
    page.wait_for_function("!document.querySelector('.nmd-run').disabled")
    refuses(page, ".nmd-iterations", 0, "max_iter=0 is too small")
    enter(page, ".nmd-iterations", 100_000_000)
    page.click(".nmd-run")
    first = watch_and_stop(page, [])
    page.click(".nmd-continue")
    assert watch_and_stop(page, []) > first
    pasted_code_agrees(notebook)

    seen = page.locator("img.nmd-plot").get_attribute("src")
    page.locator(".nmd-metric select").select_option("seconds")
    page.wait_for_function("seen => document.querySelector('img.nmd-plot').src !== seen", arg=seen)
    assert notebook.errors == []
