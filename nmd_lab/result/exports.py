"""A fit as a file for other programs, in the format that the ending of its name says."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nmd_lab._atomic import check_target, write_atomically
from nmd_lab.data.labels import is_frame
from nmd_lab.data.matching import observe_beside

from .decomposition import Decomposition

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

LARGEST_TABLE = 100_000_000
"""Largest number of entries of a reconstruction that is written as a table."""


TABLES = (".csv", ".parquet")
"""Endings of tables."""


def check_export(path: str | os.PathLike[str], name: str = "path") -> Path:
    """Return the absolute path of a file for a fit, if it can be written with a known ending."""
    target = check_target(path, name)
    ending = target.suffix.lower()
    if ending not in WRITERS:
        raise ValueError(
            f"{name}={str(path)!r} has an unknown ending: give .nc (the fit), .npz (W, H and the "
            "offsets), .csv or .parquet (a table)."
        )
    libraries = {".nc": ("h5netcdf",), ".parquet": ("pyarrow", "fastparquet")}.get(ending, ())
    if libraries and not any(map(find_spec, libraries)):
        extra = "'nmd-lab[io]'" if ending == ".nc" else libraries[0]
        raise ImportError(f"{name}={str(path)!r} needs {libraries[0]}: pip install {extra}.")
    return target


def check_export_size(path: str | os.PathLike[str], shape: tuple[int, int]) -> None:
    """Raise ValueError if a file would hold a table of too many entries."""
    m, n = shape
    if Path(path).suffix.lower() in TABLES and m * n > LARGEST_TABLE:
        raise ValueError(
            f"out={str(path)!r} would hold {m} x {n} numbers: give .nc or .npz, which hold W and H."
        )


def export(fit: Decomposition, path: str | os.PathLike[str], X: Any = None) -> None:
    """Write a fit in the format that the ending says; an older file is kept if this fails."""
    target = check_export(path)
    check_export_size(path, fit.shape)
    WRITERS[target.suffix.lower()](fit, target, X)


def filled_table(fit: Decomposition, X: Any) -> pd.DataFrame:
    """Return the fitted data as a table with its holes filled; None gives the reconstruction."""
    if is_frame(X):
        frame: Any = fit.impute(X)
        return frame  # type: ignore[no-any-return]
    matrix = fit.block(slice(None), slice(None))
    if X is not None:
        i, j, observed = observe_beside(fit.labels, X).entries()
        if fit.model.absent_are_zeros:
            matrix[...] = 0
        matrix[i, j] = observed
    return table_of(fit.labels.label(matrix), fit.labels.rows)


def _write_arrays(fit: Decomposition, path: Path, _: Any) -> None:
    """Write W, H and the offsets as NumPy arrays."""
    rank = fit.W.sizes["component"]
    offsets = fit.offsets
    arrays: dict[str, Any] = {
        "W": fit.W.values.reshape(-1, rank),
        "H": fit.H.values.reshape(rank, -1),
        "mean_offset": np.float64(offsets.mean),
    }
    for name, values in (("row_offsets", offsets.rows), ("column_offsets", offsets.columns)):
        if values is not None:
            arrays[name] = values
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    write_atomically(path, [content.getbuffer()])


def table_of(array: xr.DataArray, rows: Sequence[str]) -> pd.DataFrame:
    """Return an array as a table; several dimensions on a side become its levels."""
    rows = list(rows)
    columns = [dim for dim in array.dims if dim not in rows]
    if array.ndim > 2:
        array = array.stack(row_=rows, column_=columns).transpose("row_", "column_")
    frame: Any = array.to_pandas()
    return frame  # type: ignore[no-any-return]


def _write_text(fit: Decomposition, path: Path, X: Any) -> None:
    """Write a table of text, with the labels that the data have."""
    frame = filled_table(fit, X)
    row, column = (is_frame(X) and _are_positions(axis) for axis in (frame.index, frame.columns))
    write_atomically(path, [frame.to_csv(index=not row, header=not column).encode()])


def _are_positions(index: Any) -> bool:
    """Return whether pandas has numbered rows or columns that have no labels."""
    return type(index).__name__ == "RangeIndex" and index.name is None


def _write_parquet(fit: Decomposition, path: Path, X: Any) -> None:
    """Write a table in the format Parquet, which has text as column names."""
    frame = filled_table(fit, X)
    frame.columns = [as_text(label) for label in frame.columns]
    content = io.BytesIO()
    frame.to_parquet(content)
    write_atomically(path, [content.getvalue()])


def as_text(label: Any) -> str:
    """Return a label of a column as text."""
    return ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)


WRITERS: dict[str, Callable[[Decomposition, Path, Any], None]] = {
    ".nc": lambda fit, path, _: fit.save(path),
    ".npz": _write_arrays,
    ".csv": _write_text,
    ".parquet": _write_parquet,
}
"""Function that writes a fit, by the ending of the file."""
