"""
Compression of a weight matrix at equal bytes
=============================================

After small weights of a network were set to zero (pruning), its weight matrix is sparse and has
both signs.  It is stored as two factors of 8-bit numbers.  A linear model of the factors has to
produce the zeros; soft thresholding, sign(t) max(abs(t) - c, 0), maps small numbers to zero.  The
network classifies handwritten digits (``sklearn.datasets.load_digits``).  The error of the weights
is lower with soft thresholding at each size.  The accuracy of the network is not higher.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import nmd_lab as nmd

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
network = MLPClassifier((256,), max_iter=60, random_state=0).fit(X_train, y_train)
weights = network.coefs_[0].copy()
weights[np.abs(weights) < np.quantile(np.abs(weights), 0.6)] = 0
size = np.linalg.norm(weights)
print(f"accuracy of the network {network.score(X_test, y_test):.3f}, 60 % of the weights are zero")


# %%
# Equal bytes: the same rank, and 8 bits for each number of the factors
# ---------------------------------------------------------------------


def eight_bits(factor, axis):
    """Return a factor with each component rounded to 255 levels."""
    step = np.abs(factor).max(axis=axis, keepdims=True) / 127
    return np.round(factor / step) * step


def accuracy(model):
    """Return the accuracy of the network with other weights."""
    network.coefs_[0] = model
    return network.score(X_test, y_test)


f = nmd.nonlinearities.SoftThreshold(float(np.abs(weights[weights != 0]).min()))
ranks, errors, scores = [4, 8, 16, 24], {}, {}
for rank in ranks:
    models = {
        "SVD": nmd.decompose(weights, rank, "identity", random_state=0),
        "soft threshold": nmd.decompose(weights, rank, f, random_state=0),
    }
    for name, fit in models.items():
        W, H = eight_bits(fit.W.values, 0), eight_bits(fit.H.values, 1)
        model = fit.nonlinearity(W @ H)
        errors.setdefault(name, []).append(np.linalg.norm(model - weights) / size)
        scores.setdefault(name, []).append(accuracy(model))

sizes = [rank * sum(weights.shape) / 1024 for rank in ranks]
for name in errors:
    print(f"{name:15}", *(f"{s:.1f} KiB: {e:.3f} ({a:.3f})  "
                          for s, e, a in zip(sizes, errors[name], scores[name])))  # fmt: skip
print(f"all weights as 8 bits: {weights.size / 1024:.1f} KiB")

figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
for ax, values, label in zip(axes, (errors, scores), ("relative error", "accuracy of the network")):
    for (name, row), marker in zip(values.items(), "os"):
        ax.plot(sizes, row, marker + "-", label=name)
    ax.set(xlabel="size of the factors, KiB", ylabel=label)
axes[0].legend()
plt.show()

assert all(a < b for a, b in zip(errors["soft threshold"], errors["SVD"]))
