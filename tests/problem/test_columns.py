"""Fits with a loss and a nonlinearity for each column, or for each entry."""

import numpy as np
import pandas as pd
import pytest

import nmd_lab as nmd
from nmd_lab.data.inputs import observe
from nmd_lab.problem.columns import mixed_model


def table(m=40):
    """Return numbers of two kinds, 0/1 and counts, with missing cells."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(m, 3)) * [10, 8, 900] + [170, 70, 3000]
    columns = {"height": z[:, 0], "weight": z[:, 1], "smoker": (rng.random(m) < 0.4) * 1.0}
    X = pd.DataFrame(columns | {"visits": rng.poisson(2.0, m) * 1.0, "income": z[:, 2]})
    return X.mask(rng.random(X.shape) < 0.2)


def test_zero_stands_for_the_best_constant():
    X, losses = table(), {"smoker": "logistic", "visits": "kl", "income": "l1"}
    model = mixed_model({"visits": "exp"}, losses, observe(X))
    constants = model.expected(np.zeros(5), columns=np.arange(5))
    X = X.to_numpy()
    for j in (0, 1, 2, 3):  # the mean is best for squares, probabilities and counts
        assert constants[j] == pytest.approx(np.nanmean(X[:, j]), rel=1e-5)
    assert np.nansum(np.abs(X[:, 4] - constants[4])) == pytest.approx(
        np.nansum(np.abs(X[:, 4] - np.nanmedian(X[:, 4]))), rel=1e-5
    )


def test_positions_of_entries_are_positions_of_columns():
    X = table().to_numpy()
    which = np.array([0, 0, 1, 0, 0])
    options = {"alpha": 0.5, "random_state": 0, "max_iter": 30}
    fit = nmd.complete(X, 2, loss=(["frobenius", "logistic"], np.tile(which, (40, 1))), **options)
    probability = fit.reconstruct().values[:, 2]
    assert np.all((probability > 0) & (probability < 1))
    with pytest.raises(ValueError, match="a loss for each entry"):
        fit.probabilities(2)
