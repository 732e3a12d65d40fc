"""Records become one labelled Dataset."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from nmd_lab import _version
from nmd_lab.result.netcdf import ATTRIBUTE, SCHEMA

from .cell import Problem
from .grid import Grid, Task
from .hashing import plain
from .journal import LAYOUT

NUMBERS = {
    "objective": {"long_name": "objective"},
    "n_iter": {"long_name": "iterations"},
    "seconds": {"long_name": "seconds for a fit"},  # with units xarray would read durations
    "peak_memory": {"long_name": "peak memory of the fit", "units": "byte"},
}
"""Numbers of a fit that are no errors, and what they mean."""

MEASURED = ("seconds", "peak_memory")
"""Those that are different each time."""


def to_dataset(
    grid: Grid, tasks: Sequence[Task], records: Mapping[str, Any], problem: Problem
) -> xr.Dataset:
    """Return all results over the dimensions of the grid.

    Parameters
    ----------
    grid : Grid
        The study's.
    tasks : sequence of Task
        One for each cell of the grid, in its order.
    records : dict
        By the key of the task; cells without a record are NaN.
    problem : Problem
        The study's.
    """
    keys = [task.key for task in tasks]
    cells: list[dict[str, Any]] = [records.get(key, {}) for key in keys]
    dims = tuple(grid.dims)

    def numbers(pick: Callable[[dict[str, Any]], float], **attrs: str) -> Any:
        return dims, np.array([pick(cell) for cell in cells], dtype=float), attrs

    def words(pick: Callable[[dict[str, Any]], str], **attrs: str) -> Any:
        return dims, np.array([pick(cell) for cell in cells], dtype=object), attrs

    variables = {}
    for metric in problem.metrics:
        for part in problem.parts:
            name = f"{part}_{metric}"
            word = metric.upper() if metric in ("rmse", "mae") else metric.replace("_", " ")
            long_name = f"{word} on {part.replace('_', '-')} entries"
            variables[name] = numbers(
                lambda cell, name=name: cell.get("scores", {}).get(name, math.nan),  # type: ignore[misc]
                long_name=long_name,
            )
    for name, attrs in NUMBERS.items():
        variables[name] = numbers(lambda cell, name=name: cell.get(name, math.nan), **attrs)  # type: ignore[misc]
    variables["status"] = words(lambda cell: cell.get("status", "not done"))
    variables["stop_reason"] = words(lambda cell: cell.get("stop_reason", "not done"))
    variables["warnings"] = words(lambda cell: " | ".join(cell.get("warnings", [])))
    variables["fit"] = dims, np.array(keys, dtype=object), {"long_name": "name of the fit"}
    shaped = {
        name: (dims, array.reshape(grid.shape), attrs)
        for name, (_, array, attrs) in variables.items()
    }
    attrs = {ATTRIBUTE: json.dumps(description(grid, problem))}
    return xr.Dataset(shaped, grid.coordinates(), attrs)


def description(grid: Grid, problem: Problem) -> dict[str, Any]:
    """Return what the numbers alone do not tell, in plain words.

    Parameters
    ----------
    grid : Grid
        The study's.
    problem : Problem
        The study's.

    Returns
    -------
    dict
        "schema" of the file's layout, and "study": "shape", "n_known", "metrics", "constants"
        (arguments with one value), "missing" (level of each label), and "ignored" (for each
        method the dimensions without effect).
    """
    constants = {a.name: a for a in grid.axes if not a.varied}
    methods = grid.axis("method").values
    arguments = [name for name in grid.dims if name not in ("method", "missing", "noise", "seed")]
    return {
        "schema": SCHEMA,
        "study": {
            "shape": list(problem.known.shape),
            "n_known": problem.known.size,
            "metrics": list(problem.metrics),
            "constants": {
                name: axis.labels[0] if name == "method" else plain(axis.values[0])
                for name, axis in constants.items()
            },
            "missing": [corruption.level for corruption in grid.axis("missing").values],
            "ignored": {
                method.name: [name for name in arguments if name not in method.defaults]
                for method in methods
            },
        },
    }


def journal_header(grid: Grid, problem: Problem) -> dict[str, Any]:
    """Return what makes this study: see `journal.check_header`."""
    values: dict[str, list[Any]] = {}
    for axis in grid.axes:
        if axis.name == "method":
            values["method"] = [method.name for method in axis.values]
        else:
            values[axis.name] = [plain(value) for value in axis.values]
    for method in grid.axis("method").values:
        for name, default in method.defaults.items():
            if name not in {axis.name for axis in grid.axes}:
                words = values.setdefault(name, [])
                words += [w for w in [plain(default)] if w not in words]
    return {
        "layout": LAYOUT,
        "version": _version.__version__,
        "data": problem.known.fingerprint(),
        "metrics": list(problem.metrics),
        "settings": {
            "sample_dims": plain(problem.constants.get("sample_dims")),
        },
        "values": values,
    }
