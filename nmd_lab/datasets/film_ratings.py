"""MovieLens, ratings of films: find the files in a folder or an archive, or download and read them.

The places are, in this order: the argument `path`; the folder of the data set in the folder that
the environment variable NMD_LAB_DATA names; the cache of downloads of pooch.  With `path` nothing
is downloaded.
"""

from __future__ import annotations

import csv
import os
import warnings
import zipfile
from dataclasses import dataclass, replace
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nmd_lab._runtime.checks import check_word, needs_library
from nmd_lab.data.readers import errors_of
from nmd_lab.warnings import NMDWarning

GROUPLENS = "https://files.grouplens.org/datasets/movielens/"
TERMS = (
    "for research, not for commerce, {}, to be cited as Harper and Konstan (2015), "
    "doi.org/10.1145/2827872"
)
PASSED_ON = TERMS.format("to be passed on under the same conditions only")
NOT_PASSED_ON = TERMS.format("not to be passed on without permission")

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Edition:
    """An edition of MovieLens: its archive, its terms, and the format of its files."""

    name: str
    sha256: str
    terms: str = PASSED_ON
    ratings: str = "ratings.csv"
    titles: str = "movies.csv"
    separator: str = ","
    encoding: str = "utf-8"
    lowest: float = 0.5
    fields: int = 4

    @property
    def archive(self) -> str:
        """Name of the archive for download."""
        return f"ml-{self.name}.zip"

    @property
    def header(self) -> int:
        """Number of lines before the first rating or title."""
        return int(self.separator == ",")

    @property
    def attrs(self) -> dict[str, str]:
        """The attributes of the table of ratings."""
        name = self.name
        title = name.replace("k", "K").replace("m", "M") if name[0].isdigit() else name
        page = f"grouplens.org/datasets/movielens/{name.removesuffix('-small')}"
        return {"title": f"MovieLens {title}", "source": page, "terms": self.terms}


OLD: dict[str, Any] = {"terms": NOT_PASSED_ON, "encoding": "latin-1", "lowest": 1.0}
LINES: dict[str, Any] = {"ratings": "u.data", "titles": "u.item", "separator": "\t"}
COLONS: dict[str, Any] = {"ratings": "ratings.dat", "titles": "movies.dat", "separator": "::"}
EDITIONS = (
    Edition(
        "100k", "50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229", **LINES, **OLD
    ),
    Edition(
        "1m", "a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20", **COLONS, **OLD
    ),
    Edition("latest-small", "696d65a3dfceac7c45750ad32df2c259311949efec81f0f144fdfb91ebc9e436"),
    Edition(
        "10m",
        "813c411ccb6122564edfe752e7f80c4dcc5aa25fa94c93622f6877a7ba252862",
        NOT_PASSED_ON,
        **COLONS,
    ),
    Edition("20m", "96f243c338a8665f6bcc89c53edf6ee39162a846940de6b7c8c48aeada765ff3"),
    Edition("25m", "8b21cfb7eb1706b4ec0aac894368d90acf26ebdfb6aced3ebd4ad5bd1eb9c6aa"),
    Edition("32m", "e4a68655d7386b8f95f2f2424b2ff975dfdd15ffd59e0d864a14dca43e99d6ee"),
)
MOVIELENS = {edition.name: edition for edition in EDITIONS}


def find_files(edition: Edition, path: PathLike | None) -> list[Traversable]:
    """Return the files of ratings and titles, from a folder, an archive or a download."""
    root = os.environ.get("NMD_LAB_DATA")
    place = Path(path or Path(root or "", f"movielens-{edition.name}"))
    if path is not None or root:
        ratings, arrays = place / edition.ratings, place / "ratings.npz"
        if edition.name == "1m" and arrays.is_file() and not ratings.is_file():
            ratings = arrays
        files = [ratings, place / edition.titles]
        absent = [file for file in files if not file.is_file()]
        if not absent:
            return [*files]
        archives = [each for each in (place, place / edition.archive) if each.suffix == ".zip"]
        for archive in filter(Path.is_file, archives):
            return _members(archive, edition)
    if path is not None:
        raise FileNotFoundError(
            f"{str(absent[0])!r} does not exist: get {edition.attrs['title']} from "
            f"{edition.attrs['source']}, and lay it out as in data/README.md."
        )
    return _members(_download(edition), edition)


def _members(archive: Path, edition: Edition) -> list[Traversable]:
    """Return the files of ratings and titles, from any folder inside an archive."""
    try:
        with zipfile.ZipFile(archive) as opened:
            members = {name.rpartition("/")[2]: name for name in opened.namelist()}
    except zipfile.BadZipFile as error:
        raise ValueError(f"{str(archive)!r} is not a zip archive: get it again.") from error
    for name in (edition.ratings, edition.titles):
        if name not in members:
            raise FileNotFoundError(f"{str(archive)!r} holds no {name}: get the right archive.")
    return [zipfile.Path(archive, members[name]) for name in (edition.ratings, edition.titles)]


