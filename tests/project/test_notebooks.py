"""Each notebook says how long it takes and what it needs, and has a table that nbval compares."""

import json
import re

import pytest
from site_modules import ROOT, text_of

NOTEBOOKS = ROOT / "notebooks"
ALL = sorted(NOTEBOOKS.glob("**/*.ipynb"))
FIRST_LINE = re.compile(r"\*Run time: about .*(second|minute)s?\. Extras: `lab`.*\*")


def test_there_are_fourteen_in_order():
    tutorials = sorted(path.name[:2] for path in NOTEBOOKS.glob("*.ipynb"))
    assert tutorials == [f"{k:02}" for k in range(1, 15)]


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
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
