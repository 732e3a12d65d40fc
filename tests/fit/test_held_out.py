"""Held-out entries: at least one, none of them fitted, chosen by a stream of their own.

What `validation` hides: masks in every form, blocks, groups by name.
"""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from helpers import mask_of, stored
from scipy import sparse, stats
from scipy.special import kl_div
from sklearn.model_selection import GroupKFold

import nmd_lab as nmd
from nmd_lab.data.inputs import GivenLimits, observe
from nmd_lab.fit.held_out import HeldOut, hold_out, row_losses
from nmd_lab.fit.summary import describe
from nmd_lab.model.model import make_model
from nmd_lab.request.options import Options

OPTIONS = {"alpha": 0, "max_iter": 5, "random_state": 0}


@pytest.fixture
def X(rng):
    return rng.random((20, 3)) @ rng.random((3, 15))


@pytest.fixture
def held(X, rng):
    return np.where(rng.random(X.shape) < 0.1, X, np.nan)


# Fractions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [np.float32(0.1), np.float64(0.1), 0.1])
def test_a_share_is_any_real_number(X, share):
    fit = nmd.complete(X, 2, validation=share, **OPTIONS)
    assert fit.parameters["n_observed"] == 270
    assert type(fit.parameters["validation"]) is float


def test_one_entry_is_held_out_where_that_is_possible():
    X = np.where(np.eye(6) > 0, 2.0, np.nan)
    X[0, 1] = 3.0
    X[1, 0] = 3.0
    fit = nmd.complete(X, 1, validation=0.01, **OPTIONS)
    assert fit.parameters["n_observed"] == 7
    assert np.isfinite(fit.history["validation_rmse"]).all()


# Given entries -----------------------------------------------------------------------------------


def same(one, two):
    np.testing.assert_array_equal(one.W.values, two.W.values)
    np.testing.assert_array_equal(one.history["validation_rmse"], two.history["validation_rmse"])


def test_given_entries_are_not_fitted(X, held):
    apart = nmd.complete(np.where(np.isnan(held), X, np.nan), 2, validation=held, **OPTIONS)
    same(nmd.complete(X, 2, validation=held, **OPTIONS), apart)
    same(nmd.decompose(X, 2, "identity", validation=held, **OPTIONS), apart)
    same(nmd.complete(X, 2, validation=stored(held), **OPTIONS), apart)


def test_given_entries_go_by_label(X, held):
    names = [f"r{i}" for i in range(20)]
    frame, entries = pd.DataFrame(X, index=names), pd.DataFrame(held, index=names)
    fit = nmd.complete(frame, 2, validation=entries, **OPTIONS)
    same(nmd.complete(frame, 2, validation=entries.iloc[::-1], **OPTIONS), fit)
    array = xr.DataArray(X.reshape(20, 5, 3), dims=("time", "lat", "lon"))
    given = xr.DataArray(held.reshape(20, 5, 3), dims=("time", "lat", "lon"))
    same(
        nmd.complete(array, 2, sample_dims="time", validation=given.transpose(), **OPTIONS),
        nmd.complete(X, 2, validation=held, **OPTIONS),
    )
    with pytest.raises(ValueError, match=r"^validation has other labels along 'row'"):
        nmd.complete(frame, 2, validation=entries.rename(index=str.upper), **OPTIONS)


def test_validation_is_the_rmse_of_each_iteration_and_ends_a_fit_that_learns_noise(X, rng):
    Y, entries, errors = X + 0.3 * rng.normal(size=X.shape), rng.random(X.shape) < 0.1, []

    def record(state):
        errors.append(np.sqrt(np.mean((state.W_aug @ state.H_aug - Y)[entries] ** 2)))

    options = {"offsets": "both", "alpha": 0, "max_iter": 15, "callback": record}
    options |= {"validation": np.where(entries, Y, np.nan), "solver": nmd.ADMM(patience=100)}
    fit = nmd.complete(Y, 2, **options)
    np.testing.assert_allclose(fit.history["validation_rmse"], errors, rtol=1e-10)
    assert fit.parameters["iteration"] == int(np.argmin(errors)) + 1
    error = nmd.metrics.rmse(Y, fit.reconstruct(), observed=entries)
    assert error == pytest.approx(min(errors))
    options = {"alpha": 0, "validation": 0.3, "max_iter": 300, "random_state": 0}
    noise = nmd.complete(rng.normal(size=(60, 50)), 8, **options, solver=nmd.ADMM(patience=4))
    assert noise.stop_reason == "validation: no lower error for 4 iterations"
    assert noise._n_iter == noise.parameters["iteration"] + 4


