"""A DataFrame comes back from `impute` in its types, and bad ones are refused."""

import datetime as dt
import re

import numpy as np
import pandas as pd
import pytest
from helpers import check_all_refused, check_filled
from hypothesis import given, settings
from hypothesis import strategies as st

import nmd_lab as nmd
from nmd_lab.data.cell_numbers import dates_of, days_of

QUICK = {"draws": 4, "tune": 2, "random_state": 0, "progress": False}

WORDS = ["low", "mid", "high"]
MAKERS = {
    "float64": lambda x: x,
    "float32": lambda x: x.astype(np.float32),
    "Float64": lambda x: pd.array(x, dtype="Float64"),
    "int64": lambda x: np.round(9 * x).astype(np.int64),
    "Int64": lambda x: pd.array(np.round(9 * x), dtype="Int64"),
    "UInt8": lambda x: pd.array(np.round(9 * np.abs(x)), dtype="UInt8"),
    "bool": lambda x: x > 0,
    "boolean": lambda x: pd.array(x > 0, dtype="boolean"),
    "objects": lambda x: (x > 0).astype(object),
    "text": lambda x: np.take(WORDS, np.digitize(x, [-0.5, 0.5])).astype(object),
    "string": lambda x: pd.array(np.take(WORDS, np.digitize(x, [-0.5, 0.5])), dtype="string"),
    "ordered": lambda x: pd.Categorical.from_codes(np.digitize(x, [-0.5, 0.5]), WORDS, True),
    "doses": lambda x: pd.Categorical.from_codes(np.digitize(x, [0]), [0.5, 2.0], True),
    "classes": lambda x: pd.Categorical.from_codes(np.digitize(x, [-0.5, 0.5]), WORDS),
    "unused": lambda x: pd.Categorical(np.take(WORDS, np.digitize(x, [0])), [*WORDS, "never"]),
    "constant": lambda x: np.full(x.size, 2.5),
    "Int8": lambda x: pd.array(np.round(10 * x), dtype="Int8"),
    "Float32": lambda x: pd.array(x, dtype="Float32"),
    "grades": lambda x: pd.Categorical.from_codes(np.digitize(x, [-0.5, 0.5]), [1, 5, 10], True),
    "bins": lambda x: pd.cut(pd.Series(x), [-99, -1, 0, 1, 99]).array,
    "codes": lambda x: pd.Categorical.from_codes(np.digitize(x, [-0.5, 0.5]), [7, 3, 5]),
    "days": lambda x: pd.Categorical.from_codes((x > 0).astype(int), DAYS),
    "limit": lambda x: np.maximum(x, 0.0),
    "day": lambda x: pd.to_datetime("2020-02-03") + pd.to_timedelta(np.round(90 * x), unit="D"),
    "day in Rome": lambda x: pd.DatetimeIndex(MAKERS["day"](x)).tz_localize(
        "Europe/Rome", nonexistent="shift_forward"
    ),
    "time": lambda x: pd.to_datetime("2020-02-03 12:10") + pd.to_timedelta(90 * x, unit="h"),
    "date": lambda x: np.array(list(MAKERS["day"](x).date), dtype=object),
    "one class": lambda x: pd.Categorical(["only"] * x.size),
}
DAYS = pd.to_datetime(["2020-01-01", "2021-01-01"])


@st.composite
def tables(draw):
    """Draw a table of any kinds in any order, with labels of its own and holes."""
    m, seed = draw(st.integers(12, 24)), draw(st.integers(0, 2**32 - 1))
    kinds = draw(st.lists(st.sampled_from(list(MAKERS)), min_size=2, max_size=5))
    rng = np.random.default_rng(seed)
    w = rng.normal(size=m)
    names = draw(st.permutations([*range(3), "a", "b b", ("a", "tuple")]))[: len(kinds)]
    columns = {n: MAKERS[k](w + rng.normal(size=m)) for n, k in zip(names, kinds, strict=True)}
    labels = {
        "none": None,
        "text": pd.Index([f"p{k}" for k in rng.permutation(m)], name="person"),
        "numbers": rng.permutation(m) * 10 - 5,
        "dates": pd.date_range("2020-01-01", periods=m, name="day"),
        "levels": pd.MultiIndex.from_product([["x", "y"], range(m)], names=["k", "l"])[::2],
        "duplicates": rng.integers(0, 3, m),
    }[draw(st.sampled_from(["none", "text", "numbers", "dates", "levels", "duplicates"]))]
    frame = pd.DataFrame(columns).set_axis(range(m) if labels is None else labels)
    if draw(st.booleans()):
        frame = frame.iloc[rng.integers(0, m, m)] if labels is None else frame
    holes = rng.random(frame.shape) < 0.2
    holes[:2] = False  # each column has a value
    holes &= ~np.isin(kinds, ("int64", "bool"))
    return frame.mask(holes) if holes.any() else frame


