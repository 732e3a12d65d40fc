"""Names of the code and words of the pages are those of the field."""

import ast
import inspect
import json
import re
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from pathlib import Path

import pytest
from site_modules import DOCS, PACKAGE, ROOT, site_module, text_of

import nmd_lab as nmd

FORBIDDEN = {
    *("part", "own", "given", "kept", "made", "told", "laws", "judge", "pace", "march"),
    *("preimage", "keeper", "of_W", "of_H"),
}
"""Words that say nothing of what they name, or that the field has another word for; `_own`, too."""

GLOSSARY = {
    "held-out": r"\bhidden\b|\bhides?\b",
    "imputation, or completed copy": r"(?<!completed )(?<!imputed )\bcopies\b(?! (?:the|a)\b)",
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
    "next to, or compared with": r"\bbeside\b",
    "someone": r"\bsomebody\b",
    "whose": r"\bof which the\b",
}
"""Words of the field, and the private words that no text for users must have in place of them."""

TERMS = (
    *("held-out entry", "imputation", "completed copy", "numeric", "ordinal", "categorical"),
    *("binary", "RMSE", "scale", "image", "component", "iteration", "sweep", "credible interval"),
    *("fold", "cross-validation"),
)
"""Terms that the glossary of docs/concepts.md explains."""

PAGES = [*(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "RELEASING"))]
PAGES += sorted({*DOCS.glob("*.md")} - {DOCS / "api.md"})  # of the build

MEASURED = {"tables", "ratings", "pictures", "selection", "performance", "paper"}
"""Pages that scripts write."""

NOT_PROSE = re.compile(r"^---\n.*?\n---\n|```.*?```|\$\$.*?\$\$|<!--.*?-->", re.DOTALL)
"""Front matter, blocks of code, formulas and comments."""

NO_WORDS = re.compile(r"`+[^`]*`+|\]\([^)]*\)|^:\w+:.*$", re.MULTILINE)
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


def test_no_name_is_a_forbidden_word():
    names = {path: names_in(ast.parse(text_of(path))) for path in sorted(PACKAGE.rglob("*.py"))}
    assert not {
        (p.name, n) for p, found in names.items() for n in found if n.strip("_") in FORBIDDEN
    }


def prose(page: Path) -> str:
    """Return the text of a page without blocks of code, formulas and comments."""
    return NOT_PROSE.sub("", text_of(page))


def notebook(path: Path) -> str:
    """Return the text of a notebook."""
    cells = json.loads(text_of(path))["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def example(path: Path) -> str:
    """Return the text of a page of the gallery."""
    code = text_of(path)
    return (ast.get_docstring(ast.parse(code)) or "") + "".join(re.findall(r"^#(.*\n)", code, re.M))


def docstrings() -> str:
    """Return the docstrings of the reference, without its names, types and examples."""
    api = site_module("api")
    named = {(nmd, name) for _, names in api.GROUPS.values() for name in names}
    for module, (_, names) in api.MODULES.items():
        place = getattr(nmd, module)
        named |= {(nmd, module), *((place, name) for name in names or place.__all__)}
    found = [inspect.getdoc(getattr(place, name)) or "" for place, name in named]
    for each in {each for place, name in named if inspect.isclass(each := getattr(place, name))}:
        found += [
            inspect.getdoc(value) or ""
            for name, value in inspect.getmembers_static(each)
            if name[0] != "_" and isinstance(value, MEMBERS)
        ]
    return re.sub(r"^ *[\w, *]+ : |^ *(?:>>>|\.\.\.).*$", "", "\n\n".join(found), flags=re.M)


MEMBERS = (type(docstrings), classmethod, staticmethod, property, cached_property)
"""What a member of a class is if it has a docstring of its own."""


def messages() -> str:
    """Return the sentences of errors and warnings, without the name of an argument at first."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(text_of(path))):
            calls = isinstance(node, ast.Call) and ast.unparse(node.func).endswith("warn")
            if calls or isinstance(node, ast.Raise):
                texts = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
                sentence = " ".join(text for text in texts if isinstance(text, str))
                found.append(re.sub(r"^\w+ (?=has|is|holds)|\b\w+=", "", sentence))
    return "\n\n".join(found)


TEXTS: dict[str, Callable[[], str]] = {page.stem: partial(prose, page) for page in PAGES}
TEXTS |= {p.stem: partial(notebook, p) for p in sorted((ROOT / "notebooks").rglob("*.ipynb"))}
TEXTS |= {p.stem: partial(example, p) for p in sorted((ROOT / "examples").rglob("*.py"))}
TEXTS |= {"docstrings": docstrings, "messages": messages}
"""What users read: pages, notebooks, the gallery, the reference, errors and warnings."""


def private_words(text: str) -> set[str]:
    """Return what a text should say in place of its private words."""
    words = " ".join(NO_WORDS.sub("", text).split())
    return {
        f"write {term!r} in place of {match[0]!r}, before {words[match.end() :][:30]!r}"
        for term, private in GLOSSARY.items()
        for match in re.finditer(private, words, re.IGNORECASE)
    }


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_has_the_words_of_the_field(name: str):
    assert not private_words(TEXTS[name]())


def test_the_glossary_of_the_concepts_explains_each_term():
    _, _, glossary = text_of("docs/concepts.md").partition("## Glossary")
    assert not [term for term in TERMS if f"| {term}" not in glossary]


WRITTEN = re.compile(r"<!-- tables?: written by .*?<!-- end of the tables? -->", re.DOTALL)
"""Tables that scripts write into a page."""


def test_there_are_at_most_25_pages_and_25_000_words_outside_of_the_evidence():
    assert len(list(DOCS.glob("*.md"))) <= 25
    pages = [page for page in PAGES if page.stem not in MEASURED]
    texts = [WRITTEN.sub("", text_of(page)) for page in pages]
    assert sum(len(text.split()) for text in texts) <= 25_000
