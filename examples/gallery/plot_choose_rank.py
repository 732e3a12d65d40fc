"""
How many components?
====================

The error on the data themselves falls with every component.  The error on entries that were held
out falls, and then rises.  ``nmd.complete`` tries ranks and ridges on held-out entries, and
``fit.selection`` has all that it tried.
"""

import matplotlib.pyplot as plt
import numpy as np

import nmd_lab as nmd

rng = np.random.default_rng(0)
truth = rng.normal(size=(150, 5)) @ rng.normal(size=(5, 80))
noisy = truth + 1.5 * rng.normal(size=truth.shape)
hidden = rng.random(truth.shape) < 0.5
given = np.where(hidden, np.nan, noisy)

# %%
# Chosen by the library, and by the hidden entries themselves, which nobody has in practice
# -----------------------------------------------------------------------------------------

chosen = nmd.complete(given, nonlinearity="identity", random_state=0)
ranks = [1, 2, 3, 4, 5, 6, 8, 10, 14]
fits = {
    r: nmd.complete(given, r, "identity", alpha=0, offsets="none", random_state=0) for r in ranks
}


def rmse(fit, where):
    """Return the root mean squared error against the truth without noise."""
    return float(np.sqrt(np.mean((fit.reconstruct().values - truth)[where] ** 2)))


print(f"chosen: rank {chosen.rank}, error at hidden entries {rmse(chosen, hidden):.3f}")
best = min(ranks, key=lambda r: rmse(fits[r], hidden))
print(f"best rank without a ridge, in hindsight: {best}, error {rmse(fits[best], hidden):.3f}")

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
seen = [np.sqrt(np.nanmean((fits[r].reconstruct().values - given) ** 2)) for r in ranks]
ax.plot(ranks, seen, "s--", color="0.6", label="misfit of the data, no ridge")
ax.plot(
    ranks, [rmse(fits[r], hidden) for r in ranks], "o-", label="error at hidden entries, no ridge"
)
ax.axhline(rmse(chosen, hidden), color="C1", label=f"chosen: rank {chosen.rank} with a ridge")
ax.set(xlabel="rank", ylabel="root mean square", ylim=(0, 3))
ax.legend()
plt.show()

# %%
# What was tried: every trial is a short fit on the entries that were not held out.

print("held-out error of the best trial of each rank:")
print(chosen.selection.to_dataframe().groupby("rank")["error"].min().round(3).to_string())
chosen.plot.selection()
plt.show()

assert rmse(chosen, hidden) < rmse(fits[best], hidden)
