"""
Angles and times of day
=======================

359 degrees and 1 degree are neighbours.  A linear model takes them for opposite ends.  The
nonlinearity Wrap takes WH modulo the period.  The data are generated.
"""

import matplotlib.pyplot as plt
import numpy as np

import nmd_lab as nmd

rng = np.random.default_rng(0)
station = np.column_stack([np.ones(80), rng.normal(size=80)])
hours = np.linspace(0, 3, 120)
course = np.stack([180 + 100 * hours, 60 * np.sin(2 * hours)])
angles = np.mod(station @ course + 4 * rng.normal(size=(80, 120)), 360)
held_out = rng.random(angles.shape) < 0.3
given = np.where(held_out, np.nan, angles)

# %%
# Rank 2, linear and wrapped
# --------------------------

fits = {
    "linear": nmd.complete(given, 2, "identity", random_state=0),
    "wrapped": nmd.complete(given, 2, nmd.nonlinearities.Wrap(360, 0), n_init=3, random_state=0),
}
errors = {}
for name, fit in fits.items():
    turn = np.mod(fit.reconstruct().values - angles + 180, 360) - 180
    errors[name] = np.median(np.abs(turn[held_out]))
    print(f"{name:8} median error of a held-out angle {errors[name]:.1f} degrees")

figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
pictures = {"given": given} | {
    name: np.mod(fit.reconstruct().values, 360) for name, fit in fits.items()
}
for ax, (title, picture) in zip(axes, pictures.items()):
    ax.imshow(picture, cmap="twilight", vmin=0, vmax=360)
    ax.set(title=title, xlabel="hour", ylabel="station", xticks=[], yticks=[])
plt.show()

assert errors["wrapped"] < errors["linear"]
