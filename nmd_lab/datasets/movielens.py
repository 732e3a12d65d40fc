"""Readers of MovieLens, ratings of films."""

from __future__ import annotations

import os
from importlib.resources.abc import Traversable
from pathlib import Path

import numpy as np
import pandas as pd

from nmd_lab._runtime.checks import check_word

from ._files import MOVIELENS, PathLike, RatingsFormat, Source, locate, read_ratings, read_titles

TABS = RatingsFormat(("u.data",), ("u.item",), "\t", "|", "latin-1", scale=(1.0, 5.0))
COLONS = RatingsFormat(
    ("ratings.dat", "ratings.npz"), ("movies.dat",), "::", "::", "latin-1", scale=(1.0, 5.0)
)
HALF_STARS = RatingsFormat(("ratings.dat",), ("movies.dat",), "::", "::")
COMMAS = RatingsFormat(("ratings.csv",), ("movies.csv",), ",", ",", header=True)
SMALL = RatingsFormat(
    ("ratings.csv.gz",), ("movies.csv.gz",), ",", ",", fields=3, header=True
)  # no time stamps

FORMATS = {"100k": TABS, "1m": COLONS, "10m": HALF_STARS}
"""Formats of the older editions. The other editions have the format COMMAS."""


CHECKOUT = Path(__file__).parents[2] / "data" / "movielens-latest-small"
"""Folder of a checkout with the edition of October 2016; installed packages do not have it."""


def movielens_small(path: PathLike | None = None) -> pd.DataFrame:
    """Return about 100 000 ratings of films, MovieLens latest-small.

    In a checkout of `nmd_lab`, these are the 100 004 ratings of the edition of October 2016, whose
    files are in data/movielens-latest-small: 671 users, 9066 films.  An installed package has no
    ratings in it and returns GroupLens's present edition, of September 2018, downloaded on first
    use: 100 836 ratings, 610 users, 9724 films.  Both go from half a star to five stars.

    The ratings are not under the licence of `nmd_lab`. They may be used for research but not
    commercially, and redistributed under the same conditions only. Please cite Harper and Konstan
    (2015), doi.org/10.1145/2827872.

    Parameters
    ----------
    path : path-like, optional
        Folder with the files of either edition, or the zip archive of the present one. Default:
        that of the checkout, or else the folder movielens-latest-small in the folder that the
        environment variable NMD_LAB_DATA names. If neither is there, the archive is downloaded and
        its checksum verified.

    Returns
    -------
    DataFrame
        Columns user, item, rating (0.5 to 5) and title, sorted by user and item. `attrs` holds
        the edition, the source and the terms of use.

    Raises
    ------
    ValueError, FileNotFoundError, ConnectionError, ImportError
        As `movielens`.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> ratings = nmd.datasets.movielens_small()
    >>> nmd.observations_from_table(ratings)
    <nmd_lab.SparseObservations>  user: 671, item: 9066, 100004 stored entries (1.64 %), float64
    """
    folder = small_folder(path)
    if folder is None:
        table = movielens("latest-small", path)
        edition = "September 2018"
    else:
        files = folder / SMALL.ratings[0], folder / SMALL.titles[0]
        table = _table(*files, SMALL, MOVIELENS["latest-small"])
        edition = "October 2016"
    table.attrs["edition"] = edition
    return table


def small_folder(path: PathLike | None = None) -> Path | None:
    """Return the folder with the edition of October 2016 of latest-small, or None."""
    root = os.environ.get("NMD_LAB_DATA")
    usual = [CHECKOUT, *([Path(root) / CHECKOUT.name] if root else [])]
    folders = usual if path is None else [Path(path)]
    return next((folder for folder in folders if (folder / SMALL.ratings[0]).is_file()), None)


def movielens(edition: str, path: PathLike | None = None) -> pd.DataFrame:
    """Return the ratings of an edition of MovieLens.

    MovieLens may be used for research but not commercially. Please cite Harper and Konstan (2015),
    doi.org/10.1145/2827872. The editions 100k, 1m and 10m must not be redistributed, and the others
    under the same conditions only.

    Parameters
    ----------
    edition : {"100k", "1m", "latest-small", "10m", "20m", "25m", "32m"}
        Name of the edition, after its number of ratings.
    path : path-like, optional
        Folder with the files or the zip archive of the edition, or the archive itself. Default:
        the folder movielens-<edition> (such as movielens-25m) in the folder that the environment
        variable NMD_LAB_DATA names. If it is not there, the archive is downloaded and its
        checksum verified.

    Returns
    -------
    DataFrame
        Columns user and item (ids as in the files), rating and title (categorical), in the order
        of the file. `attrs` holds the source and the terms of use.

    Raises
    ------
    ValueError
        If the edition is unknown, if a download has a wrong checksum, or if a file is damaged.
    FileNotFoundError, ConnectionError, ImportError
        If the data set is not found and cannot be downloaded.

    Examples
    --------
    >>> from nmd_lab import datasets
    >>> datasets.movielens("5k")
    Traceback (most recent call last):
    ValueError: edition='5k' is unknown: choose one of ['100k', '1m', 'latest-small', '10m', \
'20m', '25m', '32m'].
    """
    check_word("edition", edition, MOVIELENS)
    source, file_format = MOVIELENS[edition], FORMATS.get(edition, COMMAS)
    (archive,) = source.files
    ratings = locate(source, path, *file_format.ratings, archive=archive)
    titles = locate(source, path, *file_format.titles, archive=archive)
    return _table(ratings, titles, file_format, source)


def movielens_100k(path: PathLike | None = None) -> pd.DataFrame:
    """Return the 100 000 ratings of MovieLens 100K; see `movielens`."""
    return movielens("100k", path)


def movielens_1m(path: PathLike | None = None) -> pd.DataFrame:
    """Return the 1 000 209 ratings of MovieLens 1M; see `movielens`."""
    return movielens("1m", path)


def _table(
    ratings: Traversable, titles: Traversable, file_format: RatingsFormat, source: Source
) -> pd.DataFrame:
    """Return the ratings with a column of titles."""
    is_numpy = ratings.name.endswith(".npz")
    table = _read_numpy(ratings) if is_numpy else read_ratings(ratings, file_format)
    title_of = read_titles(titles, file_format)
    items = table["item"].astype("category")
    names = [title_of.get(int(item), "") for item in items.cat.categories]
    distinct, indices = np.unique(np.array(names, dtype=object), return_inverse=True)
    codes = indices[items.cat.codes.to_numpy()]
    table["title"] = pd.Categorical.from_codes(codes, categories=pd.Index(distinct))
    table.attrs.update(source.attrs)
    return table


def _read_numpy(file: Traversable) -> pd.DataFrame:
    """Read the arrays user, movie and rating of MovieLens 1M from an .npz file."""
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        return pd.DataFrame(
            {
                "user": arrays["user"].astype(np.int32),
                "item": arrays["movie"].astype(np.int32),
                "rating": arrays["rating"].astype(float),
            }
        )
