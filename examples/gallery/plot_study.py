"""
Which model? A small study
==========================

A study fits every combination of settings on several random splits, and returns one labelled
Dataset.  Differences are judged on the same splits, so that their intervals are narrow.
"""

import matplotlib.pyplot as plt
import numpy as np

import nmd_lab as nmd

study = nmd.Study(
    nmd.datasets.digits(120),
    nonlinearity=["identity", "relu", "minmax"],
    rank=[3, 6, 12],
    alpha=[0.5],
    missing=[0.3],
    n_splits=3,
    max_iter=60,
)
results = study.run(progress=False)
error = results.held_out_rmse.squeeze()
means, spread = error.mean("seed"), error.std("seed") / np.sqrt(3)

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name in error.nonlinearity.values:
    own = {"nonlinearity": name}
    ax.errorbar(
        means["rank"], means.sel(own), spread.sel(own), marker="o", capsize=3, label=str(name)
    )
ax.set(xlabel="rank", ylabel="RMSE at held-out pixels", xticks=[3, 6, 12])
ax.legend()
plt.show()

parameters, fit = study.best("held_out_rmse", missing=0.3)
print("best:", parameters["nonlinearity"], "rank", parameters["rank"])

assert float(means.min()) < float(means.sel(nonlinearity="identity", rank=3))
