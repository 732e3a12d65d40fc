"""Jester: ratings of jokes on a scale without steps, a matrix with a dense part."""

from __future__ import annotations

import zipfile
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nmd_lab._checks import check_word

from ._delimited import open_binary, refuse_first_damaged_line
from ._files import PathLike, locate
from ._sources import JESTER

if TYPE_CHECKING:
    import pandas as pd

N_JOKES = 100
NOT_RATED = 99


def jester(part: int = 1, path: PathLike | None = None) -> pd.DataFrame:
    """Return a part of the ratings of 100 jokes by 73 421 people, from -10 to 10.

    Jester is free for research and to be cited as Goldberg, Roeder, Gupta and Perkins (2001),
    Information Retrieval 4(2), 133-151.

    Parameters
    ----------
    part : {1, 2, 3}, default 1
        Which of the three files of data set 1: 24 983 and 23 500 users with 36 or more ratings
        each, or 24 938 with 15 to 35.
    path : path-like, optional
        The folder that holds jester-data-1.csv, jester-data-1.xls or jester_dataset_1_1.zip (for
        part 1), or this archive itself.  By default the folder jester under NMD_LAB_DATA, and
        without one a download whose checksum is verified.  To read .xls takes xlrd.

    Returns
    -------
    DataFrame
        Columns user (line of the file, from 1), item (joke, from 1) and rating; its `attrs` name
        source and terms.

    Raises
    ------
    ValueError
        If there is no such part, a download is not the right file, or a file is damaged; then the
        line is named.
    FileNotFoundError, ConnectionError, ImportError
        If the set is not there and cannot be downloaded, or xlrd is missing.
    """
    import pandas as pd

    check_word("part", part, (1, 2, 3))
    names = (f"jester-data-{part}.csv", f"jester-data-{part}.xls")
    file = locate(JESTER, path, *names, archive=f"jester_dataset_1_{part}.zip")
    matrix = _read_matrix(file)
    counts, values = matrix[:, 0], matrix[:, 1:]
    rated = values != NOT_RATED
    whole = (counts == rated.sum(axis=1)) & np.all(~rated | (np.abs(values) <= 10), axis=1)
    if not whole.all():
        raise ValueError(
            f"{str(file)!r}, line {int(np.argmin(whole)) + 1} does not hold as many ratings from "
            "-10 to 10 as its first field says: the file is damaged, get the original again."
        )
    user, item = np.nonzero(rated)
    table = pd.DataFrame({"user": user + 1, "item": item + 1, "rating": values[user, item]})
    table.attrs.update(JESTER.attrs)
    return table


def _read_matrix(file: Traversable) -> NDArray[np.float64]:
    """Read one line a user: how many jokes are rated, then the rating of each."""
    import pandas as pd

    if file.name.endswith(".xls"):
        return _read_sheet(file)
    reason = None
    try:
        with open_binary(file) as stream:
            lines = pd.read_csv(stream, header=None, dtype=float)
        if lines.shape[1] == N_JOKES + 1 and not lines.isna().to_numpy().any():
            return lines.to_numpy()
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        reason = error

    def is_whole(parts: list[str]) -> bool:
        return len([float(part) for part in parts]) == N_JOKES + 1

    what = f"{N_JOKES + 1} numbers"
    refuse_first_damaged_line(file, ",", 0, is_whole, what, reason)
    raise ValueError(f"{str(file)!r} cannot be read: get the original again.") from reason


def _read_sheet(file: Traversable) -> NDArray[np.float64]:
    """Read the same from the first sheet of an Excel file."""
    try:
        import xlrd
    except ImportError as error:
        raise ImportError("to read .xls takes xlrd: pip install 'nmd-lab[data]'.") from error
    try:
        sheet = xlrd.open_workbook(file_contents=file.read_bytes()).sheet_by_index(0)
        rows = [sheet.row_values(number) for number in range(sheet.nrows)]
        matrix = np.array(rows, dtype=float).reshape(-1, N_JOKES + 1)
    except (ValueError, xlrd.XLRDError) as error:
        raise ValueError(
            f"{str(file)!r} is no sheet of {N_JOKES + 1} columns of numbers: get it again."
        ) from error
    return matrix
