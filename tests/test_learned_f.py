"""Fits and posteriors with a learned monotone f."""

import numpy as np
import pandas as pd
import pytest
from some import some

import nmd_lab as nmd
from nmd_lab.nonlinearities import Monotone


def curved(m, n):
    """Return exp of a product of low rank with noise, and which tenth of it is hidden."""
    rng = np.random.default_rng(0)
    X = np.exp(0.5 * rng.normal(size=(m, 2)) @ rng.normal(size=(2, n)) / np.sqrt(2))
    return X / X.std() + 0.05 * rng.normal(size=(m, n)), rng.random((m, n)) < 0.1


@pytest.mark.parametrize("loss", some(["l1", "frobenius", "kl", "huber"], 1))
def test_the_objective_is_that_of_the_learned_f_and_falls(loss):
    X, hidden = curved(30, 20)
    X = np.maximum(X, 0.01)
    options = {"alpha": 0.1, "random_state": 0, "max_iter": 60, "tol": 0}
    fit = nmd.complete(np.where(hidden, np.nan, X), *(2, "monotone", loss), **options)
    objective = fit.history["objective"].values
    assert objective.min() < 0.9 * objective[0]
    first = Monotone().for_data(X[~hidden], centred=True)
    assert fit.nonlinearity != first
    x, y = X[~hidden], fit.reconstruct().values[~hidden]
    ridge = 0.05 * sum(np.square(each.values).sum() for each in (fit.W, fit.H))
    at_end = float(fit.loss(x, y).sum()) + ridge
    assert at_end == pytest.approx(objective.min(), rel=1e-6)


def test_each_column_of_a_table_has_an_f_of_its_own(read_back):
    X, hidden = curved(80, 6)
    frame = pd.DataFrame(X, columns=list("abcdef")).mask(hidden)
    frame["f"] = frame["f"] > frame["f"].median()
    options = {"alpha": 0.1, "random_state": 0, "max_iter": 60}
    fit = nmd.complete(frame, 2, dict.fromkeys("abc", "monotone"), **options)
    learned = [fit.nonlinearity[j] for j in range(3)]
    assert len({f.x for f in learned}) == 3
    assert all(f.learns and len(f.t) == 20 for f in learned)
    assert fit.nonlinearity[4] == nmd.Identity()
    again = read_back(fit)
    assert again.nonlinearity == fit.nonlinearity
    pd.testing.assert_frame_equal(again.impute(frame), fit.impute(frame))
    rows = fit.fold_in(frame.iloc[:3])
    assert np.all(np.isfinite(rows.values))
