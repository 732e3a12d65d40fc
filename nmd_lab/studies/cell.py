"""The cells of a study: an array over the labels of all arguments that vary, and each of its fits.

A cell has data, a method and arguments, its fit in a process, and its errors.  The label of a value
is a number, a truth value or text.

Each cell that is finished is a JSON file in a folder, ``study.nc.fits`` for ``study.nc``, so that a
run that is killed keeps it.  A file is written as a whole, and through to the disk, before the next
one begins.
"""

from __future__ import annotations

import inspect
import itertools
import json
import math
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from inspect import Parameter, isroutine
from numbers import Real
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import xarray as xr
from joblib import Parallel, delayed, parallel_config
from numpy.linalg import LinAlgError
from numpy.typing import NDArray

from nmd_lab import baselines, metrics
from nmd_lab._runtime.checks import (
    check_number,
    check_rank,
    check_share,
    check_word,
    check_words,
    is_auto,
    sentence,
)
from nmd_lab._runtime.machine import one_thread, write_atomically
from nmd_lab._runtime.progress import StopReason
from nmd_lab.api.fits import complete
from nmd_lab.api.posteriors import sample
from nmd_lab.checkpoint import hash_of, stored_form
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.labels import RESULT_ATTRIBUTE
from nmd_lab.data.sparse import is_sparse
from nmd_lab.model.losses import as_loss
from nmd_lab.model.nonlinearities import as_nonlinearity
from nmd_lab.problem.columns import with_bounds
from nmd_lab.request.options import FitOptions, Options
from nmd_lab.request.settings import Compute
from nmd_lab.result.compare import CLASS_ERRORS, class_errors, error_of, interval_scores
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.entries import entries_at
from nmd_lab.result.netcdf import SCHEMA
from nmd_lab.result.posterior import Posterior
from nmd_lab.result.selection import SELECTION
from nmd_lab.warnings import NMDWarning, NotConvergedWarning, OutOfBoundsWarning

from .known_entries import (
    HIDE,
    NO_NOISE,
    NOISE,
    NOTHING_HIDDEN,
    Corruption,
    KnownEntries,
    hidden_entries,
    noisy_values,
    refuse_for_classes,
)

# Numbers and text by name, which JSON can hold; "key" is its own, and that of its file
Record = dict[str, Any]


def read_records(folder: Path) -> dict[str, Record]:
    """Return the records of a folder by key, the latest last; damaged ones are left out."""
    records, damaged = {}, 0
    paths = sorted(folder.glob("*.json"), key=lambda path: (path.stat().st_mtime_ns, path.name))
    for path in paths:
        try:
            record: Record = json.loads(path.read_bytes())
            records[record["key"]] = record
        except (IndexError, KeyError, RecursionError, TypeError, ValueError):
            damaged += 1
    if damaged:
        text = f"{damaged} damaged of {len(paths)} files: their work is done again."
        warnings.warn(f"{str(folder)!r} has {text}", NMDWarning, stacklevel=3)
    return records


def write_record(folder: Path, record: Record) -> None:
    """Write one record, through to the disk."""
    folder.mkdir(exist_ok=True)
    content = json.dumps(record).encode()
    write_atomically(folder / f"{record['key']}.json", lambda file: file.write(content))


Result = Decomposition | Posterior | NDArray[Any]  # numbers are a prediction of every entry
Method = Callable[..., Result]  # a function of X and further arguments

METHODS: dict[str, Method] = {"admm": complete, "sample": sample, "svd": baselines.truncated_svd}
METHODS |= {name: getattr(baselines, name) for name in baselines.__all__}

# Arguments that the study sets itself, or that a study cannot have
RESERVED = {
    *("X", "observed", "weights", "at_most", "at_least", "upper", "sample_dims"),
    *("random_state", "compute", "callback", "progress"),
    *("missing", "noise", "seed", "algorithm"),
}

# Arguments that a method ignores, or that a study has no use for
WITHOUT_EFFECT = {METHODS["mean_fill"]: {"rank"}}


def named_function(argument: str, value: Any, functions: Mapping[str, Any]) -> tuple[str, Any]:
    """Return name and function for a name, or for a function of the user."""
    if isinstance(value, str):
        check_word(argument, value, functions)
        return value, functions[value]
    if callable(value) and getattr(value, "__name__", "<lambda>") != "<lambda>":
        return value.__name__, value
    raise TypeError(
        f"{argument}={value!r} has no name: give one made by def, or one of {sorted(functions)}."
    )


def defaults(method: Method) -> dict[str, Any]:
    """Return the arguments that change the result, with their defaults; `rank` may have none."""
    excluded = RESERVED | WITHOUT_EFFECT.get(method, set())
    parameters = list(inspect.signature(method).parameters.values())[1:]
    named = [p for p in parameters if p.kind is not p.VAR_KEYWORD and p.name not in excluded]
    return {p.name: p.default for p in named}


