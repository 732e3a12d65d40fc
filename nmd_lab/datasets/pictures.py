"""Readers of well-known pictures that are not part of `nmd_lab`."""

from __future__ import annotations

import gzip
import math
import zlib
from importlib.resources.abc import Traversable

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab._runtime.checks import check_word

from ._files import PathLike, locate
from ._labels import image_matrix
from ._matlab import read_matrix_of
from ._sources import CBCL, MIT_LOGO, MNIST


def cbcl(path: PathLike | None = None) -> xr.DataArray:
    """Return the 2429 CBCL faces, 19 x 19 pixels from 0 (white) to 1 (black).

    The faces are for research, not for commercial use, and must not be redistributed. Please credit
    the MIT Center for Biological and Computational Learning.

    Parameters
    ----------
    path : path-like, optional
        Folder with CBCL.mat. Default: the folder cbcl in the folder that the environment variable
        NMD_LAB_DATA names.

    Returns
    -------
    DataArray (image, pixel)
        Inverted grey levels as usual in the literature on NMF, float64, with the coordinates `y`
        and `x` of each pixel.

    Raises
    ------
    FileNotFoundError
        If the file is not found; it cannot be downloaded. The message says where to get it.
    ValueError
        If the file does not hold the faces.
    """
    file = locate(CBCL, path, "CBCL.mat")
    try:
        X = read_matrix_of(file.read_bytes(), "X")
        faces = X.T.reshape(X.shape[1], 19, 19)
    except ValueError as error:
        raise ValueError(
            f"{str(file)!r} is no MATLAB file with a matrix X of 361 rows: get the original again."
        ) from error
    return image_matrix(
        faces.transpose(0, 2, 1),  # the file has the pixels column by column
        name="darkness",
        attrs={"long_name": "darkness", "description": "CBCL faces, inverted grey levels"}
        | CBCL.attrs,
    )


def mnist(path: PathLike | None = None, *, subset: str = "test") -> xr.DataArray:
    """Return the handwritten digits of MNIST, 28 x 28 pixels from 0 to 1.

    MNIST is free to use. Please cite LeCun, Bottou, Bengio and Haffner (1998), Proceedings of the
    IEEE 86(11), 2278-2324.

    Parameters
    ----------
    path : path-like, optional
        Folder with the two files of the subset, such as t10k-images-idx3-ubyte.gz. Default: the
        folder mnist in the folder that the environment variable NMD_LAB_DATA names. If they are
        not there, the files are downloaded and their checksums verified.
    subset : {"test", "train"}, default "test"
        Subset of 10 000 ("test") or 60 000 ("train") digits.

    Returns
    -------
    DataArray (image, pixel)
        Amount of ink, float64 (bytes divided by 255), with the coordinates `digit` of each image
        and `y`, `x` of each pixel. `attrs` holds the source and the terms of use.

    Raises
    ------
    ValueError
        If the subset is unknown, if a download has a wrong checksum, or if a file is not in idx
        format.
    FileNotFoundError, ConnectionError, ImportError
        If the data set is not found and cannot be downloaded.
    """
    prefixes = {"test": "t10k", "train": "train"}
    check_word("subset", subset, prefixes)
    names = (f"{prefixes[subset]}-{kind}-ubyte.gz" for kind in ("images-idx3", "labels-idx1"))
    images, labels = (read_idx(locate(MNIST, path, name)) for name in names)
    return image_matrix(
        images / 255,
        name="ink",
        attrs={"long_name": "ink", "description": f"MNIST {subset} set"} | MNIST.attrs,
        digit=labels,
    )


def read_idx(file: Traversable) -> NDArray[np.uint8]:
    """Read a gzipped idx file of bytes.

    Its header is two zeros, the type 8, the number of dimensions and the size of each dimension.
    """
    try:
        content = gzip.decompress(file.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{str(file)!r} breaks off, or is not gzipped: get it again.") from error
    if content[:3] != b"\0\0\x08" or len(content) < 4 or len(content) < 4 + 4 * content[3]:
        raise ValueError(f"{str(file)!r} is not an idx file of bytes: get the original again.")
    start = 4 + 4 * content[3]  # end of the header
    sizes = np.frombuffer(content[4:start], dtype=">u4").tolist()
    if len(content) - start != math.prod(sizes):
        raise ValueError(
            f"{str(file)!r} holds {len(content) - start} bytes where its sizes {sizes} ask for "
            f"{math.prod(sizes)}: get the original again."
        )
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(sizes)


def mit_logo(path: PathLike | None = None, *, antialiased: bool = False) -> xr.DataArray:
    """Return the MIT logo in three grey levels between 0.29 and 1, a matrix of rank 4.

    Parameters
    ----------
    path : path-like, optional
        Folder with mit_logo_250x482.npz. Default: the folder mit_logo in the folder that the
        environment variable NMD_LAB_DATA names.
    antialiased : bool, default False
        Whether the edges are smooth, which increases the rank.

    Returns
    -------
    DataArray (y, x)
        Brightness, float64, 250 x 482 pixels.

    Raises
    ------
    FileNotFoundError
        If the file is not found; it cannot be downloaded. The message says where to get it.
    """
    file = locate(MIT_LOGO, path, "mit_logo_250x482.npz")
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        values = arrays["antialiased" if antialiased else "nearest"] / 255
    return xr.DataArray(
        values,
        dims=("y", "x"),
        coords={"y": np.arange(values.shape[0]), "x": np.arange(values.shape[1])},
        name="brightness",
        attrs={"long_name": "brightness", "description": "MIT logo"} | MIT_LOGO.attrs,
    )
