"""
New rows: a user who comes after the fit
========================================

``fit.append`` and ``fit.fold_in`` find the components of a new row for the H that was fitted.  It
takes a few milliseconds and changes nothing else.  ``fold_in`` of a posterior does the same, with
the doubt that a few ratings leave.  ``top`` of the result recommends.
"""

import matplotlib.pyplot as plt
import numpy as np

import nmd_lab as nmd

rng = np.random.default_rng(0)
taste = rng.normal(size=(500, 3))
items = rng.normal(size=(3, 60))
truth = 3 + taste @ items
X = np.where(rng.random(truth.shape) < 0.3, truth + 0.5 * rng.normal(size=truth.shape), np.nan)
old, new, truth_of_new = X[:400], X[400:], truth[400:]

# %%
# Predictions from the first 1, 2, 4, ... ratings of the new users
# -----------------------------------------------------------------

fit = nmd.complete(old, 3, nonlinearity="identity", random_state=0)
posterior = nmd.sample(old, 6, draws=150, random_state=0)
numbers, errors = [1, 2, 4, 8, 12], {"complete": [], "sample": []}
for number in numbers:
    first = np.where(np.cumsum(~np.isnan(new), axis=1) <= number, new, np.nan)
    hidden = np.isnan(first)
    predicted = fit.append(first).reconstruct().values[len(old) :]
    everywhere = np.indices(first.shape).reshape(2, -1)
    drawn = posterior.fold_in(first).predict(*everywhere).reshape(first.shape)
    for name, model in {"complete": predicted, "sample": drawn}.items():
        errors[name].append(float(np.sqrt(np.mean((model - truth_of_new)[hidden] ** 2))))

alone = float(np.sqrt(np.mean((np.nanmean(old, axis=0) - truth_of_new) ** 2)))
for name, row in errors.items():
    print(f"{name:9}", *(f"{n} ratings: {e:.2f}  " for n, e in zip(numbers, row)))
print(f"mean of the item alone: {alone:.2f}")

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, row), marker in zip(errors.items(), "os"):
    ax.plot(numbers, row, marker + "-", label=f"nmd.{name}")
ax.axhline(alone, color="0.6", label="mean of the item")
ax.set(xlabel="ratings of a new user", ylabel="error of all others", xticks=numbers, ylim=(0, None))
ax.legend()
plt.show()

assert errors["sample"][-1] < 0.5 * alone
assert errors["sample"][0] < 1.02 * alone
