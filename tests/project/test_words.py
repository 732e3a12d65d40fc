"""Names of the code and words of the pages are those of the field."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "nmd_lab"

FORBIDDEN = {
    *("part", "own", "given", "kept", "made", "told", "laws", "judge", "pace", "march"),
    *("preimage", "keeper", "of_W", "of_H"),
}
"""Words that say nothing of what they name, or that the field has another word for; `_own`, too."""

GLOSSARY = {
    "held-out": r"\bhidden\b|\bhides?\b",
    "imputation, or completed copy": r"(?<!completed )(?<!imputed )\bcopies\b(?! the\b)",
    "numeric": r"\b(?:columns|cells) of numbers\b|\bhidden numbers\b",
    "ordinal": r"\bordered levels?\b|(?<!noise )(?<!grey )(?<!index )\blevels\b",
    "categorical": r"\b(?:levels|numbers|booleans),? (?:and|or) classes\b",
    "binary": r"\byes (?:or|and) no\b",
    "accuracy": r"\bright (?:classes|answers|ones)\b",
    "RMSE": r"\bin their SD\b",
    "image": r"\bpictures?\b",
    "prediction": r"\bguess(?:es|ed)?\b",
    "uncertain": r"\b(?:un|how |most |least )sure\b",
    "cross-validation, or fold": r"\bchosen by (?:hidden|held-out) entries\b",
}
"""Words of the field, and the private words that a page must not have in place of them."""

TERMS = (
    *("held-out entry", "imputation", "completed copy", "numeric", "ordinal", "categorical"),
    *("binary", "RMSE", "scale", "image", "component", "iteration", "sweep", "credible interval"),
    *("fold", "cross-validation"),
)
"""Terms that the glossary of docs/concepts.md explains."""

PAGES = [*(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "RELEASING"))]
PAGES += sorted({*(ROOT / "docs").glob("*.md")} - {ROOT / "docs" / "api.md"})  # of the build

MEASURED = {"tables", "ratings", "pictures", "selection", "performance", "paper"}
"""Pages that scripts write."""

NOT_PROSE = re.compile(r"^---\n.*?\n---\n|```.*?```|\$\$.*?\$\$|<!--.*?-->", re.DOTALL)
"""Front matter, blocks of code, formulas and comments."""

NO_WORDS = re.compile(r"`[^`]*`|\]\([^)]*\)|^:\w+:.*$", re.MULTILINE)
"""Code in a line, targets of links, and options of directives."""


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_the_words_of_the_field(page: Path):
    text = NO_WORDS.sub("", prose(page))
    found = {
        f"write {term!r} in place of {match[0]!r}, before {text[match.end() :][:30]!r}"
        for term, private in GLOSSARY.items()
        for match in re.finditer(private, text, re.IGNORECASE)
    }
    assert not found


def test_the_glossary_fails_with_the_word_of_the_field(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("The hidden cells, yes or no.", encoding="utf-8")
    with pytest.raises(AssertionError, match="write 'held-out' in place of 'hidden'"):
        test_a_page_has_the_words_of_the_field(page)


def test_the_glossary_of_the_concepts_explains_each_term():
    page = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
    _, _, glossary = page.partition("## Glossary")
    assert not [term for term in TERMS if f"| {term}" not in glossary]


WRITTEN = re.compile(r"<!-- tables?: written by .*?<!-- end of the tables? -->", re.DOTALL)
"""Tables that scripts write into a page."""


def test_there_are_at_most_25_pages_and_25_000_words_outside_of_the_evidence():
    assert len(list((ROOT / "docs").glob("*.md"))) <= 25
    pages = [page for page in PAGES if page.stem not in MEASURED]
    texts = [WRITTEN.sub("", page.read_text(encoding="utf-8")) for page in pages]
    assert sum(len(text.split()) for text in texts) <= 25_000
