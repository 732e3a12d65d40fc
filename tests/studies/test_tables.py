"""Studies of tables of several kinds, with weights and with limits."""

import numpy as np
import pandas as pd
import pytest
from people import people, with_holes
from stored import stored

import nmd_lab as nmd
from nmd_lab.studies.known_entries import HIDE, Corruption, hidden_entries, read_known_entries

ONE = nmd.Compute(threads=1)


@pytest.fixture(scope="module")
def frame():
    """Return a table of every kind with some holes."""
    table = people(60)[["cm", "dose", "smokes", "mood", "town"]]
    return with_holes(table.rename(columns={"cm": "kg", "smokes": "yes"}), 0.1)


@pytest.fixture(scope="module")
def study(frame):
    study = nmd.Study(
        frame, method=["admm", "sample", "mean_fill"], rank=2, alpha=1, max_iter=15, tol=0,
        draws=20, tune=10, n_splits=1, missing=0.3,
    )  # fmt: skip
    study.run(progress=False)
    return study


def errors_by_hand(frame, X, numbers, classes):
    """Return the errors of predicted numbers and most probable classes at hidden cells."""
    hidden = frame.notna() & X.isna()
    squares, wrong = [], []
    for name in ("kg", "dose"):
        at = hidden[name]
        squares.append(((numbers[name][at] - frame[name][at]) / frame[name].std(ddof=0)) ** 2)
    for name in ("yes", "town"):
        wrong.append((classes[name] != frame[name])[hidden[name]])
    levels = classes["mood"].astype(frame["mood"].dtype).cat.codes - frame["mood"].cat.codes
    return {
        "held_out_rmse": np.sqrt(pd.concat(squares).mean()),
        "held_out_misclassified": pd.concat(wrong).mean(),
        "held_out_level_error": levels[hidden["mood"]].abs().mean(),
    }


def test_errors_are_those_of_filled_cells(frame, study):
    cell, results = study.cell(algorithm="admm"), study.results.sel(algorithm="admm", seed=0)
    assert cell.arguments == {
        "rank": 2, "alpha": 1, "max_iter": 15, "tol": 0, "random_state": 0, "compute": ONE
    }  # fmt: skip
    assert cell.X.dtypes.equals(frame.dtypes)
    assert cell.X.notna().sum().sum() == pytest.approx(0.7 * frame.notna().sum().sum(), rel=0.05)
    pd.testing.assert_frame_equal(cell.X, frame.where(cell.X.notna()))
    filled = nmd.complete(cell.X, **cell.arguments).impute(cell.X)
    for name, expected in errors_by_hand(frame, cell.X, filled, filled).items():
        assert float(results[name]) == pytest.approx(expected, rel=1e-9)


def test_a_posterior_has_intervals_of_numbers_alone(frame, study):
    cell, results = study.cell(algorithm="sample"), study.results.sel(algorithm="sample", seed=0)
    posterior = nmd.sample(cell.X, **cell.arguments)
    numbers = posterior.reconstruct().to_pandas()
    names = ("yes", "mood", "town")
    classes = {name: posterior.probabilities(name).idxmax(axis=1) for name in names}
    for name, expected in errors_by_hand(frame, cell.X, numbers, classes).items():
        assert float(results[name]) == pytest.approx(expected, rel=1e-6)
    inside, density = [], []
    for name in ("kg", "dose"):
        rows = frame.index[frame[name].notna() & cell.X[name].isna()]
        x = frame.loc[rows, name]
        low, high = posterior.predict_interval(rows, name).T
        inside.append((low <= x) & (x <= high))
        of_units = posterior.log_density(rows, name, x) + np.log(frame[name].std(ddof=0))
        density.append(pd.Series(of_units))
    assert float(results.held_out_coverage_90) == pytest.approx(pd.concat(inside).mean())
    assert float(results.held_out_log_density) == pytest.approx(pd.concat(density).mean())


def test_methods_for_numbers_get_columns_in_standard_deviations(study):
    X = study.cell(algorithm="mean_fill").X
    assert list(X.columns) == ["kg", "dose", "yes", "mood", "town=Ulm", "town=Bonn", "town=Köln"]
    np.testing.assert_allclose(X.std(ddof=0), 1, atol=0.3)
    # so a mean of all is close to that of each column
    error = study.results.held_out_rmse.sel(algorithm="mean_fill").item()
    assert error == pytest.approx(1, abs=0.2)


def test_an_error_of_classes_can_choose_the_best(study):
    assert "fraction of wrong classes" in study.results.held_out_misclassified.attrs["long_name"]
    assert study.best("misclassified").parameters["algorithm"] in ("admm", "sample")
    table = nmd.Study(study.cell(algorithm="admm").X[["yes", "town"]], method="mean_fill")
    assert np.isfinite(table.run(progress=False).held_out_misclassified).all()
    assert "held_out_rmse" not in table.results
    assert table.best().parameters == {}


