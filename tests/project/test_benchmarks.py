"""Benchmarks use names that exist, and every written table of the site names its script.

Each notebook says how long it takes and what it needs, and has a table that nbval compares.
"""

import ast
import importlib
import json
import re

import pytest
from site_modules import PAGES, ROOT, text_of

import nmd_lab as nmd
from benchmarks.common.summaries import SUMMARIES
from benchmarks.tables.page import PARTS

SCRIPTS = sorted((ROOT / "benchmarks").rglob("*.py"))
WRITTEN = re.compile(r"<!-- tables?: written by (\w+/\w+\.py)(?: --write)? -->")


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_benchmark_uses_names_that_exist(path):
    for node in ast.walk(ast.parse(text_of(path))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert node.value.id != "nmd" or hasattr(nmd, node.attr), node.attr
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("nmd_lab"):
            module = importlib.import_module(node.module)
            for alias in node.names:
                assert hasattr(module, alias.name) or importlib.import_module(
                    f"{node.module}.{alias.name}"
                )


def test_written_tables_name_their_scripts():
    found = {name for page in [*PAGES, "README.md"] for name in WRITTEN.findall(text_of(page))}
    assert {"benchmarks/cluster.py", "docs/start.py"} <= found
    assert all((ROOT / name).is_file() for name in found)


def words_of(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("page", SUMMARIES)
def test_a_measured_page_begins_with_the_summary_of_its_generator(page):
    summary = text_of(f"docs/{page}.md").split("\n\n")[1]
    assert words_of(summary) == words_of(SUMMARIES[page])


@pytest.mark.parametrize("part", PARTS)
def test_the_page_of_tables_has_the_protocols_of_its_generator(part):
    page = words_of(text_of("docs/tables.md"))
    protocol = (PARTS[part].__doc__ or "").split("\n\n", 1)[1].replace("\n\n-", "\n-")
    assert words_of(protocol) in page
    assert f"## {PARTS[part].TITLE}" in page


NOTEBOOKS = ROOT / "notebooks"
FIRST_LINE = re.compile(r"\*Run time: about .*(second|minute)s?\. Extras: `lab`.*\*")


def test_there_are_fourteen_in_order():
    tutorials = sorted(path.name[:2] for path in NOTEBOOKS.glob("*.ipynb"))
    assert tutorials == [f"{k:02}" for k in range(1, 15)]


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("**/*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_says_what_it_needs_and_asserts_what_it_says(path):
    """Its outputs are committed, without warnings and paths of a machine."""
    cells = json.loads(text_of(path))["cells"]
    assert FIRST_LINE.fullmatch("".join(cells[0]["source"]).splitlines()[0])
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    compared = [cell["outputs"] for cell in code if "# NBVAL_CHECK_OUTPUT\n" in cell["source"]]
    assert compared
    assert all(compared)
    assert not [o for cell in code for o in cell["outputs"] if o.get("name") == "stderr"]
    assert not re.search(r"/(home|root|Users|tmp|work)/", text_of(path))
    assert any(line.startswith("assert") for line in code[-1]["source"])
