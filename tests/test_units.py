"""Tables whose columns are in different units."""

import warnings

import numpy as np
import pandas as pd
import pytest

import nmd_lab as nmd
from nmd_lab.data.inputs import observe
from nmd_lab.data.units import facts_of, units_of_columns

SCALES = np.array([1000.0, 100.0, 10.0, 1.0, 1.0, 0.1, 0.01, 0.01])


@pytest.fixture(scope="module")
def table():
    """Return a table of low rank in different units, and its missing entries."""
    rng = np.random.default_rng(0)
    plain = rng.normal(size=(150, 2)) @ rng.normal(size=(2, SCALES.size))
    truth = pd.DataFrame((plain + 0.1 * rng.normal(size=plain.shape) + 3) * SCALES).add_prefix("c")
    return truth, rng.random(truth.shape) < 0.2


def errors(filled, truth, hidden):
    """Return the RMSE of each column at missing entries, in standard deviations."""
    off = (np.asarray(filled) - truth.values) / truth.std().values
    return np.sqrt(np.sum(np.square(off) * hidden, axis=0) / hidden.sum(axis=0))


def told(function, *args, **options):
    """Return a result, and the warnings of units that it gave."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*args, random_state=0, **options)
    return result, [str(w.message) for w in caught if w.category is nmd.warnings.UnitsWarning]


UNITS = [(1e-9, 0, "f8"), (1e12, 0, "f4"), (1, 1e9, "f8"), (2e4, 5e4, "f4"), (3e7, 1.7e9, "f8")]


@pytest.fixture(scope="module")
def related():
    """Return a table in one unit, whose choice has close rivals, and its missing entries."""
    rng = np.random.default_rng(0)
    plain = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 6)) + 0.3 * rng.normal(size=(300, 6))
    return pd.DataFrame(plain), rng.random(plain.shape) < 0.2


VERBS = {
    "complete": lambda X: (fit := nmd.complete(X, random_state=0), fit.impute(X), fit.chosen),
    "l1": lambda X: (fit := nmd.complete(X, 2, loss="l1", random_state=0), fit.impute(X), 0),
    "sample": lambda X: (posterior := nmd.sample(X, 2, draws=30, tune=30, random_state=0),
                         posterior.impute(X), posterior.noise),
    "estimator": lambda X: (model := nmd.MatrixCompletion(random_state=0),
                            model.fit_transform(X), model.alpha_),
}  # fmt: skip


@pytest.fixture(scope="module", params=VERBS)
def filled(request, related):
    """Return a verb, and what it fills and chooses in one unit."""
    truth, hidden = related
    X = truth * (1 if request.param != "l1" else 30.0 ** np.arange(6))  # of one unit without
    return VERBS[request.param], X, *VERBS[request.param](X.mask(hidden))[1:]


@pytest.mark.parametrize(("size", "shift", "dtype"), UNITS)
def test_the_unit_of_a_column_changes_nothing(related, filled, size, shift, dtype):
    verb, X, plain, chosen = filled
    columns = np.array([1, 1, 1, 1, size, 1]), np.array([0, 0, 0, 0, shift, 0])
    _, found, again = verb((X * columns[0] + columns[1]).mask(related[1]).astype(dtype))
    off = (np.asarray(found) - columns[1]) / columns[0] - np.asarray(plain)
    assert (np.abs(off) / X.std().to_numpy()).max() < 0.01
    if isinstance(chosen, dict):
        assert again.keys() == chosen.keys()
        assert again["alpha"] == pytest.approx(chosen["alpha"], rel=1e-4)
        assert [again["rank"], again["offsets"]] == [chosen["rank"], chosen["offsets"]]
    elif isinstance(chosen, float):
        assert again == pytest.approx(chosen, rel=1e-4)
    else:
        assert again == chosen


def test_far_predictions_are_those_of_a_column(related):
    """Values of one column hide nothing in another one."""
    truth, hidden = related
    X = (truth * [1, 1, 1, 1, 1e9, 1]).iloc[:30].mask(hidden[:30])
    with pytest.warns(nmd.warnings.OverfitWarning, match=r"missing entries of column [0-9]"):
        nmd.complete(X, 5, loss={}, alpha=0, offsets="none", max_iter=300, random_state=0)


def test_a_data_frame_is_fitted_in_the_units_of_its_columns(table):
    truth, hidden = table
    X = truth.mask(hidden)
    fit, said = told(nmd.complete, X, 2)
    assert not said
    assert errors(fit.impute(X), truth, hidden).max() < 0.5
    same = nmd.complete(X.values, 2, loss={}, random_state=0)
    np.testing.assert_array_equal(fit.reconstruct().values, same.reconstruct().values)


def test_a_data_frame_of_one_scale_may_have_another_nonlinearity(table):
    truth, hidden = table
    X = np.maximum(truth / SCALES - 3, 0).mask(hidden)
    assert nmd.complete(X, 2, random_state=0).nonlinearity == nmd.ReLU()
    limited = (truth / SCALES).clip(2, 4).mask(hidden)
    assert nmd.complete(limited, 2, random_state=0).nonlinearity == nmd.MinMax(2, 4)
    below = pd.DataFrame(False, truth.index, truth.columns).assign(c0=truth["c0"] < 3000)
    of_limits = (truth / SCALES).mask(hidden & ~below)
    assert nmd.complete(of_limits, 2, at_most=below, random_state=0).nonlinearity == nmd.Identity()


def test_an_array_is_warned_of(table):
    truth, hidden = table
    X = truth.mask(hidden).values
    fit, said = told(nmd.complete, X, 2)
    assert errors(fit.reconstruct(), truth, hidden).max() > 5  # why there is a warning
    assert ["column 0 has " in each and "loss={}" in each for each in said] == [True]
    assert not told(nmd.complete, X, 2, loss={})[1]
    far = truth.abs().assign(c0=1e9 * truth["c0"].abs()).mask(hidden)
    assert "column 'c0' has " in told(nmd.complete, far, 2, loss="kl")[1][0]


def test_one_nonlinearity_for_all_keeps_the_units_of_x(table):
    truth, hidden = table
    _, said = told(nmd.complete, truth.mask(hidden), 2, "identity", alpha=1.0)
    assert "column 'c0' has " in said[0]
    assert not told(nmd.complete, truth, 2, "identity", alpha=1.0)[1]  # nothing is missing


def test_the_sampler_warns(table):
    truth, hidden = table
    X = truth.mask(hidden)
    assert not told(nmd.sample, X, 2, draws=8, tune=2)[1]  # columns of a table have their units
    _, said = told(nmd.sample, X.to_numpy(), 2, draws=8, tune=2)
    assert len(said) == 1
    assert "divide the columns by their standard deviations" in said[0]


def apart_in(X):
    return units_of_columns(facts_of(observe(X), by_column=True))


def test_pictures_and_ratings_have_one_unit():
    digits = nmd.datasets.digits()
    assert apart_in(digits) is None
    rng = np.random.default_rng(0)
    relu = np.maximum(rng.normal(size=(70, 3)) @ rng.normal(size=(3, 24)), 0)
    assert apart_in(relu) is None
    rare = rng.poisson(0.01 * np.arange(1, 31), size=(400, 30)).astype(float)
    assert apart_in(rare) is None
    assert apart_in(np.column_stack([rare[:, 29], np.full(400, 1e9)])) is None
