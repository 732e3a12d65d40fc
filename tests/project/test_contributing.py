"""CONTRIBUTING.md shows the real classes, and docs/scale.md the real table."""

import inspect
from pathlib import Path

import pytest
from site_modules import site_module

import nmd_lab as nmd

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"


@pytest.mark.parametrize("example", [nmd.L1, nmd.Modulus])
def test_the_recipe_shows_the_real_class(example):
    assert inspect.getsource(example) in PAGE.read_text(encoding="utf-8")


def test_the_table_of_what_goes_with_what_is_that_of_the_code():
    page = PAGE.parent / "docs" / "scale.md"
    written = site_module("support").text()
    assert written in page.read_text(encoding="utf-8"), "run python docs/support.py"
