"""What `complete` and `decompose` choose: on real fits, from the data to `fit.selection`."""

import math
import signal
import sys
from functools import cache

import numpy as np
import pandas as pd
import pytest
from helpers import some
from sklearn.datasets import load_digits

import nmd_lab as nmd
from nmd_lab.selection import choice as duration
from nmd_lab.selection.trials import Trials

TRIALS = 200


def table(shape=(40, 30), noise=0.2, share=0.6, seed=0, offsets=True):
    """Return a table of sums and products, and what is observed of it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(shape[0], 2)) @ rng.normal(size=(2, shape[1]))
    if offsets:
        X += 3 + rng.normal(size=shape[0])[:, None] + rng.normal(size=shape[1])
    X += noise * rng.normal(size=shape)
    return X, rng.random(shape) < share


def holes(*arguments, **options):
    X, seen = table(*arguments, **options)
    return np.where(seen, X, np.nan)


def rmse(fit, X, at):
    return nmd.metrics.rmse(X, fit.reconstruct().values, observed=at)


@cache
def default():
    return nmd.complete(holes(), random_state=0)


# What is chosen -----------------------------------------------------------------------------------


def test_the_choice_is_good_and_recorded():
    X, seen = table()
    fit = default()
    options = {"observed": seen, "offsets": "both"}
    fits = (nmd.complete(X, 2, alpha=alpha, **options) for alpha in (0.1, 0.3, 1, 3))
    assert rmse(fit, X, ~seen) < 1.2 * min(rmse(each, X, ~seen) for each in fits)
    trials, parameters = fit.selection, fit.parameters
    row = trials.isel(trial=trials.attrs["chosen"])
    for name in ("rank", "alpha", "offsets", "offset_alpha"):
        assert row[name] == parameters[name]
    assert row["nonlinearity"] == repr(fit.nonlinearity)
    assert 5 < trials.sizes["trial"] <= TRIALS
    assert trials.attrs["held_out_drawn"] == "at random"
    assert set(trials.attrs["options"].split(", ")) == {"rank", "alpha", "offsets", "offset_alpha"}
    assert float(row["error"]) <= 1.01 * float(trials["error"].min())
    assert float(row["error"]) == pytest.approx(rmse(fit, X, ~seen), rel=0.3)


def test_a_given_alpha_needs_no_choice():
    X, seen = table()
    plain = nmd.complete(X, 2, observed=seen, alpha=0.3, random_state=0)
    settings = {"alpha": 0.3, "offsets": "none", "offset_alpha": 0.3}
    same = nmd.complete(X, 2, "identity", observed=seen, **settings, random_state=0)
    np.testing.assert_array_equal(plain.reconstruct().values, same.reconstruct().values)
    assert plain.selection.sizes["trial"] == 0
    assert {name: plain.parameters[name] for name in settings} == settings
    assert plain.nonlinearity == nmd.Identity()


def test_few_held_out_entries_and_a_rank_at_the_cap_are_told(monkeypatch):
    fit = nmd.complete(holes((20, 15)), random_state=0)
    assert 0 < fit.selection.attrs["held_out_entries"] < 500
    assert f"Only {fit.selection.attrs['held_out_entries']} entries" in repr(fit)
    assert default().selection.attrs["note"] == ""
    monkeypatch.setattr("nmd_lab.request.options.RANKS", (1,))
    assert "is the largest that is tried" in repr(nmd.complete(holes(), random_state=0))


def test_noise_without_holes_is_removed():
    rng = np.random.default_rng(0)
    clean = np.maximum(rng.normal(size=(40, 2)) @ rng.normal(size=(2, 30)), 0)
    X = np.maximum(clean + 0.5 * rng.normal(size=clean.shape), 0)
    plain = nmd.decompose(X, 8, random_state=0)
    fit = nmd.decompose(X, 8, alpha="auto", random_state=0)
    assert fit.parameters["alpha"] > 0
    assert rmse(fit, clean, clean >= 0) < 0.8 * rmse(plain, clean, clean >= 0)


def test_the_rank_of_a_decomposition():
    X, _ = table(noise=0.1, offsets=False)
    fit = nmd.decompose(np.maximum(X, 0), random_state=0)
    assert 1 <= fit.parameters["rank"] <= 4
    assert fit.parameters["alpha"] == 0
    assert fit.selection.attrs["options"] == "rank"


# Units, seeds, precision --------------------------------------------------------------------------


@pytest.mark.parametrize("scale", some([1e-3, 1e3, 1024.0], 1))
def test_multiples_of_the_data_give_the_same_choice(scale):
    one, other = default(), nmd.complete(holes() * scale, random_state=0)
    assert other.parameters["offsets"] == one.parameters["offsets"]
    for name, unit in (("rank", 1), ("alpha", scale), ("offset_alpha", 1)):
        assert other.parameters[name] == pytest.approx(unit * one.parameters[name], rel=1e-6)
    errors = other.selection["error"].values / scale
    # After a path of ridges, small components grow from little more than rounding errors.
    np.testing.assert_allclose(errors, one.selection["error"].values, rtol=1e-4)
    predictions = other.reconstruct().values / scale
    np.testing.assert_allclose(predictions, one.reconstruct().values, rtol=1e-6, atol=1e-6)


# Ends before the end ------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [0.0, 0.1, 1.0, 4.0])
def test_a_time_limit_is_for_trials_and_fit(limit, clock):
    fit = nmd.complete(holes(), time_limit=limit, max_iter=10**6, tol=0, random_state=0)
    assert fit.stop_reason == f"time_limit: {limit:g} s passed"
    assert fit.parameters["time_limit"] == limit
    trials = fit.selection
    assert trials.sizes["trial"] >= 1
    assert float(trials["seconds"].sum()) <= 0.5 * limit + 1.0
    assert "stopped" in trials.attrs["reason"]


@pytest.mark.parametrize("trial", [1, 2, 7])
def test_ctrl_c_gives_the_best_trial_so_far_if_there_is_one(trial, monkeypatch, interactive):
    run, count = Trials.run, []

    def interrupted(self, *arguments, **options):
        count.append(1)
        if len(count) == trial:
            signal.raise_signal(signal.SIGINT)
        return run(self, *arguments, **options)

    monkeypatch.setattr(Trials, "run", interrupted)
    if trial == 1:
        with pytest.raises(KeyboardInterrupt):
            nmd.complete(holes(), random_state=0)
        return
    fit = nmd.complete(holes(), random_state=0)
    assert fit.stop_reason.code == "interrupted"
    assert np.isfinite(fit.reconstruct().values).all()
    assert trial <= fit.selection.sizes["trial"] <= trial + 4
    assert "stopped" in fit.selection.attrs["reason"]


def test_a_callback_sees_the_fit_alone():
    states = []
    fit = nmd.complete(holes(), 2, callback=states.append, random_state=0)
    assert [state.iteration for state in states] == list(range(1, fit._n_iter + 1))


# Odd data -----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NMDWarning")
@pytest.mark.parametrize(
    "X",
    [np.array([[2.0]]), np.array([[2.0, 2, 2, 2]]), np.array([[2.0], [2.0], [2.0]]),
     np.where(np.eye(6) > 0, 2.0, np.nan)],
    ids=["1 x 1", "1 x n", "n x 1", "diagonal"],
)  # fmt: skip
def test_nothing_can_be_held_out(X):
    fit = nmd.complete(X, random_state=0)
    assert fit.selection.sizes["trial"] == 0
    assert fit.parameters["rank"] == 1
    assert math.isfinite(fit.parameters["alpha"])
    np.testing.assert_allclose(fit.reconstruct().values, 2.0, rtol=0.1)  # and not half of it


def test_one_entry_can_be_held_out():
    fit = nmd.complete(np.array([[1.0, 2.0], [3.0, 4.0]]), random_state=0)
    assert fit.selection.attrs["held_out_entries"] == fit.selection.attrs["held_out_parts"]
    assert np.isfinite(fit.reconstruct().values).all()


@pytest.mark.filterwarnings("ignore:all observed values are equal")
@pytest.mark.parametrize(("value", "share"), [(0.0, 0.5), (3.0, 0.5), (-3e-5, 1.0)])
def test_a_constant_is_found_in_few_trials(value, share):
    seen = np.random.default_rng(0).random((12, 10)) < share
    fit = nmd.complete(np.full((12, 10), value), observed=seen, random_state=0)
    np.testing.assert_allclose(fit.reconstruct().values, value, rtol=1e-3, atol=1e-12)
    assert fit.parameters["rank"] == 1
    assert fit.selection.sizes["trial"] <= TRIALS // 4


@pytest.mark.filterwarnings("ignore::nmd_lab.warnings.UnobservedWarning")  # if there are no offsets
def test_empty_rows_and_columns_get_finite_predictions():
    X = holes()
    X[3], X[:, 4] = np.nan, np.nan
    fit = nmd.complete(X, 2, random_state=0)
    assert np.isfinite(fit.reconstruct().values).all()


# Refusals -----------------------------------------------------------------------------------------


def test_what_does_not_fit_is_refused_before_work(monkeypatch):
    monkeypatch.setattr("nmd_lab._runtime.machine.free_memory", lambda: 10**6)
    monkeypatch.setattr(Trials, "run", lambda *_: pytest.fail("a trial was done"))
    with pytest.raises(MemoryError):
        nmd.complete(holes(shape=(500, 400)), 3)


def test_given_factors_give_the_rank():
    fit = nmd.complete(holes(), init=(np.ones((40, 3)), np.ones((3, 30))), random_state=0)
    assert fit.parameters["rank"] == 3
    assert "rank" not in fit.selection.attrs["options"]


# Repeating a choice -------------------------------------------------------------------------------


def survey(m=200, n=6, seed=0):
    """Return a table of ordered answers, with holes, and what is at all entries."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(m, 1)) @ rng.normal(size=(1, n)) + 0.7 * rng.normal(size=(m, n))
    levels = np.searchsorted([-1.0, 0.0, 1.0], scores)
    seen = rng.random((m, n)) < 0.8
    answers = pd.DataFrame(np.where(seen, levels, np.nan)).add_prefix("q")
    return answers.astype(pd.CategoricalDtype(range(4), ordered=True)), levels, seen


