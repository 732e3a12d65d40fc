"""
Outliers: squares or absolute values
====================================

A few broken pixels pull a least-squares fit towards them.  The loss ``"l1"`` counts absolute
deviations, and hardly notices them.
"""

import matplotlib.pyplot as plt

import nmd_lab as nmd

digits = nmd.datasets.digits()[:600]
broken = nmd.datasets.salt_and_pepper(digits, 0.1, random_state=0)

# %%
# Both fits see the broken pixels, and are compared with the clean ones.

fits = {
    loss: nmd.decompose(broken, 10, "minmax", loss, random_state=0) for loss in ("frobenius", "l1")
}
errors = {}
for loss, fit in fits.items():
    errors[loss] = nmd.metrics.relative_error(digits, fit.reconstruct())
    print(f"{loss:10} error against the clean digits {errors[loss]:.3f}")

figure, axes = plt.subplots(4, 8, figsize=(8, 4.4), layout="constrained")
rows = {"clean": digits, "given": broken}
rows |= {f"{loss}\n{errors[loss]:.3f}": fit.reconstruct() for loss, fit in fits.items()}
for line, (title, images) in zip(axes, rows.items()):
    for ax, image in zip(line, images.values.reshape(-1, 8, 8)[20:28]):
        ax.imshow(image, cmap="gray_r", vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[])
    line[0].set_ylabel(title, rotation=0, ha="right", va="center")
plt.show()

assert errors["l1"] < errors["frobenius"]
