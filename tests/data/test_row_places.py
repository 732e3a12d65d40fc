"""Places of rows from dimensions, levels of the index, columns and arrays; series; refusals."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from helpers import check_all_refused

import nmd_lab as nmd
from nmd_lab.data.inputs import observe
from nmd_lab.data.matching import RowPlaces, has_dates_in_order, row_places

FIRST = 18_262.0
"""Days from 1970 to 2020-01-01."""
M = 6
DAYS = np.array([3, 0, 1, 5, 2, 9])
"""Days of six rows, which are in no order."""
DATES = pd.Timestamp("2020-01-01") + pd.to_timedelta(DAYS, "D")
STATIONS = ["x", "y", "x", "y", "y", "x"]


def frame(**columns):
    X = np.random.default_rng(0).normal(size=(M, 2))
    return pd.DataFrame(X, columns=["a", "b"]).assign(**columns)


def places_of(X, order, **options):
    return row_places(observe(X, **options), order)


BY_TIME = {
    "level": (frame().set_axis(DATES.rename("day")), "day"),
    "level without a name": (frame().set_axis(DATES), "row"),
    "time zone": (frame().set_axis(DATES.tz_localize("UTC").rename("day")), "day"),
    "column": (frame(day=DATES), "day"),
    "column of a list": (frame(day=DATES), ["day"]),
    "date objects": (frame(day=list(DATES.date)), "day"),
    "array of dates": (frame(), DATES),
    "array of datetime64": (frame(), DATES.to_numpy("M8[s]")),
    "list of date objects": (frame(), list(DATES.date)),
    "periods": (frame().set_axis(DATES.to_period("D").rename("day")), "day"),
    "array of periods": (frame(), DATES.to_period("D")),
    "numbers": (frame(), DAYS + FIRST),
    "list of numbers": (frame(), (DAYS + FIRST).tolist()),
    "column of numbers": (frame(t=DAYS + FIRST), "t"),
    "series": (frame(), pd.Series(DAYS + FIRST, index=list("fedcba"))),
}


@pytest.mark.parametrize("form", BY_TIME)
def test_places_are_days_or_the_numbers_themselves(form):
    found = places_of(*BY_TIME[form])
    np.testing.assert_array_equal(found.times, DAYS + FIRST)
    assert len(set(found.series)) == 1
    np.testing.assert_array_equal(found.sequence, np.argsort(DAYS))
    np.testing.assert_array_equal(found.steps, [np.inf, 1, 1, 1, 2, 4])
    assert found.median_step == 1.0


def with_levels(*names):
    levels = {"station": STATIONS, "day": DATES}
    return frame().set_axis(pd.MultiIndex.from_arrays([levels[n] for n in names], names=names))


BY_STATION = {
    "two levels": (with_levels("station", "day"), "day"),
    "levels in other order": (with_levels("day", "station"), "day"),
    "both levels by name": (with_levels("day", "station"), ["station", "day"]),
    "two columns": (frame(station=STATIONS, day=DATES), ["station", "day"]),
    "categories": (frame(station=pd.Categorical(STATIONS, ["y", "x"]), day=DATES),
                   ["station", "day"]),
    "a column and a level": (frame(day=DATES).set_index("day").assign(station=STATIONS),
                             ["station", "day"]),
    "numbers": (frame(number=[1.5, 2, 1.5, 2, 2, 1.5], day=DATES), ["number", "day"]),
}  # fmt: skip


@pytest.mark.parametrize("form", BY_STATION)
def test_series_are_told_apart(form):
    found = places_of(*BY_STATION[form])
    in_x = np.array(STATIONS) == "x"
    assert len(set(found.series[in_x])) == len(set(found.series[~in_x])) == 1
    assert len(set(found.series)) == 2
    np.testing.assert_array_equal(found.times, DAYS + FIRST)
    steps = dict(zip(found.sequence, found.steps, strict=True))
    assert steps == {2: np.inf, 0: 2, 5: 6, 1: np.inf, 4: 2, 3: 3}
    assert found.median_step == 2.5


def test_three_classes_are_three_series():
    X = pd.concat([frame(station=[s] * M, day=DATES) for s in "xyz"], ignore_index=True)
    found = places_of(X, ["station", "day"])
    assert [len(set(found.series[k * M : (k + 1) * M])) for k in range(3)] == [1, 1, 1]
    assert len(set(found.series)) == 3


def test_the_same_labels_are_the_same_series_in_other_data():
    """New rows find the series of fitted ones, whatever else is in their table."""
    for X, order in BY_STATION.values():
        labels, all_places = observe(X).labels, places_of(X, order)
        again = row_places(observe(X.iloc[[5, 3]], table=labels.table), order)
        np.testing.assert_array_equal(again.series, all_places.series[[5, 3]])
        np.testing.assert_array_equal(again.times, all_places.times[[5, 3]])


def test_dimensions_of_rows_other_than_the_order_are_series():
    X = xr.DataArray(
        np.random.default_rng(0).normal(size=(4, 3, 2)),
        dims=("time", "place", "band"),
        coords={"time": DATES[:4], "place": list("abc")},
    )
    found = places_of(X, "time", sample_dims=("time", "place"))
    np.testing.assert_array_equal(found.times.reshape(4, 3), np.tile(DAYS[:4], (3, 1)).T + FIRST)
    assert len({tuple(each) for each in found.series.reshape(4, 3)}) == 1
    assert len(set(found.series)) == 3
    unlabelled = places_of(X.drop_vars("time"), "time", sample_dims="time")
    np.testing.assert_array_equal(unlabelled.times, np.arange(4))


def test_rows_without_neighbours_have_a_unit():
    zeros = np.zeros(3, np.int64)
    assert RowPlaces(np.array([3.0]), zeros[:1], zeros[:1]).median_step == 1.0
    assert RowPlaces(np.arange(3.0), np.arange(3), zeros).median_step == 1.0


@pytest.mark.parametrize(
    ("index", "is_in_order"),
    [
        (pd.date_range("2020", periods=3), True),
        (pd.date_range("2020", periods=3, tz="Europe/Zurich"), True),
        (pd.period_range("2020", periods=3, freq="M"), True),
        (pd.DatetimeIndex(["2020", "2021", "2023"]), True),
        (pd.DatetimeIndex(["2020", "2023", "2021"]), False),
        (pd.date_range("2020", periods=3)[::-1], False),
        (pd.DatetimeIndex(["2020", "2021", "2021"]), False),
        (pd.RangeIndex(3), False),
        (pd.Index(["2020", "2021", "2022"]), False),
        (pd.Index([2020, 2021, 2022]), False),
        (pd.MultiIndex.from_product([["a"], pd.date_range("2020", periods=3)]), False),
    ],
)
def test_rising_dates_alone_are_an_order(index, is_in_order):
    X = frame().iloc[:3].set_axis(index)
    assert has_dates_in_order(observe(X).labels) == is_in_order


def test_places_that_are_none_are_refused():
    sampled = lambda X: nmd.sample(X, 1, order="day", draws=2, tune=2)  # noqa: E731
    by = lambda order: nmd.sample(frame(), 1, order=order, draws=2, tune=2)  # noqa: E731
    stations = frame(station=[None, *STATIONS[1:]], day=DATES)
    twice = DATES[[0, 1, 2, 2, 4, 5]].rename("day")
    check_all_refused([
        ("order='day' is no dimension, level .*array", by, "day"),
        ("order='town' is no dimension", by, ["town", "a"]),
        ("order has [27] places, and X 6 rows: give one for", by, [1, 2], range(7)),
        ("order has 0 places, and X 6 rows: give one for", by, []),
        ("order has 1 places, and X 6 rows: give one for", by, 3),
        ("which is no number or date: give numbers", by, np.zeros((M, 2)), [object()] * M),
        ("no place for the rows 2, 4: ", by, [0, 1, None, 3, np.nan, 5]),
        ("no place for the rows 2: ", by, [0, 1, np.inf, 3, 4, 5]),
        ("no place for the rows 5: fill", by, [*DATES[:-1], pd.NaT]),
        ("no place for the rows 0: fill it", sampled, frame(day=[pd.NaT, *DATES[1:]])),
        ("no place for the rows 0: fill it, or leave",
         lambda names: nmd.sample(stations, 1, order=names), ["station", "day"]),
        ("places 2.0 twice: .*'station', 'date'", by, [0, 1, 2, 2, 4, 5]),
        ("twice: give the names of the series", sampled, frame().set_axis(twice)),
        ("groups=8 does not go with order=: leave it out",
         lambda groups: nmd.sample(frame(), 1, order=np.arange(M), groups=groups), 8),
    ])  # fmt: skip
