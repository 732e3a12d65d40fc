"""NetCDF files of Datasets, which restore the value and the type of every label.

NetCDF stores only numbers and text.  Booleans, dates, durations and the types of text are stored as
numbers or text, and a MultiIndex is stored as its levels.  The attribute ``nmd_lab`` (JSON) records
the original types.  Nothing is pickled, and reading runs no code from the file.
"""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from xarray.indexes import PandasIndex, PandasMultiIndex

from nmd_lab._atomic import check_target, write_atomically
from nmd_lab.data.labels import RESULT_ATTRIBUTE

from ._damage import check_file, check_size, with_checksum

SCHEMA = 1
"""Version of the layout of Datasets and files."""

_UNITS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
"""Units of time in NetCDF, by NumPy's abbreviation."""


def write(dataset: xr.Dataset, path: str | os.PathLike[str]) -> None:
    """Write a Dataset to a file; if writing fails, an older file of this name is kept.

    Parameters
    ----------
    dataset : xarray.Dataset
        Dataset with the attribute ``nmd_lab``, and without names that contain "/".
    path : path-like
        Path of the file.

    Raises
    ------
    ImportError
        If h5netcdf is not installed.
    OSError
        If the file cannot be written.
    TypeError
        If a coordinate has values that a file cannot hold.
    """
    h5netcdf, h5py = _libraries()
    path = check_target(path)
    header, arrays = _encode(dataset)
    # In memory, because HDF5 ends the process if it cannot write the last bytes of a file.
    content = io.BytesIO()
    with h5netcdf.File(content, "w") as file:
        file.attrs[RESULT_ATTRIBUTE] = json.dumps(header, default=_as_json)
        file.dimensions = dict(dataset.sizes)
        for name, (dims, array, attributes) in arrays.items():
            dtype = h5py.string_dtype() if array.dtype == object else array.dtype
            variable = file.create_variable(name, dims, dtype=dtype, data=array)
            variable.attrs.update(attributes)
    write_atomically(path, with_checksum(content.getbuffer()))


def read(path: str | os.PathLike[str]) -> xr.Dataset:
    """Return the Dataset of a file from `write`.

    Parameters
    ----------
    path : path-like
        Path of the file.

    Raises
    ------
    FileNotFoundError, PermissionError
        If the file does not exist, or may not be read.
    ValueError
        If the file is damaged, not from `write`, or in a newer layout.
    ImportError
        If h5netcdf is not installed.
    """
    h5netcdf, _ = _libraries()
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"path={str(path)!r} is not a file: check the name.")
    if not os.access(path, os.R_OK):
        raise PermissionError(f"path={str(path)!r} may not be read: change its permissions.")
    try:
        check_file(path)
        size = path.stat().st_size
        with h5netcdf.File(path, "r") as file:
            header = json.loads(file.attrs[RESULT_ATTRIBUTE])
            for variable in file.variables.values():
                check_size(variable, size)
            arrays = {name: (v.dimensions, v[...]) for name, v in file.variables.items()}
        newer = header["schema"] > SCHEMA
        if not newer:
            return _decode(header, arrays)
    except MemoryError:
        raise
    except Exception as error:  # what a damaged file leads to has no list
        raise ValueError(
            f"path={str(path)!r} cannot be read: it is damaged, or nmd_lab did not write it."
        ) from error
    raise ValueError(
        f"path={str(path)!r} has the layout {header['schema']}, this version reads up to "
        f"{SCHEMA}: install a newer nmd_lab."
    )


def _encode(dataset: xr.Dataset) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the description, and (dimensions, array, attributes) of each variable by name."""
    about: dict[str, dict[str, Any]] = {"variables": {}, "levels": {}, "attrs": {}}
    arrays: dict[str, Any] = {}
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
        arrays[name] = (variable.dims, array, _standard_attributes(kind))
    header: dict[str, Any] = json.loads(dataset.attrs[RESULT_ATTRIBUTE])
    return header | {"file": about}, arrays


def _decode(header: dict[str, Any], arrays: dict[str, Any]) -> xr.Dataset:
    """Return the Dataset from the two results of `_encode`."""
    about = header.pop("file")
    variables: dict[str, Any] = {}
    coords: dict[str, Any] = {}
    for name, entry in about["variables"].items():
        dims, array = arrays[name]
        group = coords if entry["coordinate"] else variables
        group[name] = (dims, _restored(array, entry["kind"]))
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
    level = index.remove_unused_levels().levels[index.names.index(name)]
    if level.is_monotonic_increasing:
        return None
    values = index.get_level_values(name)
    first = values.drop_duplicates()
    positions = np.flatnonzero(~values.duplicated())
    return [int(i) for i in positions[first.get_indexer(level)]]


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
    stored = {"bool": np.int8, "float16": np.float32}.get(kind, values.dtype)
    return values.astype(stored), kind


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
    if array.dtype == object:
        items = [item.decode() if isinstance(item, bytes) else item for item in array.ravel()]
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


def _standard_attributes(kind: str) -> dict[str, Any]:
    """Return the attributes from which other programs recognise dates, durations, booleans."""
    if kind == "bool":
        return {"dtype": "bool"}
    name, _, unit = kind.removesuffix("]").partition("[")
    if name in ("datetime64", "timedelta64"):
        units = _UNITS[unit.split(",")[0]]
        return {"units": f"{units} since 1970-01-01" if name == "datetime64" else units}
    return {}


def _as_json(value: Any) -> Any:
    """Return an attribute in a type that JSON has."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


def _libraries() -> tuple[Any, Any]:
    """Return h5netcdf and h5py."""
    try:
        import h5netcdf
        import h5py
    except ImportError as error:
        raise ImportError("Saving and loading need h5netcdf: pip install 'nmd-lab[io]'.") from error
    return h5netcdf, h5py
