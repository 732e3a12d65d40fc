"""What holds for every form of the data and every engine: the book's iterates, one objective."""

import numpy as np
import pytest
from helpers import PLAIN, given, stored
from oracles import PAIRS, distance, forward, plain_admm
from scipy import sparse

import nmd_lab as nmd
from nmd_lab.model.positive import KL_FLOOR

pytestmark = pytest.mark.filterwarnings("ignore::nmd_lab.warnings.OverfitWarning")

HISTORY = ["objective", "relative_error", "primal_residual", "dual_residual", "penalty"]
THREE = [("relu", "frobenius"), ("square", "l1"), ("minmax", "kl")]


def problem(f, shape=(30, 24), rank=3, scale=1.0, missing=0.0):
    """Return nonnegative noisy data with some zeros, starting factors, and what is observed."""
    rng = np.random.default_rng(0)
    m, n = shape
    sizes = (m, rank), (rank, n)
    W, H, *start = (rng.normal(size=size) for size in sizes * 2)
    X = np.abs(forward(f, W @ H) + 0.1 * rng.normal(size=(m, n)))
    X *= (rng.random((m, n)) > 0.1) * scale
    return X, tuple(start), rng.random((m, n)) >= missing


def unsorted(X, seen):
    matrix = stored(X, seen, "csr")
    for start, stop in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        for part in (matrix.data, matrix.indices):
            part[start:stop] = part[start:stop][::-1].copy()
    return sparse.csr_array((matrix.data, matrix.indices.astype(np.int64), matrix.indptr), X.shape)


FORMS = {
    "holes": lambda X, seen: (nmd.complete, np.where(seen, X, np.nan), {}),
    "observed": lambda X, seen: (nmd.decompose, X, {"observed": seen}),
    # Holes in the later rows; those of the first ones are in the mask alone
    "both": lambda X, seen: (
        nmd.decompose,
        np.where(seen | (np.arange(len(X)) < 10)[:, None], X, np.nan),
        {"observed": seen},
    ),
    "nonsense": lambda X, seen: (nmd.complete, np.where(seen, X, -1e6), {"observed": seen}),
    "infinite": lambda X, seen: (nmd.complete, np.where(seen, X, np.inf), {"observed": seen}),
    "weights": lambda X, seen: (nmd.complete, X, {"weights": seen.astype(float)}),
    "csr": lambda X, seen: (nmd.complete, stored(X, seen, "csr"), {}),
    "unsorted": lambda X, seen: (nmd.complete, unsorted(X, seen), {}),
}
WHOLE = {
    "dense": lambda X, seen: (nmd.decompose, X, {}),
    "all observed": lambda X, seen: (nmd.decompose, X, {"observed": seen}),
    "zeros": lambda X, seen: (nmd.decompose, sparse.csr_array(X), {}),
    "strided": lambda X, seen: (nmd.decompose, np.repeat(X, 3, axis=1)[:, ::3], {}),
}


def compare(
    f, loss, form, rho="balanced", scale=1.0, shape=(30, 24), rank=3, bounds=(0, 1), n_iter=20,
    alpha=0.0, epsilon=1e-8, dtype=float, rtol=1e-8,
):  # fmt: skip
    """Fit data in a form, and compare every iterate and the history with the plain algorithm."""
    X, start, seen = problem(f, shape, rank, scale, 0.4 if form in FORMS else 0.0)
    a, b = np.multiply(bounds, scale)
    X = X - 1 if a < 0 else X
    trace = plain_admm(X, *start, f, loss, seen, n_iter, rho, epsilon, alpha, a, b, KL_FLOOR)
    model = nmd.MinMax(a, b) if f == "minmax" else f
    verb, data, options = (FORMS | WHOLE)[form](X.astype(dtype), seen)
    options |= {"init": tuple(u.astype(dtype) for u in start), "max_iter": n_iter, "alpha": alpha}
    solver, seen = nmd.ADMM(rho=rho, epsilon=epsilon, split="everywhere"), []
    fit = verb(data, rank, model, loss, tol=0, callback=seen.append, solver=solver, **options)
    size = np.linalg.norm(trace.product[-1])
    assert len(seen) == fit._n_iter == n_iter
    for state, product in zip(seen, trace.product, strict=True):
        np.testing.assert_allclose(np.asarray(state.W) @ state.H, product, atol=rtol * size)
    np.testing.assert_allclose(np.matmul(*fit._factors), trace.product[-1], atol=rtol * size)
    np.testing.assert_array_equal(fit.history["penalty"], trace.penalty)
    assert fit.W.dtype == fit.H.dtype == dtype
    # A residual differs by the rounding of what it is the difference of.
    rounding = 1e-7 * rtol * size * (1 + np.linalg.norm(trace.W))
    for name in HISTORY[:4]:
        atol = rounding if "residual" in name else 0
        found, expected = fit.history[name].values, getattr(trace, name)
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol, err_msg=name)
    return trace


@pytest.mark.parametrize("scale", [1.0, 30.0])
@pytest.mark.parametrize("form", FORMS | WHOLE)
@pytest.mark.parametrize("rho", [1.0, "paper", "balanced"])
@pytest.mark.parametrize(("f", "loss"), PAIRS)
def test_every_form_follows_the_plain_algorithm(f, loss, rho, form, scale):
    trace = compare(f, loss, form, rho, scale)
    if (f, loss, scale) == ("relu", "l1", 30.0) and rho != 1:
        assert len(set(trace.penalty)) > 1  # otherwise it does not test the rules


