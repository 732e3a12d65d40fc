"""The results of a study: the records of its fits as one labelled Dataset."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from nmd_lab.data.labels import RESULT_ATTRIBUTE
from nmd_lab.result.netcdf import SCHEMA

from .cell import StudyProblem
from .grid import CONDITIONS, SOLVER, Grid, Task
from .hashing import plain_value
from .summary import CHOSEN, CHOSEN_TEXTS
from .uncertainty import OF_A_POSTERIOR

NUMBERS = {
    "objective": {"long_name": "objective"},
    "n_iter": {"long_name": "iterations"},
    "seconds": {"long_name": "seconds for a fit"},  # with units xarray would read durations
    "peak_memory": {"long_name": "peak memory of the fit", "units": "byte"},
}
"""Numbers of a fit beside its errors, with the attributes of their variables."""


CHOSEN_NUMBERS: dict[str, dict[str, str]] = {
    "rank": {"long_name": "chosen rank"},
    "alpha": {"long_name": "chosen ridge"},
    "offset_alpha": {"long_name": "chosen ridge of the offsets"},
}
"""Numbers that a fit may choose by held-out entries, with the attributes of their variables."""


def to_dataset(
    grid: Grid, tasks: Sequence[Task], records: Mapping[str, Any], problem: StudyProblem
) -> xr.Dataset:
    """Return all results over the dimensions of the grid.

    Parameters
    ----------
    grid : Grid
        Grid of the study.
    tasks : sequence of Task
        Task of each cell, in the order of the grid.
    records : dict
        Records of finished fits by key; cells without one are NaN.
    problem : StudyProblem
        Data and errors of the study.
    """
    dims = tuple(grid.dims)
    cells: list[dict[str, Any]] = [records.get(task.key, {}) for task in tasks]

    def variable(value: Callable[[dict[str, Any]], Any], dtype: type[Any], **attrs: str) -> Any:
        array: Any = np.array([value(cell) for cell in cells], dtype=dtype)
        return dims, array.reshape(grid.shape), attrs

    def score(name: str) -> Any:
        return lambda cell: cell.get("scores", {}).get(name, math.nan)

    def entry(name: str, default: Any) -> Any:
        return lambda cell: cell.get(name, default)

    def choice(name: str, default: Any) -> Any:
        return lambda cell: cell.get("chosen", {}).get(name, default)

    variables = {}
    for metric in problem.metrics:
        for entry_set in problem.entry_sets:
            name = f"{entry_set}_{metric}"
            title = metric.upper() if metric in ("rmse", "mae") else metric.replace("_", " ")
            long_name = f"{title} on {entry_set.replace('_', '-')} entries"
            variables[name] = variable(score(name), float, long_name=long_name)
    has_posteriors = any(each.is_sampler for each in grid.axis("method").values)
    scored = {name for cell in cells for name in cell.get("scores", {})}
    if has_posteriors or scored & set(OF_A_POSTERIOR):
        for name, attrs in OF_A_POSTERIOR.items():
            variables[name] = variable(score(name), float, **attrs)
    for name, attrs in NUMBERS.items():
        variables[name] = variable(entry(name, math.nan), float, **attrs)
    chosen = {name for cell in cells for name in cell.get("chosen", {})}
    for name, attrs in CHOSEN_NUMBERS.items():
        if name in chosen:
            variables[f"{name}{CHOSEN}"] = variable(choice(name, math.nan), float, **attrs)
    for name in CHOSEN_TEXTS:
        if name in chosen:
            variables[f"{name}{CHOSEN}"] = variable(choice(name, ""), object)
    for name in ("status", "stop_reason"):
        variables[name] = variable(entry(name, "not done"), object)
    variables["warnings"] = variable(lambda cell: " | ".join(cell.get("warnings", [])), object)
    keys = np.array([task.key for task in tasks], dtype=object).reshape(grid.shape)
    variables["fit"] = dims, keys, {"long_name": "name of the fit"}
    return xr.Dataset(
        variables, grid.coordinates(), {RESULT_ATTRIBUTE: json.dumps(description(grid, problem))}
    )


def description(grid: Grid, problem: StudyProblem) -> dict[str, Any]:
    """Return what the numbers of a study alone do not tell, in numbers and text.

    Parameters
    ----------
    grid : Grid
        Grid of the study.
    problem : StudyProblem
        Data and errors of the study.

    Returns
    -------
    dict
        "schema" (version of the layout of files) and "study", which holds "shape", "n_known",
        "metrics", "constants" (arguments with one value), "missing" (level of each label), and
        "ignored" (for each method the dimensions without effect).
    """
    arguments = [name for name in grid.dims if name not in (SOLVER, *CONDITIONS)]
    return {
        "schema": SCHEMA,
        "study": {
            "shape": list(problem.data.shape),
            "n_known": problem.data.size,
            "metrics": list(problem.metrics),
            "constants": {
                axis.name: axis.labels[0] if axis.name == "method" else plain_value(axis.values[0])
                for axis in grid.axes
                if not axis.varied
            },
            "missing": [corruption.level for corruption in grid.axis("missing").values],
            "ignored": {
                method.name: [name for name in arguments if name not in method.defaults]
                for method in grid.axis("method").values
            },
        },
    }
