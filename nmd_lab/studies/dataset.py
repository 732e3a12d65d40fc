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

from .cell import Cell
from .scores import POSTERIOR_SCORES, titles

# Numbers of a fit beside its errors, with their long names
NUMBERS = {
    "objective": "objective",
    "n_iter": "iterations",
    "seconds": "seconds for a fit",
    "rank_chosen": "chosen rank",
    "alpha_chosen": "chosen ridge",
    "offset_alpha_chosen": "chosen ridge of the offsets",
}

# Variables of text
TEXTS: tuple[str, ...] = ("nonlinearity_chosen", "loss_chosen", "offsets_chosen")
TEXTS += ("status", "stop_reason", "warnings", "fit")


def to_dataset(grid: xr.DataArray, records: Mapping[str, Any]) -> xr.Dataset:
    """Return all results over the dimensions of the grid; what a fit does not have is NaN or ""."""
    cells: list[Cell] = grid.values.ravel().tolist()
    rows = [records[key] | {"fit": key} for key in (cell.key for cell in cells)]
    study = {"metrics": [*titles(cells[0].data, cells[0].metrics)], **grid.attrs}
    about = json.dumps({"schema": SCHEMA, "study": study})
    results = xr.Dataset({}, grid.coords, {RESULT_ATTRIBUTE: about})
    names = _errors(cells) | NUMBERS | dict.fromkeys(TEXTS, "") | {"fit": "name of the fit"}
    for name, long_name in names.items():
        if name.endswith("_chosen") and not any(name in row for row in rows):
            continue
        default, dtype = ("", object) if name in TEXTS else (math.nan, float)
        values = np.array([row.get(name, default) for row in rows], dtype).reshape(grid.shape)
        results[name] = grid.dims, values, {"long_name": long_name} if long_name else {}
    return results


def _errors(cells: list[Cell]) -> dict[str, str]:
    """Return the errors of the fits with long names; those on clean entries only if they differ."""
    noisy = any(cell.noise.level > 0 for cell in cells)
    names = {
        f"{entries}_{metric}": f"{title} on {entries.replace('_', '-')} entries"
        for metric, title in titles(cells[0].data, cells[0].metrics).items()
        for entries in ("held_out", "observed", *(["clean"] if noisy else []))
    }
    return names | (POSTERIOR_SCORES if any(cell.method is sample for cell in cells) else {})
