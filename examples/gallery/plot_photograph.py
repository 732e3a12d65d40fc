"""
Fill a photograph by its patches
================================

A photograph repeats itself: columns, tiles and edges look alike at many places.  ``nmd.inpaint``
takes overlapping squares of pixels as the rows of a matrix, so that what is alike has a low rank.
It is compared with linear interpolation, and with the surface of least curvature through the known
pixels.  The intervals tell how far a filled pixel may be from the truth.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse
from scipy.interpolate import griddata

import nmd_lab as nmd

photograph = nmd.datasets.photograph("china")[85:277, 224:416]
truth = photograph.values
hidden = np.random.default_rng(0).random(truth.shape) < 0.6
given = photograph.where(~hidden)

# %%
# Patches
# -------
#
# Missing pixels come back with a mean and a standard deviation, in the coordinates of the
# photograph.  Known pixels are not changed.

filled = nmd.inpaint(given, random_state=0)
assert filled["picture"].equals(filled["picture"].where(hidden, given))

# %%
# Two surfaces through the known pixels
# -------------------------------------

places = np.argwhere(~hidden)
linear, nearest = (
    griddata(places, truth[~hidden], tuple(np.indices(truth.shape)), kind)
    for kind in ("linear", "nearest")
)
interpolated = np.where(np.isnan(linear), nearest, linear)


def least_curvature(given):
    """Return the picture with the least sum of squares of its Laplacian."""

    def second_differences(n):
        ends = np.r_[-1, np.full(n - 2, -2), -1]
        return sparse.diags_array([np.ones(n - 1), ends, np.ones(n - 1)], offsets=[-1, 0, 1])

    laplacian = sparse.kronsum(*map(second_differences, given.shape[::-1]), format="csc")
    x, missing = given.ravel().copy(), np.isnan(given).ravel()
    A, b = laplacian[:, missing], -laplacian[:, ~missing] @ x[~missing]
    x[missing] = sparse.linalg.spsolve(A.T @ A, A.T @ b)
    return x.reshape(given.shape)


pictures = {
    "interpolation": interpolated,
    "least curvature": least_curvature(given.values),
    "nmd.inpaint": filled["picture"].values,
}

# %%
# Errors of the missing pixels, and coverage of the intervals
# -----------------------------------------------------------

errors = {
    name: float(np.sqrt(np.mean((picture - truth)[hidden] ** 2)))
    for name, picture in pictures.items()
}
distance = np.abs(filled["picture"].values - truth)
coverage = float((distance <= 1.645 * filled["std"].values)[hidden].mean())
for name, error in errors.items():
    print(f"{name:16} {error:.4f}")
print(f"90 % intervals cover {coverage:.3f} of the missing pixels.")

figure, axes = plt.subplots(2, 3, figsize=(9, 6.4), layout="constrained")
shown = {"given": given, **pictures, "photograph": truth}
for ax, (title, image) in zip(axes.flat, shown.items()):
    ax.imshow(image, cmap=nmd.plots.gray_with_holes(), vmin=0, vmax=1)
    ax.set_title(title)
spread = axes.flat[-1].imshow(filled["std"], cmap="magma", vmin=0)
axes.flat[-1].set_title("standard deviation")
figure.colorbar(spread, ax=axes.flat[-1], shrink=0.7)
for ax in axes.flat:
    ax.axis("off")
plt.show()

assert errors["nmd.inpaint"] < 0.9 * min(errors["interpolation"], errors["least curvature"])
assert 0.86 < coverage < 0.94
