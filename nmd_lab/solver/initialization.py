"""Starting points: factors from the singular value decomposition or at random; all seeded."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, svds

from nmd_lab.data.base import FloatArray, Observations
from nmd_lab.model.nonlinearities import Nonlinearity

from .offsets import NONE, Offsets

RANDOM_SCALE = 0.3
"""Standard deviation of random factors, in units of what would give WH the size of T."""

LARGEST_GRAM = 1000
"""Smaller side up to which a dense SVD goes through the Gram matrix, and not through Lanczos."""


class Start(NamedTuple):
    """Where the iteration begins.

    Attributes
    ----------
    W, H : ndarray (m, rank), (rank, n)
        Starting factors.
    from_factors : bool
        False: T = X on Ω (√X for Square), 0 elsewhere, as in the paper, and the first step solves
        for W.  True: T follows from WH, and the first step is the T-update; this keeps what the
        factors of an earlier fit know, the signs that Modulus and Square need above all.
    offsets : Offsets
        Starting offsets.
    """

    W: FloatArray
    H: FloatArray
    from_factors: bool
    offsets: Offsets = NONE


def svd_start(
    observations: Observations,
    f: Nonlinearity,
    rank: int,
    offsets: Offsets,
    rng: np.random.Generator,
    kind: str = "svd",
) -> Start:
    """Return W = U √Σ and H = √Σ Vᵀ of the starting T less offsets (paper, section VI).

    Missing entries are filled with the mean of the observed ones (or with the offsets): zeros
    would pull the leading components towards them.

    Parameters
    ----------
    observations : Observations
        The data.
    f : Nonlinearity
        Gives T from X.
    rank : int
        Number of components.
    offsets : Offsets
        What is taken off first.
    rng : Generator
        For the iterative forms.
    kind : {"svd", "randomized", "nndsvd"}
        "randomized" approximates the decomposition by a few block products, which is faster for
        large or sparse data and many components; "nndsvd" makes both factors nonnegative.
    """
    R, fill = observations.centred(f.preimage, *offsets)
    if kind == "randomized":
        left, right = _svd_by_random_range(R, fill, rank, rng)
    elif isinstance(R, np.ndarray) and min(R.shape) <= LARGEST_GRAM:
        left, right = _svd_through_gram(R, rank)
    else:
        left, right = _svd_by_lanczos(R, fill, rank, rng)
    if kind == "nndsvd":
        left, right = _nonnegative(left, right)
    dtype = observations.values.dtype
    W, H = (np.ascontiguousarray(factor, dtype=dtype) for factor in (left, right))
    return Start(W, H, False, offsets)


def _svd_through_gram(R: FloatArray, rank: int) -> tuple[FloatArray, FloatArray]:
    """Return the balanced factors of a dense matrix.

    The Gram matrix costs half the digits of small singular values, which a start can spare.
    """
    wide = R.shape[0] < R.shape[1]
    scale = float(np.abs(R).max()) or 1.0  # squares must not overflow
    A = np.asarray(R.T if wide else R, dtype=np.float64) / scale
    n = A.shape[1]
    squares, V = eigh(A.T @ A, subset_by_index=[n - rank, n - 1])
    root, V = np.maximum(squares[::-1], 0) ** 0.25, V[:, ::-1]
    scores = np.divide(A @ V, root, out=np.zeros((A.shape[0], rank)), where=root > 0)
    left, right = np.sqrt(scale) * scores, np.sqrt(scale) * V * root
    return (right, left.T) if wide else (left, right.T)


def _svd_by_lanczos(
    R: FloatArray | sparse.csr_array, fill: float, rank: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return the balanced factors of a large or sparse matrix, to which `fill` is added."""
    m, n = R.shape
    first = rng.standard_normal(min(m, n))
    found = min(rank, min(m, n) - 1)  # as many as the iteration can find
    U, values, Vt = svds(_filled(R, fill), k=found, v0=first, tol=1e-3)
    order = np.argsort(-values)
    root = np.sqrt(values[order])
    left, right = np.zeros((m, rank)), np.zeros((rank, n))
    left[:, :found], right[:found] = U[:, order] * root, root[:, None] * Vt[order]
    right[found:] = 1e-3 * first.std() * rng.standard_normal((rank - found, n))
    return left, right


