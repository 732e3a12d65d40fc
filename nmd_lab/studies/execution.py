"""The fits of a study in one or several processes, and their results as one labelled Dataset."""

from __future__ import annotations

import json
import math
import os
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import xarray as xr
from joblib import Parallel, delayed, parallel_config
from numpy.linalg import LinAlgError

from nmd_lab._journal import Record
from nmd_lab._runtime.checks import sentence
from nmd_lab._runtime.machine import one_thread
from nmd_lab._runtime.progress import StopReason
from nmd_lab.data.labels import RESULT_ATTRIBUTE
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.netcdf import SCHEMA
from nmd_lab.result.posterior import Posterior
from nmd_lab.result.selection import SELECTION
from nmd_lab.sampling import sample

from .cell import Cell
from .methods import METHODS, Result, accepted
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

_compiled: set[str] = set()  # descriptions of the fits whose kernels this process has compiled


def run_cells(cells: Iterable[Cell], n_jobs: int, time_limit: float | None) -> Iterator[Record]:
    """Yield the record of each fit as soon as it is done, in processes of one thread each."""
    calls = (delayed(measure)(cell, time_limit) for cell in cells)
    watch = {"initializer": exit_with_parent, "initargs": (os.getpid(),)} if n_jobs > 1 else {}
    with parallel_config("loky", inner_max_num_threads=1, **watch):
        # The records of a batch would come together, at its end: so each fit is its own batch.
        yield from Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered")(calls)


def exit_with_parent(parent: int, interval: float = 0.5) -> None:
    """End this process when its parent does, so that a killed study leaves no process behind."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(interval)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def measure(cell: Cell, time_limit: float | None) -> Record:
    """Return the record of one fit; an error becomes a record, too."""
    limit = {} if time_limit is None else {"time_limit": time_limit}
    try:
        with one_thread(), warnings.catch_warnings(record=True) as caught:
            X = cell.X
            arguments = cell.arguments | accepted(cell.method, {"progress": False} | limit)
            compile_kernels(cell, X, arguments)
            caught.clear()
            warnings.simplefilter("always")
            cell.expect_noise()
            begin = time.perf_counter()
            fit = cell.method(X, **arguments)
            seconds = time.perf_counter() - begin
            stop_reason = getattr(fit, "stop_reason", StopReason("direct", "direct: a prediction"))
            if stop_reason.code == "interrupted":
                raise KeyboardInterrupt  # it has ended the fit early, which is no result
            scores = cell.scores(fit)
    except Exception as error:
        # The library raises these two before any work, where arguments do not fit X
        refused = isinstance(error, TypeError | ValueError) and not isinstance(error, LinAlgError)
        status = "left out" if refused else "failed"
        return {"key": cell.key, "status": status, "stop_reason": f"{status}: {sentence(error)}"}
    record: Record = {"key": cell.key, "status": "done", "stop_reason": str(stop_reason)}
    if limit and stop_reason.code == "time_limit":
        reason = f"time limit: not done after {time_limit:g} s"
        return record | {"status": "timed out", "stop_reason": reason}
    messages = dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in caught)
    record |= {"warnings": " | ".join(messages), "seconds": seconds}
    return record | _numbers(fit) | scores


def compile_kernels(cell: Cell, X: Any, arguments: Mapping[str, Any]) -> None:
    """Let Numba compile what a fit needs, once in a process, by a fit of few iterations."""
    few = accepted(cell.method, {"max_iter": 2, "draws": 2, "tune": 1})
    decisive = {name: v for name, v in cell.settings.items() if name not in ("rank", *few)}
    kind = type(X), getattr(X, "dtypes", ""), [*arguments]
    description = f"{cell.method} {kind} {decisive}"
    if cell.method in METHODS.values() and few and description not in _compiled:
        _compiled.add(description)
        with suppress(Exception):  # an error will show again in the fit itself
            cell.method(X, **{**arguments, **few})


def _numbers(fit: Result) -> Record:
    """Return iterations (0 for a direct method or a prediction), objective and what was chosen."""
    if not isinstance(fit, Decomposition):
        return {"n_iter": fit.parameters["sweeps"] if isinstance(fit, Posterior) else 0}
    values = fit.parameters | {"nonlinearity": repr(fit.nonlinearity), "loss": fit.loss.name}
    names = fit.parameters.get(SELECTION, {}).get("options", [])
    chosen = {f"{name}_chosen": values.get(name) for name in names}
    n_iter = 0 if fit.stop_reason.code == "direct" else fit.n_iter
    return {"n_iter": n_iter, "objective": fit.objective, **chosen}


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
