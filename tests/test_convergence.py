"""Convergence told truthfully: why a run ended, how optimal it is; fits of degenerate data."""

import contextlib
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from helpers import PLAIN, given
from oracles import PAIRS

import nmd_lab
from nmd_lab.datasets import synthetic
from nmd_lab.result.files import result_of


@pytest.fixture
def exact():
    return synthetic(30, 20, 3, random_state=0).X.values


# The warning ------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", PLAIN], ids=["default", "plain"])
def test_a_run_that_was_still_improving_is_told_of(noisy, solver):
    with pytest.warns(nmd_lab.warnings.NotConvergedWarning) as caught:
        fit = nmd_lab.decompose(noisy, 3, max_iter=20, solver=solver)
    (told,) = caught
    assert issubclass(told.category, UserWarning)
    assert told.filename == __file__  # where the fit was asked for
    message = str(told.message)
    assert message.startswith("max_iter=20 ended a fit whose last tenth of iterations still ")
    assert message.endswith(": raise max_iter, or pass tol=0 if so many iterations are what you "
                            "want.")  # fmt: skip
    objective = np.minimum.accumulate(fit.history["objective"].values)
    gained = 100 * (1 - objective[-1] / objective[-3])
    assert float(re.search(r"by ([\d.]+)%", message)[1]) == pytest.approx(gained, abs=0.051)


@pytest.mark.filterwarnings("error::nmd_lab.warnings.NotConvergedWarning")
def test_every_ending_has_its_code_in_a_file_too_and_no_warning_where_none_is_due(
    exact, noisy, read_back
):
    silent = {
        "max_iter": (noisy, {"max_iter": 20, "tol": 0}),  # asked for so many
        "converged": (exact, {"max_iter": 1000}),
        "callback": (noisy, {"max_iter": 50, "callback": lambda state: state.iteration == 5}),
        "time_limit": (noisy, {"max_iter": 10**6, "time_limit": 1e-3}),
        "validation": (noisy, {"validation": 0.2, "solver": nmd_lab.ADMM(patience=1)}),
    }
    for code, (X, options) in silent.items():
        fit = nmd_lab.decompose(X, 3, **options)
        assert fit.stop_reason.code == code
        again = read_back(fit).stop_reason
        assert (again, again.code) == (fit.stop_reason, code)
    nmd_lab.decompose(noisy, 3, max_iter=300)  # which stands still


# Why it ended -----------------------------------------------------------------------------------


def test_an_exact_fit_ends_the_run(exact):
    fit = nmd_lab.decompose(exact, 3, max_iter=1000, tol=1e-8)
    assert fit.stop_reason == "converged: relative error at or below 1e-12"
    assert fit.relative_error <= 1e-12
    assert np.all(fit.history["relative_error"][:-1] > 1e-12)
    assert fit._n_iter < 300


def test_small_residuals_end_the_plain_run(exact):
    fit = nmd_lab.decompose(exact, 3, max_iter=5000, tol=1e-6, solver=PLAIN)
    assert fit.stop_reason == "converged: residuals at or below 1e-10"
    assert fit.history["primal_residual"][-1] <= 1e-10 * np.linalg.norm(exact)


@pytest.mark.parametrize(("tol", "f", "window"), [
    (1e-2, "relu", 100), (3e-3, "minmax", 100), (1e-2, "square", 100),
    (1e-4, "relu", 200), (1e-4, "square", 200),
])  # fmt: skip
@pytest.mark.parametrize("solver", ["auto", PLAIN], ids=["default", "plain"])
def test_tol_is_the_gain_that_is_worth_so_many_iterations(tol, f, window, solver):
    X = np.abs(np.random.default_rng(0).normal(size=(20, 15)))
    fit = nmd_lab.decompose(
        X, 3, given(f), tol=tol, max_iter=5000, init="random", random_state=1, solver=solver
    )
    reason = f"the objective fell by at most tol={tol:g} of itself in {window} iterations"
    assert fit.stop_reason == f"converged: {reason}"
    lowest = np.minimum.accumulate(fit.history["objective"].values)
    gains = (lowest[:-window] - lowest[window:]) / lowest[window:]
    assert gains[-1] <= tol
    assert np.all(gains[:-1] > tol)
    assert fit.objective == lowest[-1]


@pytest.mark.parametrize(("f", "loss"), PAIRS)
def test_exact_data_are_solved_by_default(f, loss):
    seed = 2 if (f, loss) == ("minmax", "l1") else 0  # at 0 any tolerance ends near 1e-5
    X = np.abs(synthetic(60, 50, 4, f, random_state=seed).X.values)
    if f == "identity":
        X = np.random.default_rng(0).random((60, 4)) @ np.random.default_rng(1).random((4, 50))
    fit = nmd_lab.decompose(X, 4, f, loss, max_iter=1500, random_state=0)
    assert fit.relative_error < (1e-8 if f != "identity" or loss != "kl" else 1e-3)


# Its code and its sentence ----------------------------------------------------------------------


def test_a_sentence_of_an_unknown_code_is_of_the_code_other(small):
    """Such as one without a code, and that in a file of a newer version."""
    fit = nmd_lab.decompose(small, 2, max_iter=2)
    assert fit.stop_reason.code == "max_iter"
    own = replace(fit, stop_reason="my method is done").stop_reason
    assert (own, own.code) == ("my method is done", "other")
    dataset = fit._to_dataset()
    description = json.loads(dataset.attrs["nmd_lab"])
    description |= {"stop_code": "enlightened", "stop_reason": "enlightened: it sees"}
    reason = result_of(dataset.assign_attrs(nmd_lab=json.dumps(description))).stop_reason
    assert (reason, reason.code) == ("enlightened: it sees", "other")


# How optimal it is ------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::nmd_lab.warnings.OverfitWarning")
@pytest.mark.parametrize("options", [{"observed": True}, {"weights": True}, {"offsets": "both"},
                                     {"alpha": 0.5}])  # fmt: skip
def test_optimality_counts_what_the_objective_counts(noisy, rng, options):
    """For other data the same fit is not optimal."""
    seen = rng.random(noisy.shape) < 0.7
    given = {"observed": seen, "weights": seen + rng.random(noisy.shape)}
    options = {name: given.get(name, value) for name, value in options.items()}
    fit = nmd_lab.decompose(noisy, 3, max_iter=3000, tol=1e-10, **options)
    assert fit.parameters["optimality"] < 1e-2
    if "offsets" not in options:
        unlike = nmd_lab.decompose(noisy, 3, init=fit, max_iter=1, tol=0, solver=PLAIN)
        assert unlike.parameters["optimality"] > 10 * fit.parameters["optimality"]


@pytest.mark.parametrize("init", ["svd", "random", "auto"])
@pytest.mark.parametrize(("f", "loss"), PAIRS)
@pytest.mark.parametrize("value", [0.0, 0.5])
def test_constant_data(f, loss, init, value):
    X = np.full((12, 9), value)
    fit = nmd_lab.decompose(X, 2, f, loss, init=init, max_iter=300, random_state=0)
    assert all(np.isfinite(each.values).all() for each in (fit.W, fit.H))
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
