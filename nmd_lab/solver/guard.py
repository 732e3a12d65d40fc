"""A quick check, before a fit, of a loss or a nonlinearity that does not belong to this package."""

from __future__ import annotations

import numpy as np

from nmd_lab._numba import is_ours
from nmd_lab.data.base import Observations
from nmd_lab.model import _property_checks as checks
from nmd_lab.model.checks import report_of
from nmd_lab.model.model import Model

N_INPUTS = 200
"""Inputs for each check."""


def refuse_wrong_parts(model: Model, observations: Observations) -> None:
    """Raise ValueError if a check fails near the data, with the object and the input."""
    if model.is_ours or model.single is None:
        return
    f, d = model.nonlinearity, model.loss
    rng = np.random.default_rng(0)
    data = next(iter(observations.observed_blocks()))[0]
    x = np.asarray(rng.choice(data, N_INPUTS), dtype=np.float64)
    rho = 10.0 ** rng.uniform(-2, 2, N_INPUTS)
    noise = rng.normal(size=N_INPUTS) * 10.0 ** rng.uniform(-2, 0, N_INPUTS)
    v = np.asarray(f.pseudo_inverse(x), dtype=np.float64) + noise * (1.0 + 0.1 * float(np.std(x)))
    if not is_ours(type(d)):
        few, y = np.unique(x)[:: max(1, N_INPUTS // 20)], np.unique(x + np.abs(noise))[::10]
        y = y[(y > d.domain[0]) & (y < d.domain[1])]
        centre = x + noise * (1.0 + 0.1 * np.abs(x))
        report_of(
            d,
            [
                ("d is a number", lambda: checks.loss_values(d, few, y)),
                (checks.CONVEX, lambda: checks.loss_is_convex(d, few[::3], y)),
                ("derivatives are those of d", lambda: checks.loss_derivatives(d, few, y)),
                (checks.PROXIMAL, lambda: checks.proximal_is_minimiser(d, x, centre, rho)),
            ],
        ).raise_for_failure()
    if not is_ours(type(f)):
        report_of(
            f,
            [
                ("f is finite", lambda: checks.f_is_finite(f, v)),
                ("f is continuous", lambda: checks.f_is_continuous(f, v)),
                ("derivative is that of f", lambda: checks.f_derivative(f, v)),
                ("f is its pieces", lambda: checks.f_pieces(f, v)),
            ],
        ).raise_for_failure()
    subject = f if is_ours(type(d)) else d
    check = (checks.MINIMISER, lambda: checks.t_update_is_minimiser(f, d, x, v, rho))
    report_of(subject, [check]).raise_for_failure()
