"""The best model, the table and the ranking of results with prescribed errors, and their HTML."""

import copy
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import xarray as xr
from helpers import check_all_refused
from scipy import stats

import nmd_lab as nmd
from nmd_lab.studies import Study
from nmd_lab.studies.summary import choose, rank_test, study_html, table

BEST = {"algorithm": "admm", "nonlinearity": "relu", "rank": 2}


@pytest.fixture(scope="module")
def ran():
    X = nmd.datasets.digits(12)
    study = Study(X, method=["admm", "svd"], nonlinearity=["relu", "identity"], rank=[1, 2, 3],
                  missing=[0.2, 0.5], n_splits=4, alpha=0, max_iter=1)  # fmt: skip
    study.run(progress=False)
    return study


@pytest.fixture
def prescribed(ran, rng):
    """Return a study whose errors are replaced by prescribed numbers."""
    study, results = copy.copy(ran), ran.results.copy(deep=True)
    split = xr.DataArray(rng.normal(0, 0.5, 4), dims="seed")  # an effect, equal for all models
    level = xr.DataArray([0.0, 1.0], dims="missing")
    noise = 0.001 * rng.normal(size=results.held_out_rmse.shape)
    score = xr.full_like(results.held_out_rmse, 5) + split + level + noise
    score.loc[BEST] -= 0.1
    # Rank 1 is hardly worse: better for one seed, worse for the others
    tie = {"algorithm": "admm", "nonlinearity": "relu", "rank": 1}
    score.loc[tie] = score.sel(BEST) + xr.DataArray([-0.002, 0.001, 0.002, 0.001], dims="seed")
    svd = score.sel({"algorithm": "svd", "nonlinearity": "relu"}, drop=True)
    score.loc[{"algorithm": "svd", "nonlinearity": "identity"}] = svd
    results["held_out_rmse"] = score
    study._results = results
    return study


def test_the_simplest_of_the_best(prescribed):
    results = prescribed.results
    best = choose(results, None, False, {})
    assert best == BEST
    simplest = choose(results, "rmse", True, {})
    assert simplest == {"algorithm": "admm", "nonlinearity": "relu", "rank": 1}
    only = choose(results, "held_out_rmse", True, {"algorithm": "svd"})
    assert only["algorithm"] == "svd"


def test_best_fits_all_data(prescribed):
    parameters, fit = best = prescribed.best("held_out_rmse", one_standard_error=False)
    assert parameters == BEST | {"alpha": 0, "max_iter": 1}
    first, _, rest = repr(best).partition("\n")
    assert first.startswith("<nmd_lab.BestModel>  ")
    assert "rank: 2" in first
    assert rest == repr(fit)
    X = nmd.datasets.digits(12)
    again = nmd.complete(X, 2, "relu", alpha=0, max_iter=1, random_state=0)
    np.testing.assert_allclose(fit.W, again.W, rtol=1e-9)
    assert fit.parameters["n_observed"] == X.size


def test_models_without_all_scores_are_no_candidates(prescribed):
    results = prescribed.results
    where = {"algorithm": "admm", "nonlinearity": "relu", "missing": 0.5, "seed": 2}
    results.held_out_rmse.loc[where] = np.nan
    assert choose(results, None, True, {})["nonlinearity"] == "identity"
    at_02 = choose(results, None, False, {"missing": 0.2})
    assert at_02["nonlinearity"] == "relu"
    results.held_out_rmse[:] = np.nan
    with pytest.raises(ValueError, match="NaN somewhere for every model"):
        prescribed.best("held_out_rmse")


def test_table(prescribed):
    results = prescribed.results
    frame = table(results, ["rmse"], {})
    assert len(frame) == 6 + 3  # an SVD has no nonlinearity
    assert frame.index.names == ["algorithm", "nonlinearity", "rank"]
    row = frame.loc[("admm", "relu", 2)]
    scores = results.held_out_rmse.sel(BEST | {"missing": 0.5})
    assert row["held_out_rmse", 0.5, "mean"] == pytest.approx(float(scores.mean()))
    assert row["held_out_rmse", 0.5, "sd"] == pytest.approx(float(scores.std(ddof=1)))
    assert np.isfinite(frame.loc[("svd", "–", 3)]).all()
    html = frame._repr_html_()
    assert html.count("<b>") == 2  # the best of each condition
    assert f"<b>{row['held_out_rmse', 0.2, 'mean']:.4g} ± " in html
    assert " ± " not in str(frame)
    assert frame.sort_values(("held_out_rmse", 0.2, "mean")).index[0] == ("admm", "relu", 2)
    # A selection has an ordinary HTML table
    assert "<b>" not in frame["held_out_rmse"][0.2][["mean"]]._repr_html_()


