"""Explorers as files, opened from the disk without a network, and those of the page "Try it"."""

import contextlib

import numpy as np
import pytest
from explorer_page import EVIL, KINDS, act
from journeys import PICTURES, violations
from site_modules import site_module

from nmd_lab.widgets.charts import oriented

pytestmark = pytest.mark.browser

IDS = f"() => [...{PICTURES}.data.ids]"
MODEL = f"() => [...{PICTURES}.values.model]"
DRAWN = "() => document.querySelector('.nmd-plane').plane.values?.length === 64"


@contextlib.contextmanager
def opened(chromium, path, theme="light"):
    """Open a file without a network; nothing may go wrong, and nothing else may be asked for."""
    with chromium.new_context(offline=True, color_scheme=theme) as context:
        page, errors, asked = context.new_page(), [], []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        page.wait_for_selector(".nmd-frame")
        yield page
        assert (errors, asked) == ([], [path.as_uri()])
        assert page.evaluate("window.hit") is None


def test_digits(chromium, tmp_path):
    explorer = KINDS["digits"]()
    fitted, ids = oriented(explorer.result._fitted), explorer.pictures["ids"]
    sentence = "".join(text for text, *_ in explorer.status["sentence"])
    with opened(chromium, explorer.save(tmp_path / "digits.html"), "dark") as page:
        assert page.get_attribute(".nmd-explorer", "data-theme") == "dark"
        assert " ".join(page.inner_text(".nmd-sentence").split()) == " ".join(sentence.split())
        np.testing.assert_allclose(page.evaluate(MODEL), fitted.block(ids).ravel(), atol=1e-6)

        # Components go off one after the other, and all on
        component = page.locator(".nmd-component")
        for off in ([1], [1, 3]):
            for _ in range(2):  # the first click pins it
                component.nth(off[-1]).click()
            named = ", ".join(map(str, off))
            page.locator(".nmd-sentence", has_text=f"without component {named}.").wait_for()
            rows = page.evaluate(IDS)
            without = fitted.without(off).block(rows).ravel()
            np.testing.assert_allclose(page.evaluate(MODEL), without, atol=1e-3)
        page.click(".nmd-all-on")
        page.wait_for_selector(".nmd-all-on", state="detached")
        np.testing.assert_allclose(page.evaluate(MODEL), fitted.block(ids).ravel(), atol=1e-6)

        # A lasso brings the pictures of its rows to the stage
        page.evaluate("() => document.querySelector('.nmd-plane').plane.select([3, 17, 40])")
        page.wait_for_function(f"() => ({IDS})().join() === '3,17,40'")
        np.testing.assert_allclose(
            page.evaluate(MODEL), fitted.block([3, 17, 40]).ravel(), atol=1e-3
        )
        data = page.evaluate(f"() => [...{PICTURES}.values.original]")
        expected = explorer.state.data.original[[3, 17, 40]].ravel()
        np.testing.assert_allclose(data, expected, atol=1 / 254)
        page.evaluate("() => document.querySelector('.nmd-plane').plane.select([])")
        page.wait_for_function(f"() => ({IDS})().length === {len(ids)}")
        page.select_option(".nmd-plane select >> nth=0", "3")
        page.wait_for_function("() => document.querySelector('.nmd-plane').plane.a === 3")
        x = page.evaluate("() => [...document.querySelector('.nmd-plane').plane.x]")
        np.testing.assert_allclose(x, fitted.W[:, 3], atol=1e-4 * np.ptp(fitted.W))

        # The plane draws under the pointer, a pixel has its numbers, and the dividers move
        plane = page.locator(".nmd-plane canvas").first.bounding_box()
        page.mouse.move(plane["x"] + 0.6 * plane["width"], plane["y"] + 0.4 * plane["height"])
        page.wait_for_function(DRAWN)
        page.hover(".nmd-pictures canvas", position={"x": 5, "y": 5})
        assert "data 0, model 0" in page.inner_text(".nmd-pictures .nmd-read")
        page.locator(".nmd-picture-area canvas").press("Space")
        assert page.evaluate(f"() => {PICTURES}.share") in (0, 1)

        # Nothing that needs Python looks alive
        assert page.locator(".nmd-again, .nmd-stop, .nmd-brush:visible").count() == 0
        page.click(".nmd-more")
        assert page.get_by_text("Save", exact=True).count() == 0
        assert violations(page, ".nmd-explorer") == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
def test_what_looks_alive_works(chromium, tmp_path, kind):
    with opened(chromium, KINDS[kind]().save(tmp_path / "page.html")) as page:
        pressed = 0
        for button in page.locator(".nmd-explorer button:enabled").all():
            if button.is_visible() and not button.evaluate("each => each.closest('[inert]')"):
                button.evaluate("each => each.click()")
                pressed += 1
                page.wait_for_timeout(50)
                said = page.inner_text(".nmd-status")
                assert "nothing is fitted here" in said, button.inner_text()
        for dot in page.locator(".nmd-dots circle").all():
            dot.dispatch_event("click")
        assert "nothing is fitted here" in page.inner_text(".nmd-status")
        assert pressed >= 3
        assert page.locator(".nmd-stars:visible").count() == 0


def test_a_table_is_sorted_and_a_cell_has_its_interval(chromium, tmp_path):
    explorer = KINDS["table"]()
    column = explorer.grid["columns"][0]
    missing = column["state"].index(2)
    with opened(chromium, explorer.save(tmp_path / "table.html")) as page:
        heads, cells = page.locator("thead button"), page.locator("tbody tr")
        assert heads.first.inner_text() == EVIL
        cells.nth(missing).locator("td").first.hover()
        page.locator(".nmd-read output", has_text=column["sure"][missing]).wait_for()
        heads.first.click()
        page.wait_for_selector("[aria-sort=ascending]")
        shown = page.locator("tbody tr th").all_inner_texts()
        act(explorer, "arrange", column=0)
        assert shown == explorer.grid["labels"]


@pytest.mark.exhaustive
def test_the_page_try_it(chromium, tmp_path):
    module = site_module("try_it")
    module.DIGITS, module.RANK, module.STEP = 60, 4, 6
    module.write(tmp_path)
    with opened(chromium, tmp_path / "try_digits.html") as page:
        assert page.locator(".nmd-component").count() == 4
    with opened(chromium, tmp_path / "try_picture.html") as page:
        page.get_by_role("button", name="uncertainty", exact=True).click()
        assert page.locator(".nmd-component").count() > 1
