"""The solver's iterates are those of the dense textbook algorithm, in every form of the data."""

from __future__ import annotations

import numpy as np
import pytest
from given import given
from oracles import NONLINEARITIES, PAIRS, forward, plain_admm

import nmd_lab

PENALTIES = [1.0, "paper", "balanced"]
HISTORY = ["objective", "relative_error", "primal_residual", "dual_residual", "penalty"]


def problem(f, m=30, n=24, rank=3, scale=1.0, missing=0.0, seed=0):
    """Nonnegative noisy data with some zeros, starting factors, and what is observed."""
    rng = np.random.default_rng(seed)
    X = forward(f, rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n)))
    X = np.abs(X + 0.1 * rng.normal(size=(m, n))) * (rng.random((m, n)) > 0.1) * scale
    mask = rng.random((m, n)) >= missing
    return X, rng.normal(size=(m, rank)), rng.normal(size=(rank, n)), mask


def plain(X, W0, H0, f, loss, **options):
    from nmd_lab.model.losses import KL_FLOOR

    return plain_admm(X, W0, H0, f, loss, kl_floor=KL_FLOOR, **options)


def assert_same(fit, trace, rtol=1e-8):
    """Same product, same history.

    A residual may differ by the rounding of what it is the difference of: with Identity and
    Frobenius the first dual residual of the paper's rule is zero but for the ridge.
    """
    product = fit.W.values @ fit.H.values
    size = np.linalg.norm(trace.product[-1])
    assert np.linalg.norm(product - trace.product[-1]) <= rtol * size
    assert fit.n_iter == len(trace.product) == fit.history.sizes["iteration"]
    np.testing.assert_array_equal(fit.history["penalty"], trace.penalty)
    for name in HISTORY[:4]:
        rounding = 1e-7 * rtol * size * (1 + np.linalg.norm(trace.W))
        atol = rounding if "residual" in name else 0
        np.testing.assert_allclose(
            fit.history[name].values, getattr(trace, name), rtol=rtol, atol=atol, err_msg=name
        )


@pytest.mark.parametrize("scale", [1.0, 30.0])
@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize(("f", "loss"), PAIRS)
def test_every_pair_follows_the_plain_algorithm(f, loss, penalty, missing, scale):
    X, W0, H0, mask = problem(f, scale=scale, missing=missing)
    nonlinearity = nmd_lab.MinMax(0, scale) if f == "minmax" else f
    trace = plain(X, W0, H0, f, loss, observed=mask, penalty=penalty, epsilon=1e-8, b=scale)
    options = {
        "init": (W0, H0),
        "tol": 0,
        "max_iter": 20,
        "solver": nmd_lab.ADMM(rho=penalty, epsilon=1e-8),
    }
    options["alpha"] = 0
    if missing:
        fit = nmd_lab.decompose(X, 3, nonlinearity, loss, observed=mask, **options)
        assert_same(fit, trace)
        fit = nmd_lab.complete(np.where(mask, X, np.nan), 3, nonlinearity, loss, **options)
    else:
        fit = nmd_lab.decompose(X, 3, nonlinearity, loss, **options)
    assert_same(fit, trace)


def test_those_problems_do_change_the_penalty():
    """Otherwise the comparison above says nothing about the rules."""
    changed = {"balanced": 0, "paper": 0}
    for f, loss in PAIRS:
        for penalty in changed:
            X, W0, H0, _ = problem(f, scale=30.0)
            changed[penalty] += len(set(plain(X, W0, H0, f, loss, penalty=penalty).penalty)) > 1
    assert min(changed.values()) >= 8


