"""Concentrations below detection limits: errors of the hidden values, by default calls.

Each number is the root mean squared error of the hidden values over that of half the limit.

    python benchmarks/limits.py [number of seeds]
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from numpy.typing import NDArray

import nmd_lab as nmd

Array = NDArray[np.float64]
SHAPE, RANK = (200, 30), 3


def simulate(kind: str, noise: float, seed: int) -> tuple[Array, Array, NDArray[np.bool_], Array]:
    """Return data with limits, the true values, where they are hidden, and half the limits."""
    rng = np.random.default_rng(seed)
    (m, n), r = SHAPE, RANK
    if kind == "logarithms":
        W, H = rng.normal(size=(m, r)), rng.normal(size=(r, n))
        mean = np.exp(W @ H / np.sqrt(r) + rng.normal(size=n))
    elif kind == "lognormal factors":
        mean = np.exp(0.7 * rng.normal(size=(m, r))) @ np.exp(0.7 * rng.normal(size=(r, n)))
    elif kind == "uniform factors":
        mean = rng.random((m, r)) @ rng.random((r, n))
    else:
        mean = rng.gamma(1, 1, (m, r)) @ rng.gamma(1, 1, (r, n))
    Y = mean * np.exp(noise * rng.normal(size=mean.shape))
    limit = np.quantile(Y, 0.4, axis=None if kind.endswith("common limit") else 0)
    half = np.broadcast_to(limit / 2, Y.shape)
    if kind == "logarithms":
        Y, limit, half = np.log(Y), np.log(limit), np.log(half)
    return np.where(limit > Y, limit, Y), Y, limit > Y, half


def main(seeds: int) -> None:
    """Print a line for each kind of data."""
    kinds = ["gamma factors", "gamma factors, common limit", "uniform factors"]
    kinds += ["lognormal factors", "logarithms"]
    print(f"{'data':30} noise  limits  missing  half, then fit")
    for kind in kinds:
        for noise in (0.05, 0.2):
            ratios = []
            for seed in range(seeds):
                X, Y, below, half = simulate(kind, noise, seed)
                fits = [
                    nmd.complete(X, at_most=below, random_state=0),
                    nmd.complete(np.where(below, np.nan, X), random_state=0),
                    nmd.complete(np.where(below, half, X), random_state=0),
                ]
                constant = np.linalg.norm((half - Y)[below])
                ratios.append(
                    [float(np.linalg.norm((f.reconstruct().values - Y)[below])) for f in fits]
                )
                ratios[-1] = [each / float(constant) for each in ratios[-1]]
            limits, missing, filled = np.mean(ratios, axis=0)
            print(
                f"{kind:30} {noise:5.2f}  {limits:6.2f}  {missing:7.2f}  {filled:14.2f}", flush=True
            )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
