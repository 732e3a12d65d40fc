"""
Impute a table of numbers and classes
=====================================

Each column of a DataFrame is modelled by its type: numbers, yes or no, classes.  ``nmd.impute``
returns a DataFrame of the same types, and its posterior has the probability of each class.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.impute import KNNImputer

import nmd_lab as nmd

wine, kind = load_wine(return_X_y=True, as_frame=True)
table = wine.assign(
    kind=pd.Categorical(np.array(["Barolo", "Grignolino", "Barbera"])[kind]),
    strong=(wine.alcohol > 13).astype("boolean"),
)
seen = table.mask(np.random.default_rng(0).random(table.shape) < 0.3)

# %%
# One call for all columns
# ------------------------
# For comparison: the commonest class, and for numbers the mean of the five most similar wines.

filled, posterior = nmd.impute(seen, return_posterior=True, random_state=0)
print(filled.dtypes.value_counts().to_string())

right = {}
for column in ("kind", "strong"):
    missing = seen[column].isna()
    right[column] = np.mean(filled.loc[missing, column] == table.loc[missing, column])
    common = np.mean(table.loc[missing, column] == seen[column].mode()[0])
    print(f"{column:7} {right[column]:.0%} right; the commonest value: {common:.0%}")

units = (seen[wine.columns] - seen[wine.columns].mean()) / seen[wine.columns].std()
truth = (wine - seen[wine.columns].mean()) / seen[wine.columns].std()
guesses = {
    "nmd.impute": (filled[wine.columns] - seen[wine.columns].mean()) / seen[wine.columns].std(),
    "five neighbours": pd.DataFrame(KNNImputer().fit_transform(units), columns=wine.columns),
}
hidden = units.isna().to_numpy()
errors = {
    name: np.sqrt(np.mean((each - truth).to_numpy()[hidden] ** 2)) for name, each in guesses.items()
}
print("error of numbers, in SD:", {name: f"{error:.2f}" for name, error in errors.items()})

# %%
# Probabilities of the missing classes
# ------------------------------------

missing = np.flatnonzero(seen["kind"].isna())
order = missing[np.argsort(kind.to_numpy()[missing], kind="stable")]
values = np.asarray(posterior.probabilities("kind"))[order]
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
bottom = np.zeros(len(order))
for column, name in enumerate(table["kind"].cat.categories):
    ax.bar(range(len(order)), values[:, column], bottom=bottom, width=1, label=name)
    bottom += values[:, column]
ax.set(xlabel="wines whose kind is hidden, sorted by their true kind", ylabel="probability")
ax.legend(loc="lower left")
plt.show()

assert right["kind"] > 0.85
assert errors["nmd.impute"] < errors["five neighbours"]
