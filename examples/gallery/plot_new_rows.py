"""
Fold in new users: predictions from their first ratings
=======================================================

``fit.append`` and ``posterior.fold_in`` compute the components of a new row for the fitted H, in a
few milliseconds and without a new fit.  The result of ``fold_in`` has intervals, which are wider
for users with few ratings.  After one to three ratings the mean of the film, shifted, is about as
good; after thirty the factors predict better.

The data are real: MovieLens latest-small, with films of at least 80 ratings.  Users with 40 ratings
or more are divided: four fifths are fitted, and the others are new.
"""

import matplotlib.pyplot as plt
import numpy as np

import nmd_lab as nmd

frame = nmd.datasets.movielens_small()
frame = frame[frame.groupby("title")["rating"].transform("size") >= 80]
table = frame.pivot_table(index="user", columns="title", values="rating")
table = table[table.notna().sum(axis=1) >= 40]
rng = np.random.default_rng(0)
table = table.iloc[rng.permutation(len(table))]
X = table.to_numpy()
old, new = X[: int(0.8 * len(X))], X[int(0.8 * len(X)) :]
print(f"{len(old)} fitted users, {len(new)} new ones, {X.shape[1]} films")

# %%
# Predictions of the other ratings of new users, from their first 1, 3, 10 and 30 ratings
# -----------------------------------------------------------------------------------------
# "mean of the film" and "mean, shifted" (by the mean difference of the user's ratings to those
# means, with a weight of three ratings for no difference) are the baselines.

fit = nmd.complete(old, 5, nonlinearity="identity", random_state=0)
posterior = nmd.sample(old, 10, noise_by="one", draws=100, random_state=0)
means = np.nanmean(old, axis=0)
order = np.argsort(np.where(np.isnan(new), np.inf, rng.random(new.shape)), axis=1)
place = np.argsort(order, axis=1)
held_out = (place >= 30) & ~np.isnan(new)  # predicted each time
everywhere = np.indices(new.shape).reshape(2, -1)
numbers, errors, widths = [1, 3, 10, 30], {}, []
for number in numbers:
    first = np.where(place < number, new, np.nan)
    shift = np.nansum(first - means, axis=1, keepdims=True) / (number + 3)
    folded = posterior.fold_in(first)
    models = {
        "mean of the film": np.broadcast_to(means, new.shape),
        "mean, shifted": means + shift,
        "nmd.complete, append": fit.append(first).reconstruct().values[len(old) :],
        "nmd.sample, fold_in": folded.predict(*everywhere).reshape(new.shape),
    }
    for name, model in models.items():
        errors.setdefault(name, []).append(np.sqrt(np.mean((model - new)[held_out] ** 2)))
    widths.append(folded.predict_std(*np.nonzero(held_out)).mean())
print("ratings".ljust(21), *(f"{number:6}" for number in numbers))
for name, row in errors.items():
    print(f"{name:21}", *(f"{error:6.3f}" for error in row))
print("predicted SD".ljust(21), *(f"{width:6.3f}" for width in widths))

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, row), style in zip(errors.items(), ["--", "s--", "o-", "^-"]):
    ax.plot(numbers, row, style, color="0.6" if style[-2:] == "--" else None, label=name)
ax.set(xlabel="ratings of a new user", ylabel="RMSE of 30th and later ratings, stars", xscale="log")
ax.set_xticks(numbers, numbers)
ax.legend()
plt.show()

assert errors["nmd.sample, fold_in"][-1] == min(row[-1] for row in errors.values())
