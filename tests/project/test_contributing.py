"""The page on how to extend the library shows the real classes."""

import inspect
from pathlib import Path

import pytest

import nmd_lab as nmd

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"


@pytest.mark.parametrize("example", [nmd.L1, nmd.Modulus])
def test_the_recipe_shows_the_real_class(example):
    assert inspect.getsource(example) in PAGE.read_text(encoding="utf-8")
