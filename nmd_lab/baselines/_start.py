"""Starting factors of the iterative baselines."""

from __future__ import annotations

from typing import Any

from nmd_lab._runtime.checks import as_generator, check_word
from nmd_lab.data.observations import FloatArray, Observations
from nmd_lab.model.fitted_values import NO_OFFSETS
from nmd_lab.model.model import make_model
from nmd_lab.model.nonlinearities import Identity, Nonlinearity
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
    """Return new arrays W (m, rank) and H (rank, n) to start from."""
    f, rng = nonlinearity or Identity(), as_generator(random_state)
    if not isinstance(init, str):
        start = given_start(observations, rank, init, NO_OFFSETS)
    else:
        check_word("init", init, START_FUNCTIONS, ", a pair (W, H) or a fit")
        model = make_model(f, "frobenius")
        start = START_FUNCTIONS[init](observations, model, rank, NO_OFFSETS, rng)
    return start.W, start.H
