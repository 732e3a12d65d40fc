"""`sample` from outside: bits, units, kinds of input and of columns, and how it ends."""

import signal

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from helpers import DAYS, people, some, with_holes
from made_runs import bits_of

import nmd_lab as nmd

QUICK = {"draws": 12, "tune": 8, "random_state": 0, "progress": False}


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(1)
    truth = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 20)) + 1
    return truth + 0.2 * rng.normal(size=truth.shape)


@pytest.fixture(scope="module")
def holed(X):
    return np.where(np.random.default_rng(2).random(X.shape) < 0.3, np.nan, X)


# Bits -------------------------------------------------------------------------------------------


RNG = np.random.default_rng(0)
WHOLE = RNG.normal(size=(600, 80))  # so many that two threads share the work
HOLED = np.where(RNG.random(WHOLE.shape) < 0.4, np.nan, WHOLE)
SINGLE = HOLED.astype(np.float32)
TABLE = with_holes(people(178))
IN_ORDER = {"order": np.arange(600)}
REPEATED = {
    "whole": (WHOLE, 3, {}),
    "holes": (HOLED, 3, {}),
    "laplace": (WHOLE, 3, {"nonlinearity": "relu", "loss": "l1"}),
    "laplace with holes": (HOLED, 3, {"nonlinearity": "relu", "loss": "l1"}),
    "in order": (HOLED, 3, IN_ORDER),
    "in order in single precision": (SINGLE, 3, IN_ORDER),
    "table": (TABLE, "auto", {"draws": 40, "tune": 5}),
    "table in order": (TABLE.set_axis(DAYS[:178]), "auto", {"draws": 40, "tune": 5}),
}


@pytest.mark.parametrize("case", REPEATED)
def test_bits_depend_on_the_seed_and_not_on_the_number_of_threads(case):
    X, rank, options = REPEATED[case]
    before, given = X.copy(), QUICK | {"draws": 3, "tune": 1, "rank": rank} | options
    one, two, other = (
        nmd.sample(X, **given | {"random_state": seed}, compute=nmd.Compute(threads=threads))
        for seed, threads in ((0, 1), (0, 2), (1, 1))
    )
    assert bits_of(one) == bits_of(two) != bits_of(other)
    assert one.parameters["dtype"] == ("float32" if X is SINGLE else "float64")
    pd.testing.assert_frame_equal(pd.DataFrame(X), pd.DataFrame(before))


def test_chains_are_different_and_the_first_does_not_depend_on_their_number(holed):
    one = nmd.sample(holed, 2, **QUICK)
    two = nmd.sample(holed, 2, chains=2, **QUICK)
    xr.testing.assert_identical(one.draws.isel(chain=0), two.draws.isel(chain=0))
    assert not np.allclose(two.draws["rho"][0], two.draws["rho"][1])


def test_float32(holed):
    single = nmd.sample(holed.astype(np.float32), 2, **QUICK | {"draws": 200})
    double = nmd.sample(holed, 2, **QUICK | {"draws": 200})
    assert single.draws["W"].dtype == np.float32
    assert single.predict(0, 0).dtype == single.reconstruct().dtype == np.float32
    spread = double.predict_std([0, 5], [3, 7])
    assert np.all(np.abs(single.predict([0, 5], [3, 7]) - double.predict([0, 5], [3, 7])) < spread)
    again = nmd.sample(holed, 2, dtype="float32", **QUICK | {"draws": 200})
    assert bits_of(single) == bits_of(again)


