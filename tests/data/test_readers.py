"""Files: what is header and what is data, and files that are damaged or too large."""

import gc
import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from helpers import check_all_refused
from scipy import io as scipy_io

from nmd_lab.data import readers
from nmd_lab.data.readers import read_file, read_matrix


def written(folder: Path, text: str, name: str = "x.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


HOLED = np.random.default_rng(0).random((60, 40)).round(3)
HOLED[0, 0] = HOLED[7, 3] = np.nan
LABELLED = {
    "holes": pd.DataFrame(HOLED),
    "default": pd.DataFrame(np.arange(12).reshape(4, 3) + 5),
    "one column": pd.DataFrame({0: [0.5, 0.7, 0.1]}),
    "one row": pd.DataFrame([[0.5, 0.7, 0.1]]),
    "a slice": pd.DataFrame(np.arange(30).reshape(10, 3) % 7).iloc[4:9],
    "years": pd.DataFrame(np.ones((4, 3)), columns=[1990, 1991, 1992]),
    "names": pd.DataFrame(np.ones((4, 2)), columns=["a", "b"]),
    "text labels": pd.DataFrame(np.eye(3), list("abc"), list("xyz")),
    "text index": pd.DataFrame(np.eye(3), list("abc")),
    "dates": pd.DataFrame({"a": [1.5, 2.0], "b": pd.to_datetime(["2020-02-03", None])}),
    "booleans": pd.DataFrame({"a": [True, False], "b": [False, True]}),
}
BARE = {
    "from 0": pd.DataFrame(np.arange(12).reshape(3, 4)),
    "from 1": pd.DataFrame(np.arange(1, 13).reshape(4, 3)),
    "identity": pd.DataFrame(np.eye(3, dtype=int)),
    "a row of floats": pd.DataFrame([[0.0, 1.0, 2.0]]),
    "a row": pd.DataFrame([[1, 2, 3]]),
    "a column": pd.DataFrame([[1], [2], [3]]),
    "with holes": pd.DataFrame([[2, np.nan, 3], [np.nan, 5, 6]]),
}
USED = "first column taken as row labels, first line taken as column labels"


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.csv.gz"])
@pytest.mark.parametrize("case", LABELLED | BARE)
def test_a_table_that_pandas_wrote_comes_back(case, name, tmp_path):
    frame, labels = (LABELLED | BARE)[case], case in LABELLED
    frame.to_csv(tmp_path / name, sep="\t" if "tsv" in name else ",", index=labels, header=labels)
    read, what = read_file(tmp_path / name)
    pd.testing.assert_frame_equal(read, frame, check_dtype=False, check_names=False)
    assert (
        what.endswith(f"columns from {name}, {USED if labels else 'no labels'}") or 1 in frame.shape
    )


def test_header_and_index_can_be_said(tmp_path):
    path = written(tmp_path, "1,2,3\n4,5,6\n7,8,9\n")
    assert read_matrix(path).shape == (3, 3)
    assert read_matrix(path, header=True).columns.tolist() == [1, 2, 3]
    assert read_matrix(path, index=True).index.tolist() == [1, 4, 7]
    both, what = read_file(path, header=True, index=True)
    assert both.to_numpy().tolist() == [[5, 6], [8, 9]]
    assert what.startswith("2 rows x 2 columns from x.csv, first column")
    bare = written(tmp_path, ",0,1\n0,4,5\n", "bare.csv")
    assert read_matrix(bare, header=False, index=False).shape == (2, 3)
    with pytest.raises(ValueError, match=r"header='yes' is unknown"):
        read_matrix(path, header="yes")
    np.save(tmp_path / "a.npy", np.eye(3))
    with pytest.raises(ValueError, match=r"index=True is meant for tables: file is a\.npy"):
        read_matrix(tmp_path / "a.npy", index=True)


@pytest.mark.parametrize(
    "header",
    ["userId,movieId,rating,timestamp", "user_id,item_id,rating,t", "User,Item,Rating,When"],
)
def test_a_long_table_is_known_by_its_names(header, tmp_path):
    path = written(tmp_path, f"{header}\n1,31,2.5,1260759144\n1,10,3,1260759179\n4,10,4,5\n")
    X, what = read_file(path)
    assert X.shape == (2, 2)
    assert X.values.tolist() == [3, 2.5, 4]
    assert X.labels.dims == tuple(header.split(",")[:2])
    assert "2 rows" in what
    assert "3 values (" in what
    assert "long table" in what
    assert read_matrix(path, index=True).shape == (3, 3)


def test_text_among_the_values_of_a_long_table_is_refused(tmp_path):
    path = written(tmp_path, "userId,movieId,rating\n1,31,2.5\n1,10,three\n")
    with pytest.raises(ValueError, match=r"holds text in the column 'rating': give one of"):
        read_matrix(path)


def test_columns_of_a_long_table_without_names_are_counted(tmp_path):
    text = "196\t242\t3\t881250949\n186\t302\t3\t891717742\n196\t302\t1\t878887116\n"
    X, what = read_file(written(tmp_path, text, "u.data"), row="0", column="1", value="2")
    assert X.labels.dims == ("user", "item")
    assert X.values.tolist() == [3, 3, 1]
    assert "3 values (rating)" in what


START = "%%MatrixMarket matrix "


@pytest.mark.parametrize("text", ["coordinate integer general\n2 2 1\n2 1 7\n",
                                  "array real general\n2 3\n1\n2\n3\n4\n5\n6\n"])  # fmt: skip
def test_matrix_market_files_plain_and_compressed(text, tmp_path):
    (tmp_path / "x.mtx").write_text(START + text)
    (tmp_path / "x.mtx.gz").write_bytes(gzip.compress((START + text).encode()))
    expected = scipy_io.mmread(tmp_path / "x.mtx", spmatrix=False)
    for name in ("x.mtx", "x.mtx.gz"):
        X = read_matrix(tmp_path / name)
        assert type(X) is type(expected)
        assert X.dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(X.sum(axis=0)), np.asarray(expected.sum(axis=0)))


