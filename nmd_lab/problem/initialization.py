"""Starting factors: from the singular value decomposition, random or given."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import eigh

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.labels import plain_array
from nmd_lab.data.observations import BLOCK, Observations
from nmd_lab.kernels.products import RowBlocks, vectors_of_gram
from nmd_lab.model.fitted_values import NO_OFFSETS, Offsets
from nmd_lab.model.model import Model

MAX_GRAM = 500  # largest min(m, n) of an SVD from the Gram matrix; a random range beyond it
N_OVERSAMPLED = 10  # columns of the random range beyond the rank

BLOCK_ROWS = 2048
"""Rows of a block of the Gram matrix."""


class Start(NamedTuple):
    """Starting factors of an iteration.

    Attributes
    ----------
    W, H : ndarray (m, rank) and (rank, n)
        Factors.
    from_factors : bool
        Whether the iteration begins with the T-update at WH.  A warm start needs this to keep the
        signs of WH under Modulus and Square.  If False, the start is that of the paper: T = X on
        the observed entries (√X for Square) and 0 elsewhere, and the first step solves for W.
    offsets : Offsets
        Starting offsets.
    model : Model or None
        Model, in the units of X, that was learned with these factors; None if there is none.
    kind : {"svd", "randomized", "nndsvd", "random", "path", "given", "chosen", ""}
        Method that made the factors; empty if they come from iterations.
    """

    W: FloatArray
    H: FloatArray
    from_factors: bool
    offsets: Offsets = NO_OFFSETS
    model: Model | None = None
    kind: str = ""


@singledispatch
def svd_start(
    observations: Observations,
    model: Model,
    rank: int,
    offsets: Offsets,
    rng: np.random.Generator,
    kind: str = "svd",
) -> Start:
    """Return W = U √Σ and H = √Σ Vᵀ, from the SVD of the starting T minus offsets.

    This is the start of the paper's section VI, except for missing entries.  They are filled with
    the mean of the observed entries (or with the offsets), since zeros would distort the leading
    components.
    """
    R, fill = observations.centred(model.pseudo_inverse, offsets)
    if kind != "randomized" and min(R.shape) <= MAX_GRAM:
        W, H = _svd_through_gram(R, fill, rank)
    else:
        iterations = 2 if kind == "randomized" else 6
        W, H = svd_by_random_range(RowBlocks(R, fill), rank, rng, iterations)
    if kind == "nndsvd":
        W, H = nonnegative_parts(W, H)
    dtype = observations.dtype
    W, H = (np.ascontiguousarray(factor, dtype=dtype) for factor in (W, H))
    return Start(W, H, False, offsets, kind=kind)


def svd_memory(
    shape: tuple[int, int], itemsize: int, n_sparse: int | None, rank: int, kind: str = "svd"
) -> int:
    """Return about how many bytes `svd_start` takes; `n_sparse` is None for dense data."""
    m, n = shape
    short, long = sorted(shape)
    matrix = 2 * m * n * itemsize + m * n // 4  # and masks
    rows = min(BLOCK_ROWS, long)  # of a block
    if n_sparse is not None:
        matrix, rows = 4 * 8 * n_sparse, 0  # its temporary arrays have double precision
    if kind != "randomized" and short <= MAX_GRAM:
        doubles = 5 * short**2 + 2 * rows * short + 5 * long * rank
    else:
        doubles = 2 * BLOCK + 4 * (m + n) * (rank + N_OVERSAMPLED)
    return matrix + 8 * doubles


def _svd_through_gram(
    R: FloatArray | sparse.csr_array, fill: float, rank: int
) -> tuple[FloatArray, FloatArray]:
    """Return U √Σ and √Σ Vᵀ of R + fill.

    Small singular values from the Gram matrix have half the digits only.  This is enough here.
    """
    wide, n = R.shape[0] < R.shape[1], min(R.shape)
    matrix: Any = R if sparse.issparse(R) else np.asarray(R)
    A = RowBlocks(matrix.T if wide else matrix, fill, BLOCK_ROWS)
    V, H = vectors_of_gram(*eigh(A.gram(), subset_by_index=[n - rank, n - 1]))
    W = A.product(V)
    return (H.T, W.T) if wide else (W, H)


def svd_by_random_range(
    A: RowBlocks, rank: int, rng: np.random.Generator, iterations: int = 2
) -> tuple[FloatArray, FloatArray]:
    """Return about U √Σ and √Σ Vᵀ of a matrix (Halko, Martinsson and Tropp, 2011)."""
    m, n = A.R.shape
    width = min(rank + N_OVERSAMPLED, m, n)
    Q = np.linalg.qr(A.product(rng.standard_normal((n, width))))[0]
    for _ in range(iterations):  # sharpen the spectrum
        Q = np.linalg.qr(A.product(np.linalg.qr(A.transposed_product(Q))[0]))[0]
    U, values, Vt = np.linalg.svd(A.transposed_product(Q).T, full_matrices=False)
    root = np.sqrt(values[:rank])
    return (Q @ U[:, :rank]) * root, root[:, None] * Vt[:rank]


def nonnegative_parts(W: FloatArray, H: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return nonnegative factors from an SVD (NNDSVD: Boutsidis and Gallopoulos, 2008).

    Each component keeps its positive or its negative part, whichever has the larger norm.
    """
    W, H = W.copy(), H.copy()
    for c in range(W.shape[1]):
        pairs = [(np.maximum(s * W[:, c], 0), np.maximum(s * H[c], 0)) for s in (1, -1)]
        norms = [(np.linalg.norm(w), np.linalg.norm(h)) for w, h in pairs]
        best = int(np.argmax([a * b for a, b in norms]))
        (w, h), (a, b) = pairs[best], norms[best]
        balance = np.sqrt(b / a) if a * b > 0 else 0.0
        W[:, c], H[c] = balance * w, h / balance if balance else 0 * h
    return W, H


