"""Results as labelled Datasets and as NetCDF files, and back; the provenance of a result.

NetCDF stores only numbers and text.  Dates, durations and the types of text are stored as numbers
or text, and a MultiIndex is stored as its levels.  The attribute ``nmd_lab`` (JSON) records the
original types.  Nothing is pickled, and reading runs no code from the file.

HDF5 may hang or return wrong numbers if a file is damaged, and its own checksums do not cover names
and dimensions.  Therefore a file ends with the hash of all its other bytes, behind the end of HDF5,
where other programs do not read, and HDF5 gets no byte before this hash is right.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pandas as pd
import xarray as xr
from xarray.indexes import PandasMultiIndex

from nmd_lab._runtime.checks import needs_library
from nmd_lab._runtime.compiler import is_ours
from nmd_lab._runtime.machine import check_target, write_atomically
from nmd_lab._runtime.progress import StopReason
from nmd_lab._version import __version__
from nmd_lab.data.labels import COMPONENT, RESULT_ATTRIBUTE, Labels
from nmd_lab.data.readers import errors_of
from nmd_lab.data.typed_table import TypedTable
from nmd_lab.data.units import Facts
from nmd_lab.model.column_model import ColumnModel, make_column_model
from nmd_lab.model.fitted_values import Offsets
from nmd_lab.model.losses import LOSSES, Loss
from nmd_lab.model.model import Model
from nmd_lab.model.nonlinearities import NONLINEARITY_CLASSES, Nonlinearity

from .draws import CHAIN, DRAW, JOINT, LIMITS, PLACES, PROBES, SWEEP, TAKEN, TRACE, VARIABLES
from .selection import trials_of

Known = tuple[type[Nonlinearity | Loss], ...]
Description = dict[str, Any]

SCHEMA = 3
"""Version of the layout of Datasets and files."""

POSTERIOR = "posterior"
"""Value of "kind" in the description of a posterior."""

ITERATION = "iteration"
OFFSETS = ("row_offsets", "column_offsets")
MODEL_INDEX = "part"
"""Name of the variable with the position of the model of each column, or of each entry."""


def dataset_of_fit(fit: Any) -> xr.Dataset:
    """Return all fields of a fit as one Dataset; ``attrs["nmd_lab"]`` has plain values, as JSON."""
    taken = {"W", "H", COMPONENT, MODEL_INDEX, *OFFSETS, *map(str, fit.history.variables)}
    renamed = fit._labels.clashes(taken)
    labels = fit._labels.rename(renamed)
    W, H = fit._factors
    factors = {"W": labels.label_rows(W), "H": labels.label_columns(H)}
    dataset = xr.Dataset(factors).merge(fit.history)
    rows, columns = labels.rows, labels.columns
    index: Any = fit._model.model_index
    of_index = columns if np.ndim(index) == 1 else (*rows, *columns)
    arrays = (*fit.offsets[1:], index)
    for name, array, dims in zip(
        (*OFFSETS, MODEL_INDEX), arrays, (rows, columns, of_index), strict=True
    ):
        if array is not None:
            dataset[name] = labels.labelled(array, dims).variable
    starts = fit.parameters.get("starts", [])  # JSON would lose the codes of their stop reasons
    codes = [StopReason.of(start["stop_reason"]).code for start in starts]
    more = {"start_codes": codes, "mean_offset": fit.offsets.mean}
    return _described(fit, dataset, labels, renamed, more)


def dataset_of_posterior(posterior: Any) -> xr.Dataset:
    """Return all fields of a posterior as one Dataset, as `dataset_of_fit`."""
    renamed = posterior._labels.clashes(TAKEN)
    labels = posterior._labels.rename(renamed)
    # As in memory, where a row of H is a column of X.
    H = posterior.draws["H"].transpose(CHAIN, DRAW, *labels.columns, COMPONENT)
    dataset = posterior.draws.assign(H=H).merge(posterior.trace)
    for more in (posterior._limits, posterior._joint):
        dataset = dataset if more is None else dataset.merge(more)
    more = {name: getattr(posterior, name) for name in ("noise", "mean")}
    return _described(posterior, dataset, labels, renamed, more | {"kind": POSTERIOR})


def _described(
    result: Any, dataset: xr.Dataset, labels: Labels, renamed: dict[str, str], more: Description
) -> xr.Dataset:
    """Return a Dataset with the description of its result; `labels` have the names of `renamed`."""
    description = {
        "schema": SCHEMA,
        "models": [_of_model(kind) for kind in result._model.column_models],
        "is_mixed": result._model.is_mixed,
        "table": None if labels.table is None else labels.table.describe(),
        "stop_reason": str(result.stop_reason),
        "stop_code": result.stop_reason.code,
        "parameters": result.parameters,
        "dims": labels.dims,
        "rows": labels.rows,
        "name": labels.name,
        "attrs": labels.attrs,
        "renamed": {new: old for old, new in renamed.items()},
        **more,
    }
    dataset = dataset.assign_coords(labels.coords.coords)
    text = json.dumps(description, default=_as_json, skipkeys=True)
    return dataset.assign_attrs({RESULT_ATTRIBUTE: text})


def _of_model(kind: ColumnModel) -> Description:
    """Return the model of a column for JSON."""
    units = [float(kind.centre), float(kind.size), float(kind.weight)]
    both = {"nonlinearity": kind.nonlinearity, "loss": kind.loss}
    return {"units": units} | {
        what: {"name": one.name, "parameters": list(one.settings), "ours": is_ours(type(one))}
        for what, one in both.items()
    }


def fields_of_fit(dataset: xr.Dataset, description: Description, known: Known) -> dict[str, Any]:
    """Return the arguments of `Decomposition._from_matrices` from the Dataset of a fit."""
    common = _common_fields(dataset, (COMPONENT, ITERATION), description, known)
    parameters, rank = common["parameters"], dataset.sizes[COMPONENT]
    trials_of(parameters)  # raises an error if they are damaged
    for start, code in zip(parameters.get("starts", []), description["start_codes"], strict=True):
        start["stop_reason"] = StopReason.read(code, start["stop_reason"])
    offsets = (dataset[name].values.ravel() if name in dataset else None for name in OFFSETS)
    return common | {
        "W": dataset["W"].values.reshape(-1, rank),
        "H": dataset["H"].values.reshape(rank, -1),
        "history": {k: v.values for k, v in dataset.data_vars.items() if v.dims == (ITERATION,)},
        "offsets": Offsets(description["mean_offset"], *offsets),
    }


def fields_of_posterior(
    dataset: xr.Dataset, description: Description, known: Known
) -> dict[str, Any]:
    """Return the fields of a `Posterior` from its Dataset."""
    counts = (CHAIN, DRAW, SWEEP, COMPONENT, *PROBES, *PLACES)
    common = _common_fields(dataset, counts, description, known)
    noise = description["noise"]
    plain = dataset.drop_attrs(deep=False)
    draws = plain[[name for name in VARIABLES if name in ("W", "H", "rho") or name in dataset]]
    draws["H"] = draws["H"].transpose(CHAIN, DRAW, COMPONENT, ...)
    trace = plain[[name for name in TRACE if name in dataset]]
    return common | {
        "_limits": plain[list(LIMITS)] if LIMITS[0] in plain else None,
        "_joint": plain[list(JOINT)] if JOINT[0] in plain else None,
        "noise": noise if isinstance(noise, str) else tuple(noise),
        "draws": draws,
        "trace": trace.drop_vars(set(trace.coords) - {CHAIN, SWEEP, *PROBES}),
        "mean": description["mean"],
    }


def _common_fields(
    dataset: xr.Dataset, counts: Iterable[str], description: Description, known: Known
) -> dict[str, Any]:
    """Return the fields that every result has; `counts` are no labels of X."""
    coords, table = dataset.drop_vars(counts, errors="ignore").coords, description["table"]
    labels = Labels(
        dims=tuple(description["dims"]),
        shape=tuple(coords.sizes[dim] for dim in description["dims"]),
        rows=tuple(description["rows"]),
        coords=xr.Dataset().assign_coords(coords),
        name=description["name"],
        attrs=description["attrs"],
        table=None if table is None else TypedTable.read(table),
    ).rename(description["renamed"])
    column_models = tuple(_model_of(each, known) for each in description["models"])
    index: Any = None
    if description["is_mixed"]:
        index = np.arange(len(column_models))  # of a posterior, which has one for each column
        if MODEL_INDEX in dataset.variables:
            index = dataset[MODEL_INDEX].values.astype(np.intp)
            of_columns = index.ndim == len(labels.columns)
            index = index.ravel() if of_columns else index.reshape(labels.matrix_shape)
    return {
        "_labels": labels,
        "_model": Model(column_models, index),
        "stop_reason": StopReason.read(description["stop_code"], description["stop_reason"]),
        "parameters": description["parameters"],
    }


def _model_of(about: Description, known: Known) -> ColumnModel:
    """Return the model of a column from what `_of_model` returned."""
    found = []
    for what, ours in (("nonlinearity", NONLINEARITY_CLASSES), ("loss", LOSSES)):
        one = about[what]
        classes: dict[str, Any] = ours if one["ours"] else {cls.name: cls for cls in known}
        if one["name"] not in classes:
            remedy = "install the version that made it"
            if not one["ours"]:
                remedy = "give known=[its class], or known=[nonlinearities.Smooth(f, name=...)]"
            raise UnknownContentError(
                f"The fit uses the {what} {one['name']!r}, which is unknown: {remedy}."
            )
        found.append(classes[one["name"]](*one["parameters"]))
    centre, size, weight = about["units"]
    return make_column_model(*found)._replace(centre=centre, size=size, weight=weight)


class UnknownContentError(ValueError):
    """Raised for a model whose class is not known, and for the layout of another version."""


def description_in(dataset: xr.Dataset, source: str = "dataset") -> Description:
    """Return the description in a Dataset; its layout must be that of this version."""
    description: Description = json.loads(dataset.attrs[RESULT_ATTRIBUTE])
    layout = description["schema"]
    if layout != SCHEMA:
        remedy = "install a newer one" if layout > SCHEMA else "fit again, or install an older one"
        raise UnknownContentError(
            f"{source} has the layout {layout}, this version of nmd_lab reads {SCHEMA}: {remedy}."
        )
    return description


def write(dataset: xr.Dataset, path: str | os.PathLike[str]) -> None:
    """Write a Dataset to a file; if writing fails, an older file of this name is kept."""
    h5netcdf = _library()
    path = check_target(path)
    encoded = _encode(dataset)
    # In memory, because HDF5 ends the process if it cannot write the last bytes of a file.
    content = io.BytesIO()
    with h5netcdf.File(content, "w") as file:
        encoded.dump_to_store(xr.backends.H5NetCDFStore(file))
    parts = content.getbuffer(), _seal(content.getbuffer())
    write_atomically(path, lambda file: file.writelines(parts))


def read(path: str | os.PathLike[str]) -> xr.Dataset:
    """Return the Dataset of a file from `write`."""
    _library()
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"path={str(path)!r} is not a file: check the name.")
    if not os.access(path, os.R_OK):
        raise PermissionError(f"path={str(path)!r} may not be read: change its permissions.")
    with errors_of(path):
        content, size = path.read_bytes(), len(_seal(b""))
        if content[-size:] != _seal(memoryview(content)[:-size]):
            raise ValueError("it is damaged, or no file that this version of nmd_lab saved")
        with xr.open_dataset(io.BytesIO(content), engine="h5netcdf", decode_cf=False) as file:
            encoded = file.load()
    description = description_in(encoded, f"path={str(path)!r}")
    with errors_of(path):
        return _decode(description, encoded)


def _seal(content: Any) -> bytes:
    """Return the last bytes of a file with this content."""
    return b"nmd_lab" + hashlib.sha256(content).digest()


def _library() -> Any:
    """Return h5netcdf."""
    with needs_library("Saving and loading need h5netcdf: pip install h5netcdf h5py."):
        import h5netcdf
    return h5netcdf


_UNITS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
"""Units of time in NetCDF, by NumPy's abbreviation."""