def market(text):
    """Return the kind of a wrong file of Matrix Market, and what writes it."""
    return "mtx", "", lambda path: path.write_text(START + text)


def npz(words, **changed):
    """Return the kind of a sparse file with other arrays, words of the refusal, what writes it."""
    good = {"format": "csr", "shape": [2, 3], "data": np.ones(2), "indices": np.array([0, 2]),
            "indptr": np.array([0, 1, 2])}  # fmt: skip
    return "npz", words, lambda path: np.savez(path, **good | changed)


DAMAGED = {
    "row outside": market("coordinate real general\n2 3 1\n3 1 0.5\n"),
    "complex": market("coordinate complex general\n2 3 1\n1 1 0.5 1\n"),
    "no sizes": market("coordinate real general\n% only a comment\n"),
    "zero byte": market("coordinate real general\n1 1 1\n1 1 0.5\0007\n"),  # ended SciPy
    "column outside": npz("indices must be < 3", indices=[0, 2 * 10**9]),
    "rows too long": npz("index", indptr=np.array([0, 1, 9])),
    "format": npz("csx", format="csx"),
    "dtype": npz("dtype <U1", data=np.array(["1", "2"])),
    "objects": ("npy", "Object arrays cannot be loaded", lambda path: np.save(path, [[print]])),
    "pickle": ("npy", "This file contains pickled", lambda path: path.write_bytes(b"\x80\x04N.")),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_files_are_refused(case, tmp_path):
    kind, words, write = DAMAGED[case]
    path = tmp_path / f"x.{kind}"
    write(path)
    check_all_refused([(rf"^file='.*{path.name}' cannot be read: .*{words}", read_matrix, path)])


@pytest.mark.parametrize(("stored", "read"), [(">f8", "f8"), (">i2", "i2"), ("f2", "f4")])
@pytest.mark.parametrize("layout", ["csr", "dia"])
def test_a_sparse_file_is_read_in_a_type_that_scipy_knows(tmp_path, layout, stored, read):
    places = {"indices": np.arange(3), "indptr": np.arange(4), "offsets": [0]}  # of both layouts
    data = np.arange(1, 4).astype(stored).reshape(3 if layout == "csr" else (1, 3))
    np.savez(tmp_path / "x.npz", format=layout, shape=[3, 3], data=data, **places)
    X = read_matrix(tmp_path / "x.npz")
    assert X.dtype == read
    np.testing.assert_array_equal(X.tocoo().toarray(), np.diag([1, 2, 3]))


def test_a_netcdf_file_comes_back_with_its_labels_and_a_damaged_one_prints_nothing(tmp_path, capfd):
    X = xr.DataArray(np.eye(3), dims=("t", "x"), coords={"x": ["a", "b", "c"]}, name="X")
    path = tmp_path / "x.nc"
    X.to_netcdf(path, engine="h5netcdf")
    xr.testing.assert_equal(read_matrix(path), X)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"x\.nc' cannot be read"):
        read_matrix(path)
    gc.collect()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("program", "seconds", "reason"),
    [
        ("while True: pass", 0.1, "were not read within 0.1 seconds"),
        ("import os; os.abort()", 600, "ends the process"),
    ],
)
def test_a_netcdf_file_from_which_hdf5_does_not_return(
    tmp_path, monkeypatch, program, seconds, reason
):
    xr.DataArray(np.eye(3), name="X").to_netcdf(tmp_path / "x.nc", engine="h5netcdf")
    monkeypatch.setattr(readers, "SECONDS", seconds)
    monkeypatch.setattr(readers, "NAMES_AND_TEXTS", program)
    with pytest.raises(ValueError, match=rf"x\.nc' cannot be read: .*{reason}"):
        read_matrix(tmp_path / "x.nc")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        *((f"a{c}b\n1{c}2\n3{c}4\n", "x.csv") for c in ",;\t|"),
        *(("1 2\n3  4\n", "x.txt"), ("1\t2\n3\t4\n", "u.data"), ("a\tb\n1\t2\n3\t4\n", "x.tsv")),
        *(('"a;b",b\n1,2\n3,4\n', "x.csv"), ("a b,b\n1,2\n3,4\n", "x.csv"), ("1\n3\n", "x.csv")),
    ],
)
def test_separators_are_found(text, name, tmp_path):
    X = read_matrix(written(tmp_path, text, name))
    assert X.to_numpy()[:, 0].tolist() == [1, 3]
    assert X.to_numpy()[:, 1:].ravel().tolist() in ([2, 4], [])
