"""Every public name has a docstring with an example that runs (the examples run as doctests)."""

import inspect

import pytest

import nmd_lab as nmd

NAMES = [name for name in nmd.__all__ if not inspect.ismodule(getattr(nmd, name))]


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_has_an_example(name: str) -> None:
    text = inspect.getdoc(getattr(nmd, name)) or ""
    assert ">>> import" in text, "an example that begins with its imports"
    assert "Examples\n--------" in text


@pytest.mark.parametrize("name", [name for name in nmd.__all__ if name not in NAMES])
def test_a_public_module_says_what_it_has(name: str) -> None:
    assert len(inspect.getdoc(getattr(nmd, name)) or "") > 40


@pytest.mark.parametrize("name", ["decompose", "complete", "sample", "impute"])
def test_the_docstring_of_a_verb_can_be_read(name: str) -> None:
    """It has the arguments; explanations are on the pages."""
    assert len((inspect.getdoc(getattr(nmd, name)) or "").split()) <= 700
