"""Where an iterative baseline starts."""

from __future__ import annotations

from typing import Any

from nmd_lab._checks import as_generator, check_word
from nmd_lab.data.base import FloatArray, Observations
from nmd_lab.model.nonlinearities import Identity, Nonlinearity
from nmd_lab.solver.initialization import given_start, random_start, svd_start
from nmd_lab.solver.offsets import NONE

INITS = {"svd": svd_start, "random": random_start}
"""The starts that can be chosen by name."""


def first_factors(
    observations: Observations,
    rank: int,
    init: Any,
    random_state: Any,
    nonlinearity: Nonlinearity | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return starting factors W (m, rank) and H (rank, n), which are nobody else's.

    Parameters
    ----------
    observations : Observations
        The data.
    rank : int
        Number of components.
    init : {"svd", "random"}, (W, H) or Decomposition
        "svd" takes the singular vectors of X (√X for Square) with its holes filled by the mean,
        "random" Gaussian factors that are small beside X.
    random_state : int, Generator or None
        Seed.
    nonlinearity : Nonlinearity, optional
        f, whose preimage of X is decomposed; Identity by default.

    Raises
    ------
    ValueError, TypeError
        If `init` or `random_state` makes no sense, or does not fit X and the rank.

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
        start = given_start(observations, rank, init, NONE)
    else:
        check_word("init", init, INITS, ", a pair (W, H) or a fit")
        start = INITS[init](observations, f, rank, NONE, rng)
    return start.W, start.H