# Units ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nonlinearity", "loss"),
    [("identity", "frobenius"), ("relu", "frobenius"), ("relu", "l1"), ("modulus", "frobenius")],
)
@pytest.mark.parametrize("factor", [4.0, 2.0**-90, 1e-30, 1e60])
def test_multiples_of_the_data_have_multiples_of_the_posterior(X, nonlinearity, loss, factor):
    own, theirs = (
        nmd.sample(data, 2, nonlinearity, loss, noise="auto", **QUICK) for data in (X, factor * X)
    )
    entries = [0, 7, 29], [3, 11, 19]
    power_of_two = np.frexp(factor)[0] == 0.5
    spread = own.predict_std(*entries)
    for name in ("predict", "predict_std"):
        expected, found = (getattr(posterior, name)(*entries) for posterior in (own, theirs))
        if power_of_two and nonlinearity == "identity":
            np.testing.assert_allclose(found / factor, expected, rtol=1e-6)
        assert np.all(np.abs(found / factor - expected) < 3 * spread)


@pytest.mark.parametrize("size", some([1e4, 1e7], 1))
def test_large_counts_are_as_exact_as_poisson_noise(size):
    """The larger ones are sampled in another unit, in which a count is no Poisson number."""
    rng = np.random.default_rng(0)
    mean = size * np.outer(rng.uniform(0.5, 1, 40), rng.uniform(0.5, 1, 30))
    counts = rng.poisson(mean).astype(float)
    given = {"offsets": "none", "init": "svd"} | QUICK | {"draws": 60, "tune": 60}
    posterior = nmd.sample(counts, 1, "identity", "kl", **given)
    error = posterior.reconstruct().values - mean
    assert np.sqrt(np.mean(error**2 / mean)) < 0.5  # 69 numbers from 1200 counts


# Kinds of input ---------------------------------------------------------------------------------


def test_a_fit_is_a_start(holed):
    fit = nmd.complete(holed, 2, offsets="both", max_iter=50, progress=False)
    posterior = nmd.sample(holed, 2, init=fit, **QUICK | {"tune": 0})
    seen = np.nonzero(~np.isnan(holed))
    error = np.sqrt(np.mean((posterior.predict(*seen) - holed[seen]) ** 2))
    assert error < 0.4


# Ends -------------------------------------------------------------------------------------------


def test_a_callback_ends_the_run(holed):
    told = []

    def callback(sweep):
        told.append(sweep)
        return sweep.sweep == 14

    posterior = nmd.sample(holed, 2, callback=callback, **QUICK)
    assert posterior.stop_reason.code == "callback"
    assert posterior.draws.sizes["draw"] == posterior.trace.sizes["sweep"] == 6
    assert [sweep.sweep for sweep in told] == list(range(1, 15))
    assert [sweep.tuning for sweep in told] == [True] * 8 + [False] * 6
    assert np.isfinite([sweep.log_likelihood for sweep in told]).all()
    whole = nmd.sample(holed, 2, **QUICK)
    xr.testing.assert_identical(posterior.draws, whole.draws.isel(draw=slice(6)))


def at(sweep, chain=0, do=lambda: True):
    """Return a callback that ends the run at a sweep, or does something else."""
    return lambda state: (state.chain, state.sweep) == (chain, sweep) and do()


def ctrl_c():
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(
    ("how", "code", "chains", "draws"),
    [
        ({"callback": at(3, do=ctrl_c)}, "interrupted", 1, 1),
        ({"callback": at(12, do=ctrl_c)}, "interrupted", 1, 4),
        ({"time_limit": 0}, "time_limit", 1, 1),
        # a later chain costs no draws
        ({"callback": at(20), "chains": 2}, "callback", 1, 12),
        ({"callback": at(12, chain=1), "chains": 2}, "callback", 1, 12),
        ({"callback": at(18, chain=1), "chains": 2}, "callback", 2, 10),
    ],
)
def test_a_run_that_is_cut_short_has_its_draws_or_one(holed, how, code, chains, draws, interactive):
    posterior = nmd.sample(holed, 2, **how, **QUICK)
    assert posterior.stop_reason.code == code
    assert posterior.draws.sizes["chain"] == chains
    assert posterior.draws.sizes["draw"] == draws
    assert np.isfinite(posterior.reconstruct()).all()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_in_a_script_ctrl_c_is_raised(holed):
    with pytest.raises(KeyboardInterrupt):
        nmd.sample(holed, 2, callback=at(12, do=ctrl_c), **QUICK)


