"""MovieLens: ratings of films, in the formats of all its editions."""

from __future__ import annotations

from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nmd_lab._checks import check_word

from ._delimited import Layout, read_ratings, read_titles
from ._files import PathLike, locate
from ._sources import MOVIELENS, Source

if TYPE_CHECKING:
    import pandas as pd

TABS = Layout(("u.data",), ("u.item",), "\t", "|", "latin-1", scale=(1.0, 5.0))
COLONS = Layout(
    ("ratings.dat", "ratings.npz"), ("movies.dat",), "::", "::", "latin-1", scale=(1.0, 5.0)
)
HALF_STARS = Layout(("ratings.dat",), ("movies.dat",), "::", "::")
COMMAS = Layout(("ratings.csv",), ("movies.csv",), ",", ",", header=True)
SHIPPED = Layout(
    ("ratings.csv.gz",), ("movies.csv.gz",), ",", ",", fields=3, header=True
)  # no time stamps

LAYOUTS = {"100k": TABS, "1m": COLONS, "10m": HALF_STARS}
"""The layouts of the older editions; the others have commas."""


def movielens_small() -> pd.DataFrame:
    """Return the 100 004 ratings that come with `nmd_lab`; nothing is downloaded.

    This is MovieLens latest-small, edition of October 2016: 671 users, 9066 films, half a star to
    five stars.  It is not under the licence of `nmd_lab`: it may be used for research, not for
    commerce, be passed on under the same conditions only, and is to be cited as Harper and Konstan
    (2015), doi.org/10.1145/2827872.  data/movielens-latest-small/README.md says more.

    Returns
    -------
    DataFrame
        Columns user, item, rating (0.5 to 5) and title, sorted by user and item; its `attrs` name
        source and terms.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> ratings = nmd.datasets.movielens_small()
    >>> nmd.observations_from_table(ratings)
    <nmd_lab.SparseObservations>  user: 671, item: 9066, 100004 stored entries (1.64 %), float64
    """
    here = Path(__file__).parent
    installed = here / "shipped" / "movielens-latest-small"
    folder = installed if installed.is_dir() else here.parents[1] / "data" / installed.name
    files = folder / SHIPPED.ratings[0], folder / SHIPPED.titles[0]
    return _table(*files, SHIPPED, MOVIELENS["latest-small"])


def movielens(edition: str, path: PathLike | None = None) -> pd.DataFrame:
    """Return the ratings of an edition of MovieLens.

    MovieLens may be used for research, not for commerce, and is to be cited as Harper and Konstan
    (2015), doi.org/10.1145/2827872.  The editions 100k, 1m and 10m may not be passed on, the
    others under the same conditions only.

    Parameters
    ----------
    edition : {"100k", "1m", "latest-small", "10m", "20m", "25m", "32m"}
        Which one, by its number of ratings.
    path : path-like, optional
        The folder that holds the edition's files or its zip archive, or this archive itself.  By
        default the folder named, for example, movielens-25m under NMD_LAB_DATA, and without one a
        download whose checksum is verified.

    Returns
    -------
    DataFrame
        Columns user and item (ids as in the files), rating and title (categorical), in the file's
        order; its `attrs` name source and terms.

    Raises
    ------
    ValueError
        If the edition is unknown, a download is not the right file, or a file is damaged; then
        the line is named.
    FileNotFoundError, ConnectionError, ImportError
        If the set is not there and cannot be downloaded.

    Examples
    --------
    >>> from nmd_lab import datasets
    >>> datasets.movielens("5k")
    Traceback (most recent call last):
    ValueError: edition='5k' is unknown: choose one of ['100k', '1m', 'latest-small', '10m', \
'20m', '25m', '32m'].
    """
    check_word("edition", edition, MOVIELENS)
    source, layout = MOVIELENS[edition], LAYOUTS.get(edition, COMMAS)
    (archive,) = source.files
    ratings = locate(source, path, *layout.ratings, archive=archive)
    titles = locate(source, path, *layout.titles, archive=archive)
    return _table(ratings, titles, layout, source)


def movielens_100k(path: PathLike | None = None) -> pd.DataFrame:
    """Return the 100 000 ratings of MovieLens 100K; see `movielens`."""
    return movielens("100k", path)


def movielens_1m(path: PathLike | None = None) -> pd.DataFrame:
    """Return the 1 000 209 ratings of MovieLens 1M; see `movielens`."""
    return movielens("1m", path)


def _table(
    ratings: Traversable, titles: Traversable, layout: Layout, source: Source
) -> pd.DataFrame:
    """Put ratings and titles together."""
    packed = ratings.name.endswith(".npz")
    table = _read_packed(ratings) if packed else read_ratings(ratings, layout)
    known = read_titles(titles, layout)
    items = table["item"].astype("category")
    names = [known.get(int(item), "") for item in items.cat.categories]
    distinct, which = np.unique(np.array(names, dtype=object), return_inverse=True)
    import pandas as pd

    codes = which[items.cat.codes.to_numpy()]
    table["title"] = pd.Categorical.from_codes(codes, categories=pd.Index(distinct))
    table.attrs.update(source.attrs)
    return table


def _read_packed(file: Traversable) -> pd.DataFrame:
    """Read MovieLens 1M as the arrays user, movie and rating of a NumPy archive."""
    import pandas as pd

    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        return pd.DataFrame(
            {
                "user": arrays["user"].astype(np.int32),
                "item": arrays["movie"].astype(np.int32),
                "rating": arrays["rating"].astype(float),
            }
        )