def random_start(
    observations: Observations, model: Model, rank: int, offsets: Offsets, rng: np.random.Generator
) -> Start:
    """Return small Gaussian factors."""
    total, squares = observations.weighted_sums(lambda x: np.square(model.pseudo_inverse(x)))
    size = np.sqrt(squares / total / np.sqrt(rank))
    m, n = observations.shape
    scale = 0.3 * (np.sqrt(size) if size > 0 else 1.0)
    dtype = observations.dtype
    W = (scale * rng.standard_normal((m, rank))).astype(dtype)
    H = (scale * rng.standard_normal((rank, n))).astype(dtype)
    return Start(W, H, False, offsets, kind="random")


def rank_of_init(init: Any) -> int | None:
    """Return the number of components of a pair (W, H) or a fit, None if it has no such shape."""
    pair = init._factors if hasattr(init, "_factors") else init
    shape = np.shape(pair[0]) if isinstance(pair, tuple | list) and pair else ()
    return shape[1] if len(shape) == 2 else None


def given_start(observations: Observations, rank: int, init: Any, offsets: Offsets) -> Start:
    """Return the start from a pair (W, H) or from an earlier fit, after checking it."""
    from_factors = hasattr(init, "_factors")
    pair = init._factors if from_factors else init
    if from_factors and any(each is not None for each in init.offsets[1:]):
        offsets = init.offsets
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(f"init is a {type(init).__name__}: give a name, a pair (W, H) or a fit.")
    m, n = observations.shape
    factors = []
    for name, factor, shape in (("W", pair[0], (m, rank)), ("H", pair[1], (rank, n))):
        array = plain_array(factor)
        if array.dtype.kind not in "buif" or array.shape != shape:
            raise ValueError(f"init has {name} of shape {array.shape}: give numbers of {shape}.")
        if not np.all(np.isfinite(array)):
            raise ValueError(f"init has NaN or infinity in {name}: give finite numbers.")
        factors.append(np.array(array, dtype=observations.dtype, order="C"))
    return Start(factors[0], factors[1], from_factors, offsets, kind="given")
