"""Frames and arrays of any library at the door, and the labels that results get back.

narwhals reads frames of polars, Arrow and others, which leave as they came.  Columns of pandas with
a type of Arrow become columns with the type of pandas that means the same, and sparse ones plain.
Decimals become float64, and stay so.

Inside the library X is a plain m x n matrix.  `labels_of` records the dimensions and coordinates of
an input.  `Labels` flattens arrays of its shape to the matrix, and labels results like the input.

>>> import numpy as np, xarray as xr
>>> X = xr.DataArray(np.zeros((5, 2, 3)), dims=("time", "lat", "lon"))
>>> labels = labels_of(X, sample_dims="time")
>>> labels.flatten(X.values).shape
(5, 6)
>>> labels.label(np.zeros((5, 6))).dims
('time', 'lat', 'lon')
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy import sparse

from .typed_table import TypedTable, check_no_long_table

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
        return as_given(result, foreign[0]) if foreign else result

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


def as_given(result: Any, X: Any) -> Any:
    """Return DataFrames of pandas, alone or in a list or tuple, in the library and types of X."""
    if isinstance(result, list | tuple):
        return type(result)(as_given(each, X) for each in result)
    if not isinstance(result, pd.DataFrame):
        return result
    is_pandas, is_arrow = isinstance(X, pd.DataFrame), type(X).__module__.startswith("pyarrow")
    if not is_pandas:  # names of two levels are those of intervals
        result = result.set_axis(
            [name if isinstance(name, str) else "_".join(name) for name in result.columns], axis=1
        )
    if is_pandas or is_arrow:
        types = X.dtypes if is_pandas else {f.name: pd.ArrowDtype(f.type) for f in X.schema}
        arrow = {n: t for n, t in types.items() if isinstance(t, pd.ArrowDtype) and n in [*result]}
        result = result.astype({n: t for n, t in arrow.items() if _goes_back(result[n], t)})
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
    if isinstance(array, list | tuple):
        array = _joined(array)
    array = np.asanyarray(array.compute() if hasattr(array, "compute") else array)  # of Dask
    seen = ~np.ma.getmaskarray(array)
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


def _joined(parts: Any) -> NDArray[Any]:
    """Return a list, whose parts may be lists, as an array: a masked one if a part is masked."""
    parts = [_joined(each) if isinstance(each, list | tuple) else each for each in parts]
    return (np.ma.array if any(map(np.ma.isMaskedArray, parts)) else np.asanyarray)(parts)


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


COMPONENT = "component"
"""Dimension of W and H that counts the components; X cannot have one of this name."""

RESULT_ATTRIBUTE = "nmd_lab"
"""Attribute of Datasets and files that hold a result; its value is a description in JSON."""


@dataclass(frozen=True, eq=False)
class Labels:
    """The dimensions, coordinates and name of X.

    Attributes
    ----------
    dims : tuple of str
        Dimensions of X in its own order.
    shape : tuple of int
        Sizes of the dimensions.
    rows : tuple of str
        Dimensions that form the rows of the matrix; the others form its columns.
    coords : xarray.Dataset
        Coordinates of X.
    name : str or None
        Name of X.
    attrs : dict
        Attributes of X, such as its units.
    valid_range : (float, float) or None
        Smallest and largest value that X can have, if it documents them.
    table : TypedTable or None
        Typed columns of the DataFrame from which X was made; None if all are numbers.
    """

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    rows: tuple[str, ...]
    coords: xr.Dataset = field(default_factory=xr.Dataset)
    name: str | None = None
    attrs: dict[str, Any] = field(default_factory=dict)
    valid_range: tuple[float, float] | None = None
    table: TypedTable | None = None

    @classmethod
    def plain(cls, shape: tuple[int, int]) -> Labels:
        """Return the labels of an array, which has none."""
        return cls(("row", "column"), shape, ("row",))

    @property
    def columns(self) -> tuple[str, ...]:
        """Dimensions that form the columns of the matrix."""
        return tuple(dim for dim in self.dims if dim not in self.rows)

    @property
    def sizes(self) -> dict[str, int]:
        """Size of each dimension."""
        return dict(zip(self.dims, self.shape, strict=True))

    def size(self, dims: Sequence[str]) -> int:
        """Return the number of entries of an array with these dimensions."""
        return math.prod(self.sizes[dim] for dim in dims)

    @cached_property
    def matrix_shape(self) -> tuple[int, int]:
        """Number of rows and columns of the matrix."""
        return self.size(self.rows), self.size(self.columns)

    def index(self, dim: str) -> Any:
        """Return the pandas index of a dimension, None if it has no labels."""
        return self.coords.indexes.get(dim)

    def flatten(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return an array of the shape of X as an m x n matrix."""
        order = [self.dims.index(dim) for dim in (*self.rows, *self.columns)]
        return array.transpose(order).reshape(self.matrix_shape)

    def label(self, matrix: NDArray[Any]) -> xr.DataArray:
        """Return an m x n matrix with the dimensions, coordinates, name and attributes of X."""
        labelled = self.labelled(matrix, (*self.rows, *self.columns), self.name)
        return labelled.transpose(*self.dims).assign_attrs(self.attrs)

    def label_columns(self, H: NDArray[Any]) -> xr.DataArray:
        """Return H (component, *columns) with labels."""
        return self.labelled(H, (COMPONENT, *self.columns), "H")

    def label_rows(self, W: NDArray[Any]) -> xr.DataArray:
        """Return W (*rows, component) with labels."""
        return self.labelled(W, (*self.rows, COMPONENT), "W")

    def labelled(
        self, array: NDArray[Any], dims: Sequence[str], name: str | None = None
    ) -> xr.DataArray:
        """Return an array with dimensions and their coordinates; components are counted."""
        values = array.reshape([self.sizes.get(dim, -1) for dim in dims])
        labelled = xr.DataArray(values, dims=dims, coords=self.coords_along(*dims), name=name)
        counts = {dim: np.arange(labelled.sizes[dim]) for dim in dims if dim == COMPONENT}
        return labelled.assign_coords(counts)

    def flat_index(self, dims: Sequence[str]) -> Any:
        """Return the index of the rows (or columns), positions along dimensions without labels."""
        return self.labelled(np.empty(self.size(dims)), dims).coords.to_index(dims)

    def flat(self, dims: Sequence[str]) -> NDArray[Any]:
        """Return the label of each row (or column): tuples if several dimensions make them."""
        return np.asarray(self.flat_index(dims))

    def rename(self, names: Mapping[str, str]) -> Labels:
        """Return the labels with new names of dimensions and coordinates, given by old name."""
        present = {*self.coords.variables, *self.coords.dims}
        coords = self.coords.rename({old: new for old, new in names.items() if old in present})
        dims, rows = (tuple(names.get(d, d) for d in dims) for dims in (self.dims, self.rows))
        return replace(self, dims=dims, rows=rows, coords=coords)

    def clashes(self, taken: Collection[str]) -> dict[str, str]:
        """Return new names for those that are taken, or that a file cannot hold."""
        names = {*self.dims, *map(str, self.coords.coords)}
        renamed: dict[str, str] = {}
        for old in sorted(name for name in names if name in taken or "/" in name):
            new = old.replace("/", "_") if "/" in old else f"X_{old}"
            while new in {*taken, *names, *renamed.values()}:
                new += "_"
            renamed[old] = new
        return renamed

    def coords_along(self, *dims: str) -> xr.Coordinates:
        """Return the coordinates that have no other dimensions than these."""
        other = [name for name, c in self.coords.coords.items() if not set(c.dims) <= set(dims)]
        return self.coords.drop_vars(other).coords


