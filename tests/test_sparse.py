"""Sparse input means what dense input with holes means, in both forms of the split."""

import numpy as np
import pytest
from oracles import PAIRS, best_rows, forward
from scipy import sparse
from stored import stored

import nmd_lab as nmd
from nmd_lab.kernels import envelope as tiles
from nmd_lab.kernels import sweep


def example(f, loss, shape=(300, 200), rank=5, share=0.1, seed=0):
    """Return a model matrix, where it is observed, and starting factors."""
    rng = np.random.default_rng(seed)
    m, n = shape
    X = forward(f, rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n)))
    X = np.abs(X) if loss == "kl" else X
    seen = rng.random(shape) < share
    return X, seen, (rng.standard_normal((m, rank)), rng.standard_normal((rank, n)))


def low_rank(fit):
    W, H = fit._factors
    return W @ H


def assert_same(one, other, tolerance=1e-8):
    np.testing.assert_allclose(
        low_rank(one), low_rank(other), rtol=0, atol=tolerance * np.abs(low_rank(other)).max()
    )
    for name in ("objective", "relative_error", "primal_residual", "dual_residual", "penalty"):
        np.testing.assert_allclose(one.history[name], other.history[name], rtol=tolerance)


def observed_only(X, seen, W, H, f, loss, alpha, n_iter):
    """The observed-only form at ρ = 1, one row and one column at a time."""
    rank = H.shape[0]
    T = np.where(seen, np.sqrt(np.maximum(X, 0)) if f == "square" else X, 0.0)
    U, Z = np.zeros_like(T), T
    epsilon = np.finfo(float).eps
    for _ in range(n_iter):
        ridge = (epsilon * np.sum(H**2) + alpha) * np.eye(rank)
        W = best_rows(H, Z, seen, ridge)
        ridge = (epsilon * np.sum(W**2) + alpha) * np.eye(rank)
        H = best_rows(W.T, Z.T, seen.T, ridge).T
        A = W @ H
        V = A - U
        T = np.where(seen, nmd.prox(V, np.where(seen, X, 0), 1.0, nonlinearity=f, loss=loss), 0.0)
        U = np.where(seen, T - V, 0.0)
        Z = T + U
    return A


@pytest.mark.parametrize("offsets", ["global", "rows", "columns", "both"])
@pytest.mark.parametrize("init", ["svd", "random", "given"])
def test_holes_begin_at_the_offsets_in_dense_data_too(init, offsets):
    X, seen, factors = example("relu", "frobenius", shape=(40, 30), rank=3, share=0.6)
    options = {"init": factors if init == "given" else init, "offsets": offsets, "random_state": 0}
    options |= {"max_iter": 5, "tol": 0, "solver": nmd.ADMM(split="everywhere", refine=False)}
    options["alpha"] = 0
    dense = nmd.complete(np.where(seen, X + 5, np.nan), 3, "relu", **options)
    assert_same(dense, nmd.complete(stored(X + 5, seen), 3, "relu", **options))


@pytest.mark.filterwarnings("ignore::nmd_lab.warnings.OverfitWarning")
@pytest.mark.parametrize(("f", "loss"), PAIRS)
def test_observed_equals_a_loop_over_rows_and_columns(f, loss):
    X, seen, (W, H) = example(f, loss)
    expected = observed_only(X, seen, W, H, f, loss, alpha=0.1, n_iter=20)
    solver = nmd.ADMM(rho=1.0, epsilon=0, split="observed")
    options = {"init": (W, H), "tol": 0, "max_iter": 20, "alpha": 0.1, "solver": solver}
    for data in (
        *(stored(X, seen, kind) for kind in ("csr", "csc", "coo")),
        np.where(seen, X, np.nan),
    ):
        fit = nmd.complete(data, 5, f, loss, **options)
        np.testing.assert_allclose(
            low_rank(fit), expected, rtol=0, atol=1e-8 * np.abs(expected).max()
        )


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_same_number_of_threads_gives_the_same_bits(threads, monkeypatch):
    for module in (sweep, tiles):
        monkeypatch.setattr(module, "MIN_SHARE_ENTRIES", 500)
    monkeypatch.setattr("nmd_lab.kernels.products.BLOCK", 200)
    X, seen, _ = example("minmax", "l1")
    for split, rho in (("everywhere", "auto"), ("observed", "auto"), ("observed", "paper")):
        solver = nmd.ADMM(split=split, rho=rho)
        options = {"random_state": 3, "max_iter": 8, "alpha": 0.1, "solver": solver}
        one, *fits = (
            nmd.complete(
                stored(X, seen), 5, "minmax", "l1", compute=nmd.Compute(threads=count), **options
            )
            for count in (1, threads, threads)
        )
        np.testing.assert_array_equal(*(low_rank(fit) for fit in fits))
        np.testing.assert_allclose(low_rank(fits[0]), low_rank(one), rtol=0, atol=1e-8)


def test_weights_are_the_same_in_dense_and_sparse_and_whole_weights_repeat():
    X, seen, init = example("relu", "frobenius", shape=(40, 30), share=0.6)
    weights = np.random.default_rng(2).integers(1, 4, X.shape).astype(float)
    everywhere = nmd.ADMM(split="everywhere")
    options = {"init": init, "tol": 0, "max_iter": 15, "alpha": 0, "solver": everywhere}
    dense = nmd.complete(np.where(seen, X, np.nan), 5, "relu", weights=weights, **options)
    for values in (weights, sparse.csr_array(np.where(seen, weights, 0))):
        assert_same(nmd.complete(stored(X, seen), 5, "relu", weights=values, **options), dense)
    Y = low_rank(dense)[seen]
    expected = 0.5 * np.sum(weights[seen] * (X[seen] - np.maximum(Y, 0)) ** 2)
    assert dense.objective == pytest.approx(expected, rel=1e-10)


@pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NMDWarning")  # of a single iteration
def test_a_state_that_does_not_fit_is_refused_before_any_work(monkeypatch):
    monkeypatch.setattr("nmd_lab._runtime.machine.free_memory", lambda: 10**7)
    matrix = sparse.random_array((4000, 300), density=0.01, rng=np.random.default_rng(0))
    with pytest.raises(MemoryError, match=r"GiB are free: give \d+% of its rows"):
        nmd.decompose(matrix, 3, solver=nmd.ADMM(refine=False))  # T and U of all entries
    nmd.decompose(matrix, 3, max_iter=1)  # its state has the size of what is stored
    nmd.complete(matrix, 3, alpha=0, max_iter=1)