def takes_numbers(method: Method) -> bool:
    """Return whether a method gets a table as standardised numbers, with indicators."""
    ours = method in METHODS.values()
    return method not in (complete, sample) if ours else bool(accepted(method, {"observed": None}))


def accepted(method: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the arguments that a method, or an error, takes."""
    parameters = inspect.signature(method).parameters
    return {name: value for name, value in arguments.items() if name in parameters}


Metric = Callable[..., float]

# Errors that have a name; "relative_error" is that of the Frobenius norm
METRICS: dict[str, Metric] = {n: getattr(metrics, n) for n in ("rmse", "mae", "relative_error")}
METRICS |= {f"relative_error_{n}": partial(metrics.relative_error, loss=n) for n in ("l1", "kl")}

# Numbers that only a posterior has, with their long names
POSTERIOR_SCORES = {
    "held_out_coverage_90": "fraction of held-out entries in their 90 % interval",
    "held_out_log_density": "mean log-density of held-out entries",
}


def titles(data: KnownEntries, metrics: Mapping[str, Metric]) -> dict[str, str]:
    """Return the errors that suit the data, with their names for people."""
    unit = " in standard deviations" if np.ndim(data.units.deviation) else ""
    short = {"rmse": f"RMSE{unit}", "mae": f"MAE{unit}"}
    found = {name: short.get(name, name.replace("_", " ")) for name in metrics}
    classes = {error_of(column) for column in data.classes}
    of_classes = {name: title for name, title in CLASS_ERRORS.items() if name in classes}
    return ({} if of_classes and not data.numbers.any() else found) | of_classes


@dataclass(frozen=True)
class Cell:
    """One cell of a study, with everything that is needed to repeat its fit by hand.

    Attributes
    ----------
    data : KnownEntries
        Data, which all cells share.
    metrics : dict of str to callable
        Errors by name, which all cells share.
    method : callable
        Function that makes the fit.
    settings : dict
        Arguments of the method that the study sets.
    missing, noise : Corruption
        What is hidden, and the noise.
    seed : int
        Seed of both, and of the fit.
    """

    data: KnownEntries
    metrics: Mapping[str, Metric]
    method: Method
    settings: dict[str, Any]
    missing: Corruption
    noise: Corruption
    seed: int

    @cached_property
    def key(self) -> str:
        """Hash of everything that decides the record of the fit.

        Cells that differ only in arguments that their method ignores have the same one.
        """
        arguments = defaults(self.method) | self.settings
        content = {
            "X": self.data.fingerprint,
            "metrics": [*self.metrics],
            "method": f"{self.method.__module__}.{self.method.__qualname__}",
            "arguments": {name: stored_form(name, v) for name, v in arguments.items()},
            "missing": self.missing if self.missing.level else NOTHING_HIDDEN,
            "noise": self.noise if self.noise.level else NO_NOISE,
            "seed": self.seed,
        }
        return hash_of(json.dumps(content, sort_keys=True))

    @cached_property
    def hidden(self) -> NDArray[np.bool_]:
        """Mask of the known entries, row by row, that are hidden from the fit."""
        return hidden_entries(self.data, self.missing, self.seed)

    @cached_property
    def values(self) -> FloatArray:
        """Known entries with the noise of the cell, row by row."""
        return noisy_values(self.data, self.noise, self.seed)

    @property
    def X(self) -> Any:
        """Data of the fit, of the type of X: NaN for hidden entries, or nothing that is stored."""
        encoded = takes_numbers(self.method)
        values = self.data.units.standard(self.values) if encoded else self.values
        return self.data.matrix(values, ~self.hidden, encoded=encoded)

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of the method other than X."""
        arguments = dict(self.data.arguments)
        arguments |= {"random_state": self.seed, "compute": Compute(threads=1)}
        if self.method not in METHODS.values() and takes_numbers(self.method):
            is_dense = not is_sparse(self.data.X)
            arguments["observed"] = ~np.isnan(np.asarray(self.X)) if is_dense else None
        arguments = self.settings | accepted(self.method, arguments)
        if arguments.get("nonlinearity") == "minmax":  # noise may exceed the bounds of X itself
            arguments["nonlinearity"] = with_bounds("minmax", self.data.observations)
        return arguments

    def expect_noise(self) -> None:
        """Ignore, from here on, the warning that a study has caused itself."""
        if self.noise.level > 0:
            warnings.simplefilter("ignore", OutOfBoundsWarning)

    def fit(self, **options: Any) -> Result:
        """Return the fit, made with one thread as in the study."""
        with one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConvergedWarning)  # stop_reason tells the same
            self.expect_noise()
            return self.method(self.X, **self.arguments, **options)

    def predict(self, fit: Result) -> FloatArray:
        """Return the values of a fit, or the means of a posterior, at the known entries."""
        rows, columns, _ = self.data.entries
        if isinstance(fit, Decomposition | Posterior):
            model = np.asarray(fit.predict(entries_at(rows, columns)))
        else:
            model = np.reshape(fit, self.data.observations.shape)[rows, columns]
        return self.data.units.restore(model) if takes_numbers(self.method) else model

    def scores(self, fit: Result) -> dict[str, float]:
        """Return the errors of a fit, by their names in the results."""
        data, hidden, model = self.data, self.hidden, self.predict(fit)
        weights, unit = data.observations.weights, data.units.deviation
        of_entries = class_errors(fit, data.observations, model)
        if isinstance(fit, Posterior):
            at = hidden & data.numbers
            of_entries |= interval_scores(fit, data.observations, self.values, at, unit)
        sets = {"held_out": (self.values, hidden), "observed": (self.values, ~hidden)}
        sets["clean"] = data.entries.values, np.ones_like(hidden)
        scores: dict[str, float] = {}
        for entry_set, (values, mask) in sets.items():
            at = data.numbers & mask
            pair = (values / unit)[at], (model / unit)[at]
            for name, metric in self.metrics.items():
                weighted = {} if weights is None else accepted(metric, {"weights": weights[at]})
                error = float(metric(*pair, **weighted)) if at.any() else math.nan
                scores[f"{entry_set}_{name}"] = error
            for name, each in of_entries.items():
                there = data.observations.exact & mask & ~np.isnan(each)
                w = None if weights is None else weights[there]
                mean = float(np.average(each[there], weights=w)) if there.any() else math.nan
                scores[f"{entry_set}_{name}"] = mean
        return scores


