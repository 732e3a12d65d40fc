"""Completed copies of tables from the joint distribution of their columns; repeated values."""

import numpy as np
import pandas as pd
import pytest
from helpers import check_all_refused, check_filled, people, with_holes
from scipy.special import ndtri

import nmd_lab as nmd
from nmd_lab.result.draws import MIN_REPEATS, N_PRIOR_CELLS, RepeatedValues


def table():
    """Return a table of every kind with holes, in which doses are positive and percent bounded."""
    frame = people(400)
    percent = (frame["cm"] + frame["kg"] - 190).clip(1, 99)
    return with_holes(frame.assign(dose=np.exp(frame["kg"] / 12 - 6), percent=percent), 0.3)


@pytest.fixture(scope="module")
def sampled():
    holed = table()
    return holed, nmd.sample(holed, draws=60, bounds={"percent": (0, 100)}, random_state=0)


def test_copies_repeat_and_keep_what_is_observed_within_bounds_and_positive(sampled, read_back):
    """With a seed, and after a file."""
    holed, posterior = sampled
    assert posterior._joint is not None
    copies = posterior.impute(holed, n=50, random_state=0)
    for each in (posterior, read_back(posterior)):
        again = each.impute(holed, n=50, random_state=0)[1]
        pd.testing.assert_frame_equal(again, copies[1])
    for copy in copies[:3]:
        check_filled(copy, holed)
    every = pd.concat(copies)
    assert every["dose"].min() > 0
    assert 0 < every["percent"].min() < every["percent"].max() < 100
    ends = posterior.intervals(holed, level=0.99)
    assert (ends["dose"] > 0).all(axis=None)
    assert ends["percent"].stack().between(0, 100).all()


def test_new_rows_are_completed_given_what_they_show(sampled):
    holed, posterior = sampled
    new = holed.iloc[:2].assign(cm=np.float64([145, 195]), kg=np.float32([40, 100]), percent=np.nan)
    new = new.set_axis(["small", "tall"])
    copies = posterior.impute(new, n=50, random_state=0)
    low, high = np.mean([copy["percent"] for copy in copies], axis=0)
    assert low + 20 < high


def test_wrong_bounds_are_refused_in_words():
    impute = lambda bounds: nmd.impute(table(), bounds=bounds)  # noqa: E731
    check_all_refused([
        (r"bounds\['percent'\]=\(10, 20\) leaves out values", impute, {"percent": (10, 20)}),
        ("bounds has 'smokes', which is no column of numbers", impute, {"smokes": (0, 1)}),
        ("bounds has 'no', which is no column of numbers", impute, {"no": (0, 1)}),
    ])  # fmt: skip


@pytest.mark.parametrize(("rows", "options"), [(400, {"rank": 2}), (400, {"groups": 1}), (60, {})])
def test_a_model_that_was_asked_for_or_of_few_rows_makes_the_copies(rows, options):
    assert nmd.sample(table()[:rows], draws=20, tune=20, random_state=0, **options)._joint is None


OBSERVED = np.repeat([0.0, 1.5, 2.0, 2.5, 4.0, 7.0], [12, 1, 4, 1, 6, 1])


def test_a_ratio_is_that_of_the_counts_at_the_nearest_values():
    replicates = np.random.default_rng(0).normal(2, 3, (50, 9))
    repeated = RepeatedValues.of(OBSERVED, replicates)

    groups = [[], [0.0], [1.5, 2.0, 2.5], [4.0], [7.0]]
    values = np.unique(OBSERVED)
    nearest = values[np.abs(replicates.ravel()[:, None] - values).argmin(axis=1)]
    counts, found = (np.array([np.isin(x, g).sum() for g in groups]) for x in (OBSERVED, nearest))
    ratios = (counts + N_PRIOR_CELLS) / (found * OBSERVED.size / replicates.size + N_PRIOR_CELLS)
    cells = np.split(repeated.observed, repeated.starts[1:-1])
    assert [np.unique(each).tolist() for each in cells] == groups
    np.testing.assert_allclose(repeated.accepted, ratios / ratios.max(), rtol=1e-12)


