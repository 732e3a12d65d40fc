"""
Photon counts of a dim camera
=============================

A camera in the dark counts single photons.  Their variance is their mean, so that bright pixels
are noisier than dark ones.  ``nmd.inpaint`` with ``loss="kl"`` takes this into account, and finds
similar patches for each place of the image.  It is compared with two filters whose width is the
best one for this image, and which thus know the truth.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import ndimage, signal

import nmd_lab as nmd

photograph = nmd.datasets.photograph("china")[85:277, 224:416]
truth = photograph.values
photons = 4 / truth.mean()
rng = np.random.default_rng(0)
counts = photograph.copy(data=rng.poisson(photons * truth))

# %%
# Cleaned counts
# --------------
#
# The counts are the input: no noise level has to be given.

cleaned = nmd.inpaint(counts.astype(float), loss="kl", denoise=True, random_state=0) / photons


def rmse(picture):
    """Return the root mean squared error of all pixels."""
    return float(np.sqrt(np.mean((np.asarray(picture) - truth) ** 2)))


# %%
# Filters of the best width
# -------------------------
#
# Square roots of counts have nearly the same variance everywhere (F. J. Anscombe, 1948).

roots = 2 * np.sqrt(counts.values + 3 / 8)
gaussian = [ndimage.gaussian_filter(counts.values / photons, width) for width in (0.8, 1, 1.3, 1.7)]
wiener = [((signal.wiener(roots, size) / 2) ** 2 - 1 / 8) / photons for size in (3, 5, 7)]
pictures = {
    "counts": counts.values / photons,
    "Gaussian filter": min(gaussian, key=rmse),
    "Wiener filter": min(wiener, key=rmse),
    "nmd.inpaint": cleaned["picture"].values,
}

# %%
# Errors of all pixels
# --------------------

errors = {name: rmse(picture) for name, picture in pictures.items()}
for name, error in errors.items():
    print(f"{name:16} {error:.4f}")

figure, axes = plt.subplots(1, 5, figsize=(11, 2.6), layout="constrained")
for ax, (title, image) in zip(axes, {**pictures, "photograph": truth}.items()):
    ax.imshow(image, cmap="gray", vmin=0, vmax=1)
    ax.set_title(title)
    ax.axis("off")
plt.show()

assert errors["nmd.inpaint"] < 0.95 * min(errors["Gaussian filter"], errors["Wiener filter"])