def _download(edition: Edition) -> Path:
    """Return the archive with the right checksum from the cache, after a download if necessary."""
    title, page, terms = edition.attrs.values()
    with needs_library(
        f"{title} is neither given by path= nor under NMD_LAB_DATA, and the download takes "
        "pooch: pip install pooch."
    ):
        import pooch
    cache = pooch.os_cache("nmd_lab") / f"movielens-{edition.name}"
    address = GROUPLENS + edition.archive
    if not (cache / edition.archive).is_file():
        warnings.warn(
            f"downloading {title} from {address} to {str(cache)!r}; terms of use ({page}): "
            f"{terms}.",
            NMDWarning,
            stacklevel=4,
        )
    pooch.get_logger().setLevel("WARNING")  # the warning above is the same
    try:
        return Path(
            pooch.retrieve(address, f"sha256:{edition.sha256}", fname=edition.archive, path=cache)
        )
    except OSError as error:
        raise ConnectionError(
            f"{address} cannot be downloaded ({type(error).__name__}): get {title} from {page} "
            "yourself, and lay it out as in data/README.md."
        ) from error
    except ValueError as error:
        raise ValueError(
            f"{address} is not the file whose SHA-256 begins {edition.sha256[:12]}: the download "
            "was damaged or the file has changed; try again, or give path=."
        ) from error


def read_table(edition: Edition, ratings: Traversable, titles: Traversable) -> pd.DataFrame:
    """Return the ratings with a column of titles."""
    is_arrays = ratings.name.endswith(".npz")
    table = _read_arrays(ratings) if is_arrays else read_ratings(edition, ratings)
    with errors_of(titles):
        separator = edition.separator.replace("\t", r"\|")  # the files of 100k differ
        named = _cells_of(
            edition,
            titles,
            separator,
            engine="python",  # for separators of two characters
            names=["item", "title"],
            usecols=[0, 1],
            dtype=str,
            keep_default_na=False,
            quoting=csv.QUOTE_MINIMAL if separator == "," else csv.QUOTE_NONE,
            encoding=edition.encoding,
        )
        untitled = named.loc[named["title"].isna(), "item"]
        if untitled.size:
            raise ValueError(f"item {untitled.iloc[0]} has no title")
        title_of = dict(zip(named["item"].astype(int), named["title"], strict=True))
    items = table["item"].astype("category").cat
    titles_of_items = pd.Categorical([title_of.get(item, "") for item in items.categories])
    table["title"] = titles_of_items[items.codes.to_numpy()]
    table.attrs.update(edition.attrs)
    return table


def read_ratings(edition: Edition, file: Traversable) -> pd.DataFrame:
    """Return a table with the columns user, item and rating.

    The fast parser of pandas takes separators of one character only.  One of two characters is read
    as two, with an empty column between them.
    """
    width = len(edition.separator)
    names = ["user", "item", "rating", "time"][: edition.fields]
    columns = {width * k: name for k, name in enumerate(names)}
    types: Any = dict(zip(columns, (np.int32, np.int32, float, float), strict=False))
    with errors_of(file):
        table = _cells_of(edition, file, edition.separator[0], dtype=types)
        is_wide = table.shape[1] > max(columns) + 1
        table = table.reindex(columns=[*columns]).rename(columns=columns)
        ids = table["user"].ge(0) & table["item"].ge(0)
        valid = ids & table["rating"].between(edition.lowest, 5) & table.notna().all(axis=1)
        valid &= not is_wide
        if not valid.all():
            line = int(valid.argmin()) + edition.header + 1
            raise ValueError(
                f"line {line} is no user, item and rating from {edition.lowest:g} to 5 in "
                f"{edition.fields} fields with {edition.separator!r} between them"
            )
    return table[["user", "item", "rating"]]


def _cells_of(edition: Edition, file: Traversable, separator: str, **options: Any) -> pd.DataFrame:
    """Return the cells of a text file, perhaps a compressed one."""
    options |= {"compression": "gzip" if file.name.endswith(".gz") else None}
    with file.open("rb") as stream:
        cells: pd.DataFrame = pd.read_csv(
            stream, sep=separator, header=None, skiprows=edition.header, **options
        )
        return cells


def _read_arrays(file: Traversable) -> pd.DataFrame:
    """Read the arrays user, movie and rating of MovieLens 1M from an .npz file."""
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        table = pd.DataFrame({name: arrays[name] for name in ("user", "movie", "rating")})
    types: Any = {"user": np.int32, "item": np.int32, "rating": float}
    return table.rename(columns={"movie": "item"}).astype(types)


SMALL = replace(
    MOVIELENS["latest-small"], ratings="ratings.csv.gz", titles="movies.csv.gz", fields=3
)  # without time stamps
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
    edition = MOVIELENS["latest-small"] if folder is None else SMALL
    table = read_table(edition, *find_files(edition, folder or path))
    table.attrs["edition"] = "September 2018" if folder is None else "October 2016"
    return table


def small_folder(path: PathLike | None = None) -> Path | None:
    """Return the folder with the edition of October 2016 of latest-small, or None."""
    root = os.environ.get("NMD_LAB_DATA")
    usual = [CHECKOUT, *([Path(root) / CHECKOUT.name] if root else [])]
    folders = usual if path is None else [Path(path)]
    return next((folder for folder in folders if (folder / SMALL.ratings).is_file()), None)


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
    return read_table(MOVIELENS[edition], *find_files(MOVIELENS[edition], path))


def movielens_100k(path: PathLike | None = None) -> pd.DataFrame:
    """Return the 100 000 ratings of MovieLens 100K; see `movielens`."""
    return movielens("100k", path)


def movielens_1m(path: PathLike | None = None) -> pd.DataFrame:
    """Return the 1 000 209 ratings of MovieLens 1M; see `movielens`."""
    return movielens("1m", path)
