"""The results of a study: the records of its fits as one labelled Dataset."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from nmd_lab.data.labels import RESULT_ATTRIBUTE
from nmd_lab.result.netcdf import SCHEMA
from nmd_lab.sampling import sample

from .cell import POSTERIOR_SCORES, StudyProblem
from .grid import CONDITIONS, SOLVER, Grid

NUMBERS = {"objective": "objective", "n_iter": "iterations", "seconds": "seconds for a fit"}
"""Numbers of a fit beside its errors, with their long names."""

CHOSEN = {"rank_chosen": "chosen rank", "alpha_chosen": "chosen ridge"}
CHOSEN |= {"offset_alpha_chosen": "chosen ridge of the offsets"}
"""Numbers that a fit may choose by held-out entries, with their long names."""

TEXTS = dict.fromkeys(("nonlinearity_chosen", "loss_chosen", "offsets_chosen"), "")
TEXTS |= {"status": "not done", "stop_reason": "not done", "warnings": "", "fit": ""}
"""Variables of text, with their values in cells without any."""


def to_dataset(grid: Grid, records: Mapping[str, Any], problem: StudyProblem) -> xr.Dataset:
    """Return all results over the dimensions of the grid; cells without a record are NaN."""
    keys = [task.key for task in grid]
    cells = [{**records.get(key, {}), "fit": key} for key in keys]
    names: dict[str, Any] = {
        f"{entry_set}_{metric}": f"{_title(metric)} on {entry_set.replace('_', '-')} entries"
        for metric in problem.metrics
        for entry_set in problem.entry_sets
    }
    if any(method.function is sample for method in grid.axes[SOLVER].values):
        names |= POSTERIOR_SCORES
    names |= NUMBERS | CHOSEN | dict.fromkeys(TEXTS) | {"fit": "name of the fit"}
    results = xr.Dataset({}, grid.coordinates(), _description(grid, problem))
    shape = [len(axis.values) for axis in grid.dims.values()]
    for name, long_name in names.items():
        if name.endswith("_chosen") and not any(name in cell for cell in cells):
            continue
        default, dtype = (TEXTS[name], object) if name in TEXTS else (math.nan, float)
        values = [cell.get(name, default) for cell in cells]
        attributes = {"long_name": long_name} if long_name else {}
        results[name] = [*grid.dims], np.array(values, dtype).reshape(shape), attributes
    return results


def _title(metric: str) -> str:
    """Return the name of a metric in a title."""
    return metric.upper() if metric in ("rmse", "mae") else metric.replace("_", " ")


def _description(grid: Grid, problem: StudyProblem) -> dict[str, Any]:
    """Return what the numbers of a study alone do not tell, in numbers and text.

    "ignored" has for each method the dimensions without effect, "missing" the level of each label.
    """
    arguments = [name for name in grid.dims if name not in (SOLVER, *CONDITIONS)]
    study = {
        "shape": list(problem.data.shape),
        "n_known": problem.data.size,
        "metrics": list(problem.metrics),
        "constants": {n: axis.labels[0] for n, axis in grid.axes.items() if not axis.varied},
        "missing": [corruption.level for corruption in grid.axes["missing"].values],
        "ignored": {
            method.name: [name for name in arguments if name not in method.defaults]
            for method in grid.axes[SOLVER].values
        },
    }
    return {RESULT_ATTRIBUTE: json.dumps({"schema": SCHEMA, "study": study})}
