"""Starting factors: the same bits for the same seed, and right fits of degenerate data."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

import nmd_lab as nmd
from nmd_lab.data.inputs import observe
from nmd_lab.kernels.lowrank import LanczosBreakdown, RowBlocks, largest_singular
from nmd_lab.model.fitted_values import NO_OFFSETS
from nmd_lab.model.model import make_model
from nmd_lab.problem.initialization import random_start

pytestmark = pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NMDWarning")

INITS = ("auto", "svd", "randomized", "nndsvd", "random")


def degenerate():
    """Data on which Lanczos iterations break down, with zeros where nothing is stored."""
    rng = np.random.default_rng(3)
    few = rng.random((40, 30)) < 0.3
    low = np.round(rng.random((40, 2)) * 4) @ np.round(rng.random((2, 30)) * 3)
    blocks = np.kron(np.eye(4), np.ones((6, 5)))
    return {
        "ones": (rng.random((48, 48)) < 0.5) * 1.0,
        "constant": few * 3.0,
        "low rank": low * few,
        "blocks": blocks,
        "other blocks": sparse.block_diag(
            [rng.random((9, 7)), rng.random((5, 9)), np.ones((3, 3))]
        ).toarray(),
        "levels": np.kron(np.diag([1.0, 2.0, 3.0]), np.ones((8, 8))),
        "identity": np.eye(30),
        "1 x 1": np.array([[2.0]]),
        "1 x n": np.arange(1.0, 9.0)[None],
        "n x 1": np.arange(1.0, 9.0)[:, None],
        "2 x 2": np.eye(2),
        "2 x 3": np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]]),
    }


DATA = degenerate()
FORMS = {
    "dense": (nmd.decompose, np.asarray),
    "zeros": (nmd.decompose, sparse.csr_array),
    "holes": (nmd.complete, lambda X: np.where(X == 0, np.nan, X)),
    "stored": (nmd.complete, sparse.csr_array),
}


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", DATA)
def test_a_seed_gives_the_same_bits_again(name, form, init):
    verb, container = FORMS[form]
    X = container(DATA[name])
    for rank in {1, min(5, *X.shape), min(X.shape)}:
        options = {"alpha": 0, "max_iter": 3, "random_state": 0, "init": init}
        one, other = (verb(X, rank, "relu", **options) for _ in range(2))
        np.testing.assert_array_equal(one.W.values, other.W.values)
        np.testing.assert_array_equal(one.H.values, other.H.values)
        assert np.isfinite(one.relative_error)


# One row, one column, nothing left -----------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["1 x 1", "1 x n", "n x 1"])
@pytest.mark.parametrize("init", INITS)
def test_one_row_or_column_is_fitted_exactly(name, form, init):
    verb, container = FORMS[form]
    fit = verb(container(DATA[name]), 1, "relu", alpha=0, init=init, random_state=0)
    np.testing.assert_allclose(fit.reconstruct().values, DATA[name], rtol=1e-6)


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("f", ["relu", "identity"])
def test_a_matrix_of_zeros_is_fitted_by_zeros(init, f):
    fit = nmd.decompose(sparse.csr_array((6, 5)), 2, f, init=init, random_state=0)
    assert np.abs(fit.reconstruct().values).max() < 1e-3
    assert np.isfinite(fit.relative_error)


@pytest.mark.parametrize("offsets", ["global", "rows", "columns", "both"])
@pytest.mark.parametrize("container", [sparse.csr_array, np.asarray])
def test_constant_data_with_offsets(offsets, container):
    X = np.where(np.random.default_rng(0).random((20, 15)) < 0.3, 3.0, 0.0)
    X = sparse.csr_array(X) if container is sparse.csr_array else np.where(X == 0, np.nan, X)
    fit = nmd.complete(X, 2, offsets=offsets, alpha=0, random_state=0)
    np.testing.assert_allclose(fit.reconstruct().values, 3.0, rtol=1e-6)


# Lanczos -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(40, 25), (25, 40)])
def test_the_largest_singular_values(rng, shape):
    A = rng.normal(size=shape)
    U, values, Vt = largest_singular(aslinearoperator(A), 4, rng.normal(size=25))
    expected = np.linalg.svd(A, compute_uv=False)[:4]
    np.testing.assert_allclose(values, expected, rtol=1e-2)
    np.testing.assert_allclose(np.linalg.norm(A @ Vt.T, axis=0), values, rtol=1e-6)
    np.testing.assert_allclose(U.T @ U, np.eye(4), atol=1e-8)


@pytest.mark.parametrize("form", [np.float32, np.float64, sparse.csr_array])
def test_both_products_of_one_pass_have_the_bits_of_two(rng, form):
    R = form(rng.normal(size=(40, 25)))
    rows, v = RowBlocks(R, 0.3, size=7), rng.normal(size=25)
    y, z = rows.both_products(v)
    A = R.toarray() if sparse.issparse(R) else R.astype(np.float64)
    np.testing.assert_array_equal(y, rows.product(v))
    np.testing.assert_array_equal(z, rows.transposed_product(y))
    np.testing.assert_allclose(z, (A + 0.3).T @ ((A + 0.3) @ v))


@pytest.mark.parametrize("name", ["identity", "blocks", "levels", "2 x 2", "1 x n"])
@pytest.mark.parametrize("transpose", [False, True])
def test_a_breakdown_is_found(rng, name, transpose):
    A = DATA[name].T if transpose else DATA[name]
    with pytest.raises(LanczosBreakdown):
        largest_singular(aslinearoperator(A), 1, rng.normal(size=min(A.shape)))


def test_random_factors_have_the_size_of_the_data():
    """A matrix of zeros gets those of a matrix of ones."""
    pair = make_model("relu", "frobenius")
    starts = [
        random_start(observe(np.full((6, 5), value)), pair, 2, NO_OFFSETS, np.random.default_rng(0))
        for value in (0.0, np.sqrt(np.sqrt(2.0)), 100.0)
    ]
    np.testing.assert_allclose(starts[0].W, starts[1].W)
    assert np.abs(starts[2].W).max() > 3 * np.abs(starts[1].W).max()
