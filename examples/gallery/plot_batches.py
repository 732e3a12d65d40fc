"""
Data that come in batches
=========================

``partial_fit`` learns from one batch of rows after the other.  The digits arrive in their order, 0
first, so that each batch shows something new; the components of the first batch alone do not do.
"""

import matplotlib.pyplot as plt
import numpy as np

import nmd_lab as nmd

digits = nmd.datasets.digits(600)
digits = digits[np.argsort(digits["digit"].values, kind="stable")].values
test, training = digits[::4], digits[np.arange(600) % 4 > 0]
hidden = np.random.default_rng(0).random(test.shape) < 0.3
options = {"nonlinearity": "identity", "alpha": 1.0, "offsets": "columns", "random_state": 0}


def error(model):
    """Return the relative error of hidden pixels of other digits."""
    filled = model.transform(np.where(hidden, np.nan, test))
    return np.linalg.norm((filled - test)[hidden]) / np.linalg.norm(test[hidden])


model, errors = nmd.MatrixCompletion(8, **options), []
for batch in np.array_split(training, 9):
    errors.append(error(model.partial_fit(batch)))
whole = error(nmd.MatrixCompletion(8, **options).fit(training))
print(f"after the first batch {errors[0]:.3f}, after the last {errors[-1]:.3f}")
print(f"one fit to everything {whole:.3f}")

figure, ax = plt.subplots(figsize=(7.5, 3.8), layout="constrained")
ax.plot(range(1, 10), errors, "o-", label="partial_fit")
ax.axhline(whole, color="0.6", label="one fit to everything")
ax.set(xlabel="batches", ylabel="error of hidden pixels of other digits", ylim=(0, None))
ax.legend()
plt.show()

assert errors[-1] < 1.05 * whole < errors[0]
