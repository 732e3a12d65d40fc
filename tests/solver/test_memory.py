"""The memory of a fit: how much it takes at its peak, and the forecast that refuses it."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import nmd_lab as nmd
from nmd_lab.solver.memory import needed_memory
from nmd_lab.solver.prepare import prepare

CASES = {
    "relu": ("relu", "frobenius", {}),
    "minmax": ("minmax", "frobenius", {}),
    "square": ("square", "frobenius", {}),
    "l1": ("relu", "l1", {}),
    "kl": ("relu", "kl", {}),
    "random start": ("relu", "frobenius", {"init": "random"}),
}
SIZE = 1500
SMALL = 2 * 2**20
"""Blocks, factors and Gram matrices, which do not grow with the number of entries."""


def dense(dtype, size=SIZE):
    rng = np.random.default_rng(0)
    return rng.random((size, 4), dtype) @ rng.random((4, size), dtype) / np.asarray(4, dtype)


def peak(fit):
    """Return the largest number of bytes that a call holds at a time."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        fit()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def quiet(X, *pair, **options):
    return nmd.decompose(X, 4, *pair, max_iter=18, tol=0, random_state=0, threads=1, **options)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("case", CASES)
def test_the_peak_is_at_most_3_2_times_X(case, dtype):
    f, loss, options = CASES[case]
    X = dense(dtype)
    quiet(dense(dtype, 40), f, loss, **options)  # compile
    assert peak(lambda: quiet(X, f, loss, **options)) <= 3.2 * X.nbytes + SMALL


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_weights_take_no_copy_and_missing_entries_one(dtype):
    X, rng = dense(dtype), np.random.default_rng(1)
    weights = rng.uniform(0.1, 1, X.shape).astype(dtype)
    small = {"weights": weights[:40, :40]}
    quiet(X[:40, :40], "relu", **small)  # compile
    assert peak(lambda: quiet(X, "relu", weights=weights)) <= 3.2 * X.nbytes + SMALL
    X[rng.random(X.shape) < 0.5] = np.nan
    quiet(X[:40, :40], "relu")
    mask = X.size  # one byte for each entry
    assert peak(lambda: quiet(X, "relu")) <= 4.2 * X.nbytes + 2 * mask + SMALL


@pytest.mark.parametrize("kind", ["dense", "sparse", "observed", "starts"])
def test_the_forecast_covers_what_the_solver_allocates(kind):
    X, options = dense(np.float64, 700), {"init": "random", "threads": 1}
    if kind in ("sparse", "observed"):
        X = sparse.csr_array(np.where(np.random.default_rng(2).random(X.shape) < 0.2, X, 0))
    if kind == "starts":
        options = {"init": "random", "threads": 2, "n_init": 3}
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


def test_starts_side_by_side_count_each():
    X = dense(np.float64, 300)
    needed = []
    for n_init in (1, 4):
        options = {"n_init": n_init, "threads": 3}
        prepared = prepare(X, 4, "relu", "frobenius", absent_are_zeros=True, **options)
        needed.append(needed_memory(prepared.problem, 4, prepared.options, prepared.plan))
    assert needed[1] == 3 * needed[0]
