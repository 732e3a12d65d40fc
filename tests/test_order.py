"""Rows in order through `sample` and `impute`: what they find, and what comes back."""

import numpy as np
import pandas as pd
import pytest
from helpers import DAYS, check_filled, people, series
from made_runs import bits_of

import nmd_lab as nmd

M, N = 60, 8
SERIES = series(M, N)
SHORT = {"draws": 20, "tune": 10, "random_state": 0}


def with_days_out(X, days=4, every=20):
    """Return a matrix without the entries of some days in turn, and these."""
    out = np.arange(len(X)) % every >= every - days
    return np.where(out[:, None], np.nan, X), out


def frame(X):
    names = list("abcdefghijkl")[: X.shape[1]]
    return pd.DataFrame(X, index=DAYS[: len(X)], columns=names)


def mixed(m=150):
    """Return a table of every kind whose rows have an order, and the same with gaps."""
    whole = people(m, w=series(m, 2, (0.97, 0.9))).set_axis(DAYS[:m])
    out = np.random.default_rng(2).random(whole.shape) < 0.1
    out[with_days_out(whole)[1]] = True
    return whole, whole.mask(out)


def test_days_out_are_filled_better_in_order():
    """Against the same table without dates, and linear interpolation; intervals hold."""
    full = frame(series(200, 6, (0.98, 0.95), 0.2, 0))
    X, out = with_days_out(full.to_numpy())
    table, sd, errors = frame(X), full.std().to_numpy(), {}
    filled, posterior = nmd.impute(table, random_state=0, return_posterior=True)
    with pytest.warns(nmd.warnings.UnobservedWarning):
        plain = nmd.impute(table.reset_index(drop=True), random_state=0)
    guesses = {"order": filled, "none": plain, "line": table.interpolate(limit_area=None)}
    for name, guess in guesses.items():
        residual = (guess.to_numpy() - full.to_numpy())[out] / sd
        errors[name] = np.sqrt(np.nanmean(residual[:-4] ** 2))  # the last are ahead
    i, j = np.nonzero(np.broadcast_to(out[:, None], X.shape))
    low, high = posterior.predict_interval(i, j).T
    x = full.to_numpy()[i, j]
    assert errors["order"] < 0.5 * errors["none"]
    assert errors["order"] < 1.05 * errors["line"]
    assert 0.8 < np.mean((low <= x) & (x <= high)) < 0.99


@pytest.mark.parametrize("of", ["naive", "zone", "objects"])
def test_a_column_of_dates_comes_back_as_it_was(of):
    _, table = mixed(80)
    day = DAYS[:80] + pd.Timedelta("1h7min")
    day = {"naive": day, "zone": day.tz_localize("Asia/Tokyo"), "objects": day.date}[of]
    table = table.reset_index(drop=True).assign(day=day)
    filled, posterior = nmd.impute(table, order="day", return_posterior=True, **SHORT)
    for each in (filled, *posterior.impute(table, 2, random_state=0)):
        check_filled(each, table)


def test_a_table_of_every_kind_has_an_order(read_back):
    """Values stay in their domain and bounds, in guesses, copies and forecasts, and in a file."""
    whole, table = mixed()
    low, high = whole["cm"].min(), whole["cm"].max()
    posterior = nmd.sample(table, draws=60, random_state=0, bounds={"cm": (low, high)})
    assert posterior.draws["phi"].values.max() > 0.8
    for rows in (table, table.iloc[:0].reindex(DAYS[150:160])):
        for each in (posterior.impute(rows), *posterior.impute(rows, 20, random_state=0)):
            check_filled(each, rows)
            assert each["cm"].between(low, high).all()
            assert (each["dose"] >= 0).all()
    loaded = read_back(posterior)
    assert bits_of(loaded) == bits_of(posterior)
    assert loaded.reconstruct().identical(posterior.reconstruct())  # without places of rows
    one, other = (each.impute(rows, 3, random_state=0)[2] for each in (posterior, loaded))
    pd.testing.assert_frame_equal(one, other)
    error = (posterior.impute(table)["kg"] - whole["kg"])[table["kg"].isna()].to_numpy()
    assert np.sqrt(np.mean(error**2)) < 0.8 * whole["kg"].std()


def test_names_of_an_order_are_kept_as_a_list():
    index = pd.MultiIndex.from_product([["x", "y"], DAYS[:30]], names=["station", "day"])
    table = np.abs(frame(SERIES)).set_axis(index)
    names = ["station", "day"]
    for order in (names, tuple(names), np.array(names), pd.Index(names)):
        posterior = nmd.sample(table, 1, "relu", order=order, **SHORT)
        assert posterior.parameters["order"] == names
        assert "phi" in posterior.draws
    assert nmd.sample(table, 1, order="day", **SHORT).parameters["order"] == "day"


def test_new_rows_without_labels_are_not_taken_for_others():
    """The rows of the fit again have their places; fewer rows may be any."""
    X = np.where(np.random.default_rng(1).random(SERIES.shape) < 0.2, np.nan, SERIES)
    posterior = nmd.sample(X, 2, order="row", **SHORT)
    rows = posterior.fold_in(X).draws["W"].values
    np.testing.assert_allclose(rows.mean(axis=1), posterior.draws["W"].mean("draw"), atol=0.1)
    for each in (posterior, nmd.sample(frame(X).rename_axis(None), **SHORT)):
        with pytest.raises(ValueError, match=r"X has no labels along 'row', .*: give a DataFrame"):
            each.fold_in(X[:5])


def test_one_posterior_has_the_draws_of_its_members():
    """Members without order have φ = 0, and rows of their own; forecasts know both."""
    posterior = nmd.sample(
        frame(with_days_out(series(120, N))[0]), draws=60, tune=20, random_state=0
    )
    phi, member = posterior.draws["phi"].values[0], posterior.draws["member"].values[0]
    in_order = phi.any(axis=1)
    assert set(member[in_order]).isdisjoint(member[~in_order])
    ahead = posterior.fold_in(frame(series(125, N)).iloc[120:] * np.nan)
    rows = ahead.draws["W"].values[0]
    assert np.isfinite(rows).all()
    W = posterior.draws["W"].values[0]
    near = np.abs(rows[in_order, 0] - W[in_order, -1]).mean()
    far = np.abs(rows[in_order, 4] - W[in_order, 20]).mean()
    assert near < far
