"""The data sets that an explorer offers, each with the code that loads it."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import xarray as xr

from nmd_lab import datasets
from nmd_lab.datasets.movielens import small_folder

from .code import call


class DataChoice(NamedTuple):
    """A data set of `nmd_lab.datasets`."""

    name: str  # name of the function that loads it
    arguments: dict[str, Any]  # arguments of the function
    variable: str | None = None  # of the loaded Dataset; None: everything that is loaded

    @property
    def code(self) -> str:
        """Code that loads the data."""
        loading = call(f"nmd.datasets.{self.name}", **self.arguments)
        return f"{loading}.{self.variable}" if self.variable else loading

    def load(self) -> Any:
        """Return the data."""
        function: Callable[..., Any] = getattr(datasets, self.name)
        data = function(**self.arguments)
        return data[self.variable] if self.variable else data


MATRICES = {
    "digits": DataChoice("digits", {}),
    "photograph of a flower": DataChoice("photograph", {"name": "flower", "size": (213, 320)}),
    "photograph of a palace": DataChoice("photograph", {"name": "china", "size": (213, 320)}),
    "synthetic": DataChoice(
        "synthetic",
        {"m": 200, "n": 150, "rank": 8, "nonlinearity": "relu", "random_state": 0},
        "X",
    ),
}
"""Matrices that need no download."""

LOCAL_MATRICES = {
    "CBCL faces": DataChoice("cbcl", {}),
    "MNIST": DataChoice("mnist", {}),
    "MIT logo": DataChoice("mit_logo", {}),
}
"""Matrices that are offered if ``$NMD_LAB_DATA`` has a folder with the name of their function."""

LOCAL_RATINGS = {"MovieLens, small": DataChoice("movielens_small", {})}
"""Tables of ratings that are offered where their files are, such as in a checkout."""

RATINGS = {
    "generated": DataChoice(
        "make_ratings", {"n_users": 400, "n_items": 300, "n_ratings": 12_000, "random_state": 0}
    ),
}
"""Tables of ratings that need no download."""


def ratings_choices() -> dict[str, DataChoice]:
    """Return the tables of ratings that are available on this machine, by their labels."""
    return RATINGS if small_folder() is None else LOCAL_RATINGS | RATINGS


def matrix_choices() -> dict[str, DataChoice]:
    """Return the matrices that are available on this machine, by their labels."""
    folder = os.environ.get("NMD_LAB_DATA")
    if not folder:
        return dict(MATRICES)
    local = {
        label: choice
        for label, choice in LOCAL_MATRICES.items()
        if (Path(folder) / choice.name).is_dir()
    }
    return MATRICES | local


@cache
def load_matrix(label: str) -> xr.DataArray:
    """Return the matrix of a label; all callers share it, so it must not be changed."""
    loaded: xr.DataArray = matrix_choices()[label].load()
    return loaded
