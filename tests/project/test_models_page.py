"""The pages on models and on fits name all of them, and all starts."""

import re
from operator import attrgetter

import pytest
from site_modules import text_of

import nmd_lab as nmd
from nmd_lab.model.losses import LOSSES
from nmd_lab.model.nonlinearities import NONLINEARITY_CLASSES
from nmd_lab.request.options import INITS

PAGE = text_of("docs/models.md")


def rows(heading):
    """Return the rows of the table under a heading: the name by the class."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    row = r'^\| (?:`"(\w+)"`)? ?\| `nmd\.([\w.]+)\('
    return {found[2]: found[1] for found in re.finditer(row, section, re.MULTILINE)}


@pytest.mark.parametrize(
    ("heading", "known"), [("Nonlinearities", NONLINEARITY_CLASSES), ("Losses", LOSSES)]
)
def test_every_model_has_a_row_with_its_name(heading, known):
    table = rows(heading)
    assert {cls.__name__ for cls in known.values()} <= {path.split(".")[-1] for path in table}
    for path, name in table.items():
        cls = attrgetter(path)(nmd)
        if name:
            assert known[name] is cls


def test_every_start_has_a_row():
    page = text_of("docs/decompose.md").partition("`init=`")[2]
    table = re.search(r"(?:^\|.*\n)+", page, re.MULTILINE)[0]
    named = re.findall(r"^\| (.*?) \|", table, re.MULTILINE)[1:]
    assert {*re.findall(r'"(\w+)"', " ".join(named))} == {*INITS}
