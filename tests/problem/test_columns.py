"""Fits with a loss and a nonlinearity for each column, or for each entry."""

import numpy as np
import pandas as pd
import pytest

import nmd_lab as nmd
from nmd_lab.data.inputs import observe
from nmd_lab.problem.columns import mixed_model

LOSSES = {"smoker": "logistic", "visits": "kl", "income": "l1"}
FUNCTIONS = {"visits": "exp"}
ALL = np.arange(5)


def table(m=40, seed=0, holes=0.2):
    """Return numbers of two kinds, 0/1 and counts, that two components explain, with holes."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(m, 2)) @ rng.normal(size=(2, 5))
    X = pd.DataFrame(
        {
            "height": 170 + 10 * Z[:, 0] + rng.normal(size=m),
            "weight": 70 + 8 * Z[:, 1] + rng.normal(size=m),
            "smoker": (rng.random(m) < 1 / (1 + np.exp(-2 * Z[:, 2]))).astype(float),
            "visits": rng.poisson(np.exp(0.5 + 0.5 * np.clip(Z[:, 3], -3, 3))).astype(float),
            "income": 3000 + 900 * Z[:, 4],
        }
    )
    return X.mask(rng.random(X.shape) < holes)


def pair_of(X, loss=LOSSES, nonlinearity=FUNCTIONS):
    return mixed_model(nonlinearity, loss, observe(X))


def test_kinds_of_columns():
    X = table()
    pair = pair_of(X)
    kinds = [(kind.nonlinearity.name, kind.loss.name) for kind in pair.column_models]
    assert kinds == [
        ("identity", "frobenius"),
        ("identity", "frobenius"),
        ("identity", "logistic"),
        ("exp", "kl"),
        ("identity", "l1"),
    ]


def test_zero_stands_for_the_best_constant():
    X = table()
    constants = pair_of(X).expected(np.zeros(5), columns=ALL)
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
