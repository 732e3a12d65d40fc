"""Fits and posteriors with a learned monotone f."""

import numpy as np
import pandas as pd
import pytest
from some import some

import nmd_lab as nmd
from nmd_lab.nonlinearities import Monotone


def curved(g, seed=0, shape=(60, 30), rank=2):
    """Return g of a product of low rank with noise, and which tenth of it is hidden."""
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1])) / np.sqrt(rank)
    X = g(L)
    X = X / X.std() + 0.05 * rng.normal(size=shape)
    return X, rng.random(shape) < 0.1, L


def held_out(fit, X, hidden):
    """Return the error at hidden entries."""
    return float(np.sqrt(np.mean(np.square((fit.reconstruct().values - X)[hidden]))))


def test_a_learned_f_predicts_nearly_as_well_as_the_true_one():
    X, hidden, L = curved(lambda t: np.exp(0.5 * t))
    seen = np.where(hidden, np.nan, X)
    options = {"alpha": 0.1, "random_state": 0, "max_iter": 300}
    first = Monotone().for_data(X[~hidden], centred=True)
    knots = np.quantile(L, (np.arange(20) + 0.5) / 20)
    true = Monotone(knots, np.exp(0.5 * knots) / np.exp(0.5 * L).std())
    learned, straight, fixed, best = (
        nmd.complete(seen, 2, f, **options)
        for f in ("monotone", "identity", Monotone(first.t, first.x), true)
    )
    assert fixed.nonlinearity == Monotone(first.t, first.x)
    assert learned.history["objective"].min() < 0.6 * fixed.history["objective"].min()
    assert held_out(learned, X, hidden) < 0.5 * held_out(straight, X, hidden)
    assert held_out(learned, X, hidden) < 1.3 * held_out(best, X, hidden)
    new = learned.nonlinearity
    assert (new.t, new.learns) == (first.t, True)
    assert new.x[-1] - new.x[0] == pytest.approx(first.x[-1] - first.x[0])
    again = nmd.complete(seen, 2, Monotone(new.t, new.x), **options)
    assert again.nonlinearity.x == new.x


@pytest.mark.parametrize("loss", some(["l1", "frobenius", "kl", "huber"], 1))
def test_the_objective_is_that_of_the_learned_f_and_falls(loss):
    X, hidden, _ = curved(lambda t: np.exp(0.5 * t), shape=(30, 20))
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
    X, hidden, _ = curved(lambda t: np.exp(0.5 * t), shape=(80, 6))
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
