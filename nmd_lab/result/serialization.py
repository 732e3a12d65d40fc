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
from xarray.indexes import PandasIndex, PandasMultiIndex

from nmd_lab._runtime.compiler import is_ours
from nmd_lab._runtime.disk import check_target, write_atomically
from nmd_lab._runtime.progress import StopReason
from nmd_lab._version import __version__
from nmd_lab.data.labels import COMPONENT, RESULT_ATTRIBUTE, Labels
from nmd_lab.data.observations import Observations
from nmd_lab.data.readers import errors_of
from nmd_lab.data.typed_table import TypedTable
from nmd_lab.model.column_model import ColumnModel, make_column_model
from nmd_lab.model.fitted_values import Offsets
from nmd_lab.model.losses import LOSSES, Loss
from nmd_lab.model.mixed import Mixed
from nmd_lab.model.model import Model
from nmd_lab.model.nonlinearities import NONLINEARITY_CLASSES, Nonlinearity

from .selection import trials_of

Form = Nonlinearity | Loss
Known = tuple[type[Form], ...]
Description = dict[str, Any]


ITERATION = "iteration"
OFFSET_NAMES = ("row_offsets", "column_offsets")
KIND = "part"
"""Name of the variable with the kind of each column, or of each entry."""


def to_dataset(fit: Any) -> xr.Dataset:
    """Return all fields as one Dataset; ``attrs["nmd_lab"]`` has the plain values, as JSON."""
    history, labels, offsets = fit.history, fit._labels, fit.offsets
    starts = fit.parameters.get("starts", [])  # JSON would lose the codes of their stop reasons
    taken = {"W", "H", COMPONENT, KIND, *OFFSET_NAMES, *map(str, history.variables)}
    renamed = labels.clashes(taken)
    labels = labels.rename(renamed)
    W, H = labels.label_factors(*fit._factors)
    dataset = xr.Dataset({"W": W, "H": H}).merge(history)
    for name, factor, values in zip(OFFSET_NAMES, (W, H), offsets[1:], strict=True):
        if values is not None:
            dims = tuple(dim for dim in factor.dims if dim != COMPONENT)
            dataset[name] = dims, values.reshape([factor.sizes[dim] for dim in dims])
    if fit._kinds is not None:
        dataset[KIND] = which_kind(fit._kinds, labels)
    return described(
        fit,
        dataset,
        labels,
        renamed,
        n_iter=history.sizes[ITERATION],
        seconds=float(history["seconds"][-1]),
        start_codes=[StopReason.of(start["stop_reason"]).code for start in starts],
        mean_offset=offsets.mean,
    )


def fields_of_fit(dataset: xr.Dataset, description: Description, known: Known) -> dict[str, Any]:
    """Return the arguments of `Decomposition._from_matrices` from a Dataset of `to_dataset`."""
    history = {name: v.values for name, v in dataset.data_vars.items() if v.dims == (ITERATION,)}
    common = fields_of_result(dataset, [COMPONENT, ITERATION], description, known)
    trials_of(description["parameters"])  # raises an error if they are damaged
    rank = dataset.sizes[COMPONENT]
    return common | {
        "W": dataset["W"].values.reshape(-1, rank),
        "H": dataset["H"].values.reshape(rank, -1),
        "history": history,
        "parameters": _with_start_codes(description),
        "offsets": Offsets(
            description["mean_offset"],
            *(dataset[name].values.ravel() if name in dataset else None for name in OFFSET_NAMES),
        ),
    }


def described(
    result: Any, dataset: xr.Dataset, labels: Labels, renamed: dict[str, str], **more: Any
) -> xr.Dataset:
    """Return a Dataset with the description of its result; `labels` have the names of `renamed`."""
    kinds = {} if result._kinds is None else {"parts": describe_kinds(result._kinds)}
    description = {
        "schema": SCHEMA,
        "nonlinearity": describe(result.nonlinearity),
        "loss": describe(result.loss) | kinds,
        "table": None if labels.table is None else labels.table.describe(),
        "stop_reason": str(result.stop_reason),
        "stop_code": result.stop_reason.code,
        "parameters": result.parameters,
        "dims": labels.dims,
        "rows": labels.rows,
        "name": labels.name,
        "attrs": writable(labels.attrs),
        "renamed": {new: old for old, new in renamed.items()},
        **more,
    }
    dataset = dataset.assign_coords(labels.coords.coords)
    return dataset.assign_attrs({RESULT_ATTRIBUTE: json.dumps(description)})


