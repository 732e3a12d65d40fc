"""
Concentrations below a detection limit
======================================

A laboratory writes "< 0.5" where a concentration is below what its instrument can see.  Such an
entry is neither missing nor known.  Three ways to fit it: put half the limit, leave it out, or
tell the model that the value is at most the limit (``at_most=``).  The data are generated.
"""

import matplotlib.pyplot as plt
import numpy as np

import nmd_lab as nmd

rng = np.random.default_rng(0)
sources = rng.gamma(1.0, size=(200, 3))  # how much of each source is in a sample
profiles = rng.gamma(0.7, size=(3, 25))  # what each source emits
truth = sources @ profiles * np.exp(0.05 * rng.normal(size=(200, 25)))
limit = 0.4 * np.median(truth, axis=0)  # of each substance
below = truth < limit
print(f"{100 * below.mean():.0f} % of the entries are below their limit")

# %%
# Three treatments
# ----------------

half = np.where(below, limit / 2, truth)
missing = np.where(below, np.nan, truth)
known = np.where(below, limit, truth)
options = {"nonlinearity": "identity", "random_state": 0}
models = {
    "half the limit, then fit": nmd.complete(half, 3, **options),
    "missing": nmd.complete(missing, 3, **options),
    "at most the limit": nmd.complete(known, 3, at_most=below, **options),
}
errors = {}
for name, fit in models.items():
    predicted = np.clip(fit.reconstruct().values, 0, limit)
    errors[name] = float(np.sqrt(np.mean((predicted - truth)[below] ** 2)))
    print(f"{name:24} RMSE below the limit {errors[name]:.4f}")

figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained", sharex=True, sharey=True)
for ax, (name, fit) in zip(axes, models.items()):
    ax.plot(truth[below], fit.reconstruct().values[below], ".", ms=3, alpha=0.5)
    ax.axline((0, 0), slope=1, color="0.5")
    ax.set(
        title=f"{name}: {errors[name]:.3f}", xlabel="true value", xlim=(0, 0.6), ylim=(-0.6, 1.2)
    )
axes[0].set_ylabel("predicted")
plt.show()

assert errors["at most the limit"] < errors["missing"]
assert errors["at most the limit"] < errors["half the limit, then fit"]
