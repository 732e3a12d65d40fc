"""The memory of a fit: how much it takes at its peak, and the forecast that refuses it."""

import numpy as np
import pytest
from helpers import peak, prepare, some
from scipy import sparse

import nmd_lab as nmd
from nmd_lab.fit.summary import needed_memory
from nmd_lab.problem.initialization import svd_memory

SIZE = 1500
SMALL = 2 * 2**20
"""Blocks, factors and Gram matrices, which do not grow with the number of entries."""


def dense(dtype, size=SIZE):
    rng = np.random.default_rng(0)
    return rng.random((size, 4), dtype) @ rng.random((4, size), dtype) / np.asarray(4, dtype)


def quiet(X, *pair, **options):
    return nmd.decompose(
        X, 4, *pair, max_iter=18, tol=0, random_state=0, compute=nmd.Compute(threads=1), **options
    )


def hidden(X, how):
    """Return X, with half of its entries missing or weighted if that is asked, and arguments."""
    rng = np.random.default_rng(1)
    seen = rng.random(X.shape) < 0.5
    weights = rng.uniform(0.1, 1, X.shape).astype(X.dtype)
    if how in ("nan", "nan and weights"):
        X[~seen] = np.nan
    options = {"observed": {"observed": seen}, "random start": {"init": "random"}}.get(how, {})
    return X, options | ({"weights": weights} if "weights" in how else {})


PEAKS = [("relu", "frobenius", ""), ("relu", "frobenius", "nan and weights")]
PEAKS += [("minmax", "frobenius", ""), ("square", "frobenius", "")]
PEAKS += [("relu", "l1", ""), ("relu", "kl", "")]
PEAKS += [("relu", "frobenius", how) for how in ("random start", "observed", "nan", "weights")]


@pytest.mark.parametrize("dtype", some([np.float64, np.float32], 1))
@pytest.mark.parametrize(("f", "loss", "how"), some(PEAKS, 2))
def test_the_peak_is_at_most_3_2_times_X(f, loss, how, dtype):
    """Weights and missing entries take no copy."""
    X, options = hidden(dense(dtype), how)
    quiet(X, f, loss, **options)
    assert peak(lambda: quiet(X, f, loss, **options)) <= 3.2 * X.nbytes + SMALL


@pytest.mark.parametrize("kind", ["dense", "sparse", "observed", "starts"])
def test_the_forecast_covers_what_the_solver_allocates(kind):
    X, options = dense(np.float64, 700), {"alpha": 0, "init": "random"}
    options["compute"] = nmd.Compute(threads=2 if kind == "starts" else 1)
    if kind in ("sparse", "observed"):
        X = sparse.csr_array(np.where(np.random.default_rng(2).random(X.shape) < 0.2, X, 0))
    if kind == "starts":
        options["n_init"] = 3
    zeros = kind == "sparse"
    verb = nmd.decompose if zeros else nmd.complete
    prepared = prepare(X, 6, "relu", "frobenius", absent_are_zeros=zeros, **options)
    needed = needed_memory(prepared.problem, 6, prepared.options, prepared.plan)

    def fit():
        verb(X, 6, "relu", max_iter=30, tol=0, **options)

    fit()
    taken = peak(fit)
    data = X.data.nbytes + X.indices.nbytes if kind == "observed" else 0
    assert taken <= 1.35 * needed + 2 * data + 4 * 2**20
    assert needed <= 2 * taken + 8 * 2**20


STARTS = {
    "gram": ((3000, 450), 0.0, {}),
    "gram of a wide matrix with missing entries": ((450, 2400), 0.5, {}),
    "square": ((1300, 1200), 0.0, {"init": "svd"}),
    "offsets": ((1300, 1200), 0.2, {"offsets": "both"}),
    "randomized": ((1300, 1200), 0.2, {"init": "randomized"}),
    "stored": ((3000, 2000), 0.9, {}),
    "stored, with few columns": ((4000, 450), 0.9, {}),
    "zeros": ((3000, 2000), 0.9, {}),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("case", STARTS)
def test_the_forecast_covers_the_start(case, dtype):
    shape, missing, options = STARTS[case]
    rng = np.random.default_rng(0)
    X = rng.random(shape, dtype)
    X[rng.random(shape) < missing] = 0 if missing == 0.9 else np.nan
    X = sparse.csr_array(X) if missing == 0.9 else X
    f = "square" if case == "square" else "relu"

    def begin():
        stored = case.startswith("stored")
        return prepare(X, 8, f, "frobenius", absent_are_zeros=not stored, **options)

    next(begin().starts)
    prepared = begin()
    data = prepared.problem.observations
    n_sparse = data.values.size if sparse.issparse(X) else None
    needed = svd_memory(data.shape, data.dtype.itemsize, n_sparse, 8, options.get("init", "svd"))
    assert peak(lambda: next(prepared.starts)) <= needed
    assert needed <= needed_memory(prepared.problem, 8, prepared.options, prepared.plan)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_data_in_units_of_their_own_are_refused_before_they_are_copied(monkeypatch, dtype):
    X = dense(dtype, 900) * dtype(1e9)
    monkeypatch.setattr("nmd_lab._runtime.machine.free_memory", lambda: int(3.1 * X.nbytes))

    def fit():
        with pytest.raises(MemoryError, match="of its rows"):
            quiet(X)

    fit()
    assert peak(fit) < 0.8 * X.nbytes