@pytest.mark.parametrize("form", ["dense", "observed", "csr"])
@pytest.mark.parametrize(
    ("f", "loss", "options"),
    [
        *(("relu", loss, {"scale": 0.03, "n_iter": 30}) for loss in ("frobenius", "l1", "kl")),
        *((*pair, {"alpha": 0.7, "scale": 5.0, "rho": 0.3}) for pair in THREE),
        *((*pair, {"alpha": 0.7, "scale": 5.0, "rho": "paper"}) for pair in THREE),
        *(("relu", "frobenius", {"epsilon": epsilon}) for epsilon in (0.0, 1e-2)),
        ("relu", "frobenius", {"shape": (3000, 40), "rank": 4, "n_iter": 10}),
        ("modulus", "l1", {"shape": (40, 3000), "rank": 4, "n_iter": 10, "scale": 10.0}),
        ("square", "kl", {"shape": (257, 9), "rank": 1, "n_iter": 10, "scale": 10.0}),
        ("minmax", "frobenius", {"bounds": (-1, 2)}),
        ("minmax", "l1", {"bounds": (-2, -0.5)}),
        ("minmax", "kl", {"bounds": (0.5, 3)}),
        ("minmax", "kl", {"bounds": (0, np.inf)}),
        *(("relu", loss, {"dtype": np.float32, "rtol": 2e-3, "epsilon": 1e-6, "n_iter": 10})
          for loss in ("frobenius", "l1")),
    ],
)  # fmt: skip
def test_so_do_other_sizes_bounds_ridges_and_precisions(f, loss, options, form):
    compare(f, loss, form, **options)


# Bits -------------------------------------------------------------------------------------------


def bits(fit):
    arrays = [fit.W, fit.H, *(fit.history[name] for name in HISTORY)]
    return [np.ascontiguousarray(each.values).tobytes() for each in arrays]


@pytest.mark.parametrize("init", ["pair", "svd", "random", "auto"])
@pytest.mark.parametrize(("f", "loss"), THREE)
def test_all_ways_to_say_missing_give_the_same_bits_and_hidden_values_none(f, loss, init):
    X, start, seen = problem(f, missing=0.4)
    options, found = {"init": start if init == "pair" else init, "tol": 0, "max_iter": 8}, []
    for form in ("holes", "observed", "both", "nonsense", "infinite"):
        verb, data, mask = FORMS[form](X, seen)
        fit = verb(data, 3, given(f), loss, random_state=5, **{"alpha": 0} | options | mask)
        found.append([fit.parameters["observations_hash"], *bits(fit)])
    assert all(each == found[0] for each in found)


ENGINES = {
    "plain": {"solver": PLAIN},
    "refined": {"init": "random"},
    "path": {"init": "path"},
    "paper": {"solver": "paper", "init": "svd"},
    "constraints": {"w_constraint": "nonnegative"},
    "observed": {"solver": nmd.ADMM(split="observed")},
    "implicit zeros": {},
    "tensors": {},
    "threads": {"compute": nmd.Compute(threads=2)},
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("f", "loss"), PAIRS)
def test_every_engine_repeats_keeps_its_input_and_reports_the_objective(f, loss, engine, dtype):
    X, _, seen = problem(f, missing=0.4)
    X, options = X.astype(dtype), {"max_iter": 25, "tol": 0, "random_state": 7, **ENGINES[engine]}
    verb, data, inputs = nmd.decompose, X, [X]
    ridge = 0.0 if engine in ("constraints", "implicit zeros") else 0.1
    if engine == "implicit zeros":
        X, seen = np.where(seen & (np.quantile(X, 0.8) < X), X, 0), np.ones_like(seen)
        data = sparse.csr_array(X)
        inputs = [data.data, data.indices, data.indptr]
    elif engine == "observed":
        verb, data = nmd.complete, stored(X, seen, "csr")
        inputs, options["offsets"] = [data.data, data.indices, data.indptr], "none"
    elif engine == "tensors":
        pytest.importorskip("torch")
        options["compute"], seen = nmd.Compute(device="cpu"), np.ones_like(seen)
    else:
        options["observed"] = seen
    for array in inputs:
        array.flags.writeable = False
    state = np.random.get_state()[1].copy()  # noqa: NPY002 - the global generator is left alone
    one, two = (verb(data, 3, given(f), loss, alpha=ridge, **options) for _ in "ab")
    np.testing.assert_array_equal(state, np.random.get_state()[1])  # noqa: NPY002
    assert bits(one) == bits(two)
    assert one.W.dtype == one.H.dtype == one.reconstruct().dtype == dtype
    W, H = (each.astype(float) for each in one._factors)
    model = forward(f, W @ H)
    rtol = 1e-8 if dtype == np.float64 else 1e-3
    np.testing.assert_allclose(one.reconstruct(), model, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(one.predict([0, 3], [-1, 2]), model[[0, 3], [-1, 2]], rtol, rtol)
    model = np.maximum(model, KL_FLOOR * X) if loss == "kl" else model
    penalty = ridge / 2 * (np.sum(W**2) + np.sum(H**2))
    total = distance(loss, X.astype(float), model)[seen].sum() + penalty
    objective = one.history["objective"].values
    assert one.objective == pytest.approx(total, rel=rtol)
    assert np.isfinite(objective).all()
    if engine in ("refined", "implicit zeros"):
        assert one.objective == objective.min()


def test_a_state_is_printed_in_one_line(small):
    seen = []
    nmd.decompose(small, 3, max_iter=2, callback=seen.append)
    text = repr(seen[-1])
    assert text.startswith("<nmd_lab.State>  iteration: 2, objective: ")
    assert "W: 20 x 3, H: 3 x 15" in text
    assert "\n" not in text
    assert len(text) < 160
