"""Sparse input means what dense input with holes means, in both forms of the split."""

import numpy as np
import pytest
from helpers import NONNEGATIVE, peak, stored
from oracles import PAIRS, forward, plain_admm
from scipy import sparse

import nmd_lab as nmd
from nmd_lab.data.inputs import observe
from nmd_lab.problem.initialization import NO_OFFSETS


def example(f, loss, shape=(300, 200), rank=5, share=0.1, seed=0):
    """Return a model matrix, where it is observed, and starting factors."""
    rng = np.random.default_rng(seed)
    m, n = shape
    X = forward(f, rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n)))
    X = np.abs(X) if loss == "kl" else X
    seen = rng.random(shape) < share
    return X, seen, (rng.standard_normal((m, rank)), rng.standard_normal((rank, n)))


@pytest.mark.parametrize("offsets", ["global", "rows", "columns", "both"])
@pytest.mark.parametrize("init", ["svd", "random", "given"])
def test_holes_begin_at_the_offsets_in_dense_data_too(init, offsets):
    X, seen, factors = example("relu", "frobenius", shape=(40, 30), rank=3, share=0.6)
    options = {"init": factors if init == "given" else init, "offsets": offsets, "random_state": 0}
    options |= {"max_iter": 5, "tol": 0, "solver": nmd.ADMM(split="everywhere", refine=False)}
    options["alpha"] = 0
    dense = nmd.complete(np.where(seen, X + 5, np.nan), 3, "relu", **options)
    listed = nmd.complete(stored(X + 5, seen), 3, "relu", **options)
    np.testing.assert_allclose(dense.reconstruct(), listed.reconstruct(), rtol=1e-8, atol=1e-8)
    for name in ("objective", "relative_error", "primal_residual", "dual_residual", "penalty"):
        np.testing.assert_allclose(dense.history[name], listed.history[name], rtol=1e-8)


@pytest.mark.filterwarnings("ignore::nmd_lab.warnings.OverfitWarning")
@pytest.mark.parametrize(("f", "loss"), PAIRS)
def test_observed_equals_a_loop_over_rows_and_columns(f, loss):
    X, seen, (W, H) = example(f, loss)
    given = {"penalty": 1.0, "epsilon": np.finfo(float).eps, "alpha": 0.1, "observed_only": True}
    expected = plain_admm(X, W, H, f, loss, seen, **given).product[-1]
    solver = nmd.ADMM(rho=1.0, epsilon=0, split="observed")
    options = {"init": (W, H), "tol": 0, "max_iter": 20, "alpha": 0.1, "solver": solver}
    for data in (
        *(stored(X, seen, kind) for kind in ("csr", "csc", "coo")),
        np.where(seen, X, np.nan),
    ):
        fit = nmd.complete(data, 5, f, loss, **options)
        np.testing.assert_allclose(
            np.matmul(*fit._factors), expected, rtol=0, atol=1e-8 * np.abs(expected).max()
        )


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_same_number_of_threads_gives_the_same_bits(threads, monkeypatch):
    monkeypatch.setattr("nmd_lab.kernels.sweep.MIN_SHARE_ENTRIES", 500)
    monkeypatch.setattr("nmd_lab.data.observations.BLOCK", 200)
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
        np.testing.assert_array_equal(*(np.matmul(*fit._factors) for fit in fits))
        np.testing.assert_allclose(
            np.matmul(*fits[0]._factors), np.matmul(*one._factors), rtol=0, atol=1e-8
        )


@pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NMDWarning")  # of a single iteration
def test_a_state_that_does_not_fit_is_refused_before_any_work(monkeypatch):
    monkeypatch.setattr("nmd_lab._runtime.machine.free_memory", lambda: 10**7)
    matrix = sparse.random_array((4000, 300), density=0.01, rng=np.random.default_rng(0))
    with pytest.raises(MemoryError, match=r"GiB are free: give \d+% of its rows"):
        nmd.decompose(matrix, 3, solver=nmd.ADMM(refine=False))  # T and U of all entries
    nmd.decompose(matrix, 3, max_iter=1)  # its state has the size of what is stored
    nmd.complete(matrix, 3, alpha=0, max_iter=1)


def counts(m, n, n_entries):
    """Return counts of which few are stored."""
    rng = np.random.default_rng(0)
    places = rng.choice(m * n, n_entries, replace=False)
    entries = (rng.poisson(3, n_entries) + 1.0, np.divmod(places, n))
    return sparse.csr_array(entries, shape=(m, n))


SHORT = {"max_iter": 5, "tol": 0, "random_state": 0}
ONE = {"compute": nmd.Compute(threads=1)}  # each thread has tiles of 3 MiB, of any matrix
RANKS = {"validation": nmd.Choice(ranks=[1, 2])}


def short_fit(X):
    return nmd.complete(X, 2, alpha=1.0, offsets="both", init="random", **SHORT)


def scores(X):
    fit = short_fit(X)
    return fit.predict(X), fit.score(X), nmd.compare(fit, X), nmd.metrics.rmse(X, fit.predict(X))


ALL_OF_SPARSE_DATA = {
    "refinements": lambda X: nmd.complete(X, 2, "relu", alpha=0.1, **SHORT | {"max_iter": 30}),
    "zeros": lambda X: nmd.decompose(X, 4, "relu", "frobenius", **SHORT, **ONE),
    "zeros of a divergence": lambda X: nmd.decompose(X, 4, "relu", "kl", **SHORT, **ONE),
    "zeros under constraints": lambda X: nmd.decompose(X, 4, "identity", **NONNEGATIVE, **SHORT),
    "zeros of a divergence under constraints": lambda X: nmd.decompose(
        X, 4, "identity", "kl", **NONNEGATIVE, **SHORT
    ),
    "choice": lambda X: nmd.complete(X, 2, max_iter=3, random_state=0),
    "thinning": lambda X: nmd.decompose(X, "auto", "identity", "kl", **SHORT, **RANKS, **ONE),
    "rows in order": lambda X: nmd.sample(  # dense, they have 48 MB
        X[:, :1000], 2, order=np.arange(X.shape[0]), draws=3, tune=2, random_state=0
    ),
    "baseline": lambda X: nmd.baselines.soft_impute(X, 2, init="random", **SHORT),
    "scores": scores,
    "page": lambda X: short_fit(X)._repr_html_(),
}


def test_sums_of_columns_have_no_row_for_each_block():
    X = observe(counts(100_000, 20_000, 50_000))
    assert peak(lambda: X.centred_sums(np.abs, NO_OFFSETS, 0)) < 5e6


@pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NMDWarning")
@pytest.mark.parametrize("call", ALL_OF_SPARSE_DATA)
def test_sparse_data_are_never_made_dense(call):
    do, m, n = ALL_OF_SPARSE_DATA[call], 6000, 5000
    do(counts(40, 30, 300))  # compiles
    X = counts(m, n, 20_000)
    before = X.copy()
    assert peak(lambda: do(X)) < 0.8 * m * n  # a mask of all entries has a byte for each
    assert (before != X).nnz == 0
