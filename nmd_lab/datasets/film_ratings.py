"""MovieLens, ratings of films: find the files in a folder or an archive, or download and read them.

The places are, in this order: the argument `path`; the folder of the data set in the folder that
the environment variable NMD_LAB_DATA names; the cache of downloads of pooch.  With `path` nothing
is downloaded.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nmd_lab._runtime.checks import check_word
from nmd_lab.data.readers import errors_of
from nmd_lab.warnings import NMDWarning

SHA256 = """
50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229  ml-100k.zip
a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20  ml-1m.zip
696d65a3dfceac7c45750ad32df2c259311949efec81f0f144fdfb91ebc9e436  ml-latest-small.zip
813c411ccb6122564edfe752e7f80c4dcc5aa25fa94c93622f6877a7ba252862  ml-10m.zip
96f243c338a8665f6bcc89c53edf6ee39162a846940de6b7c8c48aeada765ff3  ml-20m.zip
8b21cfb7eb1706b4ec0aac894368d90acf26ebdfb6aced3ebd4ad5bd1eb9c6aa  ml-25m.zip
e4a68655d7386b8f95f2f2424b2ff975dfdd15ffd59e0d864a14dca43e99d6ee  ml-32m.zip
"""
"""Checksums of all files for download, in the format of `sha256sum`."""

GROUPLENS = "https://files.grouplens.org/datasets/movielens/"
MOVIELENS_PAPER = "Harper and Konstan (2015), doi.org/10.1145/2827872"
MAY_NOT_BE_PASSED_ON = (
    "for research, not for commerce, not to be passed on without permission, to be cited as "
    + MOVIELENS_PAPER
)
MAY_BE_PASSED_ON = (
    "for research, not for commerce, to be passed on under the same conditions only, to be cited "
    "as " + MOVIELENS_PAPER
)


@dataclass(frozen=True)
class Source:
    """Source of a data set."""

    name: str
    title: str
    page: str
    terms: str
    address: str = ""
    files: tuple[str, ...] = ()

    @property
    def attrs(self) -> dict[str, str]:
        """The attributes that a data set gets from its source."""
        return {"title": self.title, "source": self.page, "terms": self.terms}


def sha256_of(file: str) -> str:
    """Return the expected checksum of a file."""
    checksums = dict(line.split()[::-1] for line in SHA256.split("\n") if line)
    return checksums[file]


def _movielens(edition: str, terms: str = MAY_BE_PASSED_ON) -> Source:
    """Return the source of an edition of MovieLens."""
    title = edition.replace("k", "K").replace("m", "M") if edition[0].isdigit() else edition
    page = f"grouplens.org/datasets/movielens/{edition.removesuffix('-small')}"
    archives = (f"ml-{edition}.zip",)
    return Source(f"movielens-{edition}", f"MovieLens {title}", page, terms, GROUPLENS, archives)


MOVIELENS = {
    "100k": _movielens("100k", MAY_NOT_BE_PASSED_ON),
    "1m": _movielens("1m", MAY_NOT_BE_PASSED_ON),
    "latest-small": _movielens("latest-small"),
    "10m": _movielens("10m", MAY_NOT_BE_PASSED_ON),
    "20m": _movielens("20m"),
    "25m": _movielens("25m"),
    "32m": _movielens("32m"),
}
"""Sources of the editions of MovieLens."""


PathLike = str | os.PathLike[str]


def locate(
    source: Source, path: PathLike | None, *names: str, archive: str | None = None
) -> Traversable:
    """Return one file of a data set."""
    root = os.environ.get("NMD_LAB_DATA")
    folder = Path(path) if path is not None else Path(root) / source.name if root else None
    if folder is not None:
        if folder.suffix == ".zip" and folder.is_file():
            return _member(folder, names)
        for name in names:
            if (folder / name).is_file():
                return folder / name
        if archive is not None and (folder / archive).is_file():
            return _member(folder / archive, names)
    file = archive or names[0]
    if path is None and file in source.files:
        downloaded = _download(source, file)
        return _member(downloaded, names) if archive else downloaded
    missing = (
        "path is not given and NMD_LAB_DATA not set"
        if folder is None
        else f"{str(folder / names[0])!r} does not exist"
    )
    raise FileNotFoundError(
        f"{missing}: get {source.title} from {source.page}, and lay it out as in data/README.md."
    )


def _member(archive: Path, names: tuple[str, ...]) -> Traversable:
    """Return a file of an archive, from any folder inside it."""
    try:
        with zipfile.ZipFile(archive) as opened:
            members = opened.namelist()
    except zipfile.BadZipFile as error:
        raise ValueError(f"{str(archive)!r} is not a zip archive: get it again.") from error
    for member in members:
        if member.rpartition("/")[2] in names:
            return zipfile.Path(archive, member)
    raise FileNotFoundError(f"{str(archive)!r} holds no {names[0]}: get the right archive.")


def _download(source: Source, file: str) -> Path:
    """Return a file with the right checksum from the cache, after a download if necessary."""
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            f"{source.title} is neither given by path= nor under NMD_LAB_DATA, and the download "
            "takes pooch: pip install 'nmd-lab[data]'."
        ) from error
    cache, address = pooch.os_cache("nmd_lab") / source.name, source.address + file
    if not (cache / file).is_file():
        warnings.warn(
            f"downloading {source.title} from {address} to {str(cache)!r}; terms of use "
            f"({source.page}): {source.terms}.",
            NMDWarning,
            stacklevel=4,
        )
    pooch.get_logger().setLevel("WARNING")  # the warning above is the same
    checksum = sha256_of(file)
    try:
        downloaded = pooch.retrieve(address, f"sha256:{checksum}", fname=file, path=cache)
    except OSError as error:
        raise ConnectionError(
            f"{address} cannot be downloaded ({type(error).__name__}): get {source.title} from "
            f"{source.page} yourself, and lay it out as in data/README.md."
        ) from error
    except ValueError as error:
        raise ValueError(
            f"{address} is not the file whose SHA-256 begins {checksum[:12]}: the "
            "download was damaged or the file has changed; try again, or give path=."
        ) from error
    return Path(downloaded)


@dataclass(frozen=True)
class RatingsFormat:
    """Format of the files of a data set of ratings."""

    ratings: tuple[str, ...]
    titles: tuple[str, ...]
    separator: str
    titles_separator: str
    encoding: str = "utf-8"
    fields: int = 4
    header: bool = False
    scale: tuple[float, float] = (0.5, 5.0)


def read_ratings(file: Traversable, file_format: RatingsFormat) -> pd.DataFrame:
    """Return a table with the columns user, item and rating."""
    with errors_of(file):
        table = _parse(file, file_format)
        low, high = file_format.scale
        ids = table["user"].ge(0) & table["item"].ge(0)
        valid = ids & table["rating"].between(low, high) & table.notna().all(axis=1)
        if not valid.all():
            line = int(valid.argmin()) + int(file_format.header) + 1
            raise ValueError(
                f"line {line} is no user, item and rating from {low:g} to {high:g} of "
                f"{file_format.fields} numbers"
            )
    return table[["user", "item", "rating"]]


def _parse(file: Traversable, file_format: RatingsFormat) -> pd.DataFrame:
    """Parse a file of ratings with the fast parser of pandas.

    The parser takes separators of one character only. A separator of two characters is read as two,
    with an empty column between them.
    """
    names = ["user", "item", "rating", "rest"][: file_format.fields]
    columns = list(names)
    if len(file_format.separator) == 2:
        columns = [column for name in names for column in (name, f"after {name}")][:-1]
    types: Any = {"user": np.int32, "item": np.int32, "rating": float, "rest": float}
    with open_binary(file) as stream, warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # a warning means too many fields
        table = pd.read_csv(
            stream,
            sep=file_format.separator[0],
            header=None,
            names=columns,
            index_col=False,
            skiprows=int(file_format.header),
            dtype={name: types[name] for name in names},
        )
    return table[names]


def read_titles(file: Traversable, file_format: RatingsFormat) -> dict[int, str]:
    """Return the titles by item."""
    separator = file_format.titles_separator
    with errors_of(file), open_binary(file) as stream:
        lines = io.TextIOWrapper(stream, file_format.encoding, newline="")
        split = (line.rstrip("\r\n").split(separator) for line in lines)
        rows = csv.reader(lines) if separator == "," else split
        body = list(rows)[int(file_format.header) :]
        return {int(row[0]): row[1] for row in body if row not in ([], [""])}


@contextmanager
def open_binary(file: Traversable) -> Iterator[Any]:
    """Open a file for reading bytes, and decompress it if its name ends in .gz."""
    with file.open("rb") as stream:
        if file.name.endswith(".gz"):
            with gzip.open(stream) as unpacked:
                yield unpacked
        else:
            yield stream


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