def _encode(dataset: xr.Dataset) -> xr.Dataset:
    """Return the same Dataset in numbers and text, with a description of the original types."""
    about: dict[str, dict[str, Any]] = {"variables": {}, "levels": {}, "attrs": {}}
    encoded: dict[str, xr.Variable] = {}
    for hashable, variable in dataset.variables.items():
        name = str(hashable)
        about["attrs"][name] = variable.attrs
        labels = dataset.indexes.get(name)
        if isinstance(labels, pd.MultiIndex):
            if hashable == variable.dims[0]:
                about["levels"][name] = _first_places(labels)
                continue
            labels = labels.get_level_values(name)
        # The variable of an index of text, or of dates with a time zone, does not have its type.
        plain = isinstance(variable.dtype, np.dtype) and variable.dtype.kind != "O"
        exact: Any = variable.values if plain or labels is None else labels
        try:
            array, kind = _plain(exact)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"Coordinate {name!r} of dtype {exact.dtype} holds what a file cannot hold: "
                "convert it, for example to text."
            ) from error
        about["variables"][name] = {"kind": kind, "coordinate": name in dataset.coords}
        encoded[name] = xr.Variable(variable.dims, array, _units(kind), {"_FillValue": None})
    header = json.loads(dataset.attrs[RESULT_ATTRIBUTE]) | {"file": about}
    return xr.Dataset(encoded, attrs={RESULT_ATTRIBUTE: json.dumps(header, default=_as_json)})


