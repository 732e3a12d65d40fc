"""Matrices from NumPy, CSV, Parquet, Matrix Market and NetCDF files, and limits that are texts.

By `censored` a table with limits as text becomes one of numbers and the masks of its limits.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy import sparse
from scipy.io import mmread

from nmd_lab._runtime.checks import check_number, check_word, check_words, many
from nmd_lab.data.typed_table import long_table_columns, refused_columns

from .cell_numbers import read_numbers
from .entries import checked_csr
from .inputs import LIMITING
from .labels import RESULT_ATTRIBUTE, any_frame, is_frame
from .long_table import observations_from_table
from .typed_table import kind_of_objects, plain_label

TABLES = {".csv": None, ".tsv": "\t", ".txt": r"\s+", ".data": r"\s+"}
"""Separator of the cells by the ending of a text file, None if the first line shows it."""

SPARSE = {"format", "shape", "data"}
"""Arrays that every file of `scipy.sparse.save_npz` has."""


NAMES_AND_TEXTS = """import sys, h5netcdf
try:
    with h5netcdf.File(sys.argv[1]) as file:
        for variable in file.variables.values():
            dict(variable.attrs), variable.dimensions, variable.dtype == object and variable[...]
except Exception as error:
    print(error)"""
"""Program that reads what has no fixed size in a NetCDF file, from which HDF5 may not return."""

SECONDS = 20
"""Seconds within which this program ends, if the file is not damaged."""


def read_numpy(path: Path, variable: str | None) -> Any:
    """Return the array of a file .npy, or an array or the sparse matrix of a file .npz."""
    with path.open("rb") as stream:  # NumPy leaves a damaged file open
        with errors_of(path):
            content: Any = np.load(stream, allow_pickle=False)
            if isinstance(content, np.ndarray):
                return content
            if set(content.files) >= SPARSE:
                return _checked(sparse.load_npz(path))
        name = _array_name(content.files, variable)
        with errors_of(path):
            if not isinstance(array := content[name], np.ndarray):
                raise ValueError("it is no array in the format of NumPy")
            return array


def read_matrix_market(path: Path) -> Any:
    """Return the sparse or dense matrix of a file .mtx or .mtx.gz."""
    with errors_of(path):
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        # SciPy's reader leaves its memory at a zero byte, and after a last line without an end.
        if b"\0" in content:
            raise ValueError("it holds a zero byte, which is no text")
        X = mmread(io.BytesIO(content + b"\n"), spmatrix=False)
        return _checked(X) if sparse.issparse(X) else X


def read_netcdf(path: Path, variable: str | None) -> xr.DataArray:
    """Return an array of a file .nc."""
    with errors_of(path):
        with path.open("rb") as stream:
            is_hdf5 = stream.read(4) == b"\x89HDF"
        if is_hdf5:
            _check_hdf5(path)
        dataset = xr.load_dataset(path)
        if RESULT_ATTRIBUTE in dataset.attrs:
            raise ValueError("it is a result of nmd_lab, not data")
    names = [str(name) for name, array in dataset.data_vars.items() if array.ndim > 1]
    return dataset[_array_name(names, variable)]


def _check_hdf5(path: Path) -> None:
    """Raise for a file whose names and texts keep HDF5 forever, or end its process."""
    command = [sys.executable, "-c", NAMES_AND_TEXTS, str(path)]
    try:
        done = subprocess.run(command, timeout=SECONDS, capture_output=True, text=True)
    except subprocess.TimeoutExpired as error:
        raise ValueError(f"its names and texts were not read within {SECONDS} seconds") from error
    if done.returncode < 0 or done.stdout:
        raise ValueError(done.stdout or "HDF5 ends the process that reads it")


def _checked(X: Any) -> Any:
    """Return a sparse matrix of real numbers, in native byte order, with indices in its shape."""
    if X.ndim != 2 or X.dtype.kind not in "buif":
        raise ValueError(f"its data have shape {X.shape} and dtype {X.dtype}, not real numbers")
    dtype = X.dtype.newbyteorder("=")
    X = X.astype(np.float32 if dtype == np.float16 else dtype, copy=False)
    checked_csr("its matrix", X)
    return X


def _array_name(names: list[str], variable: str | None) -> str:
    """Return the name of the array to read: `variable`, or the only one."""
    if variable is None and len(names) == 1:
        return names[0]
    check_word("variable", variable, names)
    return str(variable)


def read_matrix(path: str | os.PathLike[str], **options: Any) -> Any:
    """Return the matrix in a file, as input for `complete`; the options are as for `read_file`."""
    return read_file(path, **options)[0]


def read_file(
    path: str | os.PathLike[str],
    *,
    variable: str | None = None,
    row: str | None = None,
    column: str | None = None,
    value: str | None = None,
    header: bool | str = "auto",
    index: bool | str = "auto",
) -> tuple[Any, str]:
    r"""Return the matrix in a file, with its labels, and a line about its content.

    The line is such as "60 rows x 40 columns from x.csv, first column taken as row labels, first
    line taken as column labels".
    """
    path = Path(path)
    for name, choice in (("header", header), ("index", index)):
        check_word(name, choice, ("auto", True, False))
    if not path.is_file():
        raise FileNotFoundError(f"file={str(path)!r} does not exist: check the name.")
    ending = (path.with_suffix("") if path.suffix == ".gz" else path).suffix
    columns: dict[str, str | None] = {"row": row, "column": column, "value": value}
    if ending in TABLES:
        return _read_table(path, TABLES[ending], columns, header, index)
    for name, wanted in {**columns, "header": header, "index": index}.items():
        if wanted not in (None, "auto"):
            raise ValueError(f"{name}={wanted!r} is meant for tables: file is {path.name}.")
    X: Any
    if ending == ".mtx":
        X = read_matrix_market(path)
    elif path.suffix in (".npy", ".npz"):
        X = read_numpy(path, variable)
    elif path.suffix == ".nc":
        X = read_netcdf(path, variable)
    elif path.suffix == ".parquet":
        if find_spec("pyarrow") is None:
            raise ImportError(f"file={str(path)!r} needs pyarrow: pip install pyarrow.")
        with errors_of(path):
            X = pd.read_parquet(path, engine="pyarrow", dtype_backend="numpy_nullable")
    else:
        raise ValueError(
            f"file={str(path)!r} has an unknown ending: give .npy, .npz, .mtx, .csv, .tsv, .txt, "
            ".data, .parquet or .nc."
        )
    return X, f"{_sizes(X)} from {path.name}"


def _read_table(
    path: Path,
    separator: str | None,
    columns: dict[str, str | None],
    header: bool | str,
    index: bool | str,
) -> tuple[Any, str]:
    """Return a table as a matrix or observations, and a line about its content.

    By default the first line has labels unless all its cells are numbers, and the first
    column has some if it has no name, or text that does not come twice.
    """
    if header == "auto":
        top = _parsed(path, separator, header=None, nrows=1).iloc[0]
        is_blank = top.isna() & (np.arange(top.size) > 0)
        header = not (read_numbers(top)["number"].notna() | is_blank).all()
    frame = _parsed(path, separator, header=0 if header else None)
    named = any(columns.values())
    names = columns if named else long_table_columns(frame) if header else None
    if names and (named or index is not True):
        return _long_table(path, frame, names)
    label, first = str(frame.columns[0]), frame.iloc[:, 0]
    unnamed = label.startswith("Unnamed: ")
    if index == "auto":
        is_number = read_numbers(first)["number"].notna()  # a limit such as <0.5 is no label
        is_label = first.dtype.kind == "O" and first.is_unique and not is_number.any()
        index = frame.shape[1] > 1 and (unnamed or is_label)
    if index:
        frame = frame.set_index(frame.columns[0]).rename_axis(None if unnamed else label)
    if not header:
        frame = frame.rename_axis(None)
        frame.columns = range(frame.shape[1])
    elif all(str(name).isdecimal() for name in frame.columns):  # as `DataFrame.to_csv` wrote them
        frame.columns = frame.columns.astype(int)
    for name in refused_columns(frame).get("date texts", ()):
        frame[name] = pd.to_datetime(frame[name], format="ISO8601")
    used = ["first column taken as row labels"] * bool(index)
    used += ["first line taken as column labels"] * bool(header)
    return frame, ", ".join([f"{_sizes(frame)} from {path.name}", *(used or ["no labels"])])


def _parsed(path: Path, separator: str | None, **options: Any) -> Any:
    """Return a table as a DataFrame."""
    with errors_of(path):
        if separator is None:
            with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as stream:
                separator = _separator(stream.readline())
        return pd.read_csv(path, sep=separator, low_memory=False, **options)


def _separator(line: str) -> str:
    """Return what stands between the cells of a line."""
    try:
        return csv.Sniffer().sniff(line, ",;\t|").delimiter
    except csv.Error:  # one column
        return ","


def _long_table(path: Path, frame: Any, names: dict[str, Any]) -> tuple[Any, str]:
    """Return the observations of a table with one in each line, and what was read."""
    for role, name in names.items():
        if name is None:
            raise ValueError(f"{role} is not given: a long table needs row, column and value.")
    counted = frame.columns.dtype.kind == "i"  # columns without names are
    if counted and all(str(name).isdecimal() for name in names.values()):
        usual = dict(zip(names, ("user", "item", "rating"), strict=True))
        frame = frame.rename(columns={int(name): usual[role] for role, name in names.items()})
        names = usual
    try:
        X = observations_from_table(frame, **names)
    except TypeError as error:
        raise ValueError(
            f"file={str(path)!r} holds text in the column {names['value']!r}: give one of numbers."
        ) from error
    m, n = X.shape
    return X, (
        f"{many(m, 'row')} ({names['row']}) x {many(n, 'column')} ({names['column']}), "
        f"{many(X.values.size, 'value')} "
        f"({names['value']}) from {path.name}, a long table with one value in each line"
    )


def with_categories(X: Any, names: Sequence[str]) -> Any:
    """Return a table with some of its columns as categories."""
    if names and not is_frame(X):
        raise ValueError(f"categories={names[0]!r} is meant for tables: leave it out.")
    by_text = {str(name): name for name in X.columns} if names else {}
    check_words("categories", names, by_text)
    return X.astype({by_text[name]: "category" for name in names}) if names else X


def _sizes(X: Any) -> str:
    """Return the sizes of a matrix in words."""
    if isinstance(X, xr.DataArray):
        return " x ".join(f"{size} {dim}" for dim, size in X.sizes.items())
    if len(X.shape) != 2:
        return f"array of shape {X.shape}"
    is_dense = isinstance(X, np.ndarray | pd.DataFrame)
    stored = "" if is_dense else f", {many(X.nnz, 'stored entry')}"
    return f"{many(X.shape[0], 'row')} x {many(X.shape[1], 'column')}{stored}"


@contextmanager
def errors_of(path: object) -> Iterator[None]:
    """Turn any error of a reader into a ValueError of one sentence that names the file.

    The libraries that read files raise almost any error for a damaged one, zlib.error and KeyError
    among them.  What they warn of is ignored.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except ImportError:
        raise
    except Exception as error:
        text = str(error) if type(error) is not KeyError else f"no {error}"
        text = " ".join(text.split()).removeprefix("Error tokenizing data. C error: ")
        sentence = text.partition(". ")[0].partition(": build it")[0]
        reason = sentence.rstrip(".:") or type(error).__name__
        raise ValueError(
            f"file={str(path)!r} cannot be read: {reason}; check it, or get it again."
        ) from error


