"""
Recommend with intervals: MovieLens ratings
===========================================

A table of ratings has a few per cent of its cells.  ``nmd.sample`` draws the factors from their
posterior: the mean of the draws predicts a rating, and their spread gives its interval.

The data are real: MovieLens latest-small, of which ``data/`` has a copy, with the films that have
at least 40 ratings.  A tenth of the ratings is held out.
"""

import matplotlib.pyplot as plt
import numpy as np

import nmd_lab as nmd

frame = nmd.datasets.movielens_small()
frame = frame[frame.groupby("item")["rating"].transform("size") >= 40]
ratings = nmd.observations_from_table(frame, row="user", column="item", value="rating")
train, test = nmd.split_observed(ratings, test_size=0.1, random_state=0)
values = test.values
print(f"{ratings.shape[0]} users, {ratings.shape[1]} films, {len(values)} ratings held out")

# %%
# Held-out ratings, by four methods
# ---------------------------------
# Offsets of users and films are the first baseline.  The second one adds what a user gave to the 20
# most similar films.

offsets = nmd.complete(train, 1, alpha=1e6, offset_alpha=5.0, offsets="both", random_state=0)
base = offsets.reconstruct().values
residuals = np.nan_to_num(train.to_array() - base)
together = (residuals != 0).astype(float).T @ (residuals != 0)
norms = np.sqrt(np.sum(residuals**2, axis=0))
similar = residuals.T @ residuals / np.outer(norms, norms) * together / (together + 20)
np.fill_diagonal(similar, 0)


def from_neighbours(user, film, k=20):
    """Return the rating of a film by its offsets and by the k most similar films of the user."""
    weights = np.where(residuals[user] != 0, similar[film], 0).clip(0)
    best = np.argsort(weights)[-k:]
    return base[user, film] + weights[best] @ residuals[user, best] / (weights[best].sum() + 0.5)


users, films, _ = test.entries()
fit = nmd.complete(train, 5, nonlinearity="identity", random_state=0)
posterior = nmd.sample(train, 10, draws=150, random_state=0)
predictions = {
    "offsets": base[users, films],
    "20 similar films": np.array([from_neighbours(*pair) for pair in zip(users, films)]),
    "nmd.complete": fit.predict(test).values,
    "nmd.sample": posterior.predict(test).values,
}
errors = {name: np.sqrt(np.mean((each - values) ** 2)) for name, each in predictions.items()}
for name, error in errors.items():
    print(f"{name:17} RMSE {error:.4f} stars")

# %%
# Do the intervals cover as many ratings as they promise?
# -------------------------------------------------------

levels = np.linspace(0.1, 0.95, 9)
covered = []
for level in levels:
    low, high = posterior.predict_interval(test, level=level).T
    covered.append(np.mean((low <= values) & (values <= high)))
print(f"90 % intervals cover {np.interp(0.9, levels, covered):.0%} of the held-out ratings")

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
left.scatter(list(errors.values()), list(errors), color=["0.6", "0.6", "C0", "C1"], s=60)
left.set(xlabel="RMSE of held-out ratings, stars")
left.grid(axis="x", alpha=0.4)
left.invert_yaxis()
right.plot([0, 1], [0, 1], color="0.7")
right.plot(levels, covered, "o-", color="C1")
right.set(xlabel="probability of the interval", ylabel="fraction covered", aspect="equal")
plt.show()

# %%
# Five safe recommendations for a user: the films with the highest lower ends of their intervals.

titles = frame.drop_duplicates("item").set_index("item")["title"]
best = posterior.top(frame["user"].iloc[0], k=5, by="lower", exclude=train)
for item, stars in zip(best["item"].values, best.values):
    print(f"at least {stars:.1f} stars: {titles[item]}")

assert errors["nmd.sample"] == min(errors.values())
assert np.max(np.abs(np.array(covered) - levels)) < 0.08
