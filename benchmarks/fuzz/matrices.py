"""Matrices of all kinds in every container that `decompose` and `complete` take."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy import sparse

import nmd_lab

Array = np.ndarray[Any, Any]
Given = tuple[Any, dict[str, Any]]
"""X and the keyword arguments that go with it."""


def _low_rank(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return np.maximum(rng.normal(size=(shape[0], 2)) @ rng.normal(size=(2, shape[1])), 0)


def _outlier(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    values = rng.random(shape)
    values.flat[rng.integers(values.size)] = 1e6
    return values


VALUES: dict[str, Callable[[np.random.Generator, tuple[int, int]], Array]] = {
    "nonnegative": lambda rng, shape: rng.random(shape),
    "normal": lambda rng, shape: rng.normal(size=shape),
    "low rank": _low_rank,
    "integers": lambda rng, shape: rng.integers(0, 6, shape).astype(float),
    "booleans": lambda rng, shape: rng.integers(0, 2, shape).astype(float),
    "ratings": lambda rng, shape: rng.integers(1, 11, shape) / 2,
    "sparse": lambda rng, shape: rng.random(shape) * (rng.random(shape) < 0.2),
    "constant": lambda rng, shape: np.full(shape, 3.0),
    "zeros": lambda rng, shape: np.zeros(shape),
    "one row": lambda rng, shape: np.outer(np.arange(shape[0]) == 0, np.ones(shape[1])),
    "outlier": _outlier,
}
"""Kinds of values by name."""

DTYPES = ("float64", "float32", "float16", "int64", "int8", "uint8", "bool", ">f8", "longdouble")


def matrix(kind: str, scale: float, shape: tuple[int, int], dtype: str, seed: int) -> Array:
    """Return the values of a matrix; those that do not fit a type are clipped to it."""
    values = scale * VALUES[kind](np.random.default_rng([seed, 1]), shape)
    target = np.dtype(dtype)
    if target.kind in "iu":
        bounds = np.iinfo(target)
        values = np.clip(np.round(values), max(bounds.min, -(2**53)), min(bounds.max, 2**53))
    elif target.kind == "f" and target.itemsize < 8:
        largest = float(np.finfo(target).max)
        values = np.clip(values, -largest, largest)
    return values.astype(target)


def observed(shape: tuple[int, int], missing: float, empty: bool, seed: int) -> Array:
    """Return a mask with at least one True; with `empty`, one row or column is all False."""
    rng = np.random.default_rng([seed, 2])
    seen = rng.random(shape) >= missing
    if empty:
        line, axis = rng.integers(max(shape)), int(rng.integers(2))
        np.moveaxis(seen, axis, 0)[line % shape[axis]] = False
    if not seen.any():
        seen.flat[rng.integers(seen.size)] = True
    return seen


def _with_nan(values: Array, seen: Array) -> Array:
    if seen.all():
        return values
    floats = values if values.dtype.kind == "f" else values.astype(np.float64)
    return np.where(seen, floats, floats.dtype.type(np.nan))


def _junk(values: Array, seen: Array) -> Array:
    """Return the values with other ones where nothing is observed."""
    return np.where(seen, values, values.dtype.type(1))


def _strided(values: Array) -> Array:
    wide = np.repeat(np.repeat(values, 2, 0), 2, 1)[::-1]
    return wide[::-2, ::2]


def _memmap(values: Array) -> Array:
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        mapped = np.memmap(file, values.dtype, "w+", shape=values.shape)
        mapped[...] = values
        return mapped


def _frozen(values: Array) -> Array:
    frozen = values.copy()
    frozen.flags.writeable = False
    return frozen


def _native(values: Array) -> Array:
    return values.astype(values.dtype.newbyteorder("="))


def frame(values: Array) -> pd.DataFrame:
    """Return a frame with the names "r0", "c0" and so on."""
    return pd.DataFrame(_native(values)).rename(index="r{}".format, columns="c{}".format)


def levels(values: Array) -> pd.DataFrame:
    """Return a frame whose rows have two levels of labels."""
    rows = pd.MultiIndex.from_tuples([(i % 2, f"u{i}") for i in range(len(values))])
    return frame(values).set_axis(rows)


def _nullable(values: Array) -> pd.DataFrame:
    floats = frame(values).astype("Float64")
    kept = [floats[c].dropna() for c in floats]
    whole = floats.columns[[bool(((c % 1 == 0) & (c.abs() < 2**53)).all()) for c in kept]]
    return floats.astype(dict.fromkeys(whole, "Int64"))


def _data_array(values: Array) -> xr.DataArray:
    return xr.DataArray(values, dims=("time", "place"), coords={"time": np.arange(len(values))})


def _three_dimensions(values: Array) -> xr.DataArray:
    return _data_array(values).expand_dims(level=[5], axis=1).transpose("place", "level", "time")


def _coo(values: Array, seen: Array) -> sparse.coo_array:
    native = _native(values)
    if native.dtype == np.float16:  # which SciPy has not
        native = native.astype(np.float32)
    return sparse.coo_array((native[seen], np.nonzero(seen)), shape=values.shape)


def _unsorted(coo: sparse.coo_array) -> sparse.csr_array:
    csr = coo.tocsr()
    order = np.lexsort([-csr.indices, coo.tocsr().tocoo().row])
    arrays = (csr.data[order], csr.indices[order], csr.indptr)
    return sparse.csr_array(arrays, shape=csr.shape)


def _observations(coo: sparse.coo_array) -> Any:
    table = {"user": coo.row, "item": coo.col, "rating": coo.data}
    return nmd_lab.observations_from_table(table)


MASKED: dict[str, Callable[[Array, Array], Given]] = {
    "observed": lambda v, s: (_junk(v, s), {"observed": s}),
    "masked": lambda v, s: (np.ma.masked_array(_junk(v, s), ~s), {}),
    "weights": lambda v, s: (_junk(v, s), {"weights": s.astype(float)}),
}
WITH_NAN: dict[str, Callable[[Array], Any]] = {
    "nan": lambda v: v,
    "list": lambda v: v.astype(float).tolist(),
    "fortran": np.asfortranarray,
    "strided": _strided,
    "memmap": _memmap,
    "frozen": _frozen,
    "frame": frame,
    "levels": levels,
    "nullable": _nullable,
    "data array": _data_array,
    "three dimensions": _three_dimensions,
}
STORED: dict[str, Callable[[sparse.coo_array], Any]] = {
    "coo": lambda coo: coo,
    "csr": lambda coo: coo.tocsr(),
    "csc": lambda coo: coo.tocsc(),
    "bsr": lambda coo: coo.tobsr((1, 1)),
    "lil": lambda coo: coo.tolil(),
    "dok": lambda coo: coo.todok(),
    "dia": lambda coo: coo.todia(),
    "csr_matrix": sparse.csr_matrix,
    "unsorted": _unsorted,
    "observations": _observations,
}
DENSE, SPARSE = [*MASKED, *WITH_NAN], [*STORED]
"""The names of all containers."""


def contained(container: str, values: Array, seen: Array) -> Given:
    """Return X in a container, and the keyword arguments that go with it."""
    if container in MASKED:
        return MASKED[container](values, seen)
    others = {"sample_dims": "time"} if container == "three dimensions" else {}
    if container in WITH_NAN:
        return WITH_NAN[container](_with_nan(values, seen)), others
    return STORED[container](_coo(values, seen)), others


def contents(X: Any) -> list[bytes]:
    """Return all that a call must not change, as bytes."""
    if isinstance(X, list | tuple):
        return [part for value in X for part in contents(value)]
    if isinstance(X, np.ndarray):
        if X.dtype == np.longdouble:  # whose bytes are not all of the number
            return [repr(X.tolist()).encode()]
        return [np.asarray(X).tobytes(), np.ma.getmaskarray(X).tobytes()]
    if isinstance(X, pd.DataFrame):
        return [X.to_csv().encode(), repr(X.dtypes.tolist()).encode()]
    if isinstance(X, xr.DataArray):
        return contents([X.values, *(c.values for c in X.coords.values())])
    if sparse.issparse(X):
        coo = X.tocoo()
        return contents([coo.data, *coo.coords])
    if isinstance(X, nmd_lab.SparseObservations):
        return contents([X.values, X.indices, X.indptr])
    return [repr(X).encode()]
