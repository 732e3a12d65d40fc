"""DataFrames and arrays of any library, at the door: their values, and where they have none.

narwhals reads frames of polars, Arrow and others, which leave as they came.  Columns of pandas with
a type of Arrow become columns with the type of pandas that means the same, and sparse ones plain.
Decimals become float64, and stay so.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy import sparse

Function = TypeVar("Function", bound=Callable[..., Any])


def any_frame(function: Function) -> Function:
    """Let a function take DataFrames of any library, and return those of the library of X."""

    @wraps(function)
    def with_pandas(*args: Any, **options: Any) -> Any:
        values = [*args, *options.values()]
        plain = [pandas_of(value) for value in values]
        by_name = dict(zip(options, plain[len(args) :], strict=True))
        foreign = [X for X, frame in zip(values, plain, strict=True) if frame is not X]
        result = function(*plain[: len(args)], **by_name)
        return _as_given(result, foreign[0]) if foreign else result

    return cast(Function, with_pandas)


def pandas_of(X: Any) -> Any:
    """Return a DataFrame of any library as one of pandas without types of Arrow; others as is."""
    if isinstance(X, pd.DataFrame):
        types = pd.ArrowDtype | pd.SparseDtype
        others = [k for k, dtype in enumerate(X.dtypes) if isinstance(dtype, types)]
        frame = X.copy(deep=False) if others else X
        for k in others:
            column: Any = X.iloc[:, k]
            is_sparse = isinstance(column.dtype, pd.SparseDtype)
            frame.isetitem(k, column.sparse.to_dense() if is_sparse else _column(_read(column)))
        return frame
    if type(X).__name__ == "LazyFrame":
        raise TypeError("X is a LazyFrame, which has no values yet: give X.collect().")
    frame = _read(X) if hasattr(type(X), "columns") else X
    if not hasattr(frame, "iter_columns"):
        return X
    return pd.DataFrame({series.name: _column(series) for series in frame.iter_columns()})


def _read(X: Any) -> Any:
    """Return a DataFrame or Series of narwhals for one of any library that is not lazy."""
    import narwhals

    return narwhals.from_native(X, eager_only=True, allow_series=True, pass_through=True)


def _column(series: Any) -> Any:
    """Return the values of a column as an array of pandas or NumPy."""
    kind: Any = series.dtype
    name: Any = str(kind)
    if kind.is_float():
        return series.to_numpy()
    if kind.is_decimal():
        return series.to_numpy().astype(float)
    if not series.null_count() and (kind.is_integer() or name == "Boolean"):
        return series.to_numpy() if name == "Boolean" else pd.array(series.to_numpy(), dtype=name)
    values = [None if value is pd.NA else value for value in series.to_list()]
    if kind.is_integer() or name == "Boolean":
        return pd.array(values, dtype=name.replace("Boolean", "boolean"))
    if name.startswith("Enum"):
        return pd.Categorical(values, kind.categories, ordered=True)
    if name == "Categorical" and not series.implementation.is_polars():
        return series.to_arrow().to_pandas().array  # with an order, if there is one
    if name == "Categorical":
        return pd.Categorical(values)
    return pd.array(values, dtype=object) if name == "String" else pd.Series(values).array


def _as_given(result: Any, X: Any) -> Any:
    """Return DataFrames of pandas, alone or in a list or tuple, in the library and types of X."""
    if isinstance(result, list | tuple):
        return type(result)(_as_given(each, X) for each in result)
    if not isinstance(result, pd.DataFrame):
        return result
    is_pandas, is_arrow = isinstance(X, pd.DataFrame), type(X).__module__.startswith("pyarrow")
    if not is_pandas:  # names of two levels are those of intervals
        result = result.set_axis(
            [name if isinstance(name, str) else "_".join(name) for name in result.columns], axis=1
        )
    if is_pandas or is_arrow:
        types = X.dtypes if is_pandas else {f.name: pd.ArrowDtype(f.type) for f in X.schema}
        arrow = {n: t for n, t in types.items() if isinstance(t, pd.ArrowDtype)}
        back = [n for n in result.columns if n in arrow and _goes_back(result[n], arrow[n])]
        result = result.astype({n: arrow[n] for n in back})
        return type(X).from_pandas(result, preserve_index=False) if is_arrow else result
    import narwhals

    frame = _read(X)
    schema = dict(_read(result).schema)
    back = [n for n, t in frame.schema.items() if n in schema and _goes_back(result[n], t)]
    schema |= {n: frame.schema[n] for n in back if not schema[n].is_float()}
    values = {n: x.astype(object).where(x.notna(), None).tolist() for n, x in result.items()}
    native = narwhals.from_dict(values, schema, backend=frame.implementation).to_native()
    return native.cast({n: X.schema[n] for n in back}) if hasattr(native, "cast") else native


def _goes_back(column: Any, dtype: Any) -> bool:
    """Return whether results have the type of X, unless they are predictions of whole numbers."""
    is_real = re.match("float|double", str(dtype).lower()) is not None
    return is_real or getattr(column.dtype, "kind", "O") != "f"


def values_and_mask(X: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the values of a dense array or list, and where they are neither masked nor filled in.

    The fill values of a DataArray are those of its attributes `_FillValue` and `missing_value`.
    """
    array = X.data if isinstance(X, xr.DataArray) else X
    array = np.asanyarray(array.compute() if hasattr(array, "compute") else array)  # of Dask
    masked = _masked(X if isinstance(X, list | tuple) else array)
    seen = np.ones(array.shape, bool) if masked is None else ~masked
    array = np.asarray(np.ma.getdata(array))
    if isinstance(X, xr.DataArray) and array.dtype.kind in "iuf":
        found = np.concatenate([np.ravel(X.attrs.get(name, [])) for name in FILL_VALUES])
        fills = np.asarray(pd.to_numeric(pd.Series(found), errors="coerce"))
        for fill in fills.astype(array.dtype) if array.dtype.kind == "f" else fills:
            seen &= array != fill
    return array, seen