@pytest.mark.parametrize("penalty", ["paper", "balanced"])
@pytest.mark.parametrize("loss", ["frobenius", "l1", "kl"])
def test_penalty_that_rises(loss, penalty):
    X, W0, H0, mask = problem("relu", scale=0.03, missing=0.3)
    trace = plain(X, W0, H0, "relu", loss, observed=mask, penalty=penalty, n_iter=30)
    fit = nmd_lab.decompose(
        X,
        3,
        "relu",
        loss,
        observed=mask,
        init=(W0, H0),
        tol=0,
        max_iter=30,
        solver=nmd_lab.ADMM(rho=penalty, epsilon=1e-10),
    )
    assert_same(fit, trace)


@pytest.mark.parametrize("penalty", [0.3, "paper", "balanced"])
@pytest.mark.parametrize(("f", "loss"), [("relu", "frobenius"), ("square", "l1"), ("minmax", "kl")])
def test_ridge(f, loss, penalty):
    X, W0, H0, mask = problem(f, scale=5.0, missing=0.4)
    trace = plain(X, W0, H0, f, loss, observed=mask, penalty=penalty, alpha=0.7, epsilon=1e-6)
    fit = nmd_lab.complete(
        np.where(mask, X, np.nan),
        3,
        given(f),
        loss,
        init=(W0, H0),
        tol=0,
        max_iter=20,
        alpha=0.7,
        solver=nmd_lab.ADMM(rho=penalty, epsilon=1e-6),
    )
    assert_same(fit, trace)


@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 1e-2])
def test_epsilon(epsilon):
    X, W0, H0, _ = problem("relu")
    trace = plain(X, W0, H0, "relu", "frobenius", epsilon=epsilon)
    fit = nmd_lab.decompose(
        X,
        3,
        init=(W0, H0),
        tol=0,
        max_iter=20,
        solver=nmd_lab.ADMM(epsilon=epsilon, rho="balanced"),
    )
    assert_same(fit, trace)


@pytest.mark.parametrize(("m", "n", "rank"), [(3000, 40, 4), (40, 3000, 4), (257, 9, 1), (6, 4, 3)])
@pytest.mark.parametrize(
    ("f", "loss"), [("relu", "frobenius"), ("modulus", "l1"), ("square", "kl")]
)
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_shapes_and_several_blocks(f, loss, m, n, rank, missing):
    X, W0, H0, mask = problem(f, m, n, rank, scale=10.0, missing=missing)
    trace = plain(X, W0, H0, f, loss, observed=mask, n_iter=10)
    fit = nmd_lab.decompose(
        X,
        rank,
        given(f),
        loss,
        observed=mask if missing else None,
        init=(W0, H0),
        tol=0,
        max_iter=10,
        solver=nmd_lab.ADMM(epsilon=1e-10, rho="balanced"),
    )
    assert_same(fit, trace)


@pytest.mark.parametrize(("a", "b", "loss"), [(-1.0, 2.0, "frobenius"), (-2.0, -0.5, "l1"),
                                              (0.5, 3.0, "kl"), (0.0, np.inf, "kl")])  # fmt: skip
def test_general_bounds(a, b, loss):
    X, W0, H0, mask = problem("relu", missing=0.4)
    X = X if loss == "kl" else X - 1
    trace = plain(X, W0, H0, "minmax", loss, observed=mask, epsilon=1e-8, a=a, b=b)
    fit = nmd_lab.decompose(
        X,
        3,
        nmd_lab.MinMax(a, b),
        loss,
        observed=mask,
        init=(W0, H0),
        tol=0,
        max_iter=20,
        solver=nmd_lab.ADMM(epsilon=1e-8, rho="balanced"),
    )
    assert_same(fit, trace)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_every_iterate_through_the_callback(penalty):
    X, W0, H0, mask = problem("relu", scale=30.0, missing=0.4)
    trace = plain(X, W0, H0, "relu", "l1", observed=mask, penalty=penalty)
    seen = []

    def callback(state):
        seen.append((np.asarray(state.W) @ np.asarray(state.H), float(state.objective)))

    nmd_lab.decompose(
        X,
        3,
        "relu",
        "l1",
        observed=mask,
        init=(W0, H0),
        tol=0,
        max_iter=20,
        callback=callback,
        solver=nmd_lab.ADMM(rho=penalty, epsilon=1e-10),
    )
    assert len(seen) == 20
    for (product, objective), expected, total in zip(
        seen, trace.product, trace.objective, strict=True
    ):
        np.testing.assert_allclose(product, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())
        assert objective == pytest.approx(total, rel=1e-8)