def test_an_interval_has_as_many_other_cells_on_each_side_and_at_most_a_twentieth():
    others = np.random.default_rng(0).normal(size=400)
    observed = np.append(others, np.repeat([0.3, 0.4], 50))
    edges = RepeatedValues.of(observed, observed[None]).edges
    below, above = np.sort(others[others < 0.3]), np.sort(others[others > 0.4])
    assert below[-23] <= edges[0] < below[-22]  # 22 of the 450 that are not 0.3
    assert above[21] <= edges[3] < above[22]
    np.testing.assert_allclose(edges[1:3], 0.35)  # it ends between two values that repeat

    observed = np.append(others, np.repeat(0.3, 6))
    low, high = RepeatedValues.of(observed, observed[None]).edges
    assert np.sum((others > low) & (others < 0.3)) == np.sum((others > 0.3) & (others < high)) == 6


@pytest.mark.parametrize(("accepted", "error"), [([0.2, 1.0, 0.5], 0), ([2e-3, 5e-3, 1e-3], 0.02)])
def test_new_numbers_have_the_probabilities_of_the_smooth_ones_times_the_ratios(accepted, error):
    edges, observed = np.array([-1.0, 0.5]), np.array([-2.0, 0, 0, 0.25, 2])
    starts, replicates = np.array([0, 1, 4, 5]), ndtri((np.arange(30_000) + 0.5) / 30_000)
    repeated = RepeatedValues(edges, observed, starts, np.array(accepted), replicates)
    rng, size = np.random.default_rng(0), 40_000
    found = repeated.draw(lambda at: rng.standard_normal(at.size), size, rng)

    below = 0.15865525, 0.69146246  # of the standard normal distribution
    weights = repeated.accepted * np.diff([0.0, *below, 1.0])
    weights = np.array([weights[0], *weights[1] * np.array([2, 1]) / 3, weights[2]])
    where = found < -1, found == 0, found == 0.25, found > 0.5
    shares, expected = np.mean(where, axis=1), weights / weights.sum()
    assert shares.sum() == pytest.approx(1)
    assert np.all(np.abs(shares - expected) < 4 * np.sqrt(expected * (1 - expected) / size) + error)


def test_numbers_keep_their_order_among_repeated_values():
    observed, x = np.repeat(np.arange(9.0), 8), np.linspace(-3, 11, 500)
    replicates = np.random.default_rng(0).normal(4, 2.6, (50, 72))
    near = RepeatedValues.of(observed, replicates).near(x, np.random.default_rng(0))
    assert (np.diff(near) >= 0).all()
    assert set(near) == set(observed)


@pytest.fixture(scope="module")
def repeating():
    rng = np.random.default_rng(0)
    size, noise = rng.normal(size=(300, 1)), 0.5 * rng.normal(size=(300, 3))
    frame = pd.DataFrame(size + noise, columns=["size", "weight", "rooms"])
    frame["rooms"] = np.round(4 + frame["rooms"])
    frame["price"] = np.where(rng.random(300) < 0.6, 1.5, np.exp(size[:, 0]))
    return frame.mask(rng.random(frame.shape) < 0.2)


def test_copies_hold_values_that_repeat(repeating):
    copies = nmd.impute(repeating, n=20, random_state=0)
    every, missing = pd.concat(copies), pd.concat([repeating.isna()] * 20)
    prices, rooms, sizes = (every[name][missing[name]] for name in ("price", "rooms", "size"))
    assert 0.5 < (prices == 1.5).mean() < 0.7  # as of the observed; a smooth draw is never it
    common = repeating["rooms"].value_counts()
    assert np.isin(rooms, common.index[common >= MIN_REPEATS]).mean() > 0.9
    assert np.unique(sizes).size > 0.99 * sizes.size


def test_limits_are_no_values_that_repeat(repeating):
    lead = np.exp(repeating.drop(columns="price"))
    below = (lead["size"] < 0.5).to_frame().reindex(columns=lead.columns, fill_value=False)
    lead = lead.mask(below, 0.5)
    posterior = nmd.sample(lead, at_most=below, random_state=0)
    missing = lead["size"].isna()
    for copy in posterior.impute(lead, n=5, random_state=0):
        assert not np.any(copy.loc[missing, "size"] == 0.5)
