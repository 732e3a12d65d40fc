"""`nmd_lab.show_versions` names every library that pyproject.toml does, and its version."""

from __future__ import annotations

import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import nmd_lab as nmd
from nmd_lab._runtime.machine import NEEDED, OPTIONAL

TEXT = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
PROJECT = tomllib.loads(TEXT)["project"]
FOR_DEVELOPERS = {"test", "docs", "tables", "dev"}


def names(requirements: list[str]) -> set[str]:
    return {Requirement(text).name for text in requirements} - {PROJECT["name"]}


def test_the_lists_are_those_of_pyproject() -> None:
    extras = PROJECT["optional-dependencies"]
    optional = [extras[extra] for extra in extras if extra not in FOR_DEVELOPERS]
    assert set(NEEDED) == names(PROJECT["dependencies"])
    assert set(OPTIONAL) == set().union(*map(names, optional))


def test_versions_are_printed_and_a_missing_library_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setattr("nmd_lab._runtime.machine.OPTIONAL", ("no-such-library",))
    nmd.show_versions()
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["nmd_lab"] == nmd.__version__
    assert lines["numpy"] == version("numpy")
    assert lines["OMP_NUM_THREADS"] == "3"
    assert "threads" in lines["BLAS"]
    assert "not installed" in lines["no-such-library"]
