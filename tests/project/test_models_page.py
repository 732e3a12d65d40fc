"""The page on models names all of them."""

import re
from pathlib import Path

import pytest

import nmd_lab as nmd
from nmd_lab.model.losses import LOSSES
from nmd_lab.model.nonlinearities import NONLINEARITY_CLASSES

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")


def rows(heading):
    """Return the rows of the table under a heading, as (name, class)."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    return {
        found[2]: found[1]
        for found in re.finditer(r'^\| (?:`"(\w+)"`)? ?\| `nmd\.(\w+)\(', section, re.MULTILINE)
    }


@pytest.mark.parametrize(
    ("heading", "known"), [("Nonlinearities", NONLINEARITY_CLASSES), ("Losses", LOSSES)]
)
def test_every_model_has_a_row_with_its_name(heading, known):
    table = rows(heading)
    assert {cls.__name__ for cls in known.values()} <= set(table)
    for name, cls in table.items():
        if cls:
            assert known[cls].__name__ == name
        assert hasattr(nmd, name)
