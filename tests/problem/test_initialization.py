"""Starting factors: the same bits for the same seed, and right fits of degenerate data."""

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import block_diag

import nmd_lab as nmd
from nmd_lab.data.inputs import observe
from nmd_lab.kernels.products import RowBlocks
from nmd_lab.model.fitted_values import NO_OFFSETS
from nmd_lab.model.model import make_model
from nmd_lab.problem.initialization import random_start, svd_by_random_range

pytestmark = pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NMDWarning")

INITS = ("auto", "svd", "randomized", "nndsvd", "random")


def degenerate():
    """Data with few or equal singular values, with zeros where nothing is stored."""
    rng = np.random.default_rng(3)
    few = rng.random((40, 30)) < 0.3
    low = np.round(rng.random((40, 2)) * 4) @ np.round(rng.random((2, 30)) * 3)
    blocks = np.kron(np.eye(4), np.ones((6, 5)))
    return {
        "ones": (rng.random((48, 48)) < 0.5) * 1.0,
        "constant": few * 3.0,
        "low rank": low * few,
        "blocks": blocks,
        "other blocks": block_diag(rng.random((9, 7)), rng.random((5, 9)), np.ones((3, 3))),
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


# Large and sparse data -----------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.float32, np.float64, sparse.csr_array])
@pytest.mark.parametrize("shape", [(60, 45), (45, 60)])
def test_a_random_range_has_the_largest_singular_values(rng, shape, form):
    A = rng.normal(size=shape)
    W, H = svd_by_random_range(RowBlocks(form(A), 0.3, size=7), 4, rng, iterations=6)
    left, values, right = np.linalg.svd(A + 0.3)
    for sizes in (np.sum(W * W, axis=0), np.sum(H * H, axis=1)):
        np.testing.assert_allclose(sizes, values[:4], rtol=1e-2)
    best = np.linalg.norm((left[:, :4] * values[:4]) @ right[:4] - 0.3 - A)
    assert np.linalg.norm(W @ H - 0.3 - A) == pytest.approx(best, rel=1e-2)


@pytest.mark.parametrize("form", [np.float32, np.float64, sparse.csr_array])
def test_products_of_blocks_are_those_of_the_matrix(rng, form):
    R = form(rng.normal(size=(40, 25)))
    rows, V = RowBlocks(R, 0.3, size=7), rng.normal(size=(25, 3))
    A = 0.3 + (R.toarray() if sparse.issparse(R) else R.astype(np.float64))
    np.testing.assert_allclose(rows.gram(), A.T @ A)
    np.testing.assert_allclose(rows.transposed_product(rows.product(V)), A.T @ (A @ V))


def test_random_factors_have_the_size_of_the_data():
    """A matrix of zeros gets those of a matrix of ones."""
    pair = make_model("relu", "frobenius")
    data = (observe(np.full((6, 5), value)) for value in (0.0, np.sqrt(np.sqrt(2.0)), 100.0))
    starts = [random_start(X, pair, 2, NO_OFFSETS, np.random.default_rng(0)) for X in data]
    np.testing.assert_allclose(starts[0].W, starts[1].W)
    assert np.abs(starts[2].W).max() > 3 * np.abs(starts[1].W).max()