# Metrics -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_trials_are_judged_by_the_metric(X, held, weighted):
    weights = np.random.default_rng(5).uniform(0.5, 2, size=X.shape) if weighted else None
    factors = np.random.default_rng(6).normal(size=(X.shape[0], 2)), np.ones((2, X.shape[1]))
    observations = observe(X, weights=weights)
    rows, columns, x = observations.entries()
    score = HeldOut(observations.as_sparse(), make_model("relu", "l1"))
    model = np.maximum(factors[0] @ factors[1], 0)[rows, columns]
    w = 1.0 if weights is None else weights[rows, columns]
    scale = np.mean(np.abs(x - model))
    expected = {
        "deviance": np.abs(x - model),
        "mae": np.abs(x - model),
        "rmse": (x - model) ** 2 / 2,
        "log_score": -stats.laplace.logpdf(x - model, scale=scale),
    }
    for metric, each in expected.items():
        np.testing.assert_allclose(score.scores(*factors, metric), w * each, rtol=1e-10)


def test_a_held_out_level_that_is_a_limit_has_the_probability_of_all_levels_below():
    levels, at_most = np.array([[0.0, 1.0, 0.0], [1.0, 2.0, 1.0]]), np.eye(2, 3) > 0
    W, H = np.array([[0.3], [-0.8]]), np.array([[1, 0.5, 2]])
    cuts = np.array([-np.inf, -1, 1, np.inf])
    observations = observe(levels, limits=GivenLimits(at_most)).as_sparse()
    model = make_model("identity", nmd.losses.Ordinal([0, 1, 2], [-1, 1]))
    found = HeldOut(observations, model).scores(W, H, "deviance")
    k, t = levels.astype(int), W @ H
    below = np.where(at_most, 0, stats.norm.cdf(cuts[k] - t))
    np.testing.assert_allclose(found, -np.log(stats.norm.cdf(cuts[k + 1] - t) - below).ravel())


@pytest.mark.parametrize(
    ("metric", "measure", "error"),
    [("rmse", "root mean squared error", nmd.metrics.rmse),
     ("mae", "mean absolute error", nmd.metrics.mae)],
)  # fmt: skip
def test_the_error_of_a_trial_is_that_of_its_metric(rng, metric, measure, error):
    """The chosen trial is near the fit, which has not seen its held-out entries either."""
    X = rng.random((60, 2)) @ rng.random((2, 30)) + 0.1 * rng.standard_normal((60, 30))
    mask = rng.random(X.shape) < 0.15
    given = {"validation": nmd.Choice(splitter=mask, ranks=[2], metric=metric), "random_state": 0}
    fit = nmd.complete(X, "auto", "identity", "l1", **given, solver=nmd.ADMM(patience=200))
    trial = fit.selection.isel(trial=fit.selection.attrs["chosen"])
    now = error(X[mask], fit.reconstruct().values[mask])
    assert fit.selection.attrs["measure"] == measure
    assert float(trial["error"]) == pytest.approx(now, rel=0.1)  # the other metric: a quarter


# Streams -----------------------------------------------------------------------------------------


def test_the_choice_and_the_start_have_streams_of_their_own(X, monkeypatch):
    """What the start draws is not what the choice drew."""
    from nmd_lab.fit import held_out

    used, split = [], held_out.split
    spy = lambda observations, share, rng: used.append(rng) or split(observations, share, rng)  # noqa: E731
    monkeypatch.setattr(held_out, "split", spy)
    given = np.random.default_rng(0)
    nmd.complete(X, 2, init="random", alpha=0, validation=0.1, max_iter=2, random_state=given)
    assert used[0] is not given
    assert used[0].bit_generator.state["state"] != given.bit_generator.state["state"]