@cache
def of_survey():
    return nmd.complete(survey()[0], random_state=0)


def test_a_survey_is_not_overfitted():
    """The ridge is that of the fit, which learns cut points, and not one of factors at rest."""
    (table, levels, seen), fit = survey(), of_survey()
    filled = fit.impute(table).astype(float).to_numpy()
    median = np.nanmedian(np.where(seen, levels, np.nan), axis=0)
    guesses = filled, median + 0 * seen
    error, simple = (nmd.metrics.rmse(levels, y, observed=~seen) for y in guesses)
    assert error < 0.9 * simple
    assert fit.parameters["alpha"] > 0.1


@pytest.mark.parametrize("kind", ["array", "relu", "survey", "numbers", "picture", "limits"])
def test_what_was_chosen_repeats_the_fit(kind):
    X = {
        "array": holes(),
        "relu": np.maximum(holes() - 3, 0),
        "survey": survey()[0],
        "numbers": pd.DataFrame(holes()[:, :8] * np.arange(1, 9)),
        "picture": picture()[0],
        "limits": np.maximum(holes(), 2),
    }[kind]
    given = {"at_most": holes() < 2} if kind == "limits" else {}
    made = {"survey": of_survey, "picture": of_picture, "array": default}.get(kind)
    fit = made() if made else nmd.complete(X, random_state=0, **given)
    again = nmd.complete(X, **fit.chosen, **given, random_state=1)
    assert again.selection.sizes["trial"] == 0
    for name in ("rank", "alpha", "offsets", "offset_alpha"):
        assert again.parameters[name] == fit.parameters[name]
    one, other = (each.reconstruct().values for each in (fit, again))
    np.testing.assert_allclose(other, one, rtol=1e-6, atol=1e-6 * np.abs(one).max())


