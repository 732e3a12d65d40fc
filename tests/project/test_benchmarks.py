"""Benchmarks use names that exist, and every written table of the site names its script."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

import nmd_lab as nmd

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "benchmarks").rglob("*.py"))
WRITTEN = re.compile(r"<!-- tables?: written by (\w+/\w+\.py)(?: --write)? -->")


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_benchmark_uses_names_that_exist(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert node.value.id != "nmd" or hasattr(nmd, node.attr), node.attr
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("nmd_lab"):
            module = importlib.import_module(node.module)
            for alias in node.names:
                assert hasattr(module, alias.name) or importlib.import_module(
                    f"{node.module}.{alias.name}"
                )


def test_written_tables_name_their_scripts():
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    found = {name for page in pages for name in WRITTEN.findall(page.read_text(encoding="utf-8"))}
    assert {"benchmarks/cluster.py", "docs/start.py"} <= found
    assert all((ROOT / name).is_file() for name in found)
