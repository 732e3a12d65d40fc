"""The page on models names all of them, and its code runs."""

import re
from pathlib import Path

import numpy as np
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


def test_the_first_block_runs():
    block = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]
    scope = {}
    exec(block, scope)
    probabilities = scope["fit"].reconstruct().values
    truth = 1 / (1 + np.exp(-scope["A"]))
    assert np.sqrt(np.mean((probabilities - truth) ** 2)) < 0.2
    assert ((probabilities > 0) & (probabilities < 1)).all()