def labels_of(X: Any, sample_dims: str | Sequence[str] | None = None) -> Labels:
    """Return the labels of an input."""
    if isinstance(X, xr.DataArray):
        return _array_labels(X, sample_dims)
    if sample_dims is not None:
        raise TypeError(
            f"sample_dims={sample_dims!r} names dimensions, but X is a {type(X).__name__}: give "
            "an xarray.DataArray, or leave it out."
        )
    if isinstance(X, xr.Dataset):
        raise TypeError(f"X is a Dataset of {list(X)}: select one array, for example X[name].")
    try:
        shape = np.shape(X)
    except ValueError as error:
        raise ValueError("X has rows of unequal lengths: fill them up with NaN.") from error
    if len(shape) != 2:
        example = "X.reshape(len(X), -1)" if len(shape) > 2 else "a DataFrame or an array"
        raise ValueError(f"X has {len(shape)} dimensions: give a matrix, such as {example}.")
    if isinstance(X, pd.DataFrame):
        check_no_long_table(X)
        row, row_coords = index_labels(X.index, "row", taken=())
        coords = xr.Dataset().assign_coords(row_coords)
        column, column_coords = index_labels(X.columns, "column", taken=coords.coords)
        coords = coords.assign_coords(column_coords)
        check_no_component(coords.coords)
    else:
        row, column, coords = "row", "column", xr.Dataset()
    return Labels((row, column), shape, (row,), coords, valid_range=valid_range(X))


def is_frame(X: Any) -> bool:
    """Return whether X is a DataFrame of pandas."""
    return isinstance(X, pd.DataFrame)