# Numbers of a fit other than its errors, with their long names
NUMBERS = {
    "objective": "objective",
    "n_iter": "iterations",
    "seconds": "time in seconds",
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
    n_iter = 0 if fit.stop_reason.code == "direct" else fit._n_iter
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


Axis = tuple[dict[Any, Any], bool]  # values of an argument by label, and whether it is a dimension
Array = TypeVar("Array", xr.DataArray, xr.Dataset)

ALGORITHM = "algorithm"  # dimension of methods; ``sel(method=...)`` means another thing in xarray
FIRST = (ALGORITHM, "nonlinearity", "loss", "rank", "alpha", "offset_alpha")  # in this order
CONDITIONS = ("missing", "noise", "seed")  # dimensions that describe the data, not the model

# Checks of the arguments that are a model, and may be "auto"
CHECKS: dict[str, Any] = {"nonlinearity": as_nonlinearity, "loss": as_loss, "rank": check_rank}
KINDS = {"missing": [*HIDE], "noise": [*NOISE]}  # the first one is the default


def make_grid(data: KnownEntries, metrics: Any, arguments: dict[str, Any]) -> xr.DataArray:
    """Return the cells of a study, after the checks of its arguments.

    The attributes are the labels of constants, and the arguments that each method ignores.
    """
    listed = metrics if metrics and isinstance(metrics, list | tuple) else [metrics]
    errors = dict(named_function("metrics", metric, METRICS) for metric in listed)
    order = [name for name in dict.fromkeys([*FIRST, *arguments]) if name in arguments]
    axes = {name: _axis(name, arguments[name]) for name in order}
    for rank in set(axes["rank"][0].values()) - {"auto"} if "rank" in axes else ():
        check_rank(rank, data.observations.shape)
    if data.classes:
        refuse_for_classes([*axes["missing"][0].values(), *axes["noise"][0].values()])
    cells = []
    for values in itertools.product(*(by_label.values() for by_label, _ in axes.values())):
        settings = dict(zip(axes, values, strict=True))
        method, *condition = (settings.pop(name) for name in (ALGORITHM, *CONDITIONS))
        settings = {name: v for name, v in settings.items() if name in defaults(method)}
        cells.append(Cell(data, errors, method, settings, *condition))
    dims = {name: by_label for name, (by_label, varied) in axes.items() if varied}
    models = [name for name in dims if name not in (ALGORITHM, *CONDITIONS)]
    attrs = {
        "constants": {name: next(iter(axes[name][0])) for name in axes if name not in dims},
        "ignored": {
            label: [name for name in models if name not in defaults(method)]
            for label, method in axes[ALGORITHM][0].items()
        },
    }
    array = np.array(cells, object).reshape([len(by_label) for by_label in dims.values()])
    return xr.DataArray(array, _coordinates(dims), [*dims], attrs=attrs)


def _coordinates(dims: dict[str, dict[Any, Any]]) -> dict[str, Any]:
    """Return the coordinates of dimensions; kind and level where a label has both."""
    coords: dict[str, Any] = {}
    for name, by_label in dims.items():
        is_text = any(isinstance(label, str) for label in by_label)
        coords[name] = np.array([*by_label], dtype=object if is_text else None)
        if is_text and name in KINDS:
            kinds, levels = zip(*by_label.values(), strict=True)
            coords[f"{name}_kind"] = name, np.array(kinds, object)
            coords[f"{name}_level"] = name, list(levels)
    return coords


def select(array: Array, labels: Mapping[str, Any]) -> Array:
    """Return the cells with the given label, or list of labels, of dimensions, which all stay."""
    check_words("dimension", labels, map(str, array.dims))
    for dim, chosen in labels.items():
        listed = chosen if isinstance(chosen, list | tuple) else [chosen]
        available = array[dim].values.tolist()
        # A number is its text next to words such as "auto".
        listed = [text if (text := _as_text(each)) in available else each for each in listed]
        check_words(dim, listed, available)
        array = array.isel({dim: [available.index(each) for each in listed]})
    return array


def check_names(method: Any, arguments: dict[str, Any], others: Iterable[str]) -> None:
    """Refuse an argument that no method takes, and a method that lacks one."""
    methods, _ = _axis(ALGORITHM, method)
    taken = {label: defaults(function) for label, function in methods.items()}
    check_words("argument", arguments, [*dict.fromkeys(itertools.chain(*taken.values())), *others])
    for label, parameters in taken.items():
        for name, default in parameters.items():
            if default is Parameter.empty and name not in arguments:
                raise TypeError(f"{name} is not given: {label} needs it.")


def _axis(name: str, argument: Any) -> Axis:
    """Return the values of an argument by their labels; a list, range or 1-D array has several."""
    if name in KINDS:
        return _corruptions(name, argument)
    is_vector = isinstance(argument, np.ndarray) and argument.ndim == 1
    varied = isinstance(argument, list | range) or is_vector
    values = list(argument) if varied else [argument]
    if name == ALGORITHM:
        return _by_label(name, [named_function("method", v, METHODS) for v in values]), varied
    values = [_checked(name, v) for v in values]
    booleans = {isinstance(v, bool) for v in values}
    plain = all(isinstance(v, Real) for v in values) and len(booleans) == 1
    return _by_label(name, [(v if plain else _as_text(v), v) for v in values]), varied


def _corruptions(name: str, argument: Any) -> Axis:
    """Return the values of `missing` or `noise`; levels without a kind are of the first kind."""
    argument = 0.0 if argument is None else argument
    levels_of = argument if isinstance(argument, Mapping) else {KINDS[name][0]: argument}
    check_words(name, levels_of, KINDS[name])
    values = [
        Corruption(kind, _checked_level(name, kind, level))
        for kind, levels in levels_of.items()
        for level in np.ravel(levels).tolist()
    ]
    several = len(levels_of) > 1
    pairs = [(f"{v.kind} {v.level:g}" if several else v.level, v) for v in values]
    return _by_label(name, pairs), several or any(map(np.ndim, levels_of.values()))


def _by_label(name: str, pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return values by their labels; refuse none, and equal ones."""
    labels, by_label = [label for label, _ in pairs], dict(pairs)
    if not pairs:
        raise ValueError(f"{name}=[] is empty: give at least one value.")
    if len(by_label) < len(pairs):
        raise ValueError(f"{name}={labels} has a value twice: give each once.")
    return by_label


def _checked(name: str, value: Any) -> Any:
    """Return one value of an argument in the form that the study keeps, if it makes sense."""
    if name in CHECKS and not is_auto(value):
        checked = CHECKS[name](value)
        return value if isinstance(value, str) else checked
    if name in FitOptions.__annotations__:
        Options.of({name: value})
    if any(map(isroutine, (value, *getattr(value, "settings", ())))):
        raise TypeError(f"{name}={value!r} cannot be kept: give numbers, text, arrays.")
    return value.item() if isinstance(value, np.generic) else value


def _checked_level(name: str, kind: str, level: Any) -> float:
    """Return one level of one kind as a float, if it is within its bounds."""
    if name == "missing" or kind in ("salt_and_pepper", "outliers"):
        return check_share(name, level, one=name == "noise")
    return check_number(name, level, 0, above=0 if kind == "poisson" else None)


def _as_text(value: Any) -> str:
    """Return the label of a value that is not a number."""
    return str(value) if isinstance(value, str | np.generic) else repr(value)
