"""
Data that come in batches
=========================

``partial_fit`` learns from one batch of rows after the other, with a memory of earlier ones, and
forgets if it is told to: after a change of the data an estimator with ``forgetting`` finds the
new truth, and one without it stays between the two.
"""

import matplotlib.pyplot as plt
import numpy as np

import nmd_lab as nmd

rng = np.random.default_rng(0)
before, after = rng.normal(size=(2, 4, 50))


def batch(number):
    """Return 40 rows with holes, and the truth; in the middle the data change."""
    truth = rng.normal(size=(40, 4)) @ (before if number < 12 else after)
    noisy = truth + 0.2 * rng.normal(size=truth.shape)
    return np.where(rng.random(truth.shape) < 0.5, noisy, np.nan), truth


options = {"nonlinearity": "identity", "alpha": 0.1, "offsets": "none", "random_state": 0}
models = {
    f"forgetting {share}": nmd.MatrixCompletion(4, forgetting=share, **options)
    for share in (0.0, 0.3)
}
errors = {name: [] for name in models}
for number in range(24):
    X, truth = batch(number)
    for name, model in models.items():
        if number:  # first predict, then learn
            filled = model.transform(X)
            errors[name].append(float(np.sqrt(np.mean((filled - truth)[np.isnan(X)] ** 2))))
        model.partial_fit(X)

figure, ax = plt.subplots(figsize=(7.5, 3.8), layout="constrained")
for name, row in errors.items():
    ax.plot(range(1, 24), row, "o-", ms=4, label=name)
    first, last = np.mean(row[6:11]), np.mean(row[-4:])
    print(f"{name:15} error before the change {first:.2f}, at the end {last:.2f}")
ax.axvline(11.5, color="0.7")
ax.set(xlabel="batch", ylabel="RMSE of missing entries, before it is learned", ylim=(0, None))
ax.legend()
plt.show()

assert np.mean(errors["forgetting 0.3"][-4:]) < np.mean(errors["forgetting 0.0"][-4:])