def _svd_by_random_range(
    R: FloatArray | sparse.csr_array, fill: float, rank: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return balanced factors from a random range (Halko, Martinsson and Tropp, 2011)."""
    A = _filled(R, fill)
    width = min(rank + 10, *R.shape)
    Q = np.linalg.qr(A @ rng.standard_normal((R.shape[1], width)))[0]
    for _ in range(2):  # power iterations, which sharpen the spectrum
        Q = np.linalg.qr(A @ np.linalg.qr(A.T @ Q)[0])[0]
    U, values, Vt = np.linalg.svd((A.T @ Q).T, full_matrices=False)
    root = np.sqrt(values[:rank])
    return (Q @ U[:, :rank]) * root, root[:, None] * Vt[:rank]


def _filled(R: FloatArray | sparse.csr_array, fill: float) -> Any:
    """Return a matrix, to every entry of which `fill` is added, as an operator."""
    return LinearOperator(
        R.shape,
        matvec=lambda v: R @ v + fill * np.sum(v),
        rmatvec=lambda v: R.T @ v + fill * np.sum(v),
        matmat=lambda V: R @ V + fill * np.sum(V, axis=0),
        rmatmat=lambda V: R.T @ V + fill * np.sum(V, axis=0),
        dtype=np.float64,
    )


def _nonnegative(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Keep of each component its stronger sign (NNDSVD: Boutsidis and Gallopoulos, 2008)."""
    W, H = np.empty_like(left), np.empty_like(right)
    for c in range(left.shape[1]):
        pairs = [(np.maximum(s * left[:, c], 0), np.maximum(s * right[c], 0)) for s in (1, -1)]
        sizes = [(np.linalg.norm(w), np.linalg.norm(h)) for w, h in pairs]
        best = int(np.argmax([a * b for a, b in sizes]))
        (w, h), (a, b) = pairs[best], sizes[best]
        balance = np.sqrt(b / a) if a * b > 0 else 0.0
        W[:, c], H[c] = balance * w, h / balance if balance else 0 * h
    return W, H


def random_start(
    observations: Observations,
    f: Nonlinearity,
    rank: int,
    offsets: Offsets,
    rng: np.random.Generator,
) -> Start:
    """Return small Gaussian factors."""
    values, weights = observations.observed()
    T = f.preimage(values)
    size = np.sqrt(np.average(np.square(T), weights=weights) / np.sqrt(rank))
    m, n = observations.shape
    scale = RANDOM_SCALE * np.sqrt(size) if size > 0 else 1.0
    dtype = observations.values.dtype
    W = (scale * rng.standard_normal((m, rank))).astype(dtype)
    H = (scale * rng.standard_normal((rank, n))).astype(dtype)
    return Start(W, H, False, offsets)


def given_start(observations: Observations, rank: int, init: Any, offsets: Offsets) -> Start:
    """Return the start from a pair (W, H) or from an earlier fit, after checking it.

    Raises
    ------
    TypeError, ValueError
        If `init` is neither, or does not fit X and the rank.
    """
    from_factors = hasattr(init, "factors")
    pair = init.factors if from_factors else init
    if from_factors and any(given is not None for given in init.offsets[1:]):
        offsets = init.offsets
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(f"init is a {type(init).__name__}: give a name, a pair (W, H) or a fit.")
    m, n = observations.shape
    factors = []
    for name, factor, shape in (("W", pair[0], (m, rank)), ("H", pair[1], (rank, n))):
        array = np.asarray(factor)
        if array.dtype.kind not in "buif" or array.shape != shape:
            raise ValueError(f"init has {name} of shape {array.shape}: give numbers of {shape}.")
        if not np.all(np.isfinite(array)):
            raise ValueError(f"init has NaN or infinity in {name}: give finite numbers.")
        factors.append(np.array(array, dtype=observations.values.dtype, order="C"))
    return Start(factors[0], factors[1], from_factors, offsets)