def test_a_generator_goes_on_reproducibly(X):
    options = {"init": "random", "validation": 0.2, "max_iter": 2, "alpha": 0}
    one, two = (np.random.default_rng(3) for _ in "ab")
    fits = [nmd.complete(X, 2, **options, random_state=rng) for rng in (one, one, two, two)]
    same(fits[0], fits[2])
    same(fits[1], fits[3])
    assert not np.array_equal(fits[0].W, fits[1].W)


# The constraint ----------------------------------------------------------------------------------


def test_the_constraint_does_not_depend_on_what_is_held_out(rng):
    X = rng.random((30, 20))
    X[rng.random(X.shape) >= 0.36] = np.nan
    share = np.isfinite(X).mean()
    assert 1 / 3 < share < 1 / 3 / 0.85
    options = OPTIONS | {"alpha": 0.1}
    plain = nmd.complete(X, 1, **options)
    held = nmd.complete(X, 1, validation=0.15, **options)
    assert held.parameters["n_observed"] < X.size / 3
    assert plain.parameters["split"] == held.parameters["split"] == "everywhere"


def test_a_count_at_a_mean_of_0_has_a_finite_error_that_its_row_justifies(X):
    """The independent means have the share of one entry in those of the row and one more."""
    counts = np.random.default_rng(4).poisson(3 * X).astype(float)
    W, H = np.zeros((X.shape[0], 1)), np.ones((1, X.shape[1]))
    observations = observe(counts)
    score = HeldOut(observations.as_sparse(), make_model("identity", "kl"), observations)
    (m, n), mean = X.shape, counts.mean()
    of_rows, of_columns = (counts.sum(1) + mean) / (n + 1), (counts.sum(0) + mean) / (m + 1)
    expected = np.outer(of_rows, of_columns) / mean / (n + 1)
    found = score.scores(W, H, "deviance").reshape(X.shape)
    wanted = stats.poisson.logpmf(counts, np.maximum(counts, 1e-300))
    np.testing.assert_allclose(found, wanted - stats.poisson.logpmf(counts, expected), rtol=1e-9)


def test_rows_of_counts_are_judged_with_one_more_event_of_all_columns(rng):
    held, rest = rng.poisson(2.0, (2, 9, 6)).astype(float)
    W, H = rng.random((9, 2)), rng.random((2, 6))
    share = (rest.sum(axis=0) + 0.5) / (rest.sum() + 3)
    expected = {"kl": kl_div(held, W @ H + share), "frobenius": 0.5 * (held - W @ H) ** 2}
    for loss, of_entries in expected.items():
        data = (observe(sparse.csr_array(each), absent_are_zeros=True) for each in (held, rest))
        found = row_losses(*data, make_model("identity", loss), W, H)
        np.testing.assert_allclose(found, of_entries.mean(axis=1), rtol=1e-12)


RNG = np.random.default_rng(0)
HOLED = RNG.normal(size=(12, 8))
HOLED[RNG.random(HOLED.shape) < 0.2] = np.nan
MASK = RNG.random(HOLED.shape) < 0.2
EXPECTED = MASK & np.isfinite(HOLED)
FRAME = pd.DataFrame(HOLED, index=list("abcdefghijkl"), columns=list("pqrstuvw"))


def held_by(data, validation, **how):
    """Return what is held out, with a mask of it."""
    observations, rng = observe(data, **how), np.random.default_rng(0)
    options = Options(validation=validation, alpha="auto")
    known = describe(observations, None, options, is_table=False)
    found = hold_out(known, data, options, rng)
    return found, found.held_out and mask_of(found.held_out)


FRAME_MASK = pd.DataFrame(MASK, index=FRAME.index, columns=FRAME.columns)
ARRAY = xr.DataArray(HOLED.reshape(3, 4, 8), dims=("year", "month", "place"))