@pytest.mark.parametrize("f", NONLINEARITIES)
@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.exhaustive
def test_single_precision(f, missing):
    X, W0, H0, mask = problem(f, missing=missing)
    X, W0, H0 = (u.astype(np.float32) for u in (X, W0, H0))
    fit = nmd_lab.decompose(
        X,
        3,
        given(f),
        "frobenius",
        observed=mask,
        init=(W0, H0),
        tol=0,
        max_iter=10,
        solver=nmd_lab.ADMM(epsilon=1e-6, rho="balanced"),
    )
    assert fit.W.dtype == fit.H.dtype == np.float32
    assert fit.reconstruct().dtype == np.float32
    trace = plain(X, W0, H0, f, "frobenius", observed=mask, n_iter=10, epsilon=1e-6)
    assert_same(fit, trace, rtol=2e-3)
    double = nmd_lab.decompose(
        X, 3, given(f), observed=mask, init=(W0, H0), max_iter=3, dtype=np.float64
    )
    assert double.W.dtype == np.float64
    single = nmd_lab.decompose(
        X.astype(float), 3, given(f), observed=mask, init=(W0, H0), max_iter=3, dtype="float32"
    )
    assert single.W.dtype == np.float32


# How missing entries are given ------------------------------------------------------------------


def same_bits(one, other):
    return (
        one.W.values.tobytes() == other.W.values.tobytes()
        and one.H.values.tobytes() == other.H.values.tobytes()
        and all(one.history[k].values.tobytes() == other.history[k].values.tobytes()
                for k in HISTORY)
    )  # fmt: skip


@pytest.mark.parametrize("verb", ["decompose", "complete"])
@pytest.mark.parametrize("init", ["pair", "svd", "random", "auto"])
@pytest.mark.parametrize(("f", "loss"), [("relu", "frobenius"), ("square", "l1"), ("minmax", "kl")])
def test_all_ways_to_say_missing(f, loss, init, verb):
    X, W0, H0, mask = problem(f, missing=0.4)
    run = getattr(nmd_lab, verb)
    options = {"init": (W0, H0) if init == "pair" else init, "tol": 0, "max_iter": 8}
    options |= {"random_state": 5, "alpha": 0}
    reference = run(np.where(mask, X, np.nan), 3, given(f), loss, **options)
    assert same_bits(reference, run(X, 3, given(f), loss, observed=mask, **options))
    assert same_bits(reference, run(np.ma.array(X, mask=~mask), 3, given(f), loss, **options))
    half = mask.copy()
    half[:10] = True
    mixed = np.where(mask | (np.arange(30) >= 10)[:, None], X, np.nan)
    assert same_bits(
        reference, run(mixed, 3, given(f), loss, observed=half & ~np.isnan(mixed), **options)
    )
    assert same_bits(reference, run(mixed, 3, given(f), loss, observed=half, **options))
    other = "complete" if verb == "decompose" else "decompose"
    assert same_bits(
        reference, getattr(nmd_lab, other)(X, 3, given(f), loss, observed=mask, **options)
    )


@pytest.mark.parametrize("junk", [1e6, -1e6, 0.0, np.nan, np.inf])
@pytest.mark.parametrize("init", ["svd", "random"])
@pytest.mark.parametrize(("f", "loss"), [("relu", "frobenius"), ("square", "l1"), ("minmax", "kl")])
def test_hidden_values_have_no_influence(f, loss, init, junk):
    X, _, _, mask = problem(f, missing=0.4)
    options = {"init": init, "tol": 0, "max_iter": 8, "random_state": 5, "observed": mask}
    reference = nmd_lab.decompose(X, 3, given(f), loss, **options)
    assert same_bits(
        reference, nmd_lab.decompose(np.where(mask, X, junk), 3, given(f), loss, **options)
    )