def test_a_choice_for_data_without_noise_repeats():
    """Only factors that came along a path have such an error with so weak a ridge."""
    rng = np.random.default_rng(2)
    X = 0.3 * rng.normal(size=(80, 3)) @ rng.normal(size=(3, 50))
    X += 5 + rng.normal(size=(80, 1)) + rng.normal(size=50)
    seen = rng.random(X.shape) > 0.25
    fit = nmd.complete(np.where(seen, X, np.nan), random_state=2)
    again = nmd.complete(np.where(seen, X, np.nan), **fit.chosen, random_state=9)
    for each in (fit, again):
        assert rmse(each, X, ~seen) < 0.01


@pytest.mark.parametrize("kind", ["classes", "levels"])
def test_a_table_with_classes_or_levels_chooses_its_ridge_only(kind):
    X, _, _ = survey()
    if kind == "classes":
        X = X.astype(object).where(X.notna(), None).astype("category")
    fit = of_survey() if kind == "levels" else nmd.complete(X, random_state=0)
    trials = fit.selection
    assert set(trials["rank"].values.tolist()) == {min(fit._shape)}
    assert set(trials["offsets"].values.tolist()) == {"none"}
    assert len(set(trials["alpha"].values.tolist())) > 3
    few = nmd.complete(X, random_state=0, validation=nmd.Choice(ranks=[1, 2]))
    assert few.parameters["rank"] in (1, 2)