# Small and odd data -----------------------------------------------------------------------------


@pytest.mark.parametrize("nonlinearity", ["identity", "relu"])
def test_empty_rows_and_columns(holed, nonlinearity):
    data = holed.copy()
    data[4], data[:, 6] = np.nan, np.nan
    posterior = nmd.sample(data, 2, nonlinearity, **QUICK | {"draws": 100})
    assert np.isfinite(posterior.reconstruct()).all()
    unknown, *known = posterior.predict_std([4, 0, 1, 2], [6, 0, 1, 2], noise=False)
    assert unknown > 2 * np.median(known)


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (5, 4)])
@pytest.mark.parametrize("value", [0.0, 1.0, -3.0])
def test_constant_data(shape, value):
    posterior = nmd.sample(np.full(shape, value), 1, **QUICK)
    assert np.isfinite(posterior.reconstruct()).all()
    assert np.isfinite(posterior.predict_std(0, 0)).all()


def test_draws_are_thinned(holed):
    posterior = nmd.sample(holed, 2, keep=4, **QUICK)
    whole = nmd.sample(holed, 2, **QUICK)
    assert posterior.trace.sizes["sweep"] == 12
    np.testing.assert_array_equal(posterior.draws["W"], whole.draws["W"][:, 2::3])


def test_holes_are_filled_better_than_by_the_column_alone(full, frame, posterior):
    hidden = frame.isna().to_numpy()
    guess, x = posterior.reconstruct().to_pandas()["dose"], full["dose"]
    assert np.std((guess - x)[frame["dose"].isna()]) < 0.6 * np.std(x)
    for name, least in (("smokes", 0.7), ("mood", 0.6), ("town", 0.6), ("sex", 0.8)):
        at = hidden[:, full.columns.get_loc(name)]
        p = posterior.probabilities(name)
        assert list(p.index) == list(frame.index)
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-5)
        chosen = p.idxmax(axis=1)
        assert np.mean((chosen == full[name])[at]) > least


def test_what_is_shown(frame, posterior):
    """The kinds are those of the columns, not of the indicators that the sampler has for them."""
    text = repr(posterior)
    assert "a model for each column, 3 with a learned f" in text
    assert ("1 binary ('smokes'), 1 ordinal ('mood'), 2 categorical ('town', 'sex')") in text
    assert "1 ordinal (" in posterior._repr_html_()
    few = repr(nmd.sample(frame[["kg", "cm", "town"]], 1, **QUICK))
    assert "ordinal" not in few
    assert "1 categorical ('town')" in few


def test_an_unseen_class_of_a_new_row_is_missing(posterior):
    new = with_holes(people(2, seed=7), 0.3)
    unseen = new.iloc[:2].assign(town=pd.Categorical(["Rom", None]))
    with pytest.warns(nmd.warnings.NMDWarning, match=r"\['Rom'\] in column 'town'") as caught:
        rows = posterior.fold_in(unseen)
    assert len(caught) == 1
    xr.testing.assert_equal(rows.draws, posterior.fold_in(unseen.assign(town=None)).draws)
    with pytest.warns(nmd.warnings.NMDWarning, match="'Rom'"):
        towns = rows.impute(unseen)["town"]
    assert towns.iloc[0] == "Rom"
    assert set(towns.cat.categories) == {"Rom", towns.iloc[1]}
    assert towns.iloc[1] == rows.probabilities("town").iloc[1].idxmax()


@pytest.mark.parametrize(("missing", "noise"), [(0.3, ("clipped",) * 8), (0.7, "gaussian")])
def test_a_frame_has_noise_by_column_where_most_of_it_is_observed(missing, noise):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 1)) * np.ones(8) + 0.3 * rng.normal(size=(30, 8))
    holed = pd.DataFrame(np.where(rng.random(X.shape) < missing, np.nan, X))
    assert nmd.sample(holed, **QUICK).noise == noise
