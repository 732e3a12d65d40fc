"""The site's page "Try it": explorers that answer without a kernel, from what was recorded."""

from __future__ import annotations

import pytest
from site_modules import ROOT, site_module

pytestmark = [pytest.mark.browser, pytest.mark.exhaustive]

HTML = """<!DOCTYPE html><meta charset="utf-8"><title>test</title>
<div id="try-digits"></div><div id="try-picture"></div>
<script src="try_it_front.js"></script><script src="try_it_data.js"></script>
<script src="{script}"></script>"""
DIGITS, PICTURE = "#try-digits", "#try-picture"


@pytest.fixture
def page(chromium, tmp_path):
    """Open a page with few digits and a small picture."""
    module = site_module("try_it")
    module.DIGITS, module.RANK, module.STEP, module.EVERY = 60, 4, 6, 30
    module.write(tmp_path)
    script = (ROOT / "docs/_static/try_it.js").as_uri()
    (tmp_path / "page.html").write_text(HTML.format(script=script), encoding="utf-8")
    opened, errors = chromium.new_page(), []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.goto((tmp_path / "page.html").as_uri())
    opened.wait_for_selector(f"{PICTURE} .nmd-component")
    yield opened
    opened.close()
    assert errors == []


def test_the_page_answers_without_a_kernel(page):
    plane = page.locator(f"{DIGITS} .nmd-plane canvas").first.bounding_box()
    page.mouse.move(plane["x"] + 0.6 * plane["width"], plane["y"] + 0.4 * plane["height"])
    page.wait_for_selector(f"{DIGITS} .nmd-drawn")

    # The model is built from its first components
    page.locator(f"{DIGITS} .nmd-build input").fill("2")
    page.locator(f"{DIGITS} .nmd-build output", has_text="first 2 of 4").wait_for()

    # A control that needs a kernel is disabled, and contains the reason
    page.click(f"{DIGITS} .nmd-action.nmd-again")
    run = page.locator(f"{DIGITS} .nmd-popover .nmd-run")
    assert run.is_disabled()
    assert "no kernel" in run.get_attribute("title")
    page.keyboard.press("Escape")
    assert page.locator(f"{DIGITS} button:has-text('reveal')").count() == 0

    # The picture has its uncertainty, and intervals that were checked
    page.click(f"{PICTURE} .nmd-tools button:has-text('uncertainty')")
    assert "(purple)" in page.inner_text(f"{PICTURE} .nmd-right")
    page.click(f"{PICTURE} .nmd-action.nmd-more")
    page.wait_for_selector(f"{PICTURE} .nmd-popover svg")