@any_frame
def censored(
    frame: Any, limits: float | Mapping[Any, float] | None = None
) -> tuple[Any, dict[str, pd.DataFrame]]:
    """Read values below or above a limit of detection, such as "<0.5" and "ND", as numbers.

    Parameters
    ----------
    frame : DataFrame of any library
        Table with numbers, and texts such as "<0.5", "≥ 200", "0,7", "1 200.5", "n.d." or "<LOD".
        Columns of other texts, dates and classes stay as they are.
    limits : float or dict, optional
        Limit of detection of the cells with a word such as "ND" or "<LOD": one for all columns, or
        one by column.

    Returns
    -------
    values : same type as `frame`
        Table with numeric columns (float64); a cell with a limit has this limit.
    limits : dict
        Keyword arguments of `impute`, `sample` and `complete`: "at_most" and "at_least", each a
        pandas.DataFrame of bool, without one that is True nowhere.  The sum
        ``limits["at_most"].sum()`` is the number of cells in each column.

    Raises
    ------
    ValueError
        If a limit of detection is not given, or not finite, or if a column of numbers has another
        text, or commas that may be decimal or not.
    TypeError
        If `frame` is no DataFrame, or a limit no number.

    See Also
    --------
    impute : Fill the cells within their limits.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> import nmd_lab as nmd
    >>> frame = pd.DataFrame({"lead": ["0.7", "<0.5", "1.2", "ND"], "zinc": [31.0, 8.0, 9.5, None]})
    >>> values, limits = nmd.censored(frame, limits={"lead": 0.3})
    >>> values["lead"].tolist()
    [0.7, 0.5, 1.2, 0.3]
    >>> {name: mask["lead"].tolist() for name, mask in limits.items()}
    {'at_most': [False, True, False, True]}

    Fill a generated table, each cell with a limit within it:

    >>> rng = np.random.default_rng(0)
    >>> metals = np.exp(rng.normal(size=(80, 1)) + 0.5 * rng.normal(size=(80, 3)))
    >>> frame = pd.DataFrame(metals.round(2), columns=["lead", "zinc", "iron"])
    >>> values, limits = nmd.censored(frame.astype(str).where(frame > 0.5, "<0.5"))
    >>> filled = nmd.impute(values, draws=50, random_state=0, **limits)
    >>> bool((filled[limits["at_most"]].max() <= 0.5).all())
    True
    """
    if not is_frame(frame):
        raise TypeError(f"frame is a {type(frame).__name__}: give a DataFrame.")
    by_name = limits if isinstance(limits, Mapping) else {}
    values, masks = frame.copy(), np.zeros((2, *frame.shape), dtype=bool)
    for k, (name, column) in enumerate(frame.items()):
        if name not in by_name and kind_of_objects(column) not in ("numbers", "words"):
            continue
        read, label = read_numbers(column), plain_label(name)
        unknown, words = column[read["is_unknown"]], column[read["is_word"]]
        if unknown.size:
            raise ValueError(
                f"column {label!r} has {unknown.iloc[0]!r}, which is no number or limit, or has a "
                "comma that may be decimal: write it as 0.5 or '<0.5', or empty it."
            )
        if words.size:
            limit = by_name.get(name) if isinstance(limits, Mapping) else limits
            if limit is None:
                raise ValueError(
                    f"column {label!r} has {many(words.size, 'cell')} such as {words.iloc[0]!r} "
                    f"below a limit that limits={limits!r} does not give: give "
                    f"limits={{{label!r}: ...}}."
                )
            limit = check_number(f"limits of {label!r}", limit)
            read["number"] = read["number"].mask(read["is_word"], limit)
        values.isetitem(k, read["number"])
        masks[..., k] = read["at_most"], read["at_least"]
    named = zip(LIMITING, masks, strict=True)
    return values, {
        name: pd.DataFrame(mask, frame.index, frame.columns) for name, mask in named if mask.any()
    }
