"""
A loss of your own
==================

Stock-outs cost more than left-overs: an error below the demand is worth four times one above it.
A loss is a class with one function.  Numba compiles it, and ``nmd.check_loss`` says whether it
keeps the laws that the solver needs.
"""

import matplotlib.pyplot as plt
import numpy as np

import nmd_lab as nmd


class StockOut(nmd.Loss):
    """Squared error, four times as much if the model is below the data."""

    name = "stock-out"
    convex = True

    @staticmethod
    def value(x, y, parameters):
        """Return the loss of the model y for the datum x."""
        r = x - y
        return 2.0 * r * r if r > 0 else 0.5 * r * r


nmd.check_loss(StockOut())

# %%
# Demand of 60 products in 200 shops, with noise
# ----------------------------------------------

rng = np.random.default_rng(0)
mean = 5 + rng.gamma(2.0, size=(200, 2)) @ rng.gamma(2.0, size=(2, 60))
demand = mean + rng.normal(0, 2, mean.shape)
next_week = mean + rng.normal(0, 2, mean.shape)

fits = {
    "squares": nmd.decompose(demand, 2, "identity", random_state=0),
    "stock-out": nmd.decompose(demand, 2, "identity", StockOut(), random_state=0),
}
costs, short = {}, {}
for name, fit in fits.items():
    r = next_week - fit.reconstruct().values
    costs[name] = np.mean(np.where(r > 0, 2 * r * r, 0.5 * r * r))
    short[name] = np.mean(r > 0)
    print(
        f"{name:10} cost next week {costs[name]:.3f}, short of stock in {100 * short[name]:.0f} %"
    )

figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for name, fit in fits.items():
    r = (fit.reconstruct().values - next_week).ravel()
    ax.hist(r, bins=60, histtype="step", lw=2, density=True, label=name)
ax.axvline(0, color="0.6")
ax.set(xlabel="stock minus demand of the next week", yticks=[])
ax.legend()
plt.show()

assert costs["stock-out"] < costs["squares"]
