"""Cells: the pieces of an experiment, each stored as it is done, so that a killed run goes on.

A cell is one call ``work(**coordinates, **options)`` that returns scores.  The coordinates define
where it stands in the experiment (method, seed, ...), the options what else the answer depends on
(iterations, seconds, the data).  Its file is named after both and after the source of `work`: a
rerun finds it.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import uuid
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from joblib import Parallel, delayed

import nmd_lab

Scores = dict[str, Any]
"""Numbers by name; an array is a pair (dimensions, values)."""


class Cell(NamedTuple):
    """One piece of work: coordinates and options of JSON's types."""

    coordinates: dict[str, Any]
    options: dict[str, Any]


def run_cells(
    folder: Path,
    cells: Iterable[Cell],
    work: Callable[..., Scores],
    *,
    n_jobs: int = 1,
    attrs: dict[str, Any] | None = None,
) -> xr.Dataset:
    """Do the cells whose answer is not in the folder, and return all answers.

    Parameters
    ----------
    folder : Path
        Holds one file a cell; made if it is not there.
    cells : iterable of Cell
        All with the same coordinates' names.
    work : callable
        A function of a module, called with a cell's coordinates and options.
    n_jobs : int, default 1
        Processes; 1 where times are taken.
    attrs : dict, optional
        Attributes of the Dataset.

    Returns
    -------
    Dataset
        A dimension for each coordinate; NaN where no cell stands.
    """
    folder.mkdir(parents=True, exist_ok=True)
    cells = list(cells)
    missing = [cell for cell in cells if not path_of(folder, cell, work).exists()]
    if n_jobs == 1 or len(missing) < 2:
        for cell in missing:
            _do(folder, cell, work)
    else:
        Parallel(n_jobs=n_jobs)(delayed(_do)(folder, cell, work) for cell in missing)
    records = [json.loads(path_of(folder, cell, work).read_text("utf-8")) for cell in cells]
    states = sorted({record["code"] for record in records})
    return as_dataset(cells, [record["scores"] for record in records]).assign_attrs(
        {"code": states, **(attrs or {})}
    )


def path_of(folder: Path, cell: Cell, work: Callable[..., Scores]) -> Path:
    """Return the file of a cell, named for the coordinates and all that the answer depends on."""
    words = "-".join(str(value) for value in cell.coordinates.values())
    exact = json.dumps([cell.coordinates, cell.options, inspect.getsource(work)], sort_keys=True)
    digest = hashlib.sha256(exact.encode()).hexdigest()[:10]
    return folder / f"{re.sub('[^A-Za-z0-9.-]+', '_', words)}-{digest}.json"


def _do(folder: Path, cell: Cell, work: Callable[..., Scores]) -> None:
    """Work out one cell and store it, all or nothing."""
    with warnings.catch_warnings():
        # How many iterations there are is the protocol's choice, and so is a fit without a ridge.
        warnings.simplefilter("ignore", nmd_lab.warnings.NotConvergedWarning)
        warnings.simplefilter("ignore", nmd_lab.warnings.OverfitWarning)
        warnings.simplefilter("ignore", nmd_lab.warnings.OutOfBoundsWarning)  # of noise
        answer = work(**cell.coordinates, **cell.options)
    scores = {name: _plain(score) for name, score in answer.items()}
    record = {**cell._asdict(), "scores": scores, "code": state_of_code()}
    unfinished = folder / f".{uuid.uuid4().hex}.partial"
    try:
        unfinished.write_text(json.dumps(record), "utf-8")
        unfinished.replace(path_of(folder, cell, work))
    finally:
        unfinished.unlink(missing_ok=True)


def _plain(score: Any) -> Any:
    """Return a score as JSON has it."""
    if isinstance(score, tuple):
        dims, values = score
        return {"dims": list(np.atleast_1d(dims)), "values": np.asarray(values).tolist()}
    return float(score)


@cache
def state_of_code() -> str:
    """Return a digest of the library's sources, so that a page can tell where numbers come from."""
    digest = hashlib.sha256()
    root = Path(nmd_lab.__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:10]


def as_dataset(cells: Sequence[Cell], scores: Sequence[Scores]) -> xr.Dataset:
    """Return scores by coordinates.

    Parameters
    ----------
    cells : sequence of Cell
        Where they stand.
    scores : sequence of dict
        As they are stored; arrays of one name may differ in length, and end in NaN then.
    """
    coordinates = {
        name: list(dict.fromkeys(cell.coordinates[name] for cell in cells))
        for name in cells[0].coordinates
    }
    outer = tuple(len(values) for values in coordinates.values())
    places = [
        tuple(values.index(cell.coordinates[name]) for name, values in coordinates.items())
        for cell in cells
    ]
    variables = {}
    for name in dict.fromkeys(name for each in scores for name in each):
        entries = [
            (p, *_array(each[name])) for p, each in zip(places, scores, strict=True) if name in each
        ]
        inner = np.max([values.shape for _, _, values in entries], axis=0).astype(int)
        whole = np.full((*outer, *inner), np.nan)
        for place, _, values in entries:
            whole[(*place, *(slice(size) for size in values.shape))] = values
        variables[name] = ((*coordinates, *entries[0][1]), whole)
    return xr.Dataset(variables, coordinates)


def _array(score: Any) -> tuple[list[str], np.ndarray]:
    """Return the inner dimensions and the values of a stored score."""
    if isinstance(score, dict):
        return score["dims"], np.asarray(score["values"], dtype=float)
    return [], np.asarray(score, dtype=float)