@given(tables())
@settings(max_examples=20, deadline=None)
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.filterwarnings("ignore:all observed values are equal")
def test_types_order_and_labels_come_back(frame):
    before = frame.copy()
    posterior = nmd.sample(frame, 1, **QUICK)
    check_filled(posterior.impute(frame), frame)
    for copy in posterior.impute(frame, n=2, random_state=0):
        check_filled(copy, frame)
    pd.testing.assert_frame_equal(frame, before)


def test_a_constant_is_filled_by_itself():
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0, 3.0] * 3, "b": [7.5, np.nan] * 6})
    posterior = nmd.sample(frame, **QUICK)
    for filled in (posterior.impute(frame), *posterior.impute(frame, n=2, random_state=0)):
        assert (filled["b"] == 7.5).all()


@pytest.mark.parametrize("ordered", [False, True])
def test_a_class_that_no_cell_shows_is_impossible(ordered):
    rng = np.random.default_rng(0)
    w, words = rng.normal(size=60), [*WORDS, "don't know"]
    answers = pd.Categorical.from_codes(np.digitize(w, [-0.5, 0.5]), words, ordered)
    frame = pd.DataFrame({"a": w, "b": answers, "c": w + rng.normal(size=60)})
    frame = frame.mask(rng.random(frame.shape) < 0.3).assign(a=w)
    posterior = nmd.sample(frame, 1, **QUICK)
    for result in (posterior, nmd.complete(frame, 1, random_state=0)):
        shares = result.probabilities("b")
        assert list(shares) == words
        assert (shares["don't know"] == 0).all()
        np.testing.assert_allclose(shares.sum(axis=1), 1)
        check_filled(result.impute(frame), frame)
    for copy in posterior.impute(frame, 40, random_state=0):
        check_filled(copy, frame)
        assert set(copy["b"]) <= set(WORDS)


@pytest.mark.parametrize("dtype", ["int64", "Int64"])
def test_whole_numbers_with_limits_stay_whole(dtype):
    rng = np.random.default_rng(0)
    w = rng.normal(size=40)
    visits = pd.Series(np.maximum(np.round(5 + 4 * w), 3)).astype(dtype)
    if dtype == "Int64":
        visits[::5] = pd.NA  # and so is the mask there
    frame = pd.DataFrame({"visits": visits, "a": w, "b": w + rng.normal(size=40)})
    limited = pd.DataFrame(False, frame.index, frame.columns).assign(visits=visits == 3)
    posterior = nmd.sample(frame, 1, at_most=limited, **QUICK)
    filled = posterior.impute(frame, at_most=limited)
    assert filled.dtypes.equals(frame.dtypes)
    limit, known = (each.fillna(False).astype(bool) for each in (visits == 3, visits > 3))
    assert not filled["visits"].isna().any()
    assert (filled["visits"][limit] <= 3).all()
    pd.testing.assert_series_equal(filled["visits"][known], frame["visits"][known])


