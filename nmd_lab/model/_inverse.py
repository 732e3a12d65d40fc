"""Starting values of T for an f that is given by a function alone."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ._curve import curve_of
from .nonlinearities import Nonlinearity

FLAT = 0.02
"""Share of the steepest slope on the way from 0 at which the way ends."""


def nearest_inverse(f: Nonlinearity, x: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the t nearest to 0 with f(t) = x.

    Where f becomes flat, as a sigmoid does, the way ends: a value beyond has the t at this end.
    """
    above, below = _ways(f)
    x = np.asarray(x)
    up = np.interp(x, above[0], above[1])
    down = np.interp(-x, -below[0], below[1])
    return np.asarray(np.where(x >= above[0][0], up, down), dtype=x.dtype)


@lru_cache(maxsize=64)
def _ways(f: Nonlinearity) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return (values, t) of the first t at which f exceeds, and falls below, each value."""
    curve = curve_of(f)
    cells, per_scale = curve.cells, curve.per_scale
    t = np.concatenate([[0.0], cells[:, 0]])
    t = t[np.argsort(np.abs(t), kind="stable")]
    with np.errstate(all="ignore"):
        y = np.asarray(f(t), dtype=np.float64)
        step = 1e-4 / per_scale * (1 + np.abs(t) * per_scale)
        slope = np.abs(np.asarray(f(t + step)) - np.asarray(f(t - step))) / (2 * step)
    keep = np.zeros(t.size, dtype=bool)
    for side in (t >= 0, t <= 0):
        ok = np.isfinite(y[side]) & np.isfinite(slope[side])
        steepest = np.maximum.accumulate(np.where(ok, slope[side], 0.0))
        going = np.cumprod(ok & (slope[side] >= FLAT * steepest)).astype(bool)
        keep[side] |= going
    keep[0] = True
    t, y = t[keep], np.nan_to_num(y[keep])
    rising = np.concatenate([[True], y[1:] > np.maximum.accumulate(y)[:-1]])
    falling = np.concatenate([[True], y[1:] < np.minimum.accumulate(y)[:-1]])
    return np.stack([y[rising], t[rising]]), np.stack([y[falling], t[falling]])
