"""Readers of well-known sets that may not be redistributed, from a folder of the user's own.

The folder is the argument `path`, or the set's folder under the one that the environment variable
NMD_LAB_DATA names; data/README.md says what it holds.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from .labels import image_matrix

if TYPE_CHECKING:
    import pandas as pd

    PathLike = str | os.PathLike[str]

SOURCES = {
    "cbcl": "the MIT CBCL face database, as CBCL.mat of the literature on NMF",
    "mnist": "the MNIST test set, from any of its mirrors",
    "movielens-100k": "MovieLens 100K, from grouplens.org/datasets/movielens",
    "movielens-1m": "MovieLens 1M, from grouplens.org/datasets/movielens",
    "mit_logo": "the MIT logo, drawn on 250 x 482 pixels",
}
"""Where each set comes from; the keys name the folders under NMD_LAB_DATA."""


def _files(name: str, path: PathLike | None, *files: str) -> list[Path]:
    """Return the paths of a set's files, or say how to get what is missing."""
    root = os.environ.get("NMD_LAB_DATA")
    if path is None and not root:
        raise FileNotFoundError(
            f"path is not given and NMD_LAB_DATA not set: get {SOURCES[name]}, and lay it out "
            "as data/README.md says."
        )
    folder = Path(path) if path is not None else Path(root or "") / name
    for file in files:
        if not (folder / file).is_file():
            raise FileNotFoundError(
                f"{str(folder / file)!r} does not exist: get {SOURCES[name]}, and lay it out as "
                "data/README.md says."
            )
    return [folder / file for file in files]


def cbcl(path: PathLike | None = None) -> xr.DataArray:
    """Return the 2429 CBCL faces, 19 x 19 pixels of darkness between 0 and 1.

    Parameters
    ----------
    path : path-like, optional
        The folder that holds CBCL.mat; by default cbcl under NMD_LAB_DATA.

    Returns
    -------
    DataArray (image, pixel)
        float64, inverted grey levels (1 is black) as usual in the literature on NMF, with the
        coordinates `y` and `x` of each pixel.

    Raises
    ------
    FileNotFoundError
        With where to get the set, if it is not there.
    """
    from scipy.io import loadmat

    (file,) = _files("cbcl", path, "CBCL.mat")
    faces = np.asarray(loadmat(file)["X"], dtype=float).T.reshape(-1, 19, 19)
    return image_matrix(
        faces.transpose(0, 2, 1),  # the file has the pixels column by column
        name="darkness",
        attrs={"long_name": "darkness", "description": "CBCL faces, inverted grey levels"},
    )


def mnist(path: PathLike | None = None) -> xr.DataArray:
    """Return the 10 000 handwritten digits of MNIST's test set, 28 x 28 pixels from 0 to 1.

    Parameters
    ----------
    path : path-like, optional
        The folder that holds the two t10k files; by default mnist under NMD_LAB_DATA.

    Returns
    -------
    DataArray (image, pixel)
        float64 (bytes divided by 255), with the coordinates `digit` of each image and `y`, `x`
        of each pixel.

    Raises
    ------
    FileNotFoundError
        With where to get the set, if it is not there.
    ValueError
        If a file is not in idx format.
    """
    images, labels = (
        _read_idx(file)
        for file in _files("mnist", path, "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")
    )
    return image_matrix(
        images / 255,
        name="ink",
        attrs={"long_name": "ink", "description": "MNIST test set"},
        digit=labels,
    )


def _read_idx(path: Path) -> NDArray[np.uint8]:
    """Read a gzipped idx file of bytes: two zeros, the type 8, the number of sizes, the sizes."""
    content = gzip.decompress(path.read_bytes())
    if content[:3] != b"\0\0\x08":
        raise ValueError(f"{str(path)!r} is not an idx file of bytes: get the original again.")
    start = 4 + 4 * content[3]
    sizes = np.frombuffer(content[4:start], dtype=">u4")
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(sizes.tolist())


def mit_logo(path: PathLike | None = None, *, antialiased: bool = False) -> xr.DataArray:
    """Return the MIT logo in three grey levels between 0.29 and 1, a matrix of rank 4.

    Parameters
    ----------
    path : path-like, optional
        The folder that holds mit_logo_250x482.npz; by default mit_logo under NMD_LAB_DATA.
    antialiased : bool, default False
        With smooth edges, which raises the rank.

    Returns
    -------
    DataArray (y, x)
        float64, 250 x 482 pixels of brightness.

    Raises
    ------
    FileNotFoundError
        With where to get the set, if it is not there.
    """
    (file,) = _files("mit_logo", path, "mit_logo_250x482.npz")
    with np.load(file, allow_pickle=False) as arrays:
        values = arrays["antialiased" if antialiased else "nearest"] / 255
    return xr.DataArray(
        values,
        dims=("y", "x"),
        coords={"y": np.arange(values.shape[0]), "x": np.arange(values.shape[1])},
        name="brightness",
        attrs={"long_name": "brightness", "description": "MIT logo"},
    )


def movielens_100k(path: PathLike | None = None) -> pd.DataFrame:
    """Return the 100 000 ratings of MovieLens 100K.

    Parameters
    ----------
    path : path-like, optional
        The folder that holds u.data and u.item; by default movielens-100k under NMD_LAB_DATA.

    Returns
    -------
    DataFrame
        Columns user and item (ids from 1), rating (1 to 5) and title, in the file's order.

    Raises
    ------
    FileNotFoundError
        With where to get the set, if it is not there.
    """
    import pandas as pd

    ratings, items = _files("movielens-100k", path, "u.data", "u.item")
    table = pd.read_csv(ratings, sep="\t", names=["user", "item", "rating"], usecols=[0, 1, 2])
    return _with_titles(table, items, "|")


def movielens_1m(path: PathLike | None = None) -> pd.DataFrame:
    """Return the 1 000 209 ratings of MovieLens 1M.

    Parameters
    ----------
    path : path-like, optional
        The folder that holds ratings.npz and movies.dat; by default movielens-1m under
        NMD_LAB_DATA.

    Returns
    -------
    DataFrame
        Columns user and item (ids from 1), rating (1 to 5) and title, in the file's order.

    Raises
    ------
    FileNotFoundError
        With where to get the set, if it is not there.
    """
    import pandas as pd

    ratings, items = _files("movielens-1m", path, "ratings.npz", "movies.dat")
    with np.load(ratings, allow_pickle=False) as arrays:
        columns: dict[str, Any] = {
            "user": arrays["user"].astype(np.int64),
            "item": arrays["movie"].astype(np.int64),
            "rating": arrays["rating"].astype(np.int64),
        }
    return _with_titles(pd.DataFrame(columns), items, "::")


def _with_titles(table: pd.DataFrame, items: Path, separator: str) -> pd.DataFrame:
    """Add each item's title from a file of lines that begin with id and title."""
    lines = items.read_text(encoding="latin-1").splitlines()
    fields = [line.split(separator) for line in lines if line]
    titles = {int(number): title for number, title, *_ in fields}
    return table.assign(title=table["item"].map(titles))