def _array_labels(X: xr.DataArray, sample_dims: str | Sequence[str] | None) -> Labels:
    """Return the labels of a DataArray."""
    dims = tuple(map(str, X.dims))
    if sample_dims is None:
        if len(dims) != 2:
            raise ValueError(f"X has the dimensions {dims}: give those of rows as sample_dims=.")
        rows: tuple[str, ...] = dims[:1]
    else:
        if not isinstance(sample_dims, Iterable):
            raise TypeError(
                f"sample_dims={sample_dims!r} is not a dimension: give some, not all, of {dims}."
            )
        rows = (sample_dims,) if isinstance(sample_dims, str) else tuple(sample_dims)
        if not (set(rows) < set(dims) and 0 < len(rows) == len(set(rows))):
            raise ValueError(
                f"sample_dims={sample_dims!r} does not split X: give some, not all, of {dims}."
            )
    if len(set(dims)) < len(dims):
        raise ValueError(f"X has the dimensions {dims}, one of them twice: rename it.")
    coords = X.coords.to_dataset().copy(deep=True)
    coords = coords.rename({name: str(name) for name in {*coords.coords, *coords.dims}})
    check_no_component((*dims, *map(str, coords.coords)))
    name = None if X.name is None else str(X.name)
    return Labels(dims, X.shape, rows, coords, name, dict(X.attrs), valid_range(X))


def check_no_component(names: Any) -> None:
    """Raise ValueError if a dimension or coordinate is named like the components of results."""
    if COMPONENT in names:
        raise ValueError(f"X has a label {COMPONENT!r}, which results use: rename it.")


def index_labels(index: Any, axis: str, taken: Collection[Any]) -> tuple[str, Any]:
    """Return the name of the dimension of a pandas index, and its coordinates."""

    def free_name(name: Any, default: str) -> str:
        name = default if name is None else str(name)
        return f"{name}_{axis}" if name in taken else name

    if index.nlevels == 1:
        dim = free_name(index.name, axis)
        return dim, {dim: index.rename(dim)}
    taken = {*taken, axis}
    levels = [free_name(name, f"{axis}_level_{i}") for i, name in enumerate(index.names)]
    return axis, xr.Coordinates.from_pandas_multiindex(index.set_names(levels), axis)


def valid_range(X: Any, column: str | None = None) -> tuple[float, float] | None:
    """Return the smallest and the largest value that X can have, None if they are unknown.

    Attributes are those of the CF conventions: `valid_range`, or `valid_min` and `valid_max`.
    Integers of 8 bits without a sign are grey levels from 0 to 255 if one of them is above 127;
    smaller ones may as well be counts or ratings.
    """
    sources = [X] if column is None else [X[column], X]
    for source in sources:
        attrs = getattr(source, "attrs", None)
        documented = _of_attributes(attrs) if isinstance(attrs, dict) else None
        if documented is not None:
            return documented
    dtype = getattr(sources[0], "dtype", None)
    if isinstance(dtype, np.dtype) and dtype == np.uint8:  # a frame may have a column "dtype"
        values = sources[0].tocoo().data if sparse.issparse(X) else np.asarray(sources[0])
        if values.size and int(values.max()) > 127:  # grey levels of 8 bits
            return 0.0, 255.0
    return None


def _of_attributes(attrs: dict[Any, Any]) -> tuple[float, float] | None:
    """Return the range that attributes give, None if they give none that makes sense."""
    ends = attrs.get("valid_range", (attrs.get("valid_min"), attrs.get("valid_max")))
    try:
        low, high = (float(end) for end in ends)
    except (TypeError, ValueError):
        return None
    return (low, high) if -math.inf < low < high < math.inf else None


@dataclass(frozen=True)
class Picture:
    """Height and width of a picture, and the pixel of each value."""

    shape: tuple[int, int]
    positions: NDArray[np.intp]

    def __call__(self, row: NDArray[Any]) -> NDArray[Any]:
        """Return the values as an array (height, width); pixels without a value are NaN."""
        canvas = np.full(self.shape[0] * self.shape[1], np.nan)
        canvas[self.positions] = np.ravel(row)
        return canvas.reshape(self.shape)


def picture_of(array: xr.DataArray, shape: tuple[int, int] | None) -> Picture | None:
    """Return how the values of an array make a picture, or None if they do not make one.

    They do if they have two dimensions, or two coordinates that make a grid.
    """
    if shape is not None:
        if len(shape) != 2 or shape[0] * shape[1] != array.size:
            raise ValueError(
                f"shape={shape} does not hold {array.size} columns: give (height, width)."
            )
        return Picture((int(shape[0]), int(shape[1])), np.arange(array.size))
    along = {n: c for n, c in array.coords.items() if c.dims == array.dims and n not in array.dims}
    names = ["y", "x"] if {"y", "x"} <= set(along) else list(along)
    if array.ndim == 2:
        (height, width), names = array.shape, list(array.dims)
        i, j = np.indices(array.shape).reshape(2, -1)
        rows = array[names[0]].values
    elif array.ndim == 1 and len(names) == 2:
        (rows, i), (columns, j) = (np.unique(along[n].values, return_inverse=True) for n in names)
        height, width = len(rows), len(columns)
    else:
        return None
    if str(names[0]).lower().startswith("lat") and rows[0] <= rows[-1]:
        i = height - 1 - i  # the first row is the lowest
    positions = i * width + j
    sparse = height * width > 2 * array.size  # coordinates of scattered points make no picture
    if sparse or len(np.unique(positions)) < array.size:
        return None
    return Picture((height, width), positions)
