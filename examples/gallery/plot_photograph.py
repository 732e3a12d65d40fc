"""
Inpainting a photograph: when interpolation is better
=====================================================

A photograph has few pixels at its limits, and neighbouring pixels are alike.  A low-rank model
does not use neighbours.  Interpolation does, and completes this photograph with
scattered gaps better than the low-rank model that ``nmd.complete`` chooses.  Where whole rows and
columns are known but no neighbours are, for example in tables, there is nothing to interpolate.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.interpolate import griddata

import nmd_lab as nmd

photograph = nmd.datasets.photograph("china")
rng = np.random.default_rng(0)
hidden = rng.random(photograph.shape) < 0.6
given = photograph.where(~hidden)

# %%
# Low rank against interpolation
# ------------------------------

fit = nmd.complete(given, random_state=0)
low_rank = fit.reconstruct().values.clip(0, 1)
grid = np.mgrid[: photograph.shape[0], : photograph.shape[1]]
places = grid[:, ~hidden].T
interpolated = griddata(places, photograph.values[~hidden], tuple(grid), "linear")
nearest = griddata(places, photograph.values[~hidden], tuple(grid), "nearest")
interpolated = np.where(np.isnan(interpolated), nearest, interpolated)

# %%
# The same with the rows and columns in random order: the table is the same to a low-rank model, and
# has no neighbours any more.

order = rng.permutation(photograph.shape[0]), rng.permutation(photograph.shape[1])
mixed, seen = photograph.values[np.ix_(*order)], ~hidden[np.ix_(*order)]
places = grid[:, seen].T
of_mixed = griddata(places, mixed[seen], tuple(grid), "linear")
of_mixed = np.where(
    np.isnan(of_mixed), griddata(places, mixed[seen], tuple(grid), "nearest"), of_mixed
)


def rmse(model, truth, where):
    """Return the root mean squared error at the missing pixels."""
    return float(np.sqrt(np.mean((model - truth)[where] ** 2)))


truth = photograph.values
errors = {
    "low rank": rmse(low_rank, truth, hidden),
    "interpolation": rmse(interpolated, truth, hidden),
    "interpolation, rows and columns in random order": rmse(of_mixed, mixed, ~seen),
}
for name, error in errors.items():
    print(f"{name:48} {error:.4f}")

figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
for ax, (title, image) in zip(
    axes, {"given": given, "low rank": low_rank, "interpolation": interpolated}.items()
):
    ax.imshow(image, cmap=nmd.plots.gray_with_holes(), vmin=0, vmax=1)
    ax.set_title(title)
    ax.axis("off")
plt.show()

assert errors["interpolation"] < errors["low rank"]
assert errors["low rank"] < errors["interpolation, rows and columns in random order"]