def test_rank_test_is_a_paired_comparison(prescribed):
    results = prescribed.results
    frame = rank_test(results, None, 0.9, {"missing": 0.5})
    assert frame.index[0] == ("admm", "relu", 2)
    assert frame["mean"].is_monotonic_increasing
    row = frame.loc[("svd", "–", 3)]
    score = results.held_out_rmse.sel(missing=0.5)
    difference = (
        score.sel({"algorithm": "svd", "nonlinearity": "relu", "rank": 3})
        - score.sel({"algorithm": "admm", "nonlinearity": "relu", "rank": 2})
    ).values
    assert row["difference"] == pytest.approx(difference.mean())
    # half is hidden, so the variance is (1/4 + 1) times that of a difference
    reach = difference.std(ddof=1) * np.sqrt(1 / 4 + 1) * stats.t.ppf(0.95, 3)
    assert row["low"] == pytest.approx(difference.mean() - reach)
    assert row["high"] == pytest.approx(difference.mean() + reach)
    assert row["low"] > 0
    assert row["beaten"] == 1
    tie = frame.loc[("admm", "relu", 1)]
    assert tie["low"] < 0 < tie["high"]
    assert tie["beaten"] == 0.75
    assert frame["mean_rank"].min() == frame["mean_rank"].iloc[0] == 1.25


def test_unknown_words_are_refused(prescribed):
    check_all_refused([
        ("metric='held_out_rmes'.*did you mean 'held_out_rmse'", prescribed.best, "held_out_rmes"),
        ("metric='status'", prescribed.table, "status"),
        ("did you mean 'missing'", lambda share: prescribed.best(mising=share), 0.2),
        (r"missing=0\.3 is unknown: choose one of",
         lambda share: prescribed.rank_test(missing=share), 0.3),
        ("confidence=95", lambda level: prescribed.rank_test(confidence=level), 95),
        ("holds no study", lambda results: table(results, [], {}), xr.Dataset()),
    ])  # fmt: skip


def test_plots_show_the_means(prescribed):
    plt = pytest.importorskip("matplotlib.pyplot")
    plot, results = prescribed.plot, prescribed.results
    ax = plot.error("rank", missing=0.2, color="algorithm")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["admm", "svd"]
    by_method = results.held_out_rmse.sel(missing=0.2).mean("seed")
    for line, method in zip(ax.lines, ["admm", "svd"], strict=True):
        expected = by_method.sel(algorithm=method).min("nonlinearity")
        np.testing.assert_allclose(line.get_ydata(), expected)
    assert "best nonlinearity" in ax.get_title()
    ax = plot.heatmap("missing", "rank", algorithm="admm")
    shown = np.array([float(text.get_text()) for text in ax.texts]).reshape(3, 2)
    expected = results.held_out_rmse.sel(algorithm="admm").mean("seed").min("nonlinearity")
    np.testing.assert_allclose(shown, expected.transpose("rank", "missing"), rtol=5e-3)
    ax = plot.error("nonlinearity", color="algorithm", metric="seconds")
    assert ax.get_ylabel() == "time in seconds"
    expected = results.seconds.mean(["seed", "missing"]).min("rank")
    for bars, method in zip(ax.containers[1::2], ["admm", "svd"], strict=True):
        heights = [bar.get_height() for bar in bars]
        np.testing.assert_allclose(heights, expected.sel(algorithm=method))
    with pytest.raises(ValueError, match="did you mean 'rank'"):
        plot.error("rnk")
    with pytest.raises(ValueError, match="two different"):
        plot.heatmap("rank", "rank")
    plt.close("all")


@pytest.fixture(scope="module")
def study():
    made = Study(nmd.datasets.digits(30), rank=[1, 6], alpha=1, max_iter=40, missing=[0.2, 0.3])
    made.run(progress=False)
    return made


def text_of(html):
    return "".join(ET.fromstring(html).itertext())


def test_it_says_whether_the_second_differs(study):
    results = study.results.copy(deep=True)
    assert study.rank_test()["low"].iloc[1] > 0
    assert "The second, rank 1, differs from the best" in text_of(study_html("", results))
    best = results.held_out_rmse.sel(rank=6)
    results.held_out_rmse.loc[{"rank": 1}] = best + [[-1e-3, 2e-3, 1e-3]] * 2
    assert "The second, rank 1, does not differ" in text_of(study_html("", results))
    one = results.isel(seed=[0])
    assert "one seed cannot tell" in text_of(study_html("", one))


def test_the_page_leads_with_the_best_model_and_draws_an_interval_for_each_other_as_in_print(study):
    root = ET.fromstring(study._repr_html_())
    lead = "".join(root[0].itertext())
    ranking = study.rank_test()
    assert ranking.index[0] == (6,)
    best, second = ranking["mean"]
    assert lead.startswith(f"{best:.2g} ± ")
    assert "held-out entries (mean over missing, seed): rank 6" in lead
    assert lead.endswith(f"· rank 1 {second:.2g}")
    assert len(root.findall(".//svg/circle")) == 2
    assert len(root.findall(".//svg/path")) == 1 + 1  # the line at the best, and an interval
    escaped = study.results.assign_coords(rank=["<b>one</b>", 'six"&'])
    assert "<b>one</b>" in text_of(study_html("a <b>line</b>", escaped))
    seconds = float(study.results["seconds"].sum())
    two = f"lowest held_out_rmse: rank 6 {best:.3g}, then rank 1 {second:.3g}"
    assert repr(study).endswith(f"\n  {two}; fitted in {seconds:.3g} s")
