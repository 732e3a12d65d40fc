"""
How many components? Choose the rank by held-out entries
========================================================

The error of the fitted entries falls with every component.  The error of held-out entries falls,
and then rises.  ``nmd.complete`` compares ranks and ridges on held-out entries, and
``fit.selection`` lists its trials.

The data are real: 200 handwritten digits (``sklearn.datasets.load_digits``), of which half of the
pixels are held out.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import nmd_lab as nmd

digits = nmd.datasets.digits(200)
held_out = np.random.default_rng(0).random(digits.shape) < 0.5
given = digits.where(~held_out)


def rmse(model, where):
    """Return the root mean squared error of some pixels."""
    return float(np.sqrt(np.mean((np.asarray(model) - digits.values)[where] ** 2)))


# %%
# Four ways to choose
# -------------------
# Without a ridge, the best rank is known in hindsight only.  SoftImpute shrinks singular values
# instead; its penalty is chosen by held-out pixels.

warnings.simplefilter("ignore", nmd.warnings.NMDWarning)  # the fits without a ridge overfit
options = {"nonlinearity": "identity", "random_state": 0}
ranks = [1, 2, 4, 6, 8, 12, 16, 24]
plain = {r: nmd.complete(given, r, alpha=0, offsets="none", **options) for r in ranks}
hindsight = {r: rmse(fit.reconstruct(), held_out) for r, fit in plain.items()}
best = min(hindsight, key=hindsight.get)
train, check = nmd.split_observed(given, 0.1, random_state=0)
penalties = [0.25, 0.5, 1.0, 2.0]
trials = {
    each: nmd.baselines.soft_impute(train, 30, shrinkage=each, random_state=0).predict(check)
    for each in penalties
}
penalty = min(trials, key=lambda each: nmd.metrics.rmse(check, trials[each]))
soft = nmd.baselines.soft_impute(given, 30, shrinkage=penalty, random_state=0)
chosen = nmd.complete(given, **options)
errors = {
    "mean of each pixel": rmse(np.broadcast_to(given.mean("image"), digits.shape), held_out),
    f"no ridge, rank {best} (hindsight)": hindsight[best],
    f"SoftImpute, penalty {penalty} (chosen)": rmse(soft.reconstruct(), held_out),
    f"nmd.complete, rank {chosen.rank} (chosen)": rmse(chosen.reconstruct(), held_out),
}
for name, error in errors.items():
    print(f"{name:35} RMSE of held-out pixels {error:.4f}")

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
seen = [rmse(fit.reconstruct(), ~held_out) for fit in plain.values()]
ax.plot(ranks, seen, "s--", color="0.6", label="fitted pixels, no ridge")
ax.plot(ranks, hindsight.values(), "o-", label="held-out pixels, no ridge")
for colour, (name, error) in zip(["C2", "C1"], list(errors.items())[2:]):
    ax.axhline(error, color=colour, label=name)
ax.set(xlabel="rank", ylabel="RMSE, grey levels from 0 to 1", ylim=(0, 0.6), xticks=ranks)
ax.legend()
plt.show()

# %%
# The trials: each is a short fit to the pixels that were not held out.

print("held-out error of the best trial of each rank:")
print(chosen.selection.to_dataframe().groupby("rank")["error"].min().round(4).to_string())
chosen.plot.selection()
plt.show()

assert errors[f"nmd.complete, rank {chosen.rank} (chosen)"] == min(errors.values())
