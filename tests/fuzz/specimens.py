"""Intact small files of each kind that a reader takes, and how each is read."""

from __future__ import annotations

import gzip
import io
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.io import mmwrite

import nmd_lab
from nmd_lab.data.readers import read_matrix
from nmd_lab.result import netcdf

from .faults import Fault


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes
    ----------
    name : str
        Name of the file to write.
    specimens : callable
        Returns the contents of intact files.
    read : callable
        Reads a file.
    """

    name: str
    specimens: Callable[[], list[bytes]]
    read: Callable[[Path], Any]


@cache
def intact(kind: str) -> list[bytes]:
    """Return the contents of the intact files of a kind."""
    return KINDS[kind].specimens()


def _matrix() -> np.ndarray:
    X = np.random.default_rng(0).integers(0, 50, (7, 6)) / 4
    return np.where(X == 1, 0, X)


def _csr() -> sparse.csr_array:
    return sparse.csr_array(_matrix() * (np.random.default_rng(1).random((7, 6)) < 0.4))


def _frame() -> pd.DataFrame:
    frame = pd.DataFrame(_matrix(), [f"r{i}" for i in range(7)], [f"c{j}" for j in range(6)])
    return frame.mask(frame == 0)


def _bytes_of(write: Callable[[Any], Any]) -> bytes:
    stream = io.BytesIO()
    write(stream)
    return stream.getvalue()


def _file_of(name: str, write: Callable[[Path], Any]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write(path)
        return path.read_bytes()


def _npy() -> list[bytes]:
    arrays = [_matrix(), np.asfortranarray(_matrix().astype("f4")), _matrix().astype(">i2")]
    return [_bytes_of(lambda f, a=array: np.save(f, a)) for array in arrays]


def _npz() -> list[bytes]:
    dense = [
        _bytes_of(lambda f: np.savez(f, X=_matrix())),
        _bytes_of(lambda f: np.savez_compressed(f, X=_matrix())),
    ]
    formats = [_csr(), _csr().tocsc(), _csr().tocoo(), _csr().tobsr((1, 1)), _csr().todia()]
    return dense + [_bytes_of(lambda f, m=m: sparse.save_npz(f, m)) for m in formats]


def _mtx() -> list[bytes]:
    dense = _bytes_of(lambda f: mmwrite(f, _matrix()))
    coordinates = _bytes_of(lambda f: mmwrite(f, _csr().tocoo()))
    pattern = b"%%MatrixMarket matrix coordinate pattern general\n3 4 3\n1 1\n2 3\n3 4\n"
    symmetric = b"%%MatrixMarket matrix coordinate integer symmetric\n3 3 3\n1 1 4\n2 1 5\n3 2 6\n"
    return [dense, coordinates, pattern, symmetric]


def _csv(separator: str = ",") -> list[bytes]:
    frame = _frame()
    tables = [(True, True), (False, False), (True, False), (False, True)]
    return [frame.to_csv(sep=separator, index=i, header=h).encode() for i, h in tables]


def _txt() -> list[bytes]:
    return [_bytes_of(lambda f: np.savetxt(f, _matrix(), fmt="%g"))]


def _long() -> list[bytes]:
    rows, columns = np.nonzero(_matrix())
    values = _matrix()[rows, columns]
    return [pd.DataFrame({"user": rows, "item": columns, "rating": values}).to_csv().encode()]


@cache
def _fits() -> list[bytes]:
    frame = _frame()
    frame.index = pd.MultiIndex.from_tuples([(i % 2, f"u{i}") for i in range(7)])
    inputs = [_frame(), frame]
    options = {"max_iter": 3, "tol": 0, "random_state": 0}
    fits = [nmd_lab.complete(X, 2, offsets="rows", **options) for X in inputs]
    return [_file_of("fit.nc", fit.save) for fit in fits]


def _study() -> nmd_lab.Study:
    return nmd_lab.Study(_matrix(), method=["svd"], rank=[1, 2], n_splits=1)


@cache
def _studies() -> tuple[bytes, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        _study().run(path := Path(folder) / "study.nc", progress=False)
        return path.read_bytes(), next(Path(f"{path}.fits").iterdir()).read_bytes()


def _sound(path: Path, **options: Any) -> Any:
    X = read_matrix(path, **options)
    if sparse.issparse(X):
        coo = X.tocoo()
        for index, size in zip(coo.coords, coo.shape, strict=True):
            if index.size and not 0 <= index.min() <= index.max() < size:
                raise Fault("a sparse matrix with positions outside its shape is read")
    return X


def _load(path: Path) -> Any:
    fit = nmd_lab.load(path)
    try:
        repr(fit)
        fit.reconstruct()
    except Exception as error:
        raise Fault("a loaded fit cannot be used", f"{type(error).__name__}: {error}") from error


def _resume(path: Path) -> None:
    (path.parent / "study.nc.fits").mkdir()
    path.rename(path.parent / "study.nc.fits" / path.name)
    _study().run(path.with_name("study.nc"), progress=False)


KINDS: dict[str, Kind] = {
    "npy": Kind("x.npy", _npy, _sound),
    "npz": Kind("x.npz", _npz, _sound),
    "mtx": Kind("x.mtx", _mtx, _sound),
    "mtx.gz": Kind("x.mtx.gz", lambda: list(map(gzip.compress, _mtx())), _sound),
    "csv": Kind("x.csv", _csv, _sound),
    "tsv": Kind("x.tsv", lambda: _csv("\t"), _sound),
    "txt": Kind("x.txt", _txt, _sound),
    "csv.gz": Kind("x.csv.gz", lambda: list(map(gzip.compress, _csv())), _sound),
    "long csv": Kind(
        "x.csv", _long, lambda path: _sound(path, row="user", column="item", value="rating")
    ),
    "fit": Kind("fit.nc", _fits, _load),
    "study": Kind("study.nc", lambda: [_studies()[0]], netcdf.read),
    "record": Kind("x.json", lambda: [_studies()[1]], _resume),
}
"""The kinds of files by name."""
