"""The explorers of the site's page "Try it": what the browser computes and shows."""

from __future__ import annotations

import re

import numpy as np
import pytest
from site_modules import ROOT, site_module

pytestmark = [pytest.mark.browser, pytest.mark.exhaustive]

HTML = """<!DOCTYPE html><title>test</title><link rel="stylesheet" href="{style}">
<div id="try-components"></div><div id="try-holes"></div>
<script src="try_it_data.js"></script><script src="{script}"></script>"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write a page with two ranks and two shares of holes."""
    folder = tmp_path_factory.mktemp("try_it")
    module = site_module("try_it")
    module.RANKS, module.HOLES, module.STEP, module.DRAWS = (2, 6), (30, 60), 6, 20
    module.write(folder / "try_it_data.js")
    static = ROOT / "docs/_static"
    addresses = {"style": (static / "site.css").as_uri(), "script": (static / "try_it.js").as_uri()}
    (folder / "page.html").write_text(HTML.format(**addresses), encoding="utf-8")
    return folder


@pytest.fixture
def page(chromium, folder):
    opened = chromium.new_page()
    errors = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.goto((folder / "page.html").as_uri())
    yield opened
    opened.close()
    assert errors == []


def data_of(page, path):
    return page.evaluate(f"TRY_IT.{path}")


def move(page, place, which, steps):
    """Move a slider by some steps."""
    handle = page.locator(f"#try-{place} input[type=range]").nth(which)
    for _ in range(abs(steps)):
        handle.press("ArrowRight" if steps > 0 else "ArrowLeft")


def number(page, selector):
    return float(re.search(r"\d\.\d+", page.inner_text(selector))[0])


def error_of(page, model, picture, fit, off=()):
    """Return the relative error of a picture, computed from the factors here."""
    fits = data_of(page, f"digits.fits[{fit}]")
    own = fits[model]
    kept = [k for k in range(fits["rank"]) if k not in off]
    product = np.array(own["W"])[picture][kept] @ np.array(own["H"])[kept]
    values = np.array(data_of(page, f"digits.pictures[{picture}]"))
    found = np.maximum(product, 0) if model == "relu" else product
    return np.linalg.norm(found - values) / np.linalg.norm(values)


def test_components_go_off_and_on(page):
    place = "#try-components"
    move(page, "components", 1, -1)
    move(page, "components", 1, 1)
    move(page, "components", 0, 3)
    buttons = page.locator(f"{place} button")
    assert buttons.count() == 6
    relu, linear = (f"{place} figure:nth-of-type({k}) figcaption" for k in (2, 3))
    for model, caption in (("relu", relu), ("linear", linear)):
        assert number(page, caption) == pytest.approx(error_of(page, model, 7, 1), abs=6e-4)
    assert number(page, relu) < number(page, linear)
    buttons.nth(2).press("Enter")
    assert buttons.nth(2).get_attribute("aria-pressed") == "false"
    assert number(page, relu) == pytest.approx(error_of(page, "relu", 7, 1, off=[2]), abs=6e-4)
    assert number(page, linear) == pytest.approx(error_of(page, "linear", 7, 1), abs=6e-4)
    buttons.nth(2).press("Enter")
    assert number(page, relu) == pytest.approx(error_of(page, "relu", 7, 1), abs=6e-4)


def test_a_point_of_the_curve_chooses_the_rank(page):
    points = page.locator("#try-components circle")
    for k, name in enumerate(("ReLU", "linear", "NMF")):
        errors = data_of(page, f"digits.fits.map(fit => fit.errors['{name}'])")
        assert points.nth(2 * k).text_content() == f"{name}, rank 2: {errors[0]:.4f}"
    points.nth(4).click()  # the one on top
    assert page.locator("#try-components button").count() == 2
    assert page.inner_text("#try-components output >> nth=1") == "2"


def test_every_pixel_can_be_read(page):
    move(page, "holes", 0, -1)
    first = page.locator("#try-holes canvas").first
    box = first.bounding_box()
    rows, columns = data_of(page, "holes.shape")
    row, column = 3, 5
    page.mouse.move(
        box["x"] + (column + 0.5) / columns * box["width"],
        box["y"] + (row + 0.5) / rows * box["height"],
    )
    case, at = data_of(page, "holes.cases[0]"), row * columns + column

    def says(row, column):
        said = page.inner_text("#try-holes .try-said")
        assert said.startswith(f"Row {row}, column {column}, ")
        return said

    said = says(row, column)
    assert ("missing" if case["hidden"][at] else "seen") in said.partition(":")[0]
    assert f"90 % interval {case['low'][at]:.2f} to {case['high'][at]:.2f}." in said
    first.press("ArrowDown")
    first.press("ArrowRight")
    says(row + 1, column + 1)
    assert case["errors"]["MinMax"] < case["errors"]["linear"]
