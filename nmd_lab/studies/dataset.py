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

CHOSEN = {
    "rank_chosen": "chosen rank",
    "alpha_chosen": "chosen ridge",
    "offset_alpha_chosen": "chosen ridge of the offsets",
}
"""Numbers that a fit may choose by held-out entries, with their long names."""

CHOSEN_TEXTS = ("nonlinearity_chosen", "loss_chosen", "offsets_chosen")
TEXTS = dict.fromkeys(CHOSEN_TEXTS, "")
TEXTS |= {"status": "not done", "stop_reason": "not done", "warnings": ""}
"""Variables of text, with their values in cells without any."""


def to_dataset(grid: Grid, records: Mapping[str, Any], problem: StudyProblem) -> xr.Dataset:
    """Return all results over the dimensions of the grid; cells without a record are NaN."""
    keys = [task.key for task in grid]
    cells = [records.get(key, {}) for key in keys]
    present = {name for cell in cells for name in cell}
    long_names = {
        f"{entry_set}_{metric}": f"{_title(metric)} on {entry_set.replace('_', '-')} entries"
        for metric in problem.metrics
        for entry_set in problem.entry_sets
    }
    if any(method.function is sample for method in grid.values(SOLVER)):
        long_names |= POSTERIOR_SCORES
    long_names |= NUMBERS | {name: text for name, text in CHOSEN.items() if name in present}
    texts = {name: v for name, v in TEXTS.items() if name in present or name not in CHOSEN_TEXTS}
    variables: dict[str, Any] = {}
    for name in (*long_names, *texts):
        default, dtype = (texts[name], object) if name in texts else (math.nan, float)
        values = [cell.get(name, default) for cell in cells]
        variables[name] = tuple(grid.dims), np.array(values, dtype).reshape(grid.shape)
    variables["fit"] = tuple(grid.dims), np.array(keys, object).reshape(grid.shape)
    description = {RESULT_ATTRIBUTE: json.dumps(_description(grid, problem))}
    results = xr.Dataset(variables, grid.coordinates(), description)
    for name, long_name in (long_names | {"fit": "name of the fit"}).items():
        results[name].attrs["long_name"] = long_name
    return results


def _title(metric: str) -> str:
    """Return the name of a metric in a title."""
    return metric.upper() if metric in ("rmse", "mae") else metric.replace("_", " ")


def _description(grid: Grid, problem: StudyProblem) -> dict[str, Any]:
    """Return what the numbers of a study alone do not tell, in numbers and text.

    "ignored" has for each method the dimensions without effect, "missing" the level of each label.
    """
    arguments = [name for name in grid.dims if name not in (SOLVER, *CONDITIONS)]
    return {
        "schema": SCHEMA,
        "study": {
            "shape": list(problem.data.shape),
            "n_known": problem.data.size,
            "metrics": list(problem.metrics),
            "constants": {axis.name: axis.labels[0] for axis in grid.axes if not axis.varied},
            "missing": [corruption.level for corruption in grid.values("missing")],
            "ignored": {
                method.name: [name for name in arguments if name not in method.defaults]
                for method in grid.values(SOLVER)
            },
        },
    }