def picture(share=0.5, seed=0):
    """Return digits of scikit-learn, of which a fraction of the pixels is hidden, and the mask."""
    X = load_digits().data[:400]
    hidden = np.random.default_rng(seed).random(X.shape) < share
    return np.where(hidden, np.nan, X), hidden


@cache
def of_picture():
    return nmd.complete(picture()[0], random_state=0)


def test_a_fit_of_pictures_ends_early_after_a_path_of_ridges():
    (X, hidden), fit = picture(), of_picture()
    assert fit.chosen["init"] == "path"
    assert fit._n_iter == fit.chosen["max_iter"] < 60
    settings = {k: v for k, v in fit.chosen.items() if k not in ("init", "max_iter", "tol")}
    converged = nmd.complete(X, **settings)
    truth = load_digits().data[:400]
    assert rmse(fit, truth, hidden) < 0.99 * rmse(converged, truth, hidden)


def test_a_learned_model_is_not_that_of_another_loss():
    """Cut points of the trials with one f do not stand for another f."""
    rng = np.random.default_rng(0)
    X = np.digitize(rng.normal(size=(30, 2)) @ rng.normal(size=(2, 8)), [-1.0, 0.0, 1.0]) + 1.0
    X[rng.random(X.shape) < 0.2] = np.nan
    few = nmd.Choice(alphas=[0.1, 1.0])
    fit = nmd.complete(X, 2, loss="ordinal", validation=few, random_state=0)
    again = nmd.complete(X, **fit.chosen, random_state=0)
    assert again.nonlinearity == fit.nonlinearity == nmd.Identity()
    other = fit.selection["nonlinearity"] != "Identity()"
    assert fit.selection["error"][other].min() > 2 * fit.selection["error"].min()


def test_a_choice_that_had_ended_is_not_repeated(tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(30, 2)) @ np.ones((2, 8))
    whole = nmd.complete(X, random_state=0)
    compute = nmd.Compute(checkpoint=tmp_path / "run", checkpoint_every=0)
    with pytest.raises(SystemExit):
        nmd.complete(X, random_state=0, compute=compute, callback=sys.exit)
    monkeypatch.setattr("nmd_lab.api.fits.choose", None)
    fit = nmd.resume(tmp_path / "run", X)
    np.testing.assert_array_equal(fit.W, whole.W)
    np.testing.assert_array_equal(fit.selection["error"], whole.selection["error"])


def said(monkeypatch, capsys, least=0.0, **options):
    """Return a fit and what is printed, if a choice of so many seconds counts as long."""
    monkeypatch.setattr(duration, "MIN_SECONDS_TOLD", least)
    fit = nmd.complete(holes((30, 12), 0.3, 0.8, offsets=False), random_state=0, **options)
    return fit, capsys.readouterr().err


def test_a_long_choice_is_announced_once_or_by_a_bar_and_a_short_one_never(monkeypatch, capsys):
    text = said(monkeypatch, capsys)[1]
    assert text.count("The choice of settings takes about") == 1
    assert "time_limit=" in text
    assert said(monkeypatch, capsys, least=1e9)[1] == ""
    assert said(monkeypatch, capsys, progress=False)[1] == ""
    fit, text = said(monkeypatch, capsys, progress=True)
    assert f"{fit.selection.sizes['trial']}trial" in text
    assert "in all" in text
    assert "The choice of settings" not in text


def test_a_time_limit_bounds_what_is_said(monkeypatch, capsys):
    monkeypatch.setattr(duration, "N_FULL_ITERATIONS", 1e9)
    text = said(monkeypatch, capsys, least=1.0, time_limit=120.0)[1]
    assert "takes about 60 s;" in text  # half of the limit is for the choice
