"""`sample(noise_by="rows")`: a noise level for each row, and the law that all of them share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

import nmd_lab as nmd

QUICK = {"draws": 12, "tune": 8, "random_state": 0, "progress": False}
SETTLED = {"draws": 200, "tune": 100, "random_state": 0, "progress": False}
M, N, RANK = 80, 50, 3
CLEAN, NOISY = 0.1, 1.0


class Made(NamedTuple):
    """Data of which every fifth row has ten times the noise, with holes."""

    X: np.ndarray
    seen: np.ndarray
    sd: np.ndarray

    @property
    def given(self):
        return np.where(self.seen, self.X, np.nan)


def made(seed=0, m=M, n=N, f=lambda t: t):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(m, RANK)) @ np.random.default_rng(7).normal(size=(RANK, n))
    sd = np.where(np.arange(m) % 5 == 0, NOISY, CLEAN)
    X = f(truth + sd[:, None] * rng.normal(size=truth.shape))
    return Made(X, rng.random(X.shape) < 0.75, sd)


@pytest.fixture(scope="module")
def data():
    return made()


@pytest.fixture(scope="module")
def posteriors(data):
    return {by: nmd.sample(data.given, 6, noise_by=by, **SETTLED) for by in ("rows", "one")}


def held_out(posterior, data, level=0.9):
    """Errors, and whether intervals hold the values, of hidden cells: clean rows, noisy rows."""
    i, j = np.nonzero(~data.seen)
    x = data.X[i, j]
    low, high = posterior.predict_interval(i, j, level).T
    for rows in (data.sd[i] == CLEAN, data.sd[i] == NOISY):
        error = np.sqrt(np.mean((posterior.predict(i, j) - x)[rows] ** 2))
        yield error, np.mean((low <= x)[rows] & (x <= high)[rows]), np.mean((high - low)[rows])


def test_noisy_rows_are_found(data, posteriors):
    sd = (posteriors["rows"].draws["rho"] ** -0.5).mean(("chain", "draw"))
    np.testing.assert_allclose(sd, data.sd, rtol=0.5)
    np.testing.assert_allclose(
        np.log(sd).groupby(sd > 0.4).mean(), np.log([CLEAN, NOISY]), atol=0.1
    )


def test_intervals_hold_their_level_in_clean_rows_and_in_noisy_ones(data, posteriors):
    clean, noisy = held_out(posteriors["rows"], data)
    for _, share, _ in (clean, noisy):  # of some 800 and 200 cells
        assert abs(share - 0.9) < 0.06
    one_clean, one_noisy = held_out(posteriors["one"], data)
    assert one_clean[1] > 0.97  # one noise for all is wrong in both
    assert one_noisy[1] < 0.7
    assert clean[2] < 0.5 * one_clean[2]
    assert clean[0] < 0.7 * one_clean[0]


def test_new_rows_have_noise_of_their_own(data, posteriors):
    new = made(seed=3)
    posterior = posteriors["rows"].fold_in(new.given)
    sd = (posterior.draws["rho"] ** -0.5).mean(("chain", "draw"))
    np.testing.assert_allclose(
        np.log(sd).groupby(sd > 0.4).mean(), np.log([CLEAN, NOISY]), atol=0.1
    )
    for _, share, _ in held_out(posterior, new):
        assert abs(share - 0.9) < 0.06


def test_a_new_row_without_entries_has_noise_from_the_law_of_all(posteriors):
    posterior = posteriors["rows"]
    new = posterior.fold_in(np.full((40, N), np.nan), unknown="offsets")
    noise = np.log(new.draws["rho"].values.ravel())
    law = [np.log(posterior.draws[f"rho_{name}"].values.ravel()) for name in ("shape", "rate")]
    rng = np.random.default_rng(0)
    expected = np.log(rng.gamma(np.exp(np.tile(law[0], 40)))) - np.tile(law[1], 40)
    ours, theirs = (np.quantile(each, [0.1, 0.25, 0.5, 0.75, 0.9]) for each in (noise, expected))
    np.testing.assert_allclose(ours, theirs, atol=0.15)


def test_rows_are_the_columns_of_the_transposed_matrix():
    """Where all rows have one spread and mean, their units are those of all."""
    made_up = made(seed=5, m=20, n=80)
    X = made_up.X - made_up.X.mean(axis=1, keepdims=True)
    X /= X.std(axis=1, keepdims=True)
    X = np.where(made_up.seen, X, np.nan)
    options = SETTLED | {"draws": 400, "groups": 1}
    rows = nmd.sample(X, RANK, noise_by="rows", offsets="rows", **options)
    columns = nmd.sample(X.T, RANK, noise_by="columns", offsets="columns", **options)
    sizes = np.array([kind.size for kind in columns.kinds.kinds])
    ours = np.log(rows.draws["rho"].values[0] ** -0.5)
    theirs = np.log(columns.draws["rho"].values[0] ** -0.5 * sizes)
    np.testing.assert_allclose(ours.mean(axis=0), theirs.mean(axis=0), atol=0.1)
    np.testing.assert_allclose(ours.std(axis=0), theirs.std(axis=0), rtol=0.5)
    i, j = np.divmod(np.arange(X.size), X.shape[1])
    gap = rows.predict(i, j) - columns.predict(j, i)
    assert np.sqrt(np.mean(gap**2)) < 0.25 * np.sqrt(
        np.mean(rows.predict_std(i, j, noise=False) ** 2)
    )
    np.testing.assert_allclose(rows.predict_std(i, j), columns.predict_std(j, i), rtol=0.15)


def test_equal_rows_are_predicted_as_with_one_noise():
    """The law that levels share says that they are nearly equal."""
    rng = np.random.default_rng(2)
    truth = rng.normal(size=(100, 2)) @ rng.normal(size=(2, 12))
    X = truth + 0.5 * rng.normal(size=truth.shape)
    rows = nmd.sample(X, 3, noise_by="rows", **SETTLED)
    sd = (rows.draws["rho"] ** -0.5).mean(("chain", "draw"))
    np.testing.assert_allclose(sd, 0.5, rtol=0.35)
    one = nmd.sample(X, 3, noise_by="one", **SETTLED)
    errors = [np.sqrt(np.mean((each.reconstruct() - truth) ** 2)) for each in (rows, one)]
    assert errors[0] < 1.03 * errors[1]


# Everything that a run does ----------------------------------------------------------------------


def same(ours, theirs):
    assert ours.draws.identical(theirs.draws)
    assert ours.trace.identical(theirs.trace)


@pytest.mark.parametrize("holes", [False, True])
def test_threads_give_the_same_bits(holes):
    big = made(m=400, n=60)
    X = big.given if holes else big.X
    runs = [
        nmd.sample(X, 3, noise_by="rows", compute=nmd.Compute(threads=k), **QUICK) for k in (1, 2)
    ]
    same(*runs)


def test_a_run_is_resumed_from_its_checkpoint(data, tmp_path):
    path = tmp_path / "run.nc"
    compute = nmd.Compute(checkpoint=path, checkpoint_every=0)

    def stop(sweep):
        if sweep.sweep == 13:
            raise SystemExit

    given = {"noise_by": "rows", **QUICK}
    whole = nmd.sample(data.given, 3, **given)
    with pytest.raises(SystemExit):
        nmd.sample(data.given, 3, compute=compute, callback=stop, **given)
    resumed = nmd.resume(path, data.given, progress=False)
    assert resumed.draws.identical(whole.draws)


def test_chains_have_levels_each(data):
    posterior = nmd.sample(data.given, 3, noise_by="rows", chains=2, **QUICK)
    assert posterior.draws["rho"].shape == (2, 12, M)
    assert posterior.draws["rho_shape"].shape == (2, 12)


def test_float32(data):
    posterior = nmd.sample(data.given.astype(np.float32), 6, noise_by="rows", **SETTLED)
    assert posterior.reconstruct().dtype == np.float32
    sd = (posterior.draws["rho"] ** -0.5).mean(("chain", "draw"))
    np.testing.assert_allclose(
        np.log(sd).groupby(sd > 0.4).mean(), np.log([CLEAN, NOISY]), atol=0.1
    )


@pytest.mark.parametrize(("f", "loss"), [("identity", "frobenius"), ("relu", "l1")])
def test_multiples_of_X_have_multiples_of_the_posterior(f, loss):
    X = made(f=(lambda t: np.maximum(t, 0)) if f == "relu" else lambda t: t).given
    unit = 2.0**80
    options = {"noise_by": "rows", "dtype": "float64", **QUICK}
    small, large = (nmd.sample(s * X, 3, f, loss, **options) for s in (1.0, unit))
    np.testing.assert_allclose(large.draws["rho"] * unit**2, small.draws["rho"], rtol=1e-3)
    np.testing.assert_allclose(
        large.draws["rho_rate"] / unit**2, small.draws["rho_rate"], rtol=1e-3
    )
    if loss == "l1":
        np.testing.assert_allclose(large.draws["beta"] * unit, small.draws["beta"], rtol=1e-3)
        ratio = large.draws["beta_rate"] / unit / small.draws["beta_rate"]
        np.testing.assert_allclose(ratio, 1, rtol=1e-3)
    new = [each.fold_in(s * X[:5]) for each, s in ((small, 1.0), (large, unit))]
    ratio = new[1].predict_std(0, 0) / unit / new[0].predict_std(0, 0)
    np.testing.assert_allclose(ratio, 1, rtol=0.5)


def test_a_weight_multiplies_the_precision_of_an_entry(data):
    """Weights that are the precisions of the rows, and then the levels of all rows are alike."""
    weights = np.broadcast_to(data.sd[:, None] ** -2, data.X.shape)
    posterior = nmd.sample(data.given, 6, noise_by="rows", weights=weights, **SETTLED)
    sd = (posterior.draws["rho"] ** -0.5).mean(("chain", "draw"))
    assert abs(float(np.log(sd).mean())) < 0.1
    np.testing.assert_allclose(sd, 1, rtol=0.4)


def test_values_behind_limits_have_the_noise_of_their_row():
    """Where T is drawn below a limit, intervals for what is there hold their level."""
    whole = made(seed=4)
    below = whole.X < -0.5
    X = np.where(whole.seen, np.where(below, -0.5, whole.X), np.nan)
    at_most = below & whole.seen
    posterior = nmd.sample(X, 6, noise_by="rows", at_most=at_most, **SETTLED)
    sd = (posterior.draws["rho"] ** -0.5).mean(("chain", "draw"))
    np.testing.assert_allclose(
        np.log(sd).groupby(sd > 0.4).mean(), np.log([CLEAN, NOISY]), atol=0.15
    )
    for _, share, _ in held_out(posterior, whole):
        assert abs(share - 0.9) < 0.06


def test_the_noise_of_rows_before_and_after_f(data):
    ends = made(seed=6, f=lambda t: np.maximum(t, 0))
    one = {
        "random_state": 1
    }  # of ten chains with the noise after f, one or two stay at another fit
    for options in ({"noise": "before"} | one, {"noise": "after"} | one):
        posterior = nmd.sample(ends.given, 6, "relu", noise_by="rows", **SETTLED | options)
        for _, share, _ in held_out(posterior, ends):
            assert share > 0.83


def test_groups_of_rows(data):
    posterior = nmd.sample(data.given, 3, noise_by="rows", groups=3, **QUICK)
    assert posterior.draws.sizes["group"] == 3
    assert posterior.fitted.noise_by == "rows"


def test_ratings_with_few_entries_a_row():
    rng = np.random.default_rng(0)
    X = made(m=300, n=40).X
    X = np.where(rng.random(X.shape) < 0.1, X, np.nan)
    X[5] = np.nan
    posterior = nmd.sample(X, 4, noise_by="rows", **QUICK)
    assert np.isfinite(posterior.draws["rho"]).all()


# What it does not go with ------------------------------------------------------------------------


def test_a_table_of_several_kinds_is_refused():
    frame = pd.DataFrame({"a": np.arange(9.0), "b": np.arange(9) > 3})
    words = "noise_by='rows' does not go with columns of several kinds: leave it out"
    with pytest.raises(ValueError, match=words):
        nmd.sample(frame, 1, noise_by="rows", **QUICK)
    with pytest.raises(ValueError, match=words):
        nmd.sample(np.ones((4, 2)), 1, loss=["l1", "frobenius"], noise_by="rows", **QUICK)


def test_levels_are_refused():
    with pytest.raises(ValueError, match="noise_by='rows' does not go with ordered levels"):
        nmd.sample(np.resize([1.0, 2, 3], (6, 4)), 1, loss="ordinal", noise_by="rows", **QUICK)


def test_a_frame_of_numbers_has_one_linear_f(data):
    frame = pd.DataFrame(data.given)
    posterior = nmd.sample(frame, 3, noise_by="rows", **QUICK)
    assert posterior.kinds is None
    assert posterior.draws["rho"].dims == ("chain", "draw", *posterior.labels.rows)