@pytest.mark.parametrize(
    ("data", "mask", "how"),
    [
        (HOLED, MASK, {}),
        (HOLED, MASK.tolist(), {}),
        (HOLED, sparse.csr_array(MASK), {}),
        (FRAME, MASK, {}),
        (FRAME, FRAME_MASK.iloc[::-1, ::-1], {}),
        (FRAME, FRAME_MASK.astype("boolean"), {}),
        (sparse.csr_array(np.nan_to_num(HOLED)), sparse.csr_array(MASK), {}),
        (sparse.csr_array(np.nan_to_num(HOLED)), MASK, {}),
        (ARRAY, MASK.reshape(3, 4, 8), {"sample_dims": ("year", "month")}),
        (ARRAY, ARRAY.copy(data=MASK.reshape(3, 4, 8)).T, {"sample_dims": ("year", "month")}),
    ],
)
def test_a_mask_hides_observed_entries_of_the_last_fit(data, mask, how):
    found, hidden = held_by(data, mask, **how)
    np.testing.assert_array_equal(hidden, EXPECTED)
    np.testing.assert_array_equal(mask_of(found.observations), np.isfinite(HOLED) & ~EXPECTED)
    assert [fold.held_out.n_observed for fold in found.folds] == [EXPECTED.sum()]
    assert found.drawn == "given"


def test_masks_judge_the_choice_and_the_last_fit_has_all_entries():
    other = MASK[::-1]
    found, hidden = held_by(HOLED, [MASK, FRAME_MASK.to_numpy()[::-1]])
    assert hidden is None
    assert found.observations.n_observed == np.isfinite(HOLED).sum()
    for fold, mask in zip(found.folds, (MASK, other), strict=True):
        np.testing.assert_array_equal(mask_of(fold.held_out), mask & np.isfinite(HOLED))
        np.testing.assert_array_equal(mask_of(fold.rest), np.isfinite(HOLED) & ~mask)


def test_a_mask_of_a_table_hides_whole_categories():
    frame = pd.DataFrame({"x": [1.0, 2, 3, 4], "kind": pd.Categorical(list("abca"))})
    mask = np.array([[False, True], [True, False], [False, False], [False, True]])
    _, hidden = held_by(frame, mask)
    np.testing.assert_array_equal(hidden[:, 0], mask[:, 0])
    np.testing.assert_array_equal(hidden[:, 1:], np.repeat(mask[:, 1:], 3, axis=1))


def test_blocks_are_moved_holes():
    data = np.random.default_rng(3).normal(size=(40, 10))
    data[::4, :3] = np.nan
    data[1::8, 6:8] = np.nan
    found, hidden = held_by(data, "blocks")
    assert hidden is None
    assert found.drawn == "as the missing entries are"
    for fold in found.folds:
        assert set(fold.held_out.as_sparse().indices) <= {0, 1, 2, 6, 7}


# Groups -------------------------------------------------------------------------------------------

GROUPS = np.tile([0, 1, 2, 1], 3)
BY_INDEX = FRAME.set_index(pd.Index(GROUPS, name="who"), append=True)
LABELLED = xr.DataArray(
    HOLED, dims=("time", "place"), coords={"who": ("time", list("xyzy") * 3), "time": np.arange(12)}
)


GROUPED = {
    "array": (HOLED, GROUPS),
    "list": (HOLED, GROUPS.tolist()),
    "text": (HOLED, np.array(["one", "two", "three"], dtype=object)[GROUPS]),
    "series": (FRAME, pd.Series(GROUPS, index=FRAME.index)[::-1]),
    "index level": (BY_INDEX, "who"),
    "level with the name of a dimension": (BY_INDEX.rename_axis(index=["visit", "row"]), "row"),
    "column": (FRAME.assign(who=GROUPS * 1.0), "who"),
    "coordinate": (LABELLED, "who"),
    "one dimension of two": (ARRAY.assign_coords(who=("month", list("xyzy"))), "who"),
}


@pytest.mark.parametrize(("data", "groups"), GROUPED.values(), ids=GROUPED)
def test_groups_are_labels_or_a_name(data, groups):
    how = {"sample_dims": ("year", "month")} if data.ndim == 3 else {}
    found, _ = held_by(data, nmd.Choice(splitter=GroupKFold(3), groups=groups), **how)
    of_folds = {tuple(np.unique(GROUPS[fold.held_out.rows])) for fold in found.folds}
    assert of_folds == {(0,), (1,), (2,)}
