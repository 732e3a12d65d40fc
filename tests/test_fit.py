"""``decompose`` and ``complete`` with degenerate data."""

import contextlib

import numpy as np
import pytest
from oracles import PAIRS

import nmd_lab


def finite(fit):
    return bool(np.isfinite(fit.W.values).all() and np.isfinite(fit.H.values).all())


@pytest.mark.parametrize("init", ["svd", "random", "auto"])
@pytest.mark.parametrize(("f", "loss"), PAIRS)
@pytest.mark.parametrize("value", [0.0, 0.5])
def test_constant_data(f, loss, init, value):
    X = np.full((12, 9), value)
    fit = nmd_lab.decompose(X, 2, f, loss, init=init, max_iter=300, random_state=0)
    assert finite(fit)
    for name in ("objective", "primal_residual", "dual_residual", "penalty"):
        assert np.isfinite(fit.history[name].values).all(), name
    if init == "svd" or f not in ("square", "modulus"):  # the even ones may stay in a corner
        assert np.abs(fit.reconstruct().values - value).max() < 0.05


@pytest.mark.parametrize("init", ["svd", "given"])
@pytest.mark.parametrize("split", ["everywhere", "observed"])
@pytest.mark.parametrize("offsets", ["none", "rows", "columns", "both"])
def test_an_empty_row_or_column_is_no_part_of_the_objective(offsets, split, init):
    rng, row, column = np.random.default_rng(3), 4, 2
    X = rng.random((12, 9))
    X[rng.random(X.shape) < 0.2] = np.nan
    X[row], X[:, column] = np.nan, np.nan
    if init == "given":
        init = np.ones((12, 2)), np.random.default_rng(4).random((2, 9))
    options = {"alpha": 0.3, "offset_alpha": 0.1, "max_iter": 3, "tol": 0, "init": init}
    options |= {"offsets": offsets, "solver": nmd_lab.ADMM(split=split)}
    with pytest.warns() if offsets == "none" else contextlib.nullcontext():
        fit = nmd_lab.complete(X, 2, **options)
    (W, H), (mean, *_) = fit._factors, fit.offsets
    b, c = fit.offsets.of_rows(12, float), fit.offsets.of_columns(9, float)
    loss = 0.5 * np.nansum((X - (W @ H + mean + b[:, None] + c)) ** 2)
    ridge = 0.15 * (np.sum(W**2) + np.sum(H**2)) + 0.05 * (b @ b + c @ c)
    assert fit.objective == pytest.approx(loss + ridge, rel=1e-12)
    assert b[row] == 0
    assert c[column] == 0
