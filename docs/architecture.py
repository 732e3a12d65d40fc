"""Draw the packages of ``nmd_lab`` and who imports whom, from the code.

Public modules at the top count as packages.  A package stands one layer above the highest package
that it imports.
"""

from __future__ import annotations

import ast
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

PACKAGE = Path(__file__).parents[1] / "nmd_lab"
ENTRANCES = {"cli", "__main__", "__init__"}
"""Modules that import everything, or that are imported by name alone."""


def packages() -> dict[str, list[Path]]:
    """Return the files of each package."""
    found = {
        path.name: sorted(path.rglob("*.py"))
        for path in sorted(PACKAGE.iterdir())
        if (path / "__init__.py").exists()
    }
    for path in PACKAGE.glob("*.py"):
        if path.stem not in ENTRANCES and not path.stem.startswith("_"):
            found[path.stem] = [path]
    return found


def imports_of(path: Path) -> set[str]:
    """Return the first parts of the names of modules of the package that a file imports."""
    inside = path.relative_to(PACKAGE).parts
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom):
            continue
        parts = (node.module or "").split(".") if node.module else []
        if node.level:
            parts = [*inside[: len(inside) - node.level], *parts]
        elif parts[:1] == ["nmd_lab"]:
            parts = parts[1:]
        else:
            continue
        names |= {parts[0]} if parts else {alias.name for alias in node.names}
    return names


def arrows() -> dict[str, set[str]]:
    """Return the packages that each package imports, also through helper modules."""
    own = packages()
    helpers = {path.stem: imports_of(path) for path in PACKAGE.glob("_*.py")}
    found = {}
    for name, paths in own.items():
        direct = set().union(*(imports_of(path) for path in paths))
        seen: set[str] = set()
        while hidden := (direct & helpers.keys()) - seen - ENTRANCES:
            seen |= hidden
            direct |= set().union(*(helpers[helper] for helper in hidden))
        found[name] = (direct & own.keys()) - {name}
    return found


def layers(graph: dict[str, set[str]]) -> dict[str, int]:
    """Return the layer of each package."""
    found: dict[str, int] = {}

    def layer_of(name: str, above: tuple[str, ...] = ()) -> int:
        if name not in found:
            below = [n for n in graph[name] if n not in above]
            found[name] = 1 + max((layer_of(n, (*above, name)) for n in below), default=-1)
        return found[name]

    for name in sorted(graph):
        layer_of(name)
    return found


def draw(path: Path) -> None:
    """Draw the packages on their layers."""
    graph = arrows()
    level = layers(graph)
    by_layer = {
        k: sorted(n for n in level if level[n] == k) for k in range(max(level.values()) + 1)
    }
    widest = max(map(len, by_layer.values()))
    place = {
        name: ((position + 0.5) * widest / len(names), k)
        for k, names in by_layer.items()
        for position, name in enumerate(names)
    }
    figure, ax = plt.subplots(figsize=(1.5 * widest, 1.05 * len(by_layer)), layout="constrained")
    for name, below in graph.items():
        for other in below:
            if level[other] < level[name]:
                ax.annotate(
                    "", place[other], place[name],
                    arrowprops={"arrowstyle": "->", "color": "0.75", "shrinkA": 12, "shrinkB": 14},
                )  # fmt: skip
    for name, (x, y) in place.items():
        box = {"boxstyle": "round,pad=0.4", "facecolor": "#e8f0f8", "edgecolor": "#4477aa"}
        ax.text(x, y, name, ha="center", va="center", bbox=box, color="black")
    ax.set(xlim=(0, widest), ylim=(-0.6, len(by_layer) - 0.4))
    ax.axis("off")
    figure.savefig(path, facecolor="white")
    plt.close(figure)
