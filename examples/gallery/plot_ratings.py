"""
Ratings: predictions, intervals and recommendations
===================================================

A table of ratings has a few per cent of its entries.  ``nmd.sample`` draws the factors from their
posterior.  The mean of the draws predicts, and their spread says how sure that is.
"""

import matplotlib.pyplot as plt
import numpy as np

import nmd_lab as nmd

frame = nmd.datasets.make_ratings(600, 400, 24_000, random_state=0)
ratings = nmd.observations_from_table(frame, row="user", column="item", value="rating")
train, test = nmd.split_observed(ratings, test_size=0.1, random_state=0)
values = test.values

# %%
# Three predictions of the held-out ratings
# -----------------------------------------
# The baseline is the mean with offsets of users and items.  The fit chooses rank and ridge by
# ratings that it holds out itself.

offsets = nmd.complete(train, 1, alpha=1e6, offset_alpha=5.0, offsets="both", random_state=0)
fit = nmd.complete(train, random_state=0)
posterior = nmd.sample(train, 12, draws=200, random_state=0)


def rmse(predicted):
    """Return the root mean squared error at the held-out ratings."""
    return float(np.sqrt(np.mean((predicted - values) ** 2)))


errors = {
    "offsets alone": rmse(offsets.predict(test).values),
    "nmd.complete": rmse(fit.predict(test).values),
    "nmd.sample": rmse(posterior.predict(test).values),
}
for name, error in errors.items():
    print(f"{name:14} RMSE {error:.4f}")

# %%
# How often do intervals hold what they promise?
# ----------------------------------------------

levels = np.linspace(0.1, 0.95, 9)
shares = []
for level in levels:
    low, high = posterior.predict_interval(test, level=level).T
    shares.append(np.mean((low <= values) & (values <= high)))

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
left.bar(errors.keys(), errors.values(), color=["0.7", "C0", "C1"])
left.set(ylabel="RMSE at held-out ratings", ylim=(0.9 * min(errors.values()), None))
right.plot([0, 1], [0, 1], color="0.7")
right.plot(levels, shares, "o-", color="C1")
right.set(xlabel="promised probability", ylabel="share of held-out ratings inside", aspect="equal")
plt.show()

# %%
# What is surely good for the first user: items by the lower end of their intervals.

print(posterior.top(0, k=5, by="lower", exclude=train))

assert errors["nmd.sample"] < errors["offsets alone"]
assert np.max(np.abs(np.array(shares) - levels)) < 0.08