def test_nothing_missing_is_the_same_as_no_mask():
    X, W0, H0, _ = problem("relu")
    options = {"init": (W0, H0), "tol": 0, "max_iter": 20}
    plain_fit = nmd_lab.decompose(X, 3, **options)
    masked = nmd_lab.decompose(X, 3, observed=np.ones(X.shape, dtype=bool), **options)
    np.testing.assert_allclose(masked.reconstruct(), plain_fit.reconstruct(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("f", "loss"), PAIRS)
@pytest.mark.parametrize("init", ["pair", "svd", "random", "auto"])
def test_same_seed_same_bits_and_inputs_untouched(f, loss, init):
    X, W0, H0, mask = problem(f, missing=0.3)
    inputs = [X, W0, H0, mask]
    before = [u.copy() for u in inputs]
    for u in inputs:
        u.flags.writeable = False
    options = {"init": (W0, H0) if init == "pair" else init, "max_iter": 10, "tol": 0}
    np.random.seed(1)  # noqa: NPY002 - the global generator must not matter
    one = nmd_lab.decompose(X, 3, given(f), loss, observed=mask, random_state=7, **options)
    np.random.seed(2)  # noqa: NPY002
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    two = nmd_lab.decompose(X, 3, given(f), loss, observed=mask, random_state=7, **options)
    assert same_bits(one, two)
    np.testing.assert_array_equal(state, np.random.get_state()[1])  # noqa: NPY002
    for u, v in zip(inputs, before, strict=True):
        np.testing.assert_array_equal(u, v)


@pytest.mark.parametrize("layout", ["fortran", "strided", "readonly", "integers", "list"])
def test_memory_layouts(layout):
    X, W0, H0, _ = problem("relu")
    X = np.round(X * 10)
    given = {
        "fortran": lambda: np.asfortranarray(X),
        "strided": lambda: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
        "readonly": lambda: np.frombuffer(X.tobytes()).reshape(X.shape),
        "integers": lambda: X.astype(np.int16),
        "list": lambda: X.tolist(),
    }[layout]()
    options = {"init": (np.asfortranarray(W0), H0.tolist()), "tol": 0, "max_iter": 10}
    reference = nmd_lab.decompose(X, 3, **options)
    fit = nmd_lab.decompose(given, 3, **options)
    assert fit.W.dtype == np.float64
    np.testing.assert_allclose(fit.reconstruct(), reference.reconstruct(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("f", NONLINEARITIES)
def test_reconstruct_and_predict_are_f_of_the_product(f):
    X, W0, H0, mask = problem(f, missing=0.4)
    fit = nmd_lab.decompose(X, 3, given(f), observed=mask, init=(W0, H0), max_iter=5)
    expected = forward(f, fit.W.values @ fit.H.values)
    np.testing.assert_allclose(fit.reconstruct().values, expected, rtol=1e-12, atol=1e-14)
    rows, columns = np.array([0, 29, 3, 3]), np.array([23, 0, 5, -1])
    predicted = fit.predict(rows[:3], columns[:3])
    np.testing.assert_allclose(predicted, expected[rows[:3], columns[:3]], rtol=1e-12, atol=1e-14)


def test_a_state_is_printed_in_one_line(small):
    seen = []
    nmd_lab.decompose(small, 3, max_iter=2, callback=seen.append)
    text = repr(seen[-1])
    assert text.startswith("<nmd_lab.State>  iteration: 2, objective: ")
    assert "W: 20 x 3, H: 3 x 15" in text
    assert "\n" not in text
    assert len(text) < 160