@pytest.fixture(scope="module")
def amounts():
    """Return a table of an amount with many zeros, a share with many ones, and a number."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=300)
    T = w[:, None] * [1, -1, 1, 1] + 0.4 * rng.normal(size=(300, 4))
    X = pd.DataFrame(T, columns=["amount", "share", "number", "other"])
    X["amount"], X["share"] = X["amount"].clip(lower=0), X["share"].clip(upper=0.5)
    hidden = rng.random(X.shape) < 0.2
    return X, X.mask(hidden), hidden


def test_predictions_end_where_a_tenth_of_a_column_does(amounts):
    truth, X, hidden = amounts
    posterior = nmd.sample(X, 2, draws=60, tune=40, random_state=0)
    assert posterior.noise == ("clipped",) * 4
    columns = "columns: 4 numeric ('amount' from 0, 'share' to 0.5, 'number', 'other')"
    assert columns in repr(posterior)
    assert "numeric from 0" in posterior.report(X).columns["kind"].tolist()
    plain = nmd.sample(
        X, 2, nonlinearity={"amount": "identity", "share": "identity"}, draws=60, tune=40,
        random_state=0,
    )  # fmt: skip
    assert plain.noise == ("gaussian", "gaussian", "clipped", "clipped")
    np.testing.assert_array_equal(plain.draws["W"], posterior.draws["W"])
    rows = np.flatnonzero(hidden[:, 0])
    v = plain._draws.linear_at(rows, np.zeros_like(rows))
    kind = plain._model.column_models[0]
    rng = np.random.default_rng(1)
    sd = kind.size / np.sqrt(plain.draws["rho"].values[0, :, :1])
    noise = rng.standard_normal((400, *v.shape))
    drawn = np.maximum(kind.centre + kind.size * v + sd * noise, 0).reshape(-1, rows.size)
    columns = ["amount"] * rows.size
    np.testing.assert_allclose(posterior.predict(rows, columns), drawn.mean(axis=0), atol=0.02)
    level = 0.89  # a fraction of 60 draws between two of them
    ends = posterior.predict_interval(rows, columns, level=level)
    exact = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0).T
    np.testing.assert_allclose(ends, exact, atol=0.1)
    density = posterior.log_density(truth.where(hidden))
    assert np.isfinite(density).all()
    for copy in posterior.impute(X, n=3, random_state=0):
        assert copy["amount"].min() == 0
        assert copy["share"].max() == 0.5
    folded = posterior.fold_in(X.iloc[:20], random_state=0).predict(np.arange(20), 0)
    np.testing.assert_allclose(folded, posterior.predict(np.arange(20), 0), atol=0.4)


def test_few_values_counts_and_given_limits_have_no_end(amounts):
    _, X, _ = amounts
    grades = X.assign(amount=np.round(X["amount"].clip(upper=3)))
    assert nmd.sample(grades, 1, **QUICK).noise[0] == "before"
    below = (X == 0) & X.notna()
    assert nmd.sample(X, 1, at_most=below, **QUICK).noise[:2] == ("gaussian", "clipped")
    assert nmd.sample(X.to_numpy(), 1, noise_by="columns", **QUICK).noise == ("gaussian",) * 4


def test_codes_of_0_and_1_are_named_and_predictions_stay_between_them(amounts):
    _, X, hidden = amounts
    codes = X.assign(smoker=(X["number"] > 0).astype(float).mask(hidden[:, 1]))
    remedy = r"X\.astype\(dict\.fromkeys\(\['smoker'\], 'boolean'\)\) gives probabilities"
    with pytest.warns(nmd.warnings.NMDWarning, match=f"0 and 1 are numbers in 'smoker': {remedy}"):
        posterior = nmd.sample(codes, 2, **QUICK)
    ends = posterior.intervals(codes)["smoker"]
    assert ((ends >= 0) & (ends <= 1)).all(axis=None)
    assert posterior.impute(codes, 2, random_state=0)[1]["smoker"].between(0, 1).all()
    assert "0 and 1 are numbers in 'smoker'" in str(posterior.report(codes))
    answers = codes.astype(dict.fromkeys(["smoker"], "boolean"))  # without a warning
    assert nmd.sample(answers, 2, **QUICK).probabilities("smoker").shape == (300, 2)


@pytest.mark.parametrize("verb", [nmd.sample, nmd.complete])
def test_a_column_that_looks_like_an_identifier_is_named(amounts, verb):
    _, X, _ = amounts
    town = pd.Categorical.from_codes(np.arange(300) % 150, list(map(str, range(150))), ordered=True)
    options = QUICK if verb is nmd.sample else {"alpha": 1.0, "max_iter": 2, "offsets": "columns"}
    with pytest.warns(nmd.warnings.NMDWarning, match=r"'town' has 150 categories .* identifier"):
        verb(X.assign(town=town), 1, **options)


def test_few_equal_values_are_no_constant(amounts):
    _, X, _ = amounts
    few = X.assign(number=X["number"].where(X.index < 3) * 0)
    posterior = nmd.sample(few, 2, **QUICK)
    low, high = posterior.predict_interval([200], ["number"])[0]
    assert low < 0 < high


def in_2020(days):
    """Return dates."""
    return pd.Series(pd.Timestamp("2020-05-01") + pd.to_timedelta(days, unit="D"))


def of_dates():
    """Return dates that follow a number, with holes, and the days that are hidden there."""
    z = np.random.default_rng(0).normal(size=60)
    when = in_2020(np.round(100 * z))
    return pd.DataFrame({"a": z, "b": -z, "when": when.where(np.arange(60) % 6 > 0)}), when


def test_a_missing_date_becomes_the_day_that_the_other_columns_tell():
    frame, when = of_dates()
    posterior = nmd.sample(frame, 1, **QUICK | {"draws": 40, "tune": 20})
    filled, holes = posterior.impute(frame), frame["when"].isna()
    off = (filled["when"] - when)[holes] / pd.Timedelta(days=1)
    assert off.abs().median() < 10  # of some 400 days
    assert (filled["when"] == filled["when"].dt.normalize()).all()  # whole days, as the others
    ends = posterior.intervals(frame)["when"]
    assert (ends["low"] <= filled["when"])[holes].all()
    assert "date" in posterior.report(frame).columns["kind"].tolist()
    days = (when - pd.Timestamp(0)) / pd.Timedelta(days=1)
    at = np.arange(60), ["when"] * 60
    np.testing.assert_allclose(posterior.log_density(*at, when), posterior.log_density(*at, days))


TIMES = {
    "before nanoseconds": lambda days: np.datetime64("1500-01-01", "s") + days.astype("m8[D]"),
    "after nanoseconds": lambda days: np.datetime64("9000-01-01", "s") + days.astype("m8[D]"),
    "milliseconds": lambda days: np.datetime64("2020-01-01", "ns") + days.astype("m8[ms]"),
    "days of a time zone": lambda days: in_2020(days).dt.tz_localize("Pacific/Auckland"),
    "timestamps as objects": lambda days: in_2020(days).astype(object),
}


@pytest.mark.parametrize("made", TIMES.values(), ids=TIMES)
def test_dates_of_any_time_and_unit_are_filled(made):
    frame, _ = of_dates()
    when = pd.Series(made(np.round(100 * frame["a"].to_numpy())))
    frame["when"] = when.where(frame["when"].notna())
    filled, holes = nmd.complete(frame, 1, alpha=0.01).impute(frame), frame["when"].isna()
    assert filled["when"].dtype == when.dtype
    pd.testing.assert_series_equal(filled["when"][~holes], when[~holes], check_names=False)
    off = pd.to_timedelta(filled["when"] - when)[holes].abs()
    assert off.median() < (when.max() - when.min()) / 40
    if made is not TIMES["milliseconds"]:  # by the clocks of the zone
        assert all(each == each.normalize() for each in filled["when"])


def test_the_ends_of_an_interval_are_dates_that_the_column_can_have():
    frame, _ = of_dates()
    frame["when"] = frame["when"].where(np.arange(60) % 7 > 0, pd.Timestamp.max)  # of no end
    ends = nmd.sample(frame.astype({"when": "M8[ns]"}), 1, **QUICK).intervals(frame, 0.99)["when"]
    assert ends["high"].max() <= pd.Timestamp.max
    assert (ends["low"] <= ends["high"]).all()


def test_new_rows_of_another_time_zone_are_the_same_instants():
    frame, _ = of_dates()
    frame["when"] = (frame["when"] + pd.Timedelta(hours=5)).dt.tz_localize("Europe/Berlin")
    posterior = nmd.sample(frame, 1, **QUICK)
    new = frame.dropna().iloc[:5].assign(a=np.nan)
    far = new.assign(when=new["when"].dt.tz_convert("Pacific/Auckland"))
    here, there = posterior.impute(new), posterior.impute(far)
    np.testing.assert_allclose(there["a"], here["a"], rtol=1e-12)


def test_a_time_that_a_clock_shows_twice_is_the_right_one():
    hours = pd.Series(pd.date_range("2018-10-27", periods=72, freq="h", tz="Europe/Berlin"))
    pd.testing.assert_series_equal(dates_of(days_of(hours), hours), hours)


def test_a_report_has_dates_or_times_of_the_clocks_of_a_column():
    frame, _ = of_dates()
    plain = str(nmd.sample(frame, 1, **QUICK).report(frame))
    frame["when"] = frame["when"].dt.tz_localize("Asia/Kolkata")
    zoned = str(nmd.sample(frame, 1, **QUICK).report(frame))
    assert zoned.replace("+05:30", "") == plain
    frame["when"] = frame["when"] + pd.to_timedelta(np.arange(60), unit="min")
    shown = str(nmd.sample(frame, 1, **QUICK).report(frame))
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d[+:\d]* to \d{4}-\d\d-\d\d \d\d:\d\d", shown)


def test_dates_of_a_table_without_any_are_not_cut_at_those_of_nanoseconds():
    frame, _ = of_dates()
    days = np.round(100 * frame["a"].to_numpy()).astype("m8[D]")
    frame["when"] = np.datetime64("1600-01-01", "s") + days
    none = frame.assign(when=np.full(60, "NaT", "M8[s]"))
    filled = nmd.complete(frame, 1, alpha=0.01).impute(none)["when"]
    assert set(filled.dt.year) == {1599, 1600}


@pytest.mark.parametrize("repeats", [1, 4])
def test_dates_as_text_are_refused_with_the_line_that_makes_dates_of_them(repeats):
    frame, _ = of_dates()
    text = frame["when"].dt.strftime("%Y-%m-%d").iloc[::repeats].repeat(repeats)
    table = frame.assign(when=text.to_numpy()[:60])
    with pytest.raises(TypeError, match="dates as text in column 'when': run") as caught:
        nmd.sample(table, 1, **QUICK)
    for model in (nmd.NMD(1), nmd.MatrixCompletion(1)):
        with pytest.raises(TypeError, match="dates as text in column 'when': run"):
            model.fit(table)
    line = re.search("`(.*)`", str(caught.value))[1]
    exec(line, {"X": table, "pd": pd})
    assert table["when"].dtype.kind == "M"


def test_the_imputer_takes_dates_beside_numbers():
    frame, _ = of_dates()
    days, seen = (frame["when"] - pd.Timestamp(0)) / pd.Timedelta(days=1), frame["when"].notna()
    found = nmd.MatrixCompletion(1, random_state=0).fit_transform(frame)
    np.testing.assert_allclose(found[seen, 2], days[seen])
    assert not np.isnan(found).any()


def test_values_that_are_no_dates_or_no_numbers_are_refused():
    frame, when = of_dates()
    zones = [each.tz_localize(("UTC", "Asia/Tokyo")[k % 2]) for k, each in enumerate(when)]
    X = pd.DataFrame({"a": np.arange(30.0), "b": [True, False, True] * 10})
    numbers, dates = (nmd.sample(each, 1, **QUICK) for each in (X, frame))
    new = [
        pd.DataFrame({"a": [value], "b": [True]}, index=["new"])
        for value in ("abc", dt.date(2020, 1, 1), pd.Timestamp("2020-01-01"))
    ]
    check_all_refused([
        (r"several time zones.* column 'when': run `X\['when'\] = pd",
         lambda X: nmd.complete(X, 1), frame.assign(when=pd.Series(zones, dtype=object))),
        (r"dates in column 'when'.*: use fit\(X\)", nmd.NMD(1).partial_fit, frame),
        ("column 'a', which are no numbers: convert", numbers.impute, *new),
        ("column 'when', which are no dates: convert it with pd", dates.impute,
         frame.assign(when=1.0)),
    ])  # fmt: skip


def test_predictions_go_little_beyond_the_values_of_a_skewed_column():
    rng = np.random.default_rng(0)
    T = rng.normal(size=(300, 1)) + 0.3 * rng.normal(size=(300, 3))
    X = pd.DataFrame(np.exp(1.5 * T), columns=["a", "b", "c"])  # generated, and above 0
    X["d"] = -X["a"]
    X["c"] = X["c"].where(X["c"] < X["c"].quantile(0.6))  # the large ones are hidden
    posterior = nmd.sample(X, 2, draws=40, tune=30, random_state=0)
    ends, copies = posterior.intervals(X, 0.99), posterior.impute(X, n=20, random_state=0)
    least, most = X.min(), X.max() + 0.5 * X.std(ddof=0)
    least["d"] = X["d"].min() - 0.5 * X["d"].std(ddof=0)
    for column in X:
        for values in [ends[column], *(copy[column] for copy in copies)]:
            assert values.to_numpy().min() >= min(least[column], 0) - 1e-5
            assert values.to_numpy().max() <= most[column] + 1e-5
    assert max(copy["c"].max() for copy in copies) > X["c"].max()
    rows = np.flatnonzero(X["c"].isna())
    beyond = np.full(rows.size, 1e6)  # counts as the end
    assert np.isfinite(posterior.log_density(rows, ["c"] * rows.size, beyond)).all()
    new = X.iloc[:3].set_axis(["x", "y", "z"]).assign(a=[1e6, 2.0, 2.0], b=np.nan)
    filled = posterior.impute(new, random_state=0)
    assert filled.loc["x", "b"] > filled.loc["y", "b"]  # a value beyond all counts as the largest
    assert filled["b"].max() <= most["b"]
