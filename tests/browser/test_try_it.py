"""The site's page "Try it": explorers that answer without a kernel, from what was recorded."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from site_modules import ROOT, site_module

pytestmark = [pytest.mark.browser, pytest.mark.exhaustive]

HTML = """<!DOCTYPE html><meta charset="utf-8"><title>test</title>
<div id="try-digits"></div><div id="try-picture"></div>
<script src="try_it_front.js"></script><script src="try_it_data.js"></script>
<script src="{script}"></script>"""
DIGITS, PICTURE = "#try-digits", "#try-picture"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write a page with few digits and a small picture."""
    folder = tmp_path_factory.mktemp("try_it")
    module = site_module("try_it")
    module.DIGITS, module.RANK, module.STEP, module.EVERY = 60, 4, 6, 30
    module.write(folder)
    script = (ROOT / "docs/_static/try_it.js").as_uri()
    (folder / "page.html").write_text(HTML.format(script=script), encoding="utf-8")
    return folder


@pytest.fixture
def page(chromium, folder):
    opened = chromium.new_page()
    errors = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.goto((folder / "page.html").as_uri())
    opened.wait_for_selector(f"{PICTURE} .nmd-component")
    yield opened
    opened.close()
    assert errors == []


def recorded(page, path):
    """Return numbers that were recorded, or what else there is."""
    found = page.evaluate(f"TRY_IT.{path}")
    if isinstance(found, dict) and "bytes" in found:
        return np.frombuffer(base64.b64decode(found["bytes"]), "<f4")
    return found


def said(page, name):
    """Return what an explorer says of its components."""
    return page.inner_text(f"{name} .nmd-components .nmd-caption")


def test_the_plane_draws_under_the_pointer(page):
    plane = page.locator(f"{DIGITS} .nmd-scatter canvas").first.bounding_box()
    place = plane["x"] + 0.6 * plane["width"], plane["y"] + 0.4 * plane["height"]
    page.mouse.move(*place)
    page.wait_for_selector(f"{DIGITS} .nmd-drawing.nmd-drawn")


def test_a_component_goes_off_and_on(page):
    component = page.locator(f"{DIGITS} button.nmd-component").first
    answer = recorded(page, """digits.answers['{"do":"component","k":0,"what":"off"}']""")
    assert recorded(page, "digits.shown.components.off") == []
    name = component.get_attribute("aria-label")
    k = int(name.removeprefix("component "))
    component.click()
    page.wait_for_selector(f"{DIGITS} [aria-label='{name}'][aria-pressed=false]")
    assert f"without component {k}" in said(page, DIGITS)
    component.click()
    page.wait_for_selector(f"{DIGITS} [aria-label='{name}'][aria-pressed=true]")
    assert said(page, DIGITS) == recorded(page, "digits.shown.components.said")
    assert answer["components"]["off"] == [0]


def test_what_needs_a_kernel_is_disabled_and_says_why(page):
    run = page.locator(f"{DIGITS} button.nmd-run")
    assert run.is_disabled()
    assert "no kernel" in run.get_attribute("title")
    assert page.locator(f"{DIGITS} button:has-text('reveal')").is_hidden()


def test_the_picture_has_a_layer_of_doubt_and_intervals_that_were_checked(page):
    page.click(f"{PICTURE} button:has-text('doubt')")
    assert "0 (dark) to " in page.inner_text(f"{PICTURE} .nmd-corner.nmd-right")
    assert "standard deviation" in page.inner_text(f"{PICTURE} .nmd-pictures > .nmd-read")
    page.click(f"{PICTURE} [role=tab]:has-text('How sure')")
    page.wait_for_selector(f"{PICTURE} [role=tabpanel]:not([hidden]) svg")