def _decode(header: dict[str, Any], encoded: xr.Dataset) -> xr.Dataset:
    """Return the Dataset that `_encode` was given, and of which the header tells the types."""
    about = header.pop("file")
    entries = about["variables"]
    exact = {name: _restored(encoded[name].values, e["kind"]) for name, e in entries.items()}
    variables = {name: (encoded[name].dims, values) for name, values in exact.items()}
    dataset = xr.Dataset(variables, attrs={RESULT_ATTRIBUTE: json.dumps(header)})
    dataset = dataset.set_coords([name for name, e in entries.items() if e["coordinate"]])
    for dim, orders in about["levels"].items():
        levels = {name: (exact[name], order) for name, order in orders.items()}
        dataset = dataset.assign_coords(_multi_index(dim, levels))
    for name, attrs in about["attrs"].items():
        dataset[name].attrs = attrs
    return dataset


def _first_places(index: pd.MultiIndex) -> dict[str, list[int]]:
    """Return where each value of each level comes first, in the order of the level.

    Unstacking follows this order, for example latitudes from north to south.
    """
    found, index = {}, index.remove_unused_levels()
    for name, codes in zip(index.names, index.codes, strict=True):
        present, first = np.unique(codes, return_index=True)
        found[str(name)] = first[present >= 0].tolist()
    return found