def fields_of_result(
    dataset: xr.Dataset, counts: Iterable[str], description: Description, known: Known
) -> dict[str, Any]:
    """Return the fields that every result has; `counts` are no labels of X."""
    coords, table = dataset.drop_vars(counts, errors="ignore").coords, description.get("table")
    labels = Labels(
        dims=tuple(description["dims"]),
        shape=tuple(coords.sizes[dim] for dim in description["dims"]),
        rows=tuple(description["rows"]),
        coords=xr.Dataset().assign_coords(coords),
        name=description["name"],
        attrs=description["attrs"],
        table=None if table is None else TypedTable.read(table),
    ).rename(description["renamed"])
    nonlinearity, loss, kinds = _models(dataset, description, labels, known)
    return {
        "labels": labels,
        "kinds": kinds,
        "nonlinearity": nonlinearity,
        "loss": loss,
        "stop_reason": StopReason.read(description["stop_code"], description["stop_reason"]),
        "parameters": description["parameters"],
    }


def _models(
    dataset: xr.Dataset, description: Description, labels: Labels, known: Known
) -> tuple[Any, Any, Model | None]:
    """Return nonlinearity and loss, and the kinds of a mixed table."""
    if "parts" in description["loss"]:
        kinds = kinds_from(description["loss"]["parts"], known)
        which = np.arange(len(kinds))  # in a posterior, which has one for each column
        if KIND in dataset.variables:
            which = dataset[KIND].values.astype(np.intp)
            of_entries = which.ndim > len(labels.columns)
            which = labels.flatten(which) if of_entries else which.ravel()
        model = Model(kinds, which)
        return *model.shown, model
    return (
        model_from("nonlinearity", description, NONLINEARITY_CLASSES, known),
        model_from("loss", description, LOSSES, known),
        None,
    )


def _with_start_codes(description: Description) -> dict[str, Any]:
    """Return the parameters of a fit, with the codes of its starts."""
    parameters: dict[str, Any] = description["parameters"]
    if "starts" not in parameters:
        return parameters
    with_codes = [
        start | {"stop_reason": StopReason.read(code, start["stop_reason"])}
        for start, code in zip(parameters["starts"], description["start_codes"], strict=True)
    ]
    return parameters | {"starts": with_codes}


