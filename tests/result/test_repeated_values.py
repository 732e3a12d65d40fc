"""Values that repeat in a column, and copies of a table that hold them."""

import numpy as np
import pandas as pd
import pytest

import nmd_lab as nmd
from nmd_lab.result.repeated_values import PRIOR, REPEATED, RepeatedValues

OBSERVED = np.repeat([0.0, 1.5, 2.0, 2.5, 4.0, 7.0], [12, 1, 4, 1, 6, 2])


def test_a_ratio_is_that_of_the_counts_at_the_nearest_values():
    replicates = np.random.default_rng(0).normal(2, 3, (50, 9))
    repeated = RepeatedValues.of(OBSERVED, replicates)

    groups = [[0.0], [1.5, 2.0, 2.5], [4.0], [7.0]]
    values = np.unique(OBSERVED)
    nearest = values[np.abs(replicates.ravel()[:, None] - values).argmin(axis=1)]
    counts, found = (np.array([np.isin(x, g).sum() for g in groups]) for x in (OBSERVED, nearest))
    ratios = (counts + PRIOR) / (found * OBSERVED.size / replicates.size + PRIOR)
    np.testing.assert_array_equal(repeated.values, [0, np.nan, 4, np.nan])
    np.testing.assert_allclose(repeated.accepted, ratios / ratios.max(), rtol=1e-12)


@pytest.mark.parametrize(("accepted", "error"), [([0.2, 1.0, 0.5], 0), ([2e-3, 5e-3, 1e-3], 0.02)])
def test_new_numbers_have_the_probabilities_of_the_smooth_ones_times_the_ratios(accepted, error):
    edges, values = np.array([-1.0, 0.5]), np.array([np.nan, 0.0, np.nan])
    repeated, size = RepeatedValues(edges, values, np.array(accepted)), 40_000
    rng = np.random.default_rng(0)
    found = repeated.draw(lambda at: rng.standard_normal(at.size), size, rng)

    below = 0.15865525, 0.69146246  # of the standard normal distribution
    weights = repeated.accepted * np.diff([0.0, *below, 1.0])
    shares = (found < -1).mean(), (found == 0).mean(), (found > 0.5).mean()
    expected = weights / weights.sum()
    assert np.all(np.abs(shares - expected) < 4 * np.sqrt(expected * (1 - expected) / size) + error)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    size = rng.normal(size=300)
    frame = pd.DataFrame(
        {
            "size": size + 0.5 * rng.normal(size=300),
            "weight": size + 0.5 * rng.normal(size=300),
            "price": np.where(rng.random(300) < 0.6, 1.5, np.exp(size)),
            "rooms": np.round(4 + size + 0.5 * rng.normal(size=300)),
        }
    )
    return frame.mask(rng.random(frame.shape) < 0.2)


def test_copies_hold_values_that_repeat(table):
    copies = nmd.impute(table, n=20, random_state=0)
    prices, rooms, sizes = (
        np.concatenate([copy[name][table[name].isna()] for copy in copies])
        for name in ("price", "rooms", "size")
    )
    assert 0.2 < (prices == 1.5).mean() < 0.8  # a smooth draw is never the same
    common = table["rooms"].value_counts()
    assert np.isin(rooms, common.index[common >= REPEATED]).mean() > 0.9
    assert np.unique(sizes).size > 0.99 * sizes.size


def test_limits_are_no_values_that_repeat(table):
    lead = np.exp(table.drop(columns="price"))
    below = (lead["size"] < 0.5).to_frame().reindex(columns=lead.columns, fill_value=False)
    lead = lead.mask(below, 0.5)
    posterior = nmd.sample(lead, at_most=below, random_state=0)
    missing = lead["size"].isna()
    for copy in posterior.impute(lead, n=5, random_state=0):
        assert not np.any(copy.loc[missing, "size"] == 0.5)
