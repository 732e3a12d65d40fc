"""Reading a saved result, and results as files for other programs."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr

from nmd_lab._runtime.machine import check_target, write_atomically
from nmd_lab.data.labels import is_frame
from nmd_lab.data.matching import observe_like
from nmd_lab.model.losses import Loss
from nmd_lab.model.nonlinearities import Nonlinearity

from . import netcdf
from .decomposition import Decomposition
from .posterior import Posterior

Kind = Literal["fit", "table"]
Classes = Iterable[type[Nonlinearity | Loss]]
Result = Decomposition | Posterior | xr.Dataset

FORMATS = {
    "fit": ".nc (the fit), .npz (W, H and the offsets), .csv, .parquet or .xlsx (a table)",
    "table": ".csv, .parquet or .xlsx (the data with their missing cells filled)",
}
"""What a file holds, by its ending."""

TABLES = (".csv", ".parquet", ".xlsx")
"""Endings of tables."""

LIBRARIES = {
    ".nc": ("h5netcdf",),
    ".npz": (),
    ".csv": (),
    ".parquet": ("pyarrow", "fastparquet"),
    ".xlsx": ("openpyxl",),
}
"""Libraries one of which a format needs."""

MAX_TABLE_ENTRIES = 100_000_000
"""Largest number of entries that are written as a table."""


def check_export(
    path: str | os.PathLike[str],
    name: str = "path",
    kind: Kind = "fit",
    shape: tuple[int, ...] = (),
    source: Path | None = None,
) -> Path:
    """Return the absolute path of a file for a result of a source, if it can be written."""
    target = check_target(path, name)
    if source is not None and target == source.resolve():
        raise ValueError(f"{name}={str(path)!r} is the file of the data: give another path.")
    ending = target.suffix.lower()
    if ending not in (TABLES if kind == "table" else LIBRARIES):
        raise ValueError(f"{name}={str(path)!r} has an unknown ending: give {FORMATS[kind]}.")
    libraries = LIBRARIES[ending]
    if libraries and not any(map(find_spec, libraries)):
        raise ImportError(f"{name}={str(path)!r} needs {libraries[0]}: pip install {libraries[0]}.")
    size = int(np.prod(shape, dtype=np.int64))
    if size > MAX_TABLE_ENTRIES and ending in TABLES:
        remedy = "fewer draws" if kind == "table" else ".nc or .npz, which have W and H"
        raise ValueError(f"{name}={str(path)!r} would hold {size} numbers: give {remedy}.")
    if ending == ".xlsx" and shape and (math.prod(shape[:-1]) >= 2**20 or shape[-1] >= 2**14):
        sheet = "more rows or columns than a sheet of Excel"
        raise ValueError(f"{name}={str(path)!r} would have {sheet}: give .csv or .parquet.")
    return target


def export(fit: Decomposition, path: str | os.PathLike[str], X: Any = None) -> None:
    """Write a fit in the format of the ending; an older file is kept if this fails."""
    target = check_export(path, "path", "fit", fit._shape)
    ending = target.suffix.lower()
    if ending == ".nc":
        fit.save(target)
    elif ending == ".npz":
        names = ("W", "H", "mean_offset", "row_offsets", "column_offsets")
        arrays = zip(names, (*fit._factors, *fit.offsets), strict=True)
        there: dict[str, Any] = {
            name: np.asarray(array) for name, array in arrays if array is not None
        }
        write_atomically(target, lambda file: np.savez_compressed(file, **there))
    else:
        write_table(filled_table(fit, X), target, plain=is_frame(X))


def export_filled(
    posterior: Posterior,
    path: str | os.PathLike[str],
    X: Any,
    n: int | None = None,
    random_state: Any = None,
) -> None:
    """Write data filled by best guesses, or n copies below each other, as a table."""
    target = check_export(path, "path", "table")
    if n is None:
        frame = as_table(posterior.impute(X), posterior)
    else:
        copies = posterior.impute(X, n, random_state=random_state)
        tables = {k: as_table(copy, posterior) for k, copy in enumerate(copies, 1)}
        frame = pd.concat(tables, names=["draw"]).reset_index("draw")
        if _are_positions(tables[1].index):
            frame = frame.reset_index(drop=True)
    write_table(frame, target, plain=is_frame(X))


def filled_table(fit: Decomposition, X: Any) -> pd.DataFrame:
    """Return the fitted data as a table without missing cells; None gives the reconstruction."""
    if is_frame(X):
        frame: Any = fit.impute(X)
        return frame  # type: ignore[no-any-return]
    matrix = fit._fitted.block()
    if X is not None:
        i, j, observed = observe_like(fit._labels, X).entries()
        if fit._row_model.absent_are_zeros:
            matrix[...] = 0
        matrix[i, j] = observed
    return as_table(matrix, fit)


def as_table(data: Any, result: Decomposition | Posterior) -> pd.DataFrame:
    """Return dense data, which a result has filled, as a table.

    Several dimensions on a side become its levels.
    """
    array, rows = data, list(result._labels.rows)
    if isinstance(data, np.ndarray):
        array = result._labels.label(data)
    if array.ndim > 2:
        columns = [dim for dim in array.dims if dim not in rows]
        array = array.stack(row_=rows, column_=columns).transpose("row_", "column_")
    return array if is_frame(array) else array.to_pandas()  # type: ignore[no-any-return]


def write_table(frame: pd.DataFrame, target: Path, *, plain: bool) -> None:
    """Write a table; a plain one has no numbers of rows or columns in the place of labels."""
    if target.suffix.lower() == ".parquet":  # which has text as names of columns
        names: Any = frame.columns
        frame.columns = [", ".join(map(str, n)) if isinstance(n, tuple) else str(n) for n in names]
        content = frame.to_parquet()
    elif target.suffix.lower() == ".xlsx":
        frame = frame.apply(_without_zone).set_axis(_without_zone(frame.index))
        index = frame.columns.nlevels > 1 or not (plain and _are_positions(frame.index))
        frame.to_excel(file := BytesIO(), index=index)
        content = file.getvalue()
    else:
        row, column = (plain and _are_positions(axis) for axis in (frame.index, frame.columns))
        content = frame.to_csv(index=not row, header=not column).encode()
    write_atomically(target, lambda file: file.write(content))


def _without_zone(dates: Any) -> Any:
    """Return dates with a time zone as text, since those of Excel have none; all else as it is."""
    return dates.astype(str) if isinstance(dates.dtype, pd.DatetimeTZDtype) else dates


def _are_positions(index: Any) -> bool:
    """Return whether pandas has numbered rows or columns that have no labels."""
    return type(index).__name__ == "RangeIndex" and index.name is None


def load(path: str | os.PathLike[str], *, known: Classes = ()) -> Result:
    """Read what `save` of a result or `Study.run` wrote, without executing code of the file.

    Parameters
    ----------
    path : path-like
        Path of the file.
    known : iterable of type, optional
        Classes of your own nonlinearity or loss, if the fit uses one.  They are called with the
        saved `parameters`.

    Returns
    -------
    Decomposition, Posterior or xarray.Dataset
        Saved result, with the same values, types, labels and parameters; the results of a study.

    Raises
    ------
    FileNotFoundError, ValueError
        If the file does not exist, is damaged or of another kind, has the layout of another
        version, or has an unknown nonlinearity or loss.
    ImportError
        If h5netcdf is missing.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.load("nowhere.nc")
    Traceback (most recent call last):
    FileNotFoundError: path='nowhere.nc' is not a file: check the name.
    """
    return result_of(netcdf.read(path), known)


def result_of(dataset: xr.Dataset, known: Classes = ()) -> Result:
    """Return the result that a Dataset holds; that of a study is the Dataset."""
    classes = tuple(model if isinstance(model, type) else type(model) for model in known)
    try:
        description = netcdf.description_in(dataset)
        if "study" in description:
            return dataset
        if description.get("kind") == netcdf.POSTERIOR:
            return Posterior(**netcdf.fields_of_posterior(dataset, description, classes))
        fields = netcdf.fields_of_fit(dataset, description, classes)
        return Decomposition._from_matrices(**fields)
    except netcdf.UnknownContentError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError("dataset holds no result: give one that save() wrote.") from error
