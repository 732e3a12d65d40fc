"""
Outliers: robust low-rank fits with absolute errors
===================================================

Least squares are pulled towards a few wrong entries.  The loss ``"l1"`` counts absolute deviations,
so that a wrong entry has a limited effect.

The data are real: handwritten digits (``sklearn.datasets.load_digits``).  The errors are generated:
a tenth of the pixels becomes black or white at random.
"""

import matplotlib.pyplot as plt
from scipy.ndimage import median_filter

import nmd_lab as nmd

digits = nmd.datasets.digits()[:600]
broken = nmd.datasets.salt_and_pepper(digits, 0.1, random_state=0)

# %%
# All methods see the wrong pixels, and are compared with the clean digits
# -------------------------------------------------------------------------
# The median of 3 x 3 pixels is a filter that uses neighbours, which the low-rank models do not.

images = broken.values.reshape(-1, 8, 8)
options = {"random_state": 0}
models = {
    "median filter": median_filter(images, size=(1, 3, 3)).reshape(broken.shape),
    "SVD": nmd.baselines.truncated_svd(broken, 10, **options).reconstruct().values,
    "frobenius": nmd.decompose(broken, 10, "minmax", "frobenius", **options).reconstruct().values,
    "huber": nmd.decompose(broken, 10, "minmax", nmd.losses.Huber(0.1), **options)
    .reconstruct()
    .values,
    "l1": nmd.decompose(broken, 10, "minmax", "l1", **options).reconstruct().values,
}
errors = {"given": nmd.metrics.relative_error(digits, broken)}
for name, model in models.items():
    errors[name] = nmd.metrics.relative_error(digits.values, model)
for name, error in errors.items():
    print(f"{name:14} relative error against the clean digits {error:.3f}")

figure, axes = plt.subplots(7, 8, figsize=(8, 7.2), layout="constrained")
rows = {"clean": digits.values, f"given\n{errors['given']:.3f}": broken.values}
rows |= {f"{name}\n{errors[name]:.3f}": model for name, model in models.items()}
for line, (title, pictures) in zip(axes, rows.items()):
    for ax, image in zip(line, pictures.reshape(-1, 8, 8)[20:28]):
        ax.imshow(image, cmap="gray_r", vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[])
    line[0].set_ylabel(title, rotation=0, ha="right", va="center")
plt.show()

assert max(errors["l1"], errors["huber"]) < 0.95 * errors["SVD"]