FILL_VALUES = ("_FillValue", "missing_value")
"""Attributes of NetCDF files with the values that stand for missing ones."""


def plain_array(X: Any) -> NDArray[Any]:
    """Return the values of an array or list, NaN (False of booleans) at those that are masked."""
    array, seen = values_and_mask(X)
    if seen.all():
        return array
    return array & seen if array.dtype == bool else np.where(seen, array, np.float32("nan"))


def _masked(X: Any) -> NDArray[np.bool_] | None:
    """Return the mask of an array, or of the arrays in a list; None if there is none."""
    if not isinstance(X, list | tuple):
        return np.ma.getmaskarray(X) if isinstance(X, np.ma.MaskedArray) else None
    masks = [_masked(each) for each in X]
    if all(m is None for m in masks):
        return None
    pairs = zip(X, masks, strict=True)
    return np.stack([np.zeros(np.shape(x), bool) if m is None else m for x, m in pairs])


def without_tensors(X: Any) -> Any:
    """Return a tensor as an array, which shares its memory where it can, and others as they are.

    PyTorch is not imported.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(X, torch.Tensor):
        return X
    try:
        X = X.detach().cpu()
        X = X.float() if str(X.dtype) == "torch.bfloat16" else X  # NumPy has no such type
        if str(X.layout) == "torch.strided":
            return X.numpy()
        compressed = X.to_sparse_csr()  # entries that are there twice are added
        parts = (compressed.values(), compressed.col_indices(), compressed.crow_indices())
        return sparse.csr_array(tuple(array.numpy() for array in parts), shape=tuple(X.shape))
    except (NotImplementedError, RuntimeError, TypeError) as error:
        raise TypeError(
            f"a tensor of {X.dtype} on {X.device} has no array of its entries: convert it to "
            "torch.float32 on a device with data."
        ) from error
