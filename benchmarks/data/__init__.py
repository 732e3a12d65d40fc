"""Well-known sets that the benchmarks use, read from the folder that NMD_LAB_DATA names.

data/README.md lists the sources of the files, their terms and their layout.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from scipy.io import loadmat


def file_of(*parts: str) -> Path:
    """Return a file below NMD_LAB_DATA."""
    root = os.environ.get("NMD_LAB_DATA")
    if not root or not Path(root, *parts).is_file():
        name = "/".join(parts)
        raise FileNotFoundError(f"{name} is not under NMD_LAB_DATA={root}: see data/README.md.")
    return Path(root, *parts)


def cbcl() -> np.ndarray:
    """Return the 2429 CBCL faces, one of 19 x 19 pixels in each row, inverted grey levels."""
    faces = loadmat(file_of("cbcl", "CBCL.mat"))["X"].T.astype(float)
    # the file has the pixels column by column
    return faces.reshape(-1, 19, 19).transpose(0, 2, 1).reshape(-1, 361)


def mnist() -> xr.DataArray:
    """Return the 10 000 digits of MNIST's test set, 28 x 28 pixels from 0 to 1, with `digit`."""
    content = [
        gzip.decompress(file_of("mnist", f"t10k-{kind}-ubyte.gz").read_bytes())
        for kind in ("images-idx3", "labels-idx1")
    ]
    images = np.frombuffer(content[0], np.uint8, offset=16).reshape(-1, 784)
    digits = np.frombuffer(content[1], np.uint8, offset=8)
    return xr.DataArray(images / 255, dims=("image", "pixel"), coords={"digit": ("image", digits)})


def mit_logo() -> np.ndarray:
    """Return the MIT logo in three grey levels, a matrix of rank 4."""
    with np.load(file_of("mit_logo", "mit_logo_250x482.npz")) as arrays:
        return arrays["nearest"] / 255


def jester(part: int = 1) -> pd.DataFrame:
    """Return user, item and rating (-10 to 10) of one of the three files; .xls needs xlrd."""
    try:
        table = pd.read_csv(file_of("jester", f"jester-data-{part}.csv"), header=None)
    except FileNotFoundError:
        table = pd.read_excel(file_of("jester", f"jester-data-{part}.xls"), header=None)
    ratings = table.to_numpy(dtype=float)[:, 1:]
    user, item = np.nonzero(ratings != 99)
    return pd.DataFrame({"user": user + 1, "item": item + 1, "rating": ratings[user, item]})