def writable(attrs: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes that JSON can hold; arrays become lists, NumPy numbers plain ones."""
    plain = {name: a.tolist() if hasattr(a, "tolist") else a for name, a in attrs.items()}
    return {str(name): a for name, a in plain.items() if isinstance(a, str | int | float | list)}


def describe(model: Nonlinearity | Loss | Mixed) -> dict[str, Any]:
    """Return name and parameters of a nonlinearity or a loss, for JSON."""
    if isinstance(model, Mixed):
        return {"name": model.name}
    return {"name": model.name, "parameters": list(model.settings), "ours": is_ours(type(model))}


def model_from(kind: str, description: Description, ours: dict[str, Any], known: Known) -> Any:
    """Return the nonlinearity or the loss from what `describe` returned."""
    about = description[kind]
    classes = ours if about["ours"] else {cls.name: cls for cls in known}
    if about["name"] not in classes:
        remedy = "install the version that made it"
        if not about["ours"]:
            remedy = "give known=[its class], or known=[nonlinearities.Smooth(f, name=...)]"
        raise UnknownContentError(
            f"The fit uses the {kind} {about['name']!r}, which is unknown: {remedy}."
        )
    return classes[about["name"]](*about["parameters"])


def describe_kinds(model: Model) -> list[dict[str, Any]]:
    """Return the kinds of a mixed table, for JSON."""
    return [
        {
            "nonlinearity": describe(kind.nonlinearity),
            "loss": describe(kind.loss),
            "units": [float(kind.centre), float(kind.size), float(kind.weight)],
        }
        for kind in model.column_models
    ]


def kinds_from(described: list[Description], known: Known) -> tuple[ColumnModel, ...]:
    """Return the kinds from what `describe_kinds` returned."""
    kinds = []
    for each in described:
        f = model_from("nonlinearity", each, NONLINEARITY_CLASSES, known)
        centre, size, weight = each["units"]
        kind = make_column_model(f, model_from("loss", each, LOSSES, known))
        kinds.append(kind._replace(centre=centre, size=size, weight=weight))
    return tuple(kinds)


def which_kind(model: Model, labels: Labels) -> xr.DataArray:
    """Return the positions of the kinds, with the dimensions of the columns or of X."""
    assert model.model_index is not None
    if model.model_index.ndim == 2:
        return xr.DataArray(labels.label(model.model_index).variable)
    shape = [labels.sizes[dim] for dim in labels.columns]
    return xr.DataArray(model.model_index.reshape(shape), dims=labels.columns)


def provenance(observations: Observations) -> dict[str, Any]:
    """Return a description of data and software, in numbers and text."""
    return {
        "shape": list(observations.shape),
        "n_observed": observations.n_observed,
        "dtype": str(observations.dtype),
        "observations_hash": observations.fingerprint(),
        "versions": {
            "nmd_lab": __version__,
            "numpy": np.__version__,
            "numba": numba.__version__,
            "xarray": xr.__version__,
            "python": platform.python_version(),
        },
    }


SCHEMA = 1
"""Version of the layout of Datasets and files."""

_UNITS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
"""Units of time in NetCDF, by NumPy's abbreviation."""


class UnknownContentError(ValueError):
    """Raised for a model whose class is not known, and for a layout that is newer."""


def description_in(dataset: xr.Dataset, source: str = "dataset") -> dict[str, Any]:
    """Return the description in a Dataset; its layout must not be newer than this version."""
    description: dict[str, Any] = json.loads(dataset.attrs[RESULT_ATTRIBUTE])
    if description["schema"] > SCHEMA:
        raise UnknownContentError(
            f"{source} has the layout {description['schema']}, this version reads up to {SCHEMA}: "
            "install a newer nmd_lab."
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
    header = description_in(encoded, f"path={str(path)!r}")
    with errors_of(path):
        return _decode(header, encoded)


def _seal(content: Any) -> bytes:
    """Return the last bytes of a file with this content."""
    return b"nmd_lab" + hashlib.sha256(content).digest()


def _encode(dataset: xr.Dataset) -> xr.Dataset:
    """Return the same Dataset in numbers and text, with a description of the original types."""
    about: dict[str, dict[str, Any]] = {"variables": {}, "levels": {}, "attrs": {}}
    encoded: dict[str, xr.Variable] = {}
    for hashable, variable in dataset.variables.items():
        name = str(hashable)
        about["attrs"][name] = variable.attrs
        index = dataset.xindexes.get(name)
        labels = index.to_pandas_index() if isinstance(index, PandasIndex) else None
        if isinstance(labels, pd.MultiIndex):
            if hashable == variable.dims[0]:
                about["levels"][name] = {str(n): _level_order(labels, n) for n in labels.names}
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
    variables: dict[str, Any] = {}
    coords: dict[str, Any] = {}
    for name, entry in about["variables"].items():
        group = coords if entry["coordinate"] else variables
        group[name] = (encoded[name].dims, _restored(encoded[name].values, entry["kind"]))
    multi_indexes = []
    for dim, orders in about["levels"].items():
        levels = {name: (coords.pop(name)[1], order) for name, order in orders.items()}
        multi_indexes.append(_multi_index(dim, levels))
    dataset = xr.Dataset(variables, coords, {RESULT_ATTRIBUTE: json.dumps(header)})
    for index_coords in multi_indexes:
        dataset = dataset.assign_coords(index_coords)
    for name, attrs in about["attrs"].items():
        dataset[name].attrs = attrs
    return dataset


def _level_order(index: pd.MultiIndex, name: Any) -> list[int] | None:
    """Return the first position of each value of a level, in the order of the level.

    Unstacking follows this order, for example latitudes from north to south.  A sorted level needs
    no positions, and the result is None.
    """
    index, axis = index.remove_unused_levels(), index.names.index(name)
    if index.levels[axis].is_monotonic_increasing:
        return None
    present, first = np.unique(index.codes[axis], return_index=True)
    return [int(i) for i in first[present >= 0]]


def _multi_index(dim: str, levels: dict[str, tuple[Any, list[int] | None]]) -> xr.Coordinates:
    """Return the coordinates of a MultiIndex, given the labels and the order of each level."""
    level_values, codes, dtypes = [], [], {}
    for name, (values, order) in levels.items():
        labels = pd.Index(values)
        level = labels.dropna().unique().sort_values() if order is None else labels[order]
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
    out = np.empty(values.size, dtype=object)
    out[:] = [json.dumps(item) for item in items]
    return out.reshape(values.shape), f"json {kind}"


def _restored(array: Any, kind: str) -> Any:
    """Return the values of an array and type from `_plain`."""
    if array.dtype.kind in "OUT":
        items = array.ravel().tolist()
        if kind.startswith("json "):
            items, kind = [json.loads(item) for item in items], kind.removeprefix("json ")
        flat = np.empty(len(items), dtype=object)
        flat[:] = items
        array = flat.reshape(array.shape)
    if kind.startswith("StringDType"):
        return array.astype(np.dtypes.StringDType())
    dtype = pd.api.types.pandas_dtype(kind)
    if isinstance(dtype, pd.DatetimeTZDtype):
        utc = pd.DatetimeIndex(array.view(f"datetime64[{dtype.unit}]")).tz_localize("UTC")
        return utc.tz_convert(dtype.tz)
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


def _library() -> Any:
    """Return h5netcdf."""
    try:
        import h5netcdf
    except ImportError as error:
        raise ImportError("Saving and loading need h5netcdf: pip install 'nmd-lab[io]'.") from error
    return h5netcdf
