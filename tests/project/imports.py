"""The imports of a package, file by file: relative and absolute, at the top and in functions."""

import ast
from collections.abc import Iterator, Mapping
from importlib.util import resolve_name
from pathlib import Path
from typing import NamedTuple

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Import(NamedTuple):
    """One file of the package imports another.

    `lazy` is True if it does so inside a function, hence not when it is loaded.
    """

    source: str
    target: str
    lazy: bool


def texts_of(package: Path) -> dict[str, str]:
    """Return the text of each file by its dotted name; that of an `__init__.py` ends with it."""
    return {
        ".".join(path.relative_to(package.parent).with_suffix("").parts): path.read_text("utf-8")
        for path in sorted(package.rglob("*.py"))
    }


def imports_of(texts: Mapping[str, str]) -> list[Import]:
    """Return every import of one file of a package by another, from the texts of its files."""
    files = {name.removesuffix(".__init__") for name in texts}
    found = []
    for name, text in texts.items():
        tree, source = ast.parse(text), name.removesuffix(".__init__")
        functions = (each for each in ast.walk(tree) if isinstance(each, FUNCTIONS))
        inside = {id(node) for function in functions for node in ast.walk(function)}
        for node in ast.walk(tree):
            for target in targets(node, name.rpartition(".")[0]):
                while target and target not in files:  # a name in a file
                    target = target.rpartition(".")[0]
                if target not in ("", source):
                    found.append(Import(source, target, id(node) in inside))
    return found


def targets(node: ast.AST, package: str) -> Iterator[str]:
    """Yield the dotted names that a statement in a file of a package imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = resolve_name("." * node.level + (node.module or ""), package)
        yield from (f"{base}.{alias.name}" for alias in node.names)
