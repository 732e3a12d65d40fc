"""The same observed values in every container that `decompose` and `complete` take."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy import sparse

import nmd_lab

from .matrices import Array

Given = tuple[Any, dict[str, Any]]
"""X and the keyword arguments that go with it."""


def _with_nan(values: Array, seen: Array) -> Array:
    if seen.all():
        return values
    floats = values if values.dtype.kind == "f" else values.astype(np.float64)
    return np.where(seen, floats, floats.dtype.type(np.nan))


def _junk(values: Array, seen: Array) -> Array:
    """Return the values with other ones where nothing is observed."""
    return np.where(seen, values, values.dtype.type(1))


def _strided(values: Array) -> Array:
    wide = np.zeros((2 * values.shape[0], 2 * values.shape[1]), values.dtype)
    view = wide[::-2, ::2]
    view[...] = values
    return view


def _memmap(values: Array) -> Array:
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        mapped = np.memmap(file, values.dtype, "w+", shape=values.shape)
        mapped[...] = values
        return mapped


def _frozen(values: Array) -> Array:
    frozen = values.copy()
    frozen.flags.writeable = False
    return frozen


def _frame(values: Array) -> pd.DataFrame:
    m, n = values.shape
    native = values.astype(values.dtype.newbyteorder("="))
    return pd.DataFrame(native, [f"r{i}" for i in range(m)], [f"c{j}" for j in range(n)])


def _levels(values: Array) -> pd.DataFrame:
    frame = _frame(values)
    frame.index = pd.MultiIndex.from_tuples([(i % 2, i) for i in range(len(frame))])
    return frame


def _nullable(values: Array, seen: Array) -> pd.DataFrame:
    floats = _frame(_with_nan(values, seen)).astype("Float64")
    kept = [floats[c].dropna() for c in floats]
    whole = floats.columns[[bool(((c % 1 == 0) & (c.abs() < 2**53)).all()) for c in kept]]
    return floats.astype(dict.fromkeys(whole, "Int64"))


def _data_array(values: Array) -> xr.DataArray:
    return xr.DataArray(values, dims=("time", "place"), coords={"time": np.arange(len(values))})


def _three_dimensions(values: Array, seen: Array) -> Given:
    X = _data_array(_with_nan(values, seen)).expand_dims(level=[5], axis=1)
    return X.transpose("place", "level", "time"), {"sample_dims": "time"}


def _coo(values: Array, seen: Array) -> sparse.coo_array:
    rows, columns = np.nonzero(seen)
    native = values.astype(values.dtype.newbyteorder("="))
    if native.dtype == np.float16:  # which SciPy has not
        native = native.astype(np.float32)
    return sparse.coo_array((native[rows, columns], (rows, columns)), shape=values.shape)


def _unsorted(values: Array, seen: Array) -> sparse.csr_array:
    csr = _coo(values, seen).tocsr()
    order = np.concatenate(
        [np.arange(a, b)[::-1] for a, b in zip(csr.indptr[:-1], csr.indptr[1:], strict=True)]
    ).astype(int)
    arrays = (csr.data[order], csr.indices[order], csr.indptr)
    return sparse.csr_array(arrays, shape=csr.shape)


def _observations(values: Array, seen: Array) -> Any:
    rows, columns = np.nonzero(seen)
    table = {"user": rows, "item": columns, "rating": _coo(values, seen).data}
    return nmd_lab.observations_from_table(table)


DENSE: dict[str, Callable[[Array, Array], Given]] = {
    "nan": lambda v, s: (_with_nan(v, s), {}),
    "observed": lambda v, s: (_junk(v, s), {"observed": s}),
    "masked": lambda v, s: (np.ma.masked_array(_junk(v, s), ~s), {}),
    "weights": lambda v, s: (_junk(v, s), {"weights": s.astype(float)}),
    "list": lambda v, s: (_with_nan(v, s).astype(float).tolist(), {}),
    "fortran": lambda v, s: (np.asfortranarray(_with_nan(v, s)), {}),
    "strided": lambda v, s: (_strided(_with_nan(v, s)), {}),
    "memmap": lambda v, s: (_memmap(_with_nan(v, s)), {}),
    "frozen": lambda v, s: (_frozen(_with_nan(v, s)), {}),
    "frame": lambda v, s: (_frame(_with_nan(v, s)), {}),
    "levels": lambda v, s: (_levels(_with_nan(v, s)), {}),
    "nullable": lambda v, s: (_nullable(v, s), {}),
    "data array": lambda v, s: (_data_array(_with_nan(v, s)), {}),
    "three dimensions": _three_dimensions,
}
"""Dense containers by name."""

SPARSE: dict[str, Callable[[Array, Array], Given]] = {
    "coo": lambda v, s: (_coo(v, s), {}),
    "csr": lambda v, s: (_coo(v, s).tocsr(), {}),
    "csc": lambda v, s: (_coo(v, s).tocsc(), {}),
    "bsr": lambda v, s: (_coo(v, s).tobsr((1, 1)), {}),
    "lil": lambda v, s: (_coo(v, s).tolil(), {}),
    "dok": lambda v, s: (_coo(v, s).todok(), {}),
    "dia": lambda v, s: (_coo(v, s).todia(), {}),
    "csr_matrix": lambda v, s: (sparse.csr_matrix(_coo(v, s)), {}),
    "unsorted": lambda v, s: (_unsorted(v, s), {}),
    "observations": lambda v, s: (_observations(v, s), {}),
}
"""Sparse containers by name."""


def contained(container: str, values: Array, seen: Array) -> Given:
    """Return X in a container, and the keyword arguments that go with it."""
    return (DENSE | SPARSE)[container](values, seen)


def contents(X: Any) -> list[bytes]:
    """Return all that a call must not change, as bytes."""
    if isinstance(X, list) and not (X and isinstance(X[0], list)):
        return [part for value in X for part in contents(value)]
    if isinstance(X, np.ma.MaskedArray):
        return [X.data.tobytes(), np.ma.getmaskarray(X).tobytes()]
    if isinstance(X, np.ndarray):
        return [X.tobytes()]
    if isinstance(X, pd.DataFrame):
        return [repr([X[c].tolist() for c in X]).encode(), repr([*X.index, *X.columns]).encode()]
    if isinstance(X, xr.DataArray):
        return [X.values.tobytes(), *(repr(c.values).encode() for c in X.coords.values())]
    if sparse.issparse(X) or isinstance(X, nmd_lab.SparseObservations):
        names = ("data", "values", "indices", "indptr", "row", "col", "offsets", "rows")
        parts = [np.asarray(getattr(X, name)) for name in names if hasattr(X, name)]
        if getattr(X, "format", "") == "dok":
            parts = [np.asarray(sorted((*k, v) for k, v in X.items()))]
        return [repr(p.tolist()).encode() for p in parts]
    return [repr(X).encode()]
