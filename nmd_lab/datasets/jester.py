"""Reader of Jester, ratings of jokes on a continuous scale."""

from __future__ import annotations

from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.checks import check_word
from nmd_lab.data.frames import errors_of

from ._delimited import open_binary
from ._files import PathLike, locate
from ._sources import JESTER

if TYPE_CHECKING:
    import pandas as pd

N_JOKES = 100
NOT_RATED = 99
"""Number of jokes, and the value of a joke without a rating, in the files."""


def jester(part: int = 1, path: PathLike | None = None) -> pd.DataFrame:
    """Return one part of the ratings of 100 jokes by 73 421 people, from -10 to 10.

    Jester is free for research. Please cite Goldberg, Roeder, Gupta and Perkins (2001), Information
    Retrieval 4(2), 133-151.

    Parameters
    ----------
    part : {1, 2, 3}, default 1
        Number of the file of data set 1. Parts 1 and 2 have 24 983 and 23 500 users with 36 or
        more ratings each, part 3 has 24 938 users with 15 to 35.
    path : path-like, optional
        Folder with jester-data-1.csv, jester-data-1.xls or jester_dataset_1_1.zip (for part 1), or
        the archive itself. Default: the folder jester in the folder that the environment variable
        NMD_LAB_DATA names. If it is not there, the archive is downloaded and its checksum
        verified. Reading .xls needs xlrd.

    Returns
    -------
    DataFrame
        Columns user (line of the file, from 1), item (joke, from 1) and rating. `attrs` holds
        the source and the terms of use.

    Raises
    ------
    ValueError
        If the part is unknown, if a download has a wrong checksum, or if a file is damaged (with
        the number of the line).
    FileNotFoundError, ConnectionError, ImportError
        If the data set is not found and cannot be downloaded, or if xlrd is missing.
    """
    import pandas as pd

    check_word("part", part, (1, 2, 3))
    names = (f"jester-data-{part}.csv", f"jester-data-{part}.xls")
    file = locate(JESTER, path, *names, archive=f"jester_dataset_1_{part}.zip")
    matrix = _read_matrix(file)
    counts, values = matrix[:, 0], matrix[:, 1:]
    rated = values != NOT_RATED
    valid = (counts == rated.sum(axis=1)) & np.all(~rated | (np.abs(values) <= 10), axis=1)
    if not valid.all():
        raise ValueError(
            f"{str(file)!r}, line {int(np.argmin(valid)) + 1} does not hold as many ratings from "
            "-10 to 10 as its first field says: the file is damaged, get the original again."
        )
    user, item = np.nonzero(rated)
    table = pd.DataFrame({"user": user + 1, "item": item + 1, "rating": values[user, item]})
    table.attrs.update(JESTER.attrs)
    return table


def _read_matrix(file: Traversable) -> NDArray[np.float64]:
    """Return one row for each user: the number of rated jokes, then the rating of each joke."""
    import pandas as pd

    if file.name.endswith(".xls"):
        return _read_sheet(file)
    with errors_of(file), open_binary(file) as stream:
        lines = pd.read_csv(stream, header=None, dtype=float)
        if lines.shape[1] != N_JOKES + 1 or lines.isna().to_numpy().any():
            raise ValueError(f"its lines are not all of {N_JOKES + 1} numbers")
    return lines.to_numpy()


def _read_sheet(file: Traversable) -> NDArray[np.float64]:
    """Return the same matrix from the first sheet of an Excel file."""
    try:
        import xlrd
    except ImportError as error:
        raise ImportError("Reading .xls needs xlrd: pip install 'nmd-lab[data]'.") from error
    try:
        sheet = xlrd.open_workbook(file_contents=file.read_bytes()).sheet_by_index(0)
        rows = [sheet.row_values(number) for number in range(sheet.nrows)]
        matrix = np.array(rows, dtype=float).reshape(-1, N_JOKES + 1)
    except (ValueError, xlrd.XLRDError) as error:
        raise ValueError(
            f"{str(file)!r} is no sheet of {N_JOKES + 1} columns of numbers: get it again."
        ) from error
    return matrix
