"""Sparse data on disk: written by chunks, read as they are, fitted with the bits of memory."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from given import given
from hypothesis import given as draw
from hypothesis import strategies as st
from made_runs import PAIRS, bits_of, noisy
from some import some

import nmd_lab as nmd

pytestmark = pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NMDWarning")


@pytest.fixture
def table(rng):
    lines = pd.DataFrame(
        {
            "user": [f"u{k:03d}" for k in rng.integers(0, 90, 4000)],
            "item": rng.integers(0, 60, 4000),
            "rating": rng.integers(1, 6, 4000).astype(np.float32),
        }
    )
    return lines.drop_duplicates(["user", "item"]).reset_index(drop=True)


def same(store, expected):
    own = store.observations()
    for name in ("values", "indptr", "indices"):
        assert np.array_equal(getattr(own, name), getattr(expected, name)), name
    assert own.labels.coords.equals(expected.labels.coords)
    assert own.labels.dims == expected.labels.dims
    assert own.values.dtype == expected.values.dtype


@pytest.mark.parametrize("kind", ["frame", "list", "csv", "csv.gz", "parquet"])
@pytest.mark.parametrize("lines", [150, 2_000_000])
def test_a_table_is_sorted_on_disk(kind, lines, table, tmp_path):
    source = table
    if kind == "list":
        source = [table[:1000], table[1000:]]
    elif kind.startswith("csv"):
        source = tmp_path / f"table.{kind}"
        table.to_csv(source, index=False)
    elif kind == "parquet":
        pytest.importorskip("pyarrow")
        source = tmp_path / "table.parquet"
        table.to_parquet(source)
    store = nmd.SparseStore.from_table(source, tmp_path / "store", lines=lines)
    same(store, nmd.observations_from_table(table))
    store.verify()
    assert [each.name for each in tmp_path.glob("nmd-lab-*")] == []


@draw(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 9), st.integers(1, 40))
def test_any_table_comes_back(tmp_path_factory, seed, m, n, lines):
    rng = np.random.default_rng(seed)
    i, j = np.nonzero(rng.random((m, n)) < 0.5)
    order = rng.permutation(i.size)
    if not i.size:
        return
    frame = pd.DataFrame({"user": i[order], "item": j[order], "rating": rng.normal(size=i.size)})
    path = tmp_path_factory.mktemp("any") / "store"
    store = nmd.SparseStore.from_table(frame, path, dtype=np.float64, lines=lines)
    same(store, nmd.observations_from_table(frame))


@pytest.mark.parametrize(
    ("name", "separator", "header"),
    [("u.data", "\t", False), ("ratings.dat", "::", False), ("ratings.csv", ",", True)],
)
def test_files_of_movielens(name, separator, header, table, tmp_path):
    table["user"] = table["user"].str[1:].astype(int)
    lines = [f"{u}{separator}{i}{separator}{r:g}{separator}9" for u, i, r in table.to_numpy()]
    first = ["userId,movieId,rating,timestamp"] if header else []
    (tmp_path / name).write_text("\n".join(first + lines) + "\n")
    same(
        nmd.SparseStore.from_movielens(tmp_path / name, tmp_path / "store"),
        nmd.observations_from_table(table),
    )


@pytest.mark.parametrize(("f", "loss"), some(PAIRS, 2))
def test_fits_have_the_bits_of_those_in_memory(f, loss, tmp_path):
    X = noisy(f, (400, 50))
    seen = np.random.default_rng(1).random(X.shape) < 0.2
    matrix = sp.csr_array(np.where(seen, X, 0))
    store = nmd.SparseStore.from_matrix(matrix, tmp_path / "store")
    options = {"alpha": 0.01, "offsets": "both", "max_iter": 30, "random_state": 0}
    one = nmd.Compute(threads=1)
    expected = bits_of(nmd.complete(matrix, 2, given(f), loss, compute=one, **options))
    for compute in (one, replace(one, work_dir=tmp_path)):
        fit = nmd.complete(store, 2, given(f), loss, compute=compute, **options)
        assert bits_of(fit) == expected


def test_columns_in_chunks_lie_in_files_too(monkeypatch, tmp_path):
    from nmd_lab.solver import column_chunks

    for name, value in {"ENTRIES": 1500, "FEWEST": 2, "MEMORY": 50.0}.items():
        monkeypatch.setattr(column_chunks, name, value)
    rng = np.random.default_rng(0)
    matrix = sp.random_array((500, 80), density=0.2, rng=rng, format="csr")
    store = nmd.SparseStore.from_matrix(matrix, tmp_path / "store")
    options = {"alpha": 0.01, "max_iter": 20, "random_state": 0}
    one = nmd.Compute(threads=1)
    expected = bits_of(nmd.complete(matrix, 3, "identity", compute=one, **options))
    in_files = nmd.Compute(threads=1, work_dir=tmp_path)
    fit = nmd.complete(store, 3, "identity", compute=in_files, **options)
    assert bits_of(fit) == expected


@pytest.mark.exhaustive
def test_settings_are_chosen_and_chains_drawn_where_the_data_fit_into_memory(table, tmp_path):
    store = nmd.SparseStore.from_table(table, tmp_path / "store")
    known = nmd.observations_from_table(table)
    assert bits_of(nmd.complete(store, random_state=0)) == bits_of(
        nmd.complete(known, random_state=0)
    )
    one, other = (nmd.sample(X, 2, draws=5, tune=3, random_state=0) for X in (store, known))
    assert bits_of(one) == bits_of(other)


def test_labels_and_sparse_zeros(table, tmp_path):
    store = nmd.SparseStore.from_table(table, tmp_path / "store")
    fit = nmd.complete(store, 2, "identity", alpha=1.0, offsets="both", random_state=0)
    assert fit.predict("u003", [5, 7]).shape == (2,)
    zeros = nmd.decompose(store, 2, "relu", random_state=0)
    matrix = nmd.observations_from_table(table)
    assert bits_of(zeros) == bits_of(nmd.decompose(matrix.to_csr(), 2, "relu", random_state=0))


def test_what_is_wrong_is_said(table, tmp_path):
    path = tmp_path / "store"
    store = nmd.SparseStore.from_table(table, path)
    with pytest.raises(FileExistsError, match="exists: remove it, or give another one"):
        nmd.SparseStore.from_table(table, path)
    twice = pd.concat([table, table[:1]])
    for data, error, message in (
        (twice, ValueError, "more than once: keep one line of each pair"),
        (table.rename(columns={"item": "film"}), KeyError, "'item' is not in the table"),
        (table.assign(rating="a"), TypeError, "convert it to numbers"),
        (table.assign(rating=np.nan), ValueError, "missing labels or values"),
        (table.assign(rating=np.inf), ValueError, "infinite numbers"),
        (table[:0], ValueError, "the table holds no line"),
        (tmp_path / "none.csv", FileNotFoundError, "is no file: check the name"),
    ):
        with pytest.raises(error, match=message):
            nmd.SparseStore.from_table(data, tmp_path / "other")
        assert not (tmp_path / "other").exists()
        assert not list(tmp_path.glob("nmd-lab-*"))
    with pytest.raises(FileNotFoundError, match="is no store: make one"):
        nmd.SparseStore(tmp_path)
    with pytest.raises(ValueError, match=r"observed= does not go with a SparseStore"):
        nmd.complete(store, 2, alpha=0, observed=np.ones(store.shape, bool))
    with pytest.raises(ValueError, match=r"dtype='float64' does not go with a SparseStore of"):
        nmd.complete(store, 2, alpha=0, dtype="float64")
    weighted = nmd.SparseObservations(
        **vars(store.observations()) | {"weights": np.ones(store.n_stored, np.float32)}
    )
    with pytest.raises(ValueError, match="matrix has weights or limits"):
        nmd.SparseStore.from_matrix(weighted, tmp_path / "other")


def test_damage_is_found(table, tmp_path):
    path = tmp_path / "store"
    store = nmd.SparseStore.from_table(table, path)
    values = (path / "values").read_bytes()
    (path / "values").write_bytes(values[:8] + b"\x01" + values[9:])
    with pytest.raises(ValueError, match="its file 'values' is not as it was written"):
        store.verify()
    (path / "values").write_bytes(values[:-4])
    with pytest.raises(ValueError, match="its file 'values' has not the"):
        nmd.SparseStore(path)
    (path / "values").write_bytes(values)
    about = json.loads((path / "meta.json").read_text())
    (path / "meta.json").write_text(json.dumps(about | {"layout": 99}))
    with pytest.raises(ValueError, match="has the layout 99, this version reads up to 1"):
        nmd.SparseStore(path)
    (path / "meta.json").write_text("{")
    with pytest.raises(ValueError, match="is damaged: make the store again"):
        nmd.SparseStore(path)
