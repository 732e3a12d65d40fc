"""Dimensions and coordinates from the indexes of pandas DataFrames."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import xarray as xr


def index_labels(index: Any, axis: str, taken: Collection[Any]) -> tuple[str, Any]:
    """Return the name of the dimension of a pandas index, and its coordinates."""

    def free_name(name: Any, default: str) -> str:
        name = default if name is None else str(name)
        return f"{name}_{axis}" if name in taken else name

    if index.nlevels == 1:
        dim = free_name(index.name, axis)
        return dim, {dim: index.rename(dim)}
    taken = {*taken, axis}
    levels = [free_name(name, f"{axis}_level_{i}") for i, name in enumerate(index.names)]
    return axis, xr.Coordinates.from_pandas_multiindex(index.set_names(levels), axis)
