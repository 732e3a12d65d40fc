"""Calibration of an ensemble: the spread of its numbers, the temperature of its probabilities."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit
from scipy.stats import norm

import nmd_lab as nmd
from nmd_lab.sampler.ensemble import MAX_SPREAD

from .test_ensemble import curve, mixed, prepared


def test_hidden_numbers_narrow_or_widen_their_mixture():
    """The spread is that with which 90 % intervals cover 90 %, shrunk towards 1 for few cells."""
    hidden, rng = prepared(curve(400)).hidden, np.random.default_rng(0)
    n = hidden.values.size
    for sd in (0.8, 0.9, 1.3):
        mean = hidden.values - sd * rng.normal(size=n)
        ratio = np.quantile(np.abs(hidden.values - mean), 0.9) / norm.ppf(0.95)
        spread = hidden.spread(norm.cdf(hidden.values, mean), MAX_SPREAD)
        assert spread == pytest.approx(ratio ** (n / (n + 100)))
        assert (spread < 1) == (sd < 1)


def test_new_numbers_have_their_spread_and_the_mean_of_all_draws():
    """The spread narrows T of numbers, and not that of levels and classes."""
    posterior = nmd.sample(mixed(), draws=400, tune=5, random_state=0)
    draws = posterior.draws.assign(spread=xr.full_like(posterior.draws["spread"], 0.8))
    narrow = replace(posterior, draws=draws)
    i, j = (each.ravel() for each in np.indices(posterior._shape))
    v, narrowed = posterior._draws.linear_at(i, j), narrow._draws.drawn_at(i, j)
    is_number = np.array(posterior.noise)[j] != "ordinal"
    np.testing.assert_array_equal(v[:, ~is_number], narrowed[:, ~is_number])
    np.testing.assert_allclose(v.mean(axis=0), narrowed.mean(axis=0), atol=1e-9)
    variances = [each[:, is_number].var(axis=0).mean() for each in (v, narrowed)]
    assert variances[1] == pytest.approx(0.64 * variances[0], rel=0.05)
    np.testing.assert_array_equal(narrow._draws.drawn_at(i, j, 7)[0], narrowed[7])
    sds = [each._draws.predictives[0].sd for each in (posterior, narrow)]
    np.testing.assert_allclose(sds[1], 0.8 / posterior.draws["spread"].item(0) * sds[0])


def test_temperatures_maximise_the_log_score_of_hidden_levels():
    """First one for the table, then one for each column around it, by a search without a grid.

    Probabilities of classes are measured from their frequencies.
    """
    ensemble = prepared(mixed(), rank=5)
    hidden = ensemble.hidden
    counts = np.array([each.counts for each in ensemble.trials[0].levels[13:]])
    frequencies = (counts[:, 1] + 0.5) / (counts.sum(axis=1) + 1)
    ash = np.flatnonzero(~hidden.is_indicator)
    codes = hidden.values[hidden.is_level].astype(int)
    masses = np.random.default_rng(0).dirichlet(np.ones(4), hidden.cells.size)
    masses[ash, codes[ash]] += 0.4  # right more often than it says
    masses[ash] /= masses[ash].sum(axis=1, keepdims=True)
    masses = hidden._of_classes(masses)
    found = hidden.temperatures(masses)

    def losses(log_t):
        power = 1 / np.exp(log_t)
        powers, kept = masses**power, frequencies ** (1 - power)
        loss = {2: 0.0, 13: 0.0}
        for cell in np.unique(hidden.cells):
            at = np.flatnonzero(hidden.cells == cell)
            p = powers[at[0]] if hidden.firsts[at[0]] == 2 else powers[at, 1] * kept
            right = codes[at[0]] if hidden.firsts[at[0]] == 2 else int(np.argmax(codes[at]))
            loss[hidden.firsts[at[0]]] -= np.log(p[right] / p.sum())
        return loss

    def best(column, centre, sd):
        def total(log_t):
            loss = losses(log_t)
            return sum(loss.values() if column is None else [loss[column]]) + (
                0.5 * ((log_t - centre) / sd) ** 2
            )

        return minimize_scalar(total, bounds=(-1.4, 0.4), method="bounded").x

    whole = best(None, 0.0, 0.35)
    for column in (2, 13):
        assert np.log(found[column]) == pytest.approx(best(column, whole, 0.2), abs=0.05)
    assert found[2] < 0.9
    assert hidden.temperatures(masses[:0]) == 1.0


def test_probabilities_guesses_and_copies_have_their_temperature():
    """Half the temperature doubles a logit, measured from that of the frequencies for classes."""
    frame = mixed()[["alcohol", "flavanoids", "ash", "target"]]
    frame["high"] = pd.array(frame["alcohol"].fillna(13) > 13, dtype="boolean")
    frame.loc[frame.index[::3], ["ash", "high", "target"]] = pd.NA
    posterior = nmd.sample(frame, draws=400, tune=5, random_state=0)
    warm, cold = (
        replace(posterior, _joint=None, draws=posterior.draws.assign(
            temperature=xr.full_like(posterior.draws["temperature"], t)
        ))
        for t in (1.0, 0.5)
    )  # fmt: skip
    before, after = (each.probabilities("high")[True] for each in (warm, cold))
    share = posterior.draws["frequency"][0, 0].to_numpy()
    np.testing.assert_allclose(after, expit(2 * logit(before) - logit(share[-1])), rtol=1e-6)
    for name, reference in (("ash", 1.0), ("target", share[3:6])):
        p = warm.probabilities(name).to_numpy() ** 2 / reference
        p /= p.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(cold.probabilities(name), p, rtol=1e-5)
        copies = pd.concat(
            [copy[name].iloc[::3] for copy in cold.impute(frame, 400, random_state=0)]
        )
        shares = [(copies == level).mean() for level in cold.probabilities(name)]
        np.testing.assert_allclose(shares, p[::3].mean(axis=0), atol=0.02)
    rows, ash = np.arange(0, 178, 3), np.full(60, "ash", object)
    p = cold.probabilities("ash").to_numpy()[rows]
    np.testing.assert_allclose(cold.predict(rows, ash), p @ np.arange(4), rtol=1e-5)
    sds = np.sqrt(p @ np.arange(4) ** 2 - (p @ np.arange(4)) ** 2)
    np.testing.assert_allclose(cold.predict_std(rows, ash), sds, rtol=1e-5)
    logs = cold.log_density(rows, ash, np.full(60, 2.0))
    np.testing.assert_allclose(logs, np.log(p[:, 2]), rtol=1e-5)