def _multi_index(dim: str, levels: dict[str, tuple[Any, list[int]]]) -> xr.Coordinates:
    """Return the coordinates of a MultiIndex, given the labels and first places of each level."""
    level_values, codes, dtypes = [], [], {}
    for name, (values, first) in levels.items():
        labels = pd.Index(values)
        level = labels[first]
        level_values.append(level)
        codes.append(level.get_indexer(labels))  # -1 for a missing label, as in pandas
        dtypes[name] = getattr(values, "dtype", None) if isinstance(values, np.ndarray) else object
    index = PandasMultiIndex(
        pd.MultiIndex(level_values, codes, names=list(levels)), dim, level_coords_dtype=dtypes
    )
    return xr.Coordinates(index.create_variables(), dict.fromkeys([dim, *levels], index))


def _plain(values: Any) -> tuple[Any, str]:
    """Return an array of numbers or text, and the type that `_restored` needs."""
    kind = str(values.dtype)
    if isinstance(values.dtype, pd.DatetimeTZDtype):
        return values.asi8, kind
    if isinstance(values.dtype, pd.StringDtype) or values.dtype.kind in "OUT":
        return _plain_text(np.asarray(values, dtype=object), kind)
    if not isinstance(values.dtype, np.dtype) or values.dtype.kind not in "biufmM":
        raise TypeError(f"dtype {kind}")
    if values.dtype.kind in "mM":
        return values.view(np.int64), kind
    return values.astype(np.float32) if kind == "float16" else values, kind


def _plain_text(values: Any, kind: str) -> tuple[Any, str]:
    """Return text and its type; each item is JSON if a file cannot hold the text itself."""
    items = values.ravel().tolist()
    if not all(type(item) in (str, int, float, bool, type(None)) for item in items):
        raise TypeError("items that are neither text nor numbers")
    if all(type(item) is str and item.isprintable() for item in items):
        return values, kind
    texts = np.array([json.dumps(item) for item in items], dtype=object)
    return texts.reshape(values.shape), f"json {kind}"


def _restored(array: Any, kind: str) -> Any:
    """Return the values of an array and type from `_plain`."""
    if array.dtype.kind in "OUT":
        items = array.ravel().tolist()
        if kind.startswith("json "):
            items, kind = [json.loads(item) for item in items], kind.removeprefix("json ")
        array = np.array(items, dtype=object).reshape(array.shape)
    if kind.startswith("StringDType"):
        return array.astype(np.dtypes.StringDType())
    dtype = pd.api.types.pandas_dtype(kind)
    if isinstance(dtype, np.dtype):
        return array.view(dtype) if dtype.kind in "mM" else array.astype(dtype)
    return pd.Index(array, dtype=dtype)


def _units(kind: str) -> dict[str, Any]:
    """Return the attributes from which other programs recognise dates and durations."""
    name, _, unit = kind.removesuffix("]").partition("[")
    if name not in ("datetime64", "timedelta64"):
        return {}
    units = _UNITS[unit.split(",")[0]]
    return {"units": f"{units} since 1970-01-01" if name == "datetime64" else units}


def _as_json(value: Any) -> Any:
    """Return an attribute in a type that JSON has."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


def provenance(facts: Facts, dtype: np.dtype[Any], fingerprint: str) -> dict[str, Any]:
    """Return a description of data and software, in numbers and text."""
    return {
        "shape": list(facts.shape),
        "n_observed": facts.n_observed,
        "dtype": str(dtype),
        "observations_hash": fingerprint,
        "versions": {
            "nmd_lab": __version__,
            "numpy": np.__version__,
            "numba": numba.__version__,
            "xarray": xr.__version__,
            "python": platform.python_version(),
        },
    }
