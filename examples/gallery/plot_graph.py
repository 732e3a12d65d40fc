"""
A graph: which links are missing?
=================================

The adjacency matrix of a graph holds zeros and ones.  With the logistic loss WH is the log-odds
of a link, and two components may describe circles of friends that overlap, which a linear model
of zeros and ones cannot.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

import nmd_lab as nmd

rng = np.random.default_rng(0)
angle = np.sort(rng.uniform(0, 2 * np.pi, 200))  # people around a lake
near = np.cos(angle[:, None] - angle)
links = (rng.random(near.shape) < 1 / (1 + np.exp(-(14 * near - 10)))).astype(float)
links = np.triu(links, 1) + np.triu(links, 1).T
hidden = np.triu(rng.random(links.shape) < 0.2, 1)
hidden |= hidden.T
given = np.where(hidden, np.nan, links)
np.fill_diagonal(given, np.nan)
print(f"{100 * links.mean():.1f} % of the pairs are linked")

# %%
# Rank 2 under two losses
# -----------------------

fits = {
    "linear": nmd.complete(given, 2, "identity", random_state=0),
    "logistic": nmd.complete(given, 2, "identity", "logistic", random_state=0),
}
scores, densities = {}, {}
for name, fit in fits.items():
    p = fit.reconstruct().values[hidden].clip(1e-3, 1 - 1e-3)
    scores[name] = roc_auc_score(links[hidden], p)
    densities[name] = np.mean(np.where(links[hidden] == 1, np.log(p), np.log(1 - p)))
    print(
        f"{name:9} AUC of the hidden pairs {scores[name]:.4f}, log-likelihood {densities[name]:.3f}"
    )

figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
pictures = {"given": given} | {name: fit.reconstruct().values for name, fit in fits.items()}
for ax, (title, picture) in zip(axes, pictures.items()):
    ax.imshow(picture, vmin=0, vmax=1, cmap="viridis")
    ax.set(title=title, xticks=[], yticks=[])
plt.show()

assert densities["logistic"] > densities["linear"]
