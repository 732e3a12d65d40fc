"""NetCDF files of Datasets, which restore the value and the type of every label.

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
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from xarray.indexes import PandasIndex, PandasMultiIndex

from nmd_lab._runtime.disk import check_target, write_atomically
from nmd_lab.data.labels import RESULT_ATTRIBUTE
from nmd_lab.data.readers import errors_of

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
