"""DataFrames of any library: they enter as pandas, and leave as they came.

narwhals reads those of polars, Arrow and others.  Columns of pandas with a type of Arrow become
columns with the type of pandas that means the same.  Decimals become float64, and stay so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import pandas as pd

Function = TypeVar("Function", bound=Callable[..., Any])


def any_frame(function: Function) -> Function:
    """Let a function take DataFrames of any library, and return those of the library of X."""

    @wraps(function)
    def with_pandas(*args: Any, **options: Any) -> Any:
        values = [*args, *options.values()]
        plain = [pandas_of(value) for value in values]
        by_name = dict(zip(options, plain[len(args) :], strict=True))
        result = function(*plain[: len(args)], **by_name)
        foreign = [X for X, frame in zip(values, plain, strict=True) if frame is not X]
        return _as_given(result, foreign[0]) if foreign else result

    return cast(Function, with_pandas)


def pandas_of(X: Any) -> Any:
    """Return a DataFrame of any library as one of pandas without types of Arrow; others as is."""
    if isinstance(X, pd.DataFrame):
        arrow = [k for k, dtype in enumerate(X.dtypes) if isinstance(dtype, pd.ArrowDtype)]
        frame = X.copy(deep=False) if arrow else X
        for k in arrow:
            frame.isetitem(k, _column(_read(X.iloc[:, k])))
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
