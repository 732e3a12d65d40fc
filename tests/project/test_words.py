"""Names and prose are words of the field."""

from __future__ import annotations

import ast
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "nmd_lab"

FORBIDDEN = {
    *("part", "own", "given", "kept", "made", "told", "laws", "judge", "pace", "march"),
    *("preimage", "keeper", "of_W", "of_H"),
}
"""Words that say nothing of what they name, or that the field has another word for; `_own`, too."""

PROSE = re.compile(
    r"\b(beside|holes?|luck|told|(?:go|goes) on|same bits|in vain|misfit|worries|doubts?|says?|said"
    r"|settle[sd]?|(?<!-)walks?|(?:a|the) share of|elsewhere|hopeless|believes?|knows|asks|ask for"
    r"|asked for|intervals? (?:that )?holds?|(?<!\*)how sure"
    r"|(?-i:what) (?:is|are|was|were|it|they|the|an?|has|have|can|only))\b",
    re.IGNORECASE,
)
"""Words of the pages that have a standard one: compared with, missing, sampling variation, resumes,
bit-for-bit identical, converged, search, fraction, require, cover, uncertainty.  Code contains or
returns; it does not say, know or ask.  "What is ..." is no noun."""

SPOKEN = re.compile(r"\b(beside|holes|luck|told|(?:go|goes) on|same bits|in vain|misfit)\b", re.I)
"""Words that neither docstrings nor messages have; the list may only become longer."""

PAGES = [*(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "RELEASING"))]
PAGES += sorted({*(ROOT / "docs").glob("*.md")} - {ROOT / "docs" / "api.md"})  # of the build

MEASURED = {"tables", "ratings", "pictures", "selection", "performance", "paper", "support"}
"""Pages that scripts write."""

NOT_PROSE = re.compile(r"^---\n.*?\n---\n|```.*?```|\$\$.*?\$\$|<!--.*?-->", re.DOTALL)
"""Front matter, blocks of code, formulas and comments."""

NOT_SENTENCES = re.compile(r"^(?:\||#|!\[|    |:).*$", re.MULTILINE)
"""Lines of tables, headings, pictures, indented code and directives."""

ENDS = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.)\s)|(?<=[.?!])[*)]*\s+(?=[\"'(A-Z`*\[])")
"""Ends of paragraphs, of items of a list, and of sentences."""


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
    assert not forbidden_names(PACKAGE)


def prose(page: Path) -> str:
    """Return the text of a page without blocks of code, formulas and comments."""
    return NOT_PROSE.sub("", page.read_text(encoding="utf-8"))


def lengths(page: Path) -> list[int]:
    """Return the number of words of each sentence of a page; fewer than three are a label."""
    text = re.sub(r"\]\([^)]*\)", "]", NOT_SENTENCES.sub("", prose(page)))
    counts = [len(re.findall(r"\w[\w'-]*", sentence)) for sentence in ENDS.split(text)]
    return [count for count in counts if count > 2]


def test_pages_have_the_standard_words():
    found = {page.name: PROSE.findall(re.sub(r"`[^`]*`", "", prose(page))) for page in PAGES}
    assert not {name: words for name, words in found.items() if words}


def test_docstrings_and_messages_have_the_standard_words():
    found = {
        (path.name, *SPOKEN.findall(str(node.value)))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and " " in str(node.value)
    }
    assert not {words for words in found if len(words) > 1}


def test_sentences_have_12_to_20_words_and_few_have_more_than_30():
    counts = [count for page in PAGES for count in lengths(page)]
    assert 12 <= statistics.median(counts) <= 20
    assert sum(count > 30 for count in counts) <= 0.1 * len(counts)


def test_pages_that_no_script_writes_have_at_most_25_000_words():
    pages = [page for page in PAGES if page.stem not in MEASURED]
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in pages) <= 25_000
