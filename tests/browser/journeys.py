"""Acts of a user on the page of an explorer, answers of the page, and checks by axe-core."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any

STATUS = ".nmd-status"
ENDED = "^(done|stopped)"  # of a fit, in the status


def status_says(page, pattern):
    """Wait until the status line matches, and return its text."""
    page.wait_for_function(
        "([where, pattern]) => new RegExp(pattern).test("
        "document.querySelector(where)?.textContent ?? '')",
        arg=[STATUS, pattern],
        polling=50,
    )
    return page.inner_text(STATUS)


def number_after(word, text):
    return float(re.search(rf"{word} ([\d.e-]+)", text).group(1))


def frames(page):
    return page.evaluate("document.querySelector('.nmd-curves').frames")


def drawn(page):
    """Return how often the reconstruction was drawn."""
    return page.evaluate("document.querySelector('.nmd-pictures').pictures.frames")


def wait_for_frames(page, what, more=1):
    """Wait until curves or pictures were drawn some more times."""
    seen = what(page)
    where = {"frames": "curves').frames", "drawn": "pictures').pictures.frames"}[what.__name__]
    page.wait_for_function(
        f"at => document.querySelector('.nmd-{where} >= at", arg=seen + more, polling=20
    )


def watch_and_stop(page, *, pictures=False):
    """See curves and pictures change while it runs; stop; return the iteration at which it is."""
    status_says(page, r"running: iteration \d+")
    wait_for_frames(page, frames, 3)
    if pictures:
        wait_for_frames(page, drawn, 3)
    said = page.inner_text(STATUS)
    assert said.startswith("running")
    assert page.locator(".nmd-run").is_disabled()
    page.click(".nmd-stop")
    planned = number_after("of", said)
    said = status_says(page, r"stopped after \d+ iterations")
    assert number_after("stopped after", said) < planned
    return int(number_after("stopped after", said))


def from_menu(page, name):
    """Press a button of the menu next to Run."""
    page.click(".nmd-menu summary")
    page.click(f".nmd-menu .nmd-{name}")


def stop_and_go_on(page, *, pictures=False):
    """Stop a run, go on and stop it again, later."""
    first = watch_and_stop(page, pictures=pictures)
    from_menu(page, "continue")
    assert watch_and_stop(page, pictures=pictures) > first


def paint(page, mode, begin, end):
    """Drag the brush over the stage, between two places (y, x) in fractions of it."""
    page.get_by_role("button", name=mode, exact=True).click()
    canvas = page.locator(".nmd-picture-box canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    at = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for y, x in (begin, end)]
    page.mouse.move(*at[0])
    page.mouse.down()
    page.mouse.move(*at[1], steps=8)
    page.mouse.up()


TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
"""Of the rules that are checked."""


@cache
def _source() -> str:
    script = files("axe_playwright_python") / "axe.min.js"
    return script.read_text(encoding="utf-8")


def violations(page: Any, where: str) -> list[str]:
    """Return what axe-core finds in the elements that a CSS selector matches, in shadow trees too.

    Parameters
    ----------
    page : Page
        Of Playwright.
    where : str
        The selector; one that matches nothing is an error.

    Returns
    -------
    list of str
        For each element and rule that it breaks: the rule, how bad that is, the element and what
        to do.
    """
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(_source())
    found = page.locator(where).evaluate_all(RUN, TAGS)
    return [f"{rule['id']} ({rule['impact']}): {node}" for rule in found for node in rule["nodes"]]


RUN = """async (elements, tags) => {
  if (elements.length === 0) throw new Error("no element matches");
  const context = { include: elements };
  const runOnly = { type: 'tag', values: tags };
  const { violations } = await axe.run(context, { runOnly, resultTypes: ['violations'] });
  return violations.map(({ id, impact, nodes }) => ({
    id, impact,
    nodes: nodes.map(({ target, failureSummary }) => `${target.join(' ')}: ${failureSummary}`),
  }));
}"""
