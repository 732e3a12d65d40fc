"""
Counts whose effects multiply
=============================

Sales per shop and product, or cases per town and week: a shop sells twice as much of everything,
a season doubles some products.  Effects multiply, so their logarithms add: the mean is exp(WH).
The noise of a count grows with its mean, which the Kullback-Leibler loss (Poisson noise) knows.
The data are generated.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import NMF

import nmd_lab as nmd

rng = np.random.default_rng(0)
effects = rng.normal(size=(100, 2)) @ rng.normal(size=(2, 40)) * 0.7
means = np.exp(effects + rng.normal(0, 0.7, (100, 1)))
counts = rng.poisson(means).astype(float)
hidden = rng.random(counts.shape) < 0.2
given = np.where(hidden, np.nan, counts)
print(f"{100 * np.mean(counts == 0):.0f} % zeros, the largest count is {counts.max():.0f}")

# %%
# Four models of rank 3
# ---------------------
# NMF has no missing entries, and sees the column means there.

filled = np.where(hidden, np.nanmean(given, axis=0), given)
nmf = NMF(3, beta_loss="kullback-leibler", solver="mu", init="nndsvda", max_iter=1000)
logs = nmd.complete(np.log1p(given), 3, nonlinearity="identity", random_state=0)
linear = nmd.complete(given, 3, nonlinearity="identity", random_state=0)
multiplied = nmd.complete(given, 3, "exp", "kl", alpha=1.0, offsets="both", random_state=0)
models = {
    "linear": linear.reconstruct().values,
    "NMF with KL": nmf.fit_transform(filled) @ nmf.components_,
    "linear in log(1 + x)": np.expm1(logs.reconstruct().values),
    "exp with KL": multiplied.reconstruct().values,
}


def deviance(model):
    """Return the Poisson deviance of the hidden counts, for each of them."""
    x, y = counts[hidden], np.maximum(model[hidden], 0.05)
    return float(np.mean(2 * (x * np.log(np.maximum(x, 1e-300) / y) - x + y)))


errors = {name: deviance(model) for name, model in models.items()}
errors["true means"] = deviance(means)
for name, error in errors.items():
    print(f"{name:21} deviance of hidden counts {error:.2f}")

figure, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.barh(list(errors), list(errors.values()), color=["0.7", "0.7", "0.7", "C1", "0.9"])
ax.set(xlabel="deviance of hidden counts (smaller is better)", xscale="log")
ax.invert_yaxis()
plt.show()

assert errors["exp with KL"] == min(error for name, error in errors.items() if name != "true means")
