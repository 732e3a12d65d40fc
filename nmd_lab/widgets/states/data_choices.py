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


SYNTHETIC = {"m": 200, "n": 150, "rank": 8, "nonlinearity": "relu", "random_state": 0}
MATRICES = {  # which need no download
    "digits": DataChoice("digits", {}),
    "photograph of a flower": DataChoice("photograph", {"name": "flower", "size": (213, 320)}),
    "photograph of a palace": DataChoice("photograph", {"name": "china", "size": (213, 320)}),
    "synthetic": DataChoice("synthetic", SYNTHETIC, "X"),
}
# Matrices that are offered if ``$NMD_LAB_DATA`` has a folder with the name of their function
LOCAL_MATRICES = {"CBCL faces": "cbcl", "MNIST": "mnist", "MIT logo": "mit_logo"}
RATINGS = {"n_users": 400, "n_items": 300, "n_ratings": 12_000, "random_state": 0}


def ratings_choices() -> dict[str, DataChoice]:
    """Return the tables of ratings that are available on this machine, by their labels."""
    generated = {"generated": DataChoice("make_ratings", RATINGS)}
    if small_folder() is None:
        return generated
    return {"MovieLens, small": DataChoice("movielens_small", {})} | generated


def matrix_choices() -> dict[str, DataChoice]:
    """Return the matrices that are available on this machine, by their labels."""
    folder = os.environ.get("NMD_LAB_DATA")
    local = {
        label: DataChoice(name, {})
        for label, name in LOCAL_MATRICES.items()
        if folder and (Path(folder) / name).is_dir()
    }
    return MATRICES | local


@cache
def load_matrix(label: str) -> xr.DataArray:
    """Return the matrix of a label; all callers share it, so it must not be changed."""
    loaded: xr.DataArray = matrix_choices()[label].load()
    return loaded
