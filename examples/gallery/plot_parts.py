"""
Nonnegative and sparse components of images
===========================================

Components of ReLU may have both signs.  Constraints make them parts of an image: nonnegative,
sparse, or fractions with the sum one.  Their errors are compared.  The data are real: 500
handwritten digits (``sklearn.datasets.load_digits``).
"""

import matplotlib.pyplot as plt

import nmd_lab as nmd

digits = nmd.datasets.digits()[:500]
both = {"w_constraint": "nonnegative", "h_constraint": "nonnegative"}
fits = {
    "ReLU": nmd.decompose(digits, 8, "relu", random_state=0),
    "non-negative": nmd.decompose(digits, 8, "identity", **both, random_state=0),
    "sparse parts": nmd.decompose(
        digits, 8, "relu", h_constraint=nmd.SparseFactor(0.02), w_constraint="nonnegative",
        random_state=0,
    ),
}  # fmt: skip

figure, axes = plt.subplots(3, 8, figsize=(9, 4), layout="constrained")
for line, (name, fit) in zip(axes, fits.items()):
    error, zeros = float(fit.relative_error), float((fit.H == 0).mean())
    print(f"{name:13} relative error {error:.3f}, {100 * zeros:.0f} % of H is zero")
    H = fit.rotate("size").H.values if name == "ReLU" else fit.H.values
    for ax, component in zip(line, H):
        largest = abs(component).max()
        ax.imshow(component.reshape(8, 8), cmap="RdBu_r", vmin=-largest, vmax=largest)
        ax.set(xticks=[], yticks=[])
    line[0].set_ylabel(f"{name}\n{error:.3f}", rotation=0, ha="right", va="center")
plt.show()

assert fits["ReLU"].relative_error < fits["non-negative"].relative_error
assert bool((fits["non-negative"].H >= 0).all())
