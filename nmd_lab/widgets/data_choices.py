"""Data to choose from in an explorer, each with the code that loads it."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import xarray as xr

from nmd_lab import datasets

from .code import call


class Source(NamedTuple):
    """A data set of `nmd_lab.datasets` and the arguments that it is loaded with."""

    name: str
    arguments: dict[str, Any]
    variable: str | None = None

    @property
    def code(self) -> str:
        """The code that loads it."""
        loading = call(f"nmd.datasets.{self.name}", **self.arguments)
        return f"{loading}.{self.variable}" if self.variable else loading

    def load(self) -> Any:
        """Return the data."""
        function: Callable[..., Any] = getattr(datasets, self.name)
        data = function(**self.arguments)
        return data[self.variable] if self.variable else data


def matrices() -> dict[str, Source]:
    """Return the matrices that are at hand on this machine."""
    found = {
        "digits": Source("digits", {}),
        "photograph of a flower": Source("photograph", {"name": "flower", "size": (213, 320)}),
        "photograph of a palace": Source("photograph", {"name": "china", "size": (213, 320)}),
        "synthetic": Source(
            "synthetic",
            {"m": 200, "n": 150, "rank": 8, "nonlinearity": "relu", "random_state": 0},
            "X",
        ),
    }
    if os.environ.get("NMD_LAB_DATA"):
        for label, name in (("CBCL faces", "cbcl"), ("MNIST", "mnist"), ("MIT logo", "mit_logo")):
            if os.path.isdir(os.path.join(os.environ["NMD_LAB_DATA"], name)):  # noqa: PTH112, PTH118
                found[label] = Source(name, {})
    return found


@cache
def load_matrix(label: str) -> xr.DataArray:
    """Return a matrix by its label; it is not to be changed."""
    loaded: xr.DataArray = matrices()[label].load()
    return loaded