@pytest.mark.parametrize("kind", [kind for kind in HIDE if kind != "by_value"])
def test_a_cell_is_hidden_as_a_whole(kind, frame):
    data = read_known_entries(frame)
    hidden = hidden_entries(data, Corruption(kind, 0.4), 0)
    rows, columns, _ = data.entries
    cells = hidden[columns <= 4]  # the first indicator of a category is its cell
    assert cells.mean() == pytest.approx(0.4, abs=0.1)
    is_town = columns >= 4
    towns = pd.Series(hidden[is_town]).groupby(rows[is_town]).nunique()
    assert (towns == 1).all()
    if kind == "columns":
        by_column = pd.Series(hidden).groupby(columns).mean()
        assert set(by_column) == {0, 1}
        assert by_column[:5].sum() == 2
    if kind == "random":
        most = hidden_entries(data, Corruption(kind, 0.6), 0)
        assert len(np.unique(rows[~most])) == len(np.unique(rows))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"noise": {"gaussian": 0.1}}, r"noise=\{'gaussian': 0.1\} is for numbers"),
     ({"missing": {"random": 0.1, "by_value": 0.2}}, r"missing=\{'by_value': 0.2\} is for")],
)  # fmt: skip
def test_classes_have_neither_noise_nor_an_order(arguments, message, frame):
    with pytest.raises(ValueError, match=message):
        nmd.Study(frame, rank=2, **arguments)
    nmd.Study(frame[["kg", "dose"]], rank=2, **arguments)


@pytest.fixture(scope="module")
def numbers():
    """Return numbers with holes, weights, and where they are limits."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(25, 2)) @ rng.normal(size=(2, 20)) + 3
    X[rng.random(X.shape) < 0.3] = np.nan
    weights = rng.uniform(0.5, 2, X.shape)
    weights[3, :5] = 0
    limits = {"at_most": ~np.isnan(X) & (weights > 0) & (rng.random(X.shape) < 0.1)}
    return X, weights, limits


def test_weights_of_cells_count_in_all_errors(frame):
    weights = np.random.default_rng(0).uniform(0, 2, frame.shape)
    study = nmd.Study(frame, method="mean_fill", weights=weights, n_splits=1)
    results, cell = study.run(progress=False), study.cell()
    assert cell.arguments["weights"].shape == cell.X.shape == (60, 7)
    rows, columns, x = (each[cell.hidden] for each in cell.data.entries)
    model = cell.predict(cell.fit())[cell.hidden]
    w = weights[rows, np.minimum(columns, 4)]
    at = columns < 2
    spread = frame[["kg", "dose"]].std(ddof=0).to_numpy()[columns[at]]
    squares = ((model - x)[at] / spread) ** 2
    expected = np.sqrt(np.average(squares, weights=w[at]))
    assert results.held_out_rmse.item() == pytest.approx(expected)
    levels = columns == 3
    distance = np.abs(np.rint(model) - x)[levels]
    expected = np.average(distance, weights=w[levels])
    assert results.held_out_level_error.item() == pytest.approx(expected)


def test_weights_and_limits_of_every_form(numbers):
    X, weights, limits = numbers
    at, options = ~np.isnan(X), {
        "method": ["admm", "soft_impute"], "rank": 2, "alpha": 0.1, "max_iter": 15, "tol": 0,
        "nonlinearity": "identity", "n_splits": 1,
        "solver": nmd.ADMM(split="observed", limit_noise=0.3),
    }  # fmt: skip
    thin = stored(X)
    dense = nmd.Study(X, weights=weights, **limits, **options)
    results = dense.run(progress=False)
    others = nmd.Study(thin, weights=weights, **limits, **options).run(progress=False)
    for name in ("held_out_rmse", "observed_mae", "objective"):
        of_both = [each[name].sel(algorithm="admm") for each in (results, others)]
        np.testing.assert_allclose(*of_both, rtol=1e-7)
    cell = dense.cell(algorithm="admm")
    visible, limited = ~np.isnan(cell.X), limits["at_most"]
    np.testing.assert_array_equal(cell.X[limited], X[limited])  # never hidden
    hidden, exact = (at & each & (weights > 0) for each in (~visible, ~limited))
    assert hidden.sum() == pytest.approx(0.2 * exact.sum(), rel=0.1)
    model = nmd.complete(cell.X, **cell.arguments).reconstruct().values
    for entry_set, of_set in (("held_out", hidden), ("observed", visible & ~limited)):
        squares = (model - X)[of_set] ** 2
        expected = np.sqrt(np.average(squares, weights=weights[of_set]))
        found = results[f"{entry_set}_rmse"].sel(algorithm="admm").item()
        assert found == pytest.approx(expected, rel=1e-9)
    assert cell.arguments["weights"] is weights
    assert "at_most" not in dense.cell(algorithm="soft_impute").arguments
