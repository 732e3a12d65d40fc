"""Acts of a user on the page of an explorer, answers of the page, and checks by axe-core."""

import re
from importlib.resources import files
from typing import Any

STATUS = ".nmd-status"
PICTURES = "document.querySelector('.nmd-pictures').pictures"


def status_says(page, pattern):
    """Wait until the status line matches, and return its text; in marimo it is in a shadow tree."""
    page.locator(STATUS).first.filter(has_text=re.compile(pattern)).wait_for(state="attached")
    return page.inner_text(STATUS)


def number_after(word, text):
    return float(re.search(rf"{word} ([\d.e-]+)", text).group(1))


def watch_and_stop(page, *, pictures=False):
    """See the model change while it runs; stop; return the iteration at which it is."""
    status_says(page, r"running: iteration \d+")
    if pictures:
        drawn = page.evaluate(f"{PICTURES}.frames")
        page.wait_for_function(f"at => {PICTURES}.frames >= at", arg=drawn + 3, polling=20)
    said = page.inner_text(STATUS)
    assert said.startswith("running")
    page.click(".nmd-stop")
    planned = number_after("of", said)
    said = status_says(page, r"stopped after \d+ iterations")
    assert number_after("stopped after", said) < planned
    return int(number_after("stopped after", said))


def press(page, popover, name):
    """Press a button of a popover, which closes then."""
    page.click(f".nmd-action.nmd-{popover}, .nmd-word-{popover}")
    page.click(f".nmd-popover .nmd-{name}")
    page.wait_for_selector(".nmd-popover", state="detached")


def stop_and_go_on(page, *, pictures=False):
    """Stop a run, resume it and stop it again, later."""
    first = watch_and_stop(page, pictures=pictures)
    press(page, "again", "continue")
    assert watch_and_stop(page, pictures=pictures) > first


def paint(page, mode, begin, end):
    """Drag the brush over the stage, between two places (y, x) in fractions of it."""
    page.get_by_role("button", name=mode, exact=True).click()
    canvas = page.locator(".nmd-picture-area canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    at = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for y, x in (begin, end)]
    page.mouse.move(*at[0])
    page.mouse.down()
    page.mouse.move(*at[1], steps=8)
    page.mouse.up()


TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
"""Of the rules that are checked."""


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
        script = files("axe_playwright_python") / "axe.min.js"
        page.evaluate(script.read_text(encoding="utf-8"))
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
