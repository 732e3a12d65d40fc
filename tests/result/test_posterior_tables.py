"""Results of a posterior for a whole table, in the types and with the labels of the table."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from helpers import check_filled, people, with_holes
from made_draws import LEVELS, made_up, plain

import nmd_lab as nmd

PRIOR = {"row_mean": np.zeros((2, 30, 4)), "row_precision": np.tile(np.eye(4), (2, 30, 1, 1))}
"""The prior of a row in made-up draws."""


def test_a_point_is_the_best_guess_of_each_column(frame, posterior):
    some = frame[["town", "visits", "smokes", "mood", "kg", "sex", "cm", "dose"]].iloc[60:5:-1]
    filled = posterior.impute(some)
    check_filled(filled, some)
    hole = {name: some.index[some[name].isna()] for name in some}
    wanted = posterior.predict(hole["cm"], "cm")
    np.testing.assert_allclose(filled.loc[hole["cm"], "cm"], wanted, rtol=1e-6)
    for name in ("smokes", "town", "sex"):
        likely = posterior.probabilities(name, rows=hole[name]).idxmax(axis=1)
        assert filled.loc[hole[name], name].tolist() == likely.tolist()
    below = posterior.probabilities("mood", rows=hole["mood"]).cumsum(axis=1)
    assert filled.loc[hole["mood"], "mood"].tolist() == (below >= 0.5).idxmax(axis=1).tolist()


@pytest.mark.parametrize("point", ["mean", "median", "mode"])
def test_another_point_may_be_asked_for(point):
    X = np.full((4, 5), np.nan)
    X[0, 0] = LEVELS[0]
    i, j = np.nonzero(np.isnan(X))
    levels = made_up(X, noise="ordinal")
    p = levels.level_probabilities(i, j)
    wanted = {
        "mean": p @ LEVELS,
        "median": np.take(LEVELS, (np.cumsum(p, axis=1) >= 0.5).argmax(axis=1)),
        "mode": np.take(LEVELS, p.argmax(axis=1)),
    }
    np.testing.assert_allclose(levels.impute(X, point=point)[i, j], wanted[point], rtol=1e-6)
    numbers = made_up(X, "minmax", noise="before")
    median = numbers.predict_interval(i, j, level=1e-9)[:, 0]
    wanted = median if point == "median" else numbers.predict(i, j)
    np.testing.assert_allclose(numbers.impute(X, point=point)[i, j], wanted, atol=1e-5)


@pytest.mark.parametrize(("f", "noise"), [("identity", "gaussian"), ("minmax", "before")])
def test_entries_with_limits_are_drawn_within_them(f, noise):
    X = np.zeros((4, 5))
    X[0, 0], X[1, 1], X[2, 2] = 0.2, 0.5, -0.1
    posterior = made_up(X, f, noise=noise, chains=1, draws=300)
    at_most, at_least, upper = X == 0.2, X == 0.5, X.copy()
    at_most[2, 2] = at_least[2, 2] = True
    upper[2, 2] = 0.4
    limits = {"at_most": at_most, "at_least": at_least, "upper": upper}
    copies = np.stack(posterior.impute(X, 300, random_state=0, **limits))
    points = posterior.impute(X, **limits)
    v, rho, _, _ = plain(posterior)
    rng = np.random.default_rng(1)
    t = v + rng.normal(size=(200, *v.shape)) / np.sqrt(rho.reshape(-1, 1, 1))
    drawn = t if f == "identity" else np.clip(t, -0.4, 0.9)
    for (i, j), low, high in [((0, 0), -9, 0.2), ((1, 1), 0.5, 9), ((2, 2), -0.1, 0.4)]:
        x = drawn[..., i, j]
        inside = (low <= x) & (x <= high)
        of_draws = np.sum(x * inside, axis=0) / np.maximum(inside.sum(axis=0), 1)
        wanted = of_draws[inside.any(axis=0)].mean()  # a draw counts once
        assert np.all((low <= copies[:, i, j]) & (copies[:, i, j] <= high))
        assert copies[:, i, j].mean() == pytest.approx(wanted, abs=0.03)
        assert points[i, j] == pytest.approx(wanted, abs=0.03)
    assert np.all(copies[:, 3] == 0)
    with pytest.raises(ValueError, match="X has new ones: give new rows NaN there"):
        posterior.impute(X[:3], at_most=X[:3] == 0.2)


def test_rows_that_the_table_has_not_are_new_ones(frame):
    posterior = nmd.sample(frame, 3, draws=60, tune=10, random_state=0)  # all fill new rows
    new = with_holes(people(30, seed=5)).set_axis([f"n{k}" for k in range(30)])
    filled = posterior.impute(new)
    check_filled(filled, new)
    pd.testing.assert_frame_equal(filled, posterior.fold_in(new, unknown="offsets").impute(new))
    unlabelled = new.reset_index(drop=True)
    pd.testing.assert_frame_equal(posterior.impute(unlabelled).set_axis(new.index), filled)
    again = posterior.impute(frame.iloc[:3])
    pd.testing.assert_frame_equal(again, posterior.impute(frame).iloc[:3])


def test_intervals_have_the_form_of_the_table(frame, posterior):
    ends = posterior.intervals(frame, level=0.8)
    pd.testing.assert_index_equal(ends.index, frame.index)
    ordered = ["kg", "dose", "visits", "smokes", "mood", "cm"]
    assert ends.columns.tolist() == [(name, end) for name in ordered for end in ("low", "high")]
    assert ends["mood", "low"].dtype == frame["mood"].dtype
    assert ends["smokes", "high"].dtype == "boolean"
    wanted = posterior.predict_interval(frame.index[9], "cm", level=0.8)[0]
    np.testing.assert_allclose(ends["cm"].iloc[9], wanted, rtol=1e-6)
    X = xr.DataArray(np.ones((3, 4)), dims=("day", "place"), coords={"day": [3, 4, 5]})
    array = made_up(X).intervals(X)
    assert array.dims == ("day", "place", "bound")
    wanted = made_up(X).predict_interval(4, 2)[0]
    np.testing.assert_allclose(array.sel(day=4).isel(place=2), wanted, rtol=1e-6)


def test_correlations_are_those_of_the_covariance_of_a_row(posterior):
    rng = np.random.default_rng(2)
    roots = rng.normal(size=(2, 30, 2, 4, 9))  # of two groups, three components and an offset
    X = pd.DataFrame(np.ones((6, 5)), columns=list("abcde"))
    prior = {"row_mean": rng.normal(size=(2, 30, 2, 4)), "row_precision": roots @ roots.mT}
    drawn = made_up(X, **prior, row_share=np.tile([0.3, 0.7], (2, 30, 1)))
    each = []
    for chain in range(2):
        for draw in range(30):
            of_draw = drawn.draws.isel(chain=chain, draw=draw)
            loadings = np.vstack([of_draw.H.values, np.ones(5)])
            first, second = (np.linalg.inv(p) for p in of_draw.row_precision.values)
            apart = of_draw.row_mean.values[0] - of_draw.row_mean.values[1]
            of_rows = 0.3 * first + 0.7 * second + 0.21 * np.outer(apart, apart)
            covariance = loadings.T @ of_rows @ loadings + np.eye(5) / of_draw.rho.item()
            sd = np.sqrt(np.diag(covariance))
            each.append(covariance / np.outer(sd, sd))
    r = drawn.correlations(level=0.5)
    np.testing.assert_allclose(r["mean"], np.mean(each, axis=0), atol=1e-6)
    np.testing.assert_allclose(r["low"], np.quantile(each, 0.25, axis=0), atol=1e-6)
    assert r["high"].sel(column="b", column_="b") == 1
    r = posterior.correlations().sel(column="kg", column_="cm")
    assert r["low"] < 12 * 9 / np.sqrt((12**2 + 9) * (9**2 + 9)) < r["high"]


def test_cells_are_ordered_by_how_sure(full, frame, posterior):
    hidden = frame.isna()
    cells = posterior.reliability(full.where(hidden))
    assert len(cells) == hidden.to_numpy().sum()
    assert cells["uncertainty"].is_monotonic_increasing
    of_towns = cells[cells["column"] == "town"].set_index("row")
    p = posterior.probabilities("town", rows=of_towns.index)
    assert of_towns["predicted"].tolist() == p.idxmax(axis=1).tolist()
    assert (of_towns["observed"] == full.loc[of_towns.index, "town"].astype(object)).all()
    ratio = (1 - p.max(axis=1)) / of_towns["uncertainty"]
    np.testing.assert_allclose(ratio, ratio.iloc[0], rtol=1e-5)
    of_cm = cells[cells["column"] == "cm"].set_index("row")
    spread = (posterior.predict_std(of_cm.index, "cm") / of_cm["uncertainty"]).iloc[0]
    assert 0.7 < spread / full["cm"].std() < 1.5
    wrong = (of_cm["observed"] - of_cm["predicted"]).astype(float) / spread
    np.testing.assert_allclose(of_cm["wrong"].astype(float), wrong, rtol=1e-5)
    for kind, power in (("number", 2), ("class", 1)):
        of_kind = cells[cells["kind"] == kind]
        k = len(of_kind) // 3
        wanted = np.mean(np.abs(of_kind["wrong"][:k]) ** power) ** (1 / power)
        assert of_kind["error"].iloc[k - 1] == pytest.approx(wanted)
        assert of_kind["share"].iloc[k - 1] == pytest.approx(k / len(of_kind))
        assert of_kind["error"].iloc[k] < of_kind["error"].iloc[-1]


def test_a_report_says_what_was_missing_and_how_sure_the_rest_is(full, frame, posterior, tmp_path):
    hidden = frame.isna()
    report = posterior.report(frame, full.where(hidden), level=0.8)
    columns, total = report.columns[:-1].set_index("column"), report.columns.iloc[-1]
    assert list(columns.index) == list(frame.columns)
    sums = [frame.notna().sum().sum(), hidden.sum().sum()]
    assert total[["observed", "missing"]].tolist() == sums
    assert columns["missing"].tolist() == hidden.sum().tolist()
    assert columns["observed"].tolist() == frame.notna().sum().tolist()
    cells = posterior.reliability(full.where(hidden))
    for shown, some in ((report.most_certain, cells[:5]), (report.most_uncertain, cells[:-6:-1])):
        np.testing.assert_allclose(shown["uncertainty"], some["uncertainty"])
    filled = posterior.impute(frame)
    for cell in report.most_uncertain.itertuples():
        assert cell[3] == filled.loc[cell.row, cell.column]
    checked = report.held_out.set_index("column")
    assert checked["cells"].tolist() == hidden.sum().tolist()
    of_mood = full["mood"].cat.codes[hidden["mood"]]
    low, high = posterior.predict_interval(of_mood.index, "mood", level=0.8).T
    held = np.mean((low <= of_mood) & (of_mood <= high))
    assert checked.loc["mood", "in 80 % interval"] == pytest.approx(held)
    wrong = cells["wrong"][cells["column"] == "sex"].mean()
    assert checked.loc["sex", "share wrong"] == pytest.approx(wrong)
    assert "| sex | categorical |" in str(report)
    groups = posterior.draws.sizes["group"]
    assert (f"at most {groups} groups of rows" in str(report)) == (groups > 1)
    assert str(report).count("## ") == 8
    report.save(tmp_path / "report.md")
    assert (tmp_path / "report.md").read_text(encoding="utf-8") == str(report)
    report.save(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert report._repr_html_() in page
    assert "default-src 'none'; style-src 'unsafe-inline'" in page
    assert "http:" not in page
    assert "script" not in page


def test_a_report_counts_limits_and_names_draws(frame):
    limit = frame["cm"].quantile(0.3)  # of detection
    below = (frame[["cm"]] < limit).reindex(columns=frame.columns, fill_value=False)
    X = frame.assign(cm=frame["cm"].clip(lower=limit))
    options = {"at_most": below, "draws": 10, "tune": 10, "groups": 1, "random_state": 0}
    posterior = nmd.impute(X, 3, return_posterior=True, **options)[1]
    report, count = posterior.report(X), int(below["cm"].sum())
    assert report.summary.endswith(f" {count} more have limits, within which they are filled.")
    assert "intervals covered 80 to 82 %" in report.assumptions[-1]
    columns = report.columns.set_index("column")
    assert columns["limits"][["cm", "all"]].tolist() == [count, count]
    assert (columns["filled by"] == "draws").any()
    assert "3 times by draws from the posterior predictive distribution" in report.methods
    assert "posterior means" not in report.methods


def test_a_report_of_new_rows_and_of_an_array(posterior):
    report = posterior.report(with_holes(people(9, seed=5)).set_axis([f"<b{k}>" for k in range(9)]))
    assert "&lt;b" in report._repr_html_()
    assert report.summary.startswith("9 rows and 8 columns")
    assert report.held_out is None
    nothing = posterior.report(with_holes(people(1, seed=5), 1.0).set_axis(["new"]))
    assert nothing.summary == "1 row and 8 columns; 8 of 8 cells (100.0 %) are missing."
    X = np.zeros((4, 5))
    X[2, 3] = np.nan
    of_array = made_up(X, **PRIOR).report(X)
    assert of_array.most_certain[["row", "column"]].values.tolist() == [[2, 3]]
    assert "use chains=2" not in str(of_array)
