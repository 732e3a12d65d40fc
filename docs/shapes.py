"""Draw what values look like, and the f that makes them, for the page that helps to choose f."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

import nmd_lab as nmd

SHAPES = {
    "identity": (nmd.Identity(), 0.0, 1.0),
    "relu": (nmd.ReLU(), 0.0, 1.0),
    "minmax": (nmd.MinMax(0, 1), 0.5, 0.6),
    "exp": (nmd.nonlinearities.Exp(), 0.5, 0.8),
    "modulus": (nmd.Modulus(), 0.0, 1.0),
    "sigmoid": (nmd.nonlinearities.Sigmoid(), 0.0, 2.0),
    "wrap": (nmd.nonlinearities.Wrap(360), 180.0, 200.0),
    "soft_threshold": (nmd.nonlinearities.SoftThreshold(1), 0.0, 1.5),
}
"""For each picture f, and mean and standard deviation of the t that it shows."""
COLOUR = "#4477aa"


def draw(folder: Path) -> None:
    """Write a picture for each f: a histogram of values f(t), and the curve of f."""
    rng = np.random.default_rng(0)
    for name, (f, mean, size) in SHAPES.items():
        t = np.linspace(mean - 2.5 * size, mean + 2.5 * size, 2001)
        values = f(rng.normal(mean, size, 20_000))
        figure, (left, right) = plt.subplots(1, 2, figsize=(2.6, 0.8), layout="constrained")
        left.hist(values, bins=41, range=np.quantile(values, [0.002, 0.998]), color=COLOUR)
        curve = np.array(f(t))
        curve[:-1][np.abs(np.diff(curve)) > 50 * np.median(np.abs(np.diff(t)))] = np.nan  # jumps
        right.axhline(0, color="0.8", linewidth=0.8)
        right.plot(t, curve, color=COLOUR)
        for ax in (left, right):
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
        left.spines["bottom"].set_visible(True)
        figure.savefig(folder / f"shape_{name}.svg", facecolor="white")
        plt.close(figure)
