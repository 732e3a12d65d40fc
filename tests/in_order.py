"""Data whose rows have an order."""

import numpy as np
import pandas as pd

DAYS = pd.date_range("2020-01-01", periods=400, name="day")


def series(
    m: int, n: int, phi: tuple[float, ...] = (0.95, 0.8), noise: float = 0.2, seed: int = 0
) -> np.ndarray:
    """Return a matrix of rows in order: an autoregression of variance 1 for each φ, and noise."""
    rng, phis = np.random.default_rng(seed), np.array(phi)
    w = rng.normal(size=(m, phis.size))
    for t in range(1, m):
        w[t] = phis * w[t - 1] + np.sqrt(1 - phis**2) * w[t]
    return w @ rng.normal(size=(phis.size, n)) + noise * rng.normal(size=(m, n))
