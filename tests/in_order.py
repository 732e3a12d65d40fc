"""Data whose rows have an order."""

import numpy as np
import pandas as pd

DAYS = pd.date_range("2020-01-01", periods=400, name="day")


def autoregression(m: int, phi: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return m rows in order, of stationary variance one, with a component for each φ."""
    w = rng.normal(size=(m, len(phi)))
    for t in range(1, m):
        w[t] = phi * w[t - 1] + np.sqrt(1 - phi**2) * w[t]
    return w
