"""Each notebook says how long it takes and what it needs, and has a table that nbval compares."""

import json
import re

import pytest
from site_modules import ROOT, text_of

NOTEBOOKS = ROOT / "notebooks"
ALL = sorted(NOTEBOOKS.glob("**/*.ipynb"))
FIRST_LINE = re.compile(r"\*Run time: about .*(second|minute)s?\. Extras: `lab`.*\*")


def cells(path):
    return json.loads(text_of(path))["cells"]


def test_there_are_fourteen_in_order():
    tutorials = sorted(path.name[:2] for path in NOTEBOOKS.glob("*.ipynb"))
    assert tutorials == [f"{k:02}" for k in range(1, 15)]


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_the_first_line_has_run_time_and_extras_and_a_table_is_compared(path):
    first = "".join(cells(path)[0]["source"]).splitlines()[0]
    assert FIRST_LINE.fullmatch(first)
    compared = [cell for cell in cells(path) if "# NBVAL_CHECK_OUTPUT\n" in cell["source"]]
    assert compared
    assert all(cell["outputs"] for cell in compared)


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_outputs_are_committed_without_warnings_and_paths_of_a_machine(path):
    code = [cell for cell in cells(path) if cell["cell_type"] == "code"]
    assert not [o for cell in code for o in cell["outputs"] if o.get("name") == "stderr"]
    assert not re.search(r"/(home|root|Users|tmp|work)/", text_of(path))


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_the_last_cell_asserts_what_the_text_says(path):
    code = [cell for cell in cells(path) if cell["cell_type"] == "code"]
    assert any(line.startswith("assert") for line in code[-1]["source"])
