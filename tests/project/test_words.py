"""Names and prose are words of the field."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "nmd_lab"

FORBIDDEN = {
    *("part", "own", "given", "kept", "made", "told", "laws", "judge", "pace", "march"),
    *("preimage", "keeper", "of_W", "of_H"),
}
"""Words that say nothing of what they name, or that the field has another word for; `_own`, too."""

STILL = (
    "widgets/matrix_state.py",  # an attribute that users see in copied code
)
"""Files that still have such names, which users write; the list may only become shorter."""


PROSE = re.compile(
    r"\b(beside|holes?|luck|told|(?:go|goes) on|same bits|in vain|misfit|worries)\b", re.IGNORECASE
)
"""Words of the pages that have a standard one: compared with, missing, sampling variation, resumes,
bit-for-bit identical."""


def names_in(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a file gives."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def forbidden_names(package: Path) -> dict[str, list[str]]:
    """Return the forbidden names of each file that has some."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        names = names_in(ast.parse(path.read_text(encoding="utf-8")))
        wrong = sorted({name for name in names if name.strip("_") in FORBIDDEN})
        if wrong:
            found[path.relative_to(package).as_posix()] = wrong
    return found


def test_no_name_is_a_forbidden_word():
    found = forbidden_names(PACKAGE)
    assert not {name: words for name, words in found.items() if not name.startswith(STILL)}


def test_the_list_of_exceptions_is_as_short_as_it_can_be():
    found = forbidden_names(PACKAGE)
    assert not [each for each in STILL if not any(name.startswith(each) for name in found)]


def test_pages_have_the_standard_words():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    found = {page.name: PROSE.findall(page.read_text(encoding="utf-8")) for page in pages}
    assert not {name: words for name, words in found.items() if words}
