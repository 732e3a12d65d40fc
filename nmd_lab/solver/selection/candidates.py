"""Nonlinearities and losses that suit the data, for "auto"."""

from __future__ import annotations

import numpy as np

from nmd_lab.data.observations import Observations
from nmd_lab.model.losses import KL, L1, Frobenius, Loss
from nmd_lab.model.nonlinearities import Identity, MinMax, Nonlinearity, ReLU

AT_BOUND = 0.005  # least share of values at the smallest (or largest) one if that is a bound


def suitable_nonlinearities(observations: Observations) -> list[Nonlinearity]:
    """Return the nonlinearities to try, the simplest first.

    Many zeros in data >= 0 suggest ReLU.  Many values at the smallest and at the largest one, or a
    documented range, suggest MinMax.  Square and Modulus are never among them, since nothing in the
    values tells them from ReLU.
    """
    low, high = observations.range()
    total, at_low, at_high = observations.weighted_sums(lambda x: x == low, lambda x: x == high)
    found: list[Nonlinearity] = [Identity()]
    if low == high:
        return found
    if low == 0 and at_low / total >= AT_BOUND:
        found.append(ReLU())
    documented = observations.labels.valid_range
    if documented is not None and np.isfinite(documented).all():
        found.append(MinMax(*documented))
    elif min(at_low, at_high) / total >= AT_BOUND:
        found.append(MinMax(low, high))
    return found


def suitable_losses(observations: Observations) -> list[Loss]:
    """Return the losses to try: KL is one of them for counts only."""
    found: list[Loss] = [Frobenius(), L1()]
    not_counts = observations.sum_of(lambda x, weights: weights * ((x < 0) | (x != np.floor(x))))
    return found if not_counts else [*found, KL()]
