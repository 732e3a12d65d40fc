"""What axe-core finds against accessibility."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

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
