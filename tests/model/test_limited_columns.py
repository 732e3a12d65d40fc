"""Concentrations with values below detection: draws above 0, and limits that a posterior keeps."""

import warnings

import numpy as np
import pandas as pd
import pytest

import nmd_lab as nmd
from nmd_lab.model.monotone import f_within_limits


@pytest.fixture(scope="module")
def panel():
    """Concentrations, what is seen of them, and where that is a detection limit."""
    rng = np.random.default_rng(0)
    logs = rng.normal(size=(150, 2)) @ rng.normal(size=(2, 6)) + 0.4 * rng.normal(size=(150, 6))
    truth = pd.DataFrame(np.exp(1.2 * logs), columns=list("abcdef"))
    limits = truth.quantile(0.35)
    below = (truth < limits) & truth.columns.isin(["a", "b", "c"])
    return truth, truth.mask(below, limits, axis=1), below


@pytest.fixture(scope="module")
def posterior(panel):
    _, X, below = panel
    with warnings.catch_warnings():
        warnings.simplefilter("error", nmd.warnings.NMDWarning)
        return nmd.sample(X, at_most=below, random_state=0)


def at_limits(panel, table):
    """The cells below a detection limit."""
    return np.asarray(table)[panel[2].to_numpy()]


def test_a_posterior_draws_within_the_limits_of_its_fit(panel, posterior, tmp_path):
    truth, X, below = panel
    assert "6 numeric ('a' above 0," in repr(posterior)
    assert posterior._joint is not None
    posterior.save(tmp_path / "panel.nc")
    rows = X.index[::-7]  # some, in another order
    for each in (posterior, nmd.load(tmp_path / "panel.nc")):
        copies = each.impute(X.loc[rows], 20, random_state=0)
        for copy in copies:
            at = below.loc[rows].to_numpy()
            np.testing.assert_array_equal(copy.to_numpy()[~at], X.loc[rows].to_numpy()[~at])
            assert np.all((copy.to_numpy()[at] > 0) & (copy < X.loc[rows]).to_numpy()[at])
    known = X.assign(a=truth["a"])  # a later measurement is no limit
    assert (posterior.impute(known)["a"] == truth["a"]).all()


def test_intervals_of_limits_are_those_given_the_limit(panel, posterior):
    truth, X, _ = panel
    ends = posterior.intervals(X, level=0.9)
    tables = (ends.xs(end, axis=1, level="bound") for end in ("low", "high"))
    low, high, limit, x = (at_limits(panel, each) for each in (*tables, X, truth))
    assert np.all((low > 0) & (low < high) & (high <= limit))
    assert 0.75 < np.mean((low <= x) & (x <= high)) < 0.95
    copies = [at_limits(panel, copy) for copy in posterior.impute(X, 100, random_state=1)]
    assert 0.87 < np.mean((low <= copies) & (copies <= high)) < 0.93


def test_negative_draws_of_positive_values_are_a_warning(panel):
    X, below = (each[["a", "b"]].to_numpy() for each in panel[1:])
    words = r"draws below limits .* columns 0, 1 is: .* cov"
    with pytest.warns(nmd.warnings.NMDWarning, match=words):
        nmd.sample(X, 1, at_most=below, draws=20, random_state=0)


@pytest.mark.parametrize(
    ("mean", "limit", "values"),
    [
        (20.0, 18.0, None),  # logarithms to base 2, far from 0: the line
        (0.5, 0.0, None),  # only a negative number is below 0
        (1.0, 0.5, [0.5 / np.e, 0.5, 3.0]),  # a line above the limit, a tail to 0 below
    ],
)
def test_normal_columns_have_the_line_and_stay_positive_where_they_are(mean, limit, values):
    x = np.random.default_rng(2).normal(mean, 1.0, 300)
    f = f_within_limits(np.where(x < limit, -np.inf, x), np.maximum(x, limit))
    assert (f is None) == (values is None)
    if f is not None:
        np.testing.assert_allclose(f(np.array([0.0, 0.5, 3.0])), values, rtol=0.02)
        assert f(np.array([-100.0]))[0] > 0


def test_standardised_columns_may_be_negative_below_their_limits(panel):
    """A limit above the mean hides the negative values of its column, but not of the others."""
    truth, _, _ = panel
    logs = np.log(truth)
    logs = (logs - logs.mean()) / logs.std()
    below = logs < [0.2, -0.8, *[-np.inf] * 4]
    X = logs.mask(below, logs.mask(below).min(), axis=1)
    assert X["a"].min() > 0 > X["b"].min()
    filled = nmd.impute(X, at_most=below, draws=60, random_state=0)
    assert (filled["a"] < 0).mean() > 0.3
