"""
Values below a detection limit
==============================

A laboratory reports "< 0.5" for a concentration below the limit of its instrument.  Such a value is
neither missing nor known.  Common substitutes are half the limit and the limit over √2.
``nmd.sample(..., at_most=)`` draws the value below the limit, given the other substances.

The data are real: 13 measured properties of 178 wines, among them concentrations
(``sklearn.datasets.load_wine``), as logarithms.  The limits are generated: 30 % of each column lie
below its limit, so that the true values are known.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_wine

import nmd_lab as nmd

truth = np.log(load_wine(as_frame=True).data)
limit = truth.quantile(0.3)
below = truth < limit
known = truth.mask(below, limit, axis=1)

# %%
# Four treatments
# ---------------
# "left out" treats the values as missing.  They are missing because they are small, which no
# imputation can see.

posterior = nmd.sample(known, at_most=below, random_state=0)
copies = posterior.impute(known, 100, at_most=below, random_state=0)
tables = {
    "half the limit": truth.mask(below, limit - np.log(2), axis=1),
    "limit / √2": truth.mask(below, limit - np.log(2) / 2, axis=1),
    "left out": nmd.impute(truth.mask(below), random_state=0),
    "at_most=": posterior.impute(known, at_most=below),
}
at = below.to_numpy()
result = pd.DataFrame({
    name: {
        "RMSE below the limit": np.sqrt(np.mean((table - truth).to_numpy()[at] ** 2)),
        "error of means, in SD": ((table.mean() - truth.mean()) / truth.std()).abs().mean(),
        "SD / true SD": (table.std() / truth.std()).mean(),
    }
    for name, table in tables.items()
}).T  # fmt: skip
print(result.round(3).to_string())

# %%
# Draws instead of one number: the spread of a column, and intervals
# -------------------------------------------------------------------

spread = np.mean([(copy.std() / truth.std()).mean() for copy in copies])
print(f"SD / true SD of copies with draws: {spread:.3f}")
low, high = np.quantile([copy.to_numpy()[at] for copy in copies], [0.05, 0.95], axis=0)
inside = np.mean((low <= truth.to_numpy()[at]) & (truth.to_numpy()[at] <= high))
print(f"90 % intervals cover {inside:.0%} of the values below the limits")

figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained", sharex=True, sharey=True)
scale = truth.std()
for ax, name in zip(axes, ["limit / √2", "left out", "at_most="]):
    x, y = (((table - limit) / scale).to_numpy()[at] for table in (truth, tables[name]))
    ax.plot(x, y, ".", ms=3, alpha=0.5)
    ax.axline((0, 0), slope=1, color="0.5")
    ax.axhline(0, color="0.5", ls=":")
    error = result.loc[name, "RMSE below the limit"]
    ax.set(title=f"{name}: RMSE {error:.2f}", xlabel="true value above its limit, in SD")
axes[0].set(ylabel="filled value above its limit, in SD", ylim=(-4, 4))
plt.show()

assert result["RMSE below the limit"].idxmin() == "at_most="
assert 0.65 < inside < 0.9
