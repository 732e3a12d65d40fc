"""Arrows go down: what a module imports when it is loaded stands on its floor or below."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "nmd_lab"


def floors():
    """Read the table of CONTRIBUTING.md."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| (\d+) \|[^|]*\|(.*)\|$", page, flags=re.MULTILINE)
    return {name: int(floor) for floor, names in lines for name in re.findall(r"`(\w+)`", names)}


def modules():
    """Return each module or subpackage with its files."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        first = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if first != "__init__":
            found.setdefault(first, []).append(path)
    return found


def loaded_with(path):
    """Yield the modules of the package that a file imports at its top level."""
    depth = len(path.relative_to(PACKAGE).parts)
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.level == depth:
            if node.module:
                yield node.module.split(".")[0]
            else:
                yield from (alias.name for alias in node.names)


def test_the_table_names_every_module():
    assert set(floors()) == set(modules())


@pytest.mark.parametrize("name", sorted(modules()))
def test_arrows_go_down(name):
    floor = floors()
    for path in modules()[name]:
        for other in loaded_with(path):
            if other in floor:  # not a name that the package itself defines
                assert floor[other] <= floor[name], f"{path.name} imports {other} from above"
