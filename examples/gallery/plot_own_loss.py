"""
A loss of your own
==================

Stock-outs cost more than left-overs: an error below the demand is worth four times one above it.
A loss is a class with a function of numbers.  Numba compiles it, and ``nmd.losses.check_loss`` says
whether it keeps the laws that the solver needs.  A second function, the proximal map, makes fits
faster where its formula is known.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

import nmd_lab as nmd


class StockOut(nmd.losses.Loss):
    """Squared error, four times as much if the model is below the data."""

    name = "stock-out"
    convex = True

    @staticmethod
    def value(x, y, parameters):
        """Return the loss of the model y for the datum x."""
        r = x - y
        return 2.0 * r * r if r > 0 else 0.5 * r * r


class WithProximalMap(StockOut):
    """The same loss, with the minimiser of value + rho/2 (y - q)^2 as a formula."""

    @staticmethod
    def proximal(q, x, rho, parameters):
        """Return the mean of x and q with the weights of the two terms."""
        weight = 4.0 if x > q else 1.0
        return (weight * x + rho * q) / (weight + rho)


print(nmd.losses.check_loss(StockOut()))
assert nmd.losses.check_loss(WithProximalMap()).passed

# %%
# Demand of 60 products in 200 shops, with noise
# ----------------------------------------------

rng = np.random.default_rng(0)
mean = 5 + rng.gamma(2.0, size=(200, 2)) @ rng.gamma(2.0, size=(2, 60))
demand = mean + rng.normal(0, 2, mean.shape)
next_week = mean + rng.normal(0, 2, mean.shape)

fits = {
    "squares": nmd.decompose(demand, 2, "identity", random_state=0),
    "stock-out": nmd.decompose(demand, 2, "identity", WithProximalMap(), random_state=0),
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

# %%
# Without the formula each entry is found by a search, which takes longer and finds the same.

seconds, found = {}, {}
for loss in (StockOut(), WithProximalMap()):
    for _ in range(2):  # the first call compiles
        began = time.perf_counter()
        fit = nmd.decompose(demand[:50], 2, "identity", loss, max_iter=20, tol=0, random_state=0)
        seconds[type(loss).__name__] = time.perf_counter() - began
    found[type(loss).__name__] = fit.objective
print(f"the formula is {seconds['StockOut'] / seconds['WithProximalMap']:.0f} times as fast")

assert costs["stock-out"] < costs["squares"]
assert np.isclose(found["StockOut"], found["WithProximalMap"], rtol=1e-4)
