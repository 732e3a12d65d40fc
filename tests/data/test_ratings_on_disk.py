"""Ratings on disk: read by chunks, used where they lie, fitted with the bits of memory."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers import given, some
from made_runs import PAIRS, bits_of, noisy

import nmd_lab as nmd
from nmd_lab.kernels import row_steps as gram

pytestmark = pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NMDWarning")


@pytest.fixture
def table():
    table = nmd.datasets.make_ratings(110, 60, 2200, random_state=0).drop(columns="expected")
    table["user"] = table["user"].map("u{:03}".format)
    return table.astype({"rating": "float32"}).sample(frac=1, random_state=0, ignore_index=True)


def mapped(matrix, folder):
    """Return a CSR array over files, as `docs/scale.md` makes one."""
    names = ("data", "indices", "indptr")
    for name in names:
        np.save(folder / f"{name}.npy", getattr(matrix, name))
    arrays = tuple(np.load(folder / f"{name}.npy", mmap_mode="r") for name in names)
    return sp.csr_array(arrays, shape=matrix.shape)


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "u.data"])
@pytest.mark.parametrize("lines", [150, 2_000_000])
def test_files_are_read_by_chunks(kind, lines, table, tmp_path):
    parts, options = [table[:1500], table[1500:]], {}
    files = [tmp_path / f"{k}.{kind}" for k in range(2)]
    for part, file in zip(parts, files, strict=True):
        if kind == "parquet":
            pytest.importorskip("pyarrow")
            part.to_parquet(file)
        else:
            part.to_csv(file, index=False, header=kind != "u.data")
    if kind == "u.data":
        options = {"names": ["user", "item", "rating"]}
    folder = tmp_path / "ratings"
    read = nmd.observations_from_files(files, folder, lines=lines, **options)
    expected = nmd.observations_from_table(table)
    for name in ("values", "indptr", "indices"):
        assert np.array_equal(getattr(read, name), getattr(expected, name)), name
    assert read.labels.coords.equals(expected.labels.coords)
    assert read.labels.dims == expected.labels.dims
    assert read.values.dtype == expected.values.dtype
    assert [each.name for each in tmp_path.glob("nmd-lab-*")] == []
    arrays = (np.load(folder / f"{name}.npy") for name in ("data", "indices", "indptr"))
    again = sp.csr_array(tuple(arrays), shape=read.shape)
    assert (again != expected.to_csr()).nnz == 0
    assert np.load(folder / "rows.npy").tolist() == expected.row_labels.tolist()
    assert np.load(folder / "columns.npy").tolist() == expected.column_labels.tolist()


@pytest.mark.parametrize(
    ("f", "loss", "in_chunks"),
    [("identity", "frobenius", True), *some([(*pair, False) for pair in PAIRS], 2)],
)
def test_fits_have_the_bits_of_those_in_memory(f, loss, in_chunks, tmp_path, monkeypatch):
    for name, value in (
        {"ENTRIES": 1500, "MIN_CHUNKS": 2, "MAX_MEMORY": 50.0}.items() if in_chunks else ()
    ):
        monkeypatch.setattr(gram, name, value)
    full = noisy(f, (400, 50))
    seen = np.random.default_rng(1).random(full.shape) < 0.2
    matrix = sp.csr_array(np.where(seen, full, 0))
    matrix = 1e-20 * matrix if in_chunks else matrix  # in units of its own
    X, offsets = mapped(matrix, tmp_path), "none" if in_chunks else "both"
    options = {"alpha": 0.01, "offsets": offsets, "max_iter": 30, "random_state": 0}
    one = nmd.Compute(threads=1)
    expected = bits_of(nmd.complete(matrix, 2, given(f), loss, compute=one, **options))
    for compute in (one, replace(one, work_dir=tmp_path)):
        fit = nmd.complete(X, 2, given(f), loss, compute=compute, **options)
        assert bits_of(fit) == expected


def test_labels_and_sparse_zeros(table, tmp_path):
    table.to_csv(tmp_path / "table.csv")
    read = nmd.observations_from_files(tmp_path / "table.csv", tmp_path / "ratings")
    options = {"max_iter": 5, "tol": 0, "random_state": 0}
    fit = nmd.complete(read, 2, "identity", alpha=1.0, offsets="both", **options)
    assert fit.predict("u003", [5, 7]).shape == (2,)
    zeros = nmd.decompose(read, 2, "relu", **options)
    matrix = nmd.observations_from_table(table)
    assert bits_of(zeros) == bits_of(nmd.decompose(matrix.to_csr(), 2, "relu", **options))


def test_what_is_wrong_is_said(table, tmp_path):
    file, folder = tmp_path / "table.csv", tmp_path / "ratings"
    table.to_csv(file)
    nmd.observations_from_files(file, folder)
    with pytest.raises(FileExistsError, match="exists: remove it, or give another one"):
        nmd.observations_from_files(file, folder)
    twice = pd.concat([table, table[:1]])
    mixed = table.astype({"user": object})
    mixed.loc[:99, "user"] = range(100)
    for data, error, message in (
        (twice, ValueError, "more than once: give frame.groupby"),
        (table.rename(columns={"item": "film"}), KeyError, "'item' is not in the table"),
        (table.assign(rating="a"), TypeError, "convert it to real numbers"),
        (table.assign(rating=np.nan), ValueError, "missing or infinite numbers"),
        (table.assign(user=table["user"].mask(table.index == 0)), ValueError, "a missing label"),
        (mixed, ValueError, "mixes labels that cannot be sorted"),
        (table[:0], ValueError, "files= hold no line"),
    ):
        data.to_csv(file)
        with pytest.raises(error, match=message):
            nmd.observations_from_files(file, tmp_path / "other", lines=100)
        assert not (tmp_path / "other").exists()
        assert not list(tmp_path.glob("nmd-lab-*"))
    with pytest.raises(FileNotFoundError, match="is no file: check the name"):
        nmd.observations_from_files(tmp_path / "none.csv", tmp_path / "other")
