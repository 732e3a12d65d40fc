"""The imports of a package, file by file: relative and absolute, at the top and in functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Import(NamedTuple):
    """One file of the package imports another.

    `lazy` says that it does so inside a function, hence not when it is loaded.
    """

    source: str
    target: str
    lazy: bool


def imports_of(package: Path) -> list[Import]:
    """Return every import of one file of a package by another."""
    files = {module_name(package, path): path for path in package.rglob("*.py")}
    found = []
    for name, path in sorted(files.items()):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        is_package = path.name == "__init__.py"
        for node, lazy in statements(tree):
            for target in targets(node, name, is_package, files):
                if target != name:
                    found.append(Import(name, target, lazy))
    return found


def module_name(package: Path, path: Path) -> str:
    """Return the dotted name of a file; that of a package for its `__init__.py`."""
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def statements(tree: ast.AST) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Yield the import statements, and whether each is inside a function."""
    waiting = [(child, False) for child in ast.iter_child_nodes(tree)]
    while waiting:
        node, lazy = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, lazy
        lazy = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        waiting += [(child, lazy) for child in ast.iter_child_nodes(node)]


def targets(
    node: ast.Import | ast.ImportFrom, name: str, is_package: bool, files: dict[str, Path]
) -> Iterator[str]:
    """Yield the modules of the package that a statement imports."""
    root = name.split(".")[0]
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.split(".")[0] == root:
                yield nearest(alias.name, files)
        return
    base = node.module or ""
    if node.level:
        above = name.split(".")
        above = above[: len(above) - node.level + is_package]
        base = ".".join([*above, *([base] if base else [])])
    if base.split(".")[0] == root:
        for alias in node.names:
            yield nearest(f"{base}.{alias.name}", files)


def nearest(name: str, files: dict[str, Path]) -> str:
    """Return the longest part of a dotted name that is a file."""
    while name not in files:
        name = name.rpartition(".")[0]
    return name


def cycles(imports: list[Import]) -> list[set[str]]:
    """Return the groups of files that import one another, directly or not."""
    graph: dict[str, set[str]] = {}
    for one in imports:
        graph.setdefault(one.source, set()).add(one.target)
        graph.setdefault(one.target, set())
    reached = {name: reachable(name, graph) for name in graph}
    groups = []
    for name in graph:
        group = {other for other in reached[name] if name in reached[other]}
        if len(group) > 1 and group not in groups:
            groups.append(group)
    return groups


def reachable(start: str, graph: dict[str, set[str]]) -> set[str]:
    """Return what a file imports, directly or not."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for target in graph[waiting.pop()]:
            if target not in found:
                found.add(target)
                waiting.append(target)
    return found
