"""
Predict missing links of a graph: logistic loss
===============================================

The adjacency matrix of a graph has zeros and ones.  With the logistic loss, WH plus offsets is the
log-odds of a link, so that every prediction is a probability.  A linear model of zeros and ones has
predictions below 0 and above 1.

The data are real: the graph between users and films of MovieLens latest-small, with a link if the
user has rated the film, for the 200 films and the users with most ratings.  A fifth of the pairs is
held out.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

import nmd_lab as nmd

frame = nmd.datasets.movielens_small()
films = frame["item"].value_counts().index[:200]
frame = frame[frame["item"].isin(films)]
users = frame["user"].value_counts().index[:300]
links = pd.crosstab(frame["user"], frame["item"]).loc[users, films].to_numpy(float)
held_out = np.random.default_rng(0).random(links.shape) < 0.2
given = np.where(held_out, np.nan, links)
print(f"{links.shape[0]} users, {links.shape[1]} films, {links.mean():.0%} of the pairs are linked")

# %%
# Held-out pairs, by four models
# ------------------------------
# The baseline has offsets of users and films alone: the popularity of a film, and the number of
# films of a user.

fits = {
    "offsets alone": nmd.complete(
        given, 1, "identity", "logistic", alpha=1e6, offset_alpha=1.0, offsets="both",
        random_state=0,
    ),
    "linear": nmd.complete(given, nonlinearity="identity", random_state=0),
    "logistic": nmd.complete(given, "auto", "identity", "logistic", random_state=0),
}  # fmt: skip
models = {name: fit.reconstruct().values for name, fit in fits.items()}
scores = {}
for name, model in models.items():
    p, x = model[held_out].clip(1e-3, 1 - 1e-3), links[held_out]
    density = np.mean(np.where(x == 1, np.log(p), np.log(1 - p)))
    scores[name] = {"AUC": roc_auc_score(x, p), "log-likelihood of a pair": density}
    scores[name]["outside 0 and 1"] = np.mean((model[held_out] < 0) | (model[held_out] > 1))
scores = pd.DataFrame(scores).T
print(scores.round(3).to_string())

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
groups = np.linspace(-0.2, 1.2, 15)
for name, style in {"offsets alone": "^-", "linear": "s-", "logistic": "o-"}.items():
    pairs = pd.DataFrame({"p": models[name][held_out], "x": links[held_out]})
    mean = pairs.groupby(pd.cut(pairs["p"], groups), observed=True).mean()
    left.plot(mean["p"], mean["x"], style, label=name)
left.plot([0, 1], [0, 1], color="0.7")
left.set(xlabel="predicted value", ylabel="fraction of held-out pairs that are linked")
left.legend()
image = right.imshow(models["logistic"], vmin=0, vmax=1, cmap="viridis", aspect="auto")
right.set(xlabel="film, by number of ratings", ylabel="user, by number of ratings")
figure.colorbar(image, label="probability of a link, logistic")
plt.show()

assert scores["log-likelihood of a pair"].idxmax() == "logistic"
assert scores.loc["logistic", "AUC"] > scores.loc["offsets alone", "AUC"] + 0.05
