"""
A table of numbers and classes
==============================

Each column of a DataFrame is taken as what it is: numbers by squares, yes or no by log-odds,
classes by their probabilities.  ``fit.impute`` returns a DataFrame of the same types.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_wine

import nmd_lab as nmd

wine, kind = load_wine(return_X_y=True, as_frame=True)
frame = wine.assign(
    kind=pd.Categorical(np.array(["Barolo", "Grignolino", "Barbera"])[kind]),
    strong=wine.alcohol > 13,
)
rng = np.random.default_rng(0)
given = frame.mask(rng.random(frame.shape) < 0.3)
given["kind"] = pd.Categorical(given["kind"], categories=frame["kind"].cat.categories)
given["strong"] = given["strong"].astype("boolean")

# %%
# One call for all columns
# ------------------------

fit = nmd.complete(given, 3, random_state=0)
filled = fit.impute(given)
print(filled.dtypes.value_counts().to_string())

right = {}
for column in ("kind", "strong"):
    holes = given[column].isna()
    right[column] = np.mean(filled.loc[holes, column] == frame.loc[holes, column])
    common = np.mean(frame.loc[holes, column] == given[column].mode()[0])
    print(f"{column:7} {right[column]:.0%} of the holes right; the commonest value: {common:.0%}")

probabilities = fit.probabilities("kind")
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
holes = np.flatnonzero(given["kind"].isna())
order = holes[np.argsort(kind.values[holes], kind="stable")]
values = np.asarray(probabilities)[order]
bottom = np.zeros(len(order))
for column, name in enumerate(frame["kind"].cat.categories):
    ax.bar(range(len(order)), values[:, column], bottom=bottom, width=1, label=name)
    bottom += values[:, column]
ax.set(xlabel="wines whose kind is hidden, sorted by their true kind", ylabel="probability")
ax.legend(loc="lower left")
plt.show()

assert right["kind"] > 0.85
