"""Starting points: factors from the singular value decomposition or at random; all seeded."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh

from .nonlinearities import Nonlinearity
from .observations import FloatArray, Observations
from .offsets import NONE, Offsets

RANDOM_SCALE = 0.3
"""Standard deviation of random factors, in units of what would give WH the size of T."""


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
    """

    W: FloatArray
    H: FloatArray
    from_factors: bool
    offsets: Offsets = NONE


def svd_start(observations: Observations, f: Nonlinearity, rank: int) -> Start:
    """Return W = U √Σ and H = √Σ Vᵀ of the starting T (paper, section on experiments).

    Missing entries are filled with the mean of the observed ones: zeros would pull the leading
    components towards them.
    """
    T = f.preimage(observations.values)
    if observations.weights is not None:
        seen = observations.weights > 0
        T = np.where(seen, T, T[seen].mean())
    wide = T.shape[0] < T.shape[1]
    scale = float(np.abs(T).max()) or 1.0  # squares must not overflow
    A = np.asarray(T.T if wide else T, dtype=np.float64) / scale
    n = A.shape[1]
    # The Gram matrix costs half the digits of small singular values, which a start can spare.
    squares, V = eigh(A.T @ A, subset_by_index=[n - rank, n - 1])
    root = np.maximum(squares[::-1], 0) ** 0.25
    V = V[:, ::-1]
    scores = np.divide(A @ V, root, out=np.zeros((A.shape[0], rank)), where=root > 0)
    left, right = np.sqrt(scale) * scores, np.sqrt(scale) * V * root
    W, H = (right, left.T) if wide else (left, right.T)
    dtype = observations.values.dtype
    return Start(np.ascontiguousarray(W, dtype=dtype), np.ascontiguousarray(H, dtype=dtype), False)


def random_start(
    observations: Observations, f: Nonlinearity, rank: int, rng: np.random.Generator
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
    return Start(W, H, False)


def given_start(observations: Observations, rank: int, init: Any) -> Start:
    """Return the start from a pair (W, H) or from an earlier fit, after checking it.

    Raises
    ------
    TypeError, ValueError
        If `init` is neither, or does not fit X and the rank.
    """
    from_factors = hasattr(init, "W") and hasattr(init, "H")
    pair = getattr(init, "factors", (init.W, init.H)) if from_factors else init
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
    return Start(factors[0], factors[1], from_factors)
