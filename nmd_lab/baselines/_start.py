"""Starting factors of the iterative baselines."""

from __future__ import annotations

from typing import Any

from nmd_lab._checks import as_generator, check_word
from nmd_lab.data.base import FloatArray, Observations
from nmd_lab.model.nonlinearities import Identity, Nonlinearity
from nmd_lab.model.offsets import NO_OFFSETS
from nmd_lab.model.proximal import make_pair
from nmd_lab.solver.initialization import given_start, random_start, svd_start

START_FUNCTIONS = {"svd": svd_start, "random": random_start}
"""Functions that make starting factors, by the value of `init`."""


def first_factors(
    observations: Observations,
    rank: int,
    init: Any,
    random_state: Any,
    nonlinearity: Nonlinearity | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return new arrays W (m, rank) and H (rank, n) to start from.

    Parameters
    ----------
    observations : Observations
        The data.
    rank : int
        Number of components.
    init : {"svd", "random"}, (W, H) or Decomposition
        Kind of start, or the factors themselves. "svd" is the truncated singular value
        decomposition of X (√X for Square) with missing entries replaced by the mean. "random" are
        Gaussian factors whose product is small compared with X.
    random_state : int, Generator or None
        Seed of a random start.
    nonlinearity : Nonlinearity, optional
        The nonlinearity f. Default: Identity.

    Raises
    ------
    ValueError, TypeError
        If `init` or `random_state` is invalid, or if the given factors have other shapes.

    Examples
    --------
    >>> import numpy as np
    >>> from nmd_lab.data.observations import observe
    >>> W, H = first_factors(observe(np.full((3, 2), 4.0)), 1, "svd", random_state=0)
    >>> (W @ H).round(6)
    array([[4., 4.],
           [4., 4.],
           [4., 4.]])
    """
    f, rng = nonlinearity or Identity(), as_generator(random_state)
    if not isinstance(init, str):
        start = given_start(observations, rank, init, NO_OFFSETS)
    else:
        check_word("init", init, START_FUNCTIONS, ", a pair (W, H) or a fit")
        pair = make_pair(f, "frobenius")
        start = START_FUNCTIONS[init](observations, pair, rank, NO_OFFSETS, rng)
    return start.W, start.H
