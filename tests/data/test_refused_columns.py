"""Columns without numbers are named with what to do; limits as text become numbers and masks."""

import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from helpers import check_all_refused

import nmd_lab as nmd
from nmd_lab.data.inputs import observe

VALUES = ["0.7", "<0.5", "1.2", "ND", "2.5", "0.9", "<0.5", "3.1"]


def refusal(columns):
    """Return the message about the columns of a table."""
    with pytest.raises(TypeError) as caught:
        observe(pd.DataFrame(columns))
    return str(caught.value)


def test_all_columns_are_named_at_once_with_what_to_do():
    said = refusal(
        {
            "age": [31.0, 50, 44, 20],
            "sex": ["f", "m", None, "f"],
            "stage": ["I", "I", "II", "II"],
            "name": list("abcd"),
            "lead": ["<0.5", "0.7", None, "> 100"],
            "took": pd.to_timedelta([60, None, 90, 60], unit="s"),
            "both": ["a", 1, "a", 2],
            "none": [None] * 4,
            "smoker": [True, None, False, True],
            "price": [Decimal("1.5"), None, Decimal(2), 1],
            "z": [1j, 2, 3, 4],
        }
    )
    assert said == (
        "X has identifiers or free text in column 'name': run `X = X.drop(columns=['name'])`, or "
        "nmd.observations_from_table() if each line is one observation; numbers together with "
        "'<0.5' and '> 100' in column 'lead': run `X, limits = nmd.censored(X)`, and give **limits "
        "with X; numbers as text or objects in column 'price': run "
        "`X[['price']] = X[['price']].apply(pd.to_numeric)`; durations in column 'took': run "
        "`X[['took']] = X[['took']] / pd.Timedelta(seconds=1)`; values of several types in column "
        "'both': run `X = X.drop(columns=['both'])`; no value in column 'none': run "
        "`X = X.drop(columns=['none'])`; neither numbers nor text in column 'z': run "
        "`X = X.drop(columns=['z'])`."
    )


def test_text_with_few_values_is_taken_for_classes_even_if_these_have_a_sign():
    X = pd.DataFrame({"a": np.arange(12.0), "b": ["x", None, "x"] * 4, "c": ["u", "v", "u"] * 4})
    X = X.assign(age=["<30", "30-50", ">50"] * 4, n=["0", "1", "2+"] * 4)
    with_sign = ["age=30-50", "age=<30", "age=>50", "n=0", "n=1", "n=2+"]
    assert observe(X).labels.table.labels == ["a", "b=x", "c=v", *with_sign]


def test_the_line_of_each_kind_does_what_it_says():
    X = pd.DataFrame({"x": np.arange(8.0), "name": list("abcdefgh"), "price": list("13221321")})
    X["took"] = pd.to_timedelta([60, None] * 4, unit="s")
    X["lead"] = ["0.7", "<0.5", "1.2", None, "2.5", "0.9", "<0.5", "3.1"]
    names = {"X": X, "pd": pd, "nmd": nmd}
    for line in re.findall("`(.*?)`", refusal(X)):
        exec(line, names)
    np.testing.assert_array_equal(names["X"]["took"], [60, np.nan] * 4)
    np.testing.assert_array_equal(names["X"]["lead"], [0.7, 0.5, 1.2, np.nan, 2.5, 0.9, 0.5, 3.1])
    assert names["limits"]["at_most"]["lead"].sum() == 2
    assert observe(names["X"]).n_observed == 8 + 8 + 4 + 7


NUMBERS = [f"{k / 7:.3f}" for k in range(20)]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"b": [f"town {k // 4}" for k in range(400)]}, "identifiers or free text in column 'b'"),
        ({"person": list("aabb"), "film": list("wxyz"), "mark": [1.0, 3, 2, 5]},
         "or nmd.observations_from_table() if each line is one observation."),
        *(({"lead": [limit, "7"]}, f"{limit!r} in") for limit in ("<0.5", "≤ 1", ">=7", "< 0,5")),
        ({"lead": ["<0.5", "<0.2", "<0.3", "0.7", "<0.1", "<1"]}, "'<0.5' and '<0.2' and '<0.3'"),
        ({"lead": ["0,5", "1,2", "0,7"]}, "'0,5' and '1,2'"),
        ({"lead": [*["ND"] * 20, *NUMBERS[:6]]}, "'ND' in column 'lead'"),
        ({"lead": VALUES, "iron": ["9", "<2", *VALUES[2:6], "0.8", "3.1"]},
         "'<0.5' and 'ND' and '<2' in columns"),
        ({"lead": [*NUMBERS, "lost"]}, "'lost' in column 'lead'"),
        # a usual word for "below a limit" makes no classes of numbers that repeat
        *(({"lead": [word, *(f"{k % 8 / 10}" for k in range(40))]}, f"{word!r} in column 'lead'")
          for word in ("ND", "n.d.", "trace", "<LOD")),
    ],
)  # fmt: skip
def test_text_and_words_among_numbers_are_named(columns, words):
    said = refusal(columns)
    assert words in said
    assert said.startswith("X has numbers together with ") == ("lead" in columns)


NO, MOST, LEAST = 0, 1, 2  # no limit, an upper and a lower one

TEXTS = {
    "0.7": (0.7, NO), " 1e-3 ": (0.001, NO), "1,200.5": (1200.5, NO), "-2": (-2.0, NO),
    "1 200": (1200.0, NO), "1\N{NO-BREAK SPACE}000": (1000.0, NO), "1'200": (1200.0, NO),
    "<0.5": (0.5, MOST), "< 0.5": (0.5, MOST), "<= 2": (2.0, MOST), "=<2": (2.0, MOST),
    "≤3": (3.0, MOST), "\N{FULLWIDTH LESS-THAN SIGN}4": (4.0, MOST), "<.5": (0.5, MOST),
    "> 200": (200.0, LEAST), ">=200": (200.0, LEAST), "≥ 1,000": (1000.0, LEAST),
    "ND": (0.1, MOST), "n.d.": (0.1, MOST), "N/D": (0.1, MOST), "<LOD": (0.1, MOST),
    "BDL": (0.1, MOST), "Not detected": (0.1, MOST), "non-detect": (0.1, MOST),
    "trace": (0.1, MOST), "< LOQ": (0.1, MOST), None: (np.nan, NO),
}  # fmt: skip
"""Number and limit of a text in a column with decimal points; 0.1 is the limit of words."""


def test_each_text_is_its_number_and_its_limit():
    frame = pd.DataFrame({"lead": [*TEXTS]}, [f"s{k}" for k in range(len(TEXTS))], dtype=object)
    before = frame.copy()
    values, limits = nmd.censored(frame, limits=0.1)
    numbers, kinds = zip(*TEXTS.values(), strict=True)
    np.testing.assert_array_equal(values["lead"], numbers)
    found = MOST * limits["at_most"]["lead"] + LEAST * limits["at_least"]["lead"]
    np.testing.assert_array_equal(found, kinds)
    assert all(mask.index.equals(frame.index) for mask in limits.values())
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["< 0,5", "1.200,5", "3"], [0.5, 1200.5, 3.0]),
        (["<0,500", "1.200"], [0.5, 1200.0]),
        ([0.7, "<0,5", 1200.25], [0.7, 0.5, 1200.25]),  # numbers of a spreadsheet among texts
        (["<1,234", "0.5"], [1234.0, 0.5]),
    ],
)
def test_a_column_has_decimal_points_or_decimal_commas(texts, numbers):
    values, _ = nmd.censored(pd.DataFrame({"lead": pd.Series(texts, dtype=object)}))
    assert values["lead"].tolist() == numbers


def test_other_columns_and_sides_without_limits_are_left_as_they_are():
    frame = pd.DataFrame(
        {
            "lead": ["<1", "3", None, "2"],
            "age": ["<30", "30-50", ">50", "<30"],
            "old": ["<50", ">=50", ">=50", "<50"],
            "when": pd.date_range("2020", periods=4),
            "sex": pd.Categorical(list("mfmf")),
            "n": [1, 2, 3, 4],
        }
    )
    values, limits = nmd.censored(frame)
    pd.testing.assert_frame_equal(values.drop(columns="lead"), frame.drop(columns="lead"))
    assert list(limits) == ["at_most"]
    found = limits["at_most"].sum()
    assert found.to_dict() == {"lead": 1, "age": 0, "old": 0, "when": 0, "sex": 0, "n": 0}
    assert nmd.censored(frame[["n"]])[1] == {}


def test_the_limit_of_words_is_that_of_their_column():
    frame = pd.DataFrame({"lead": ["ND", "1", "2"], "zinc": ["<3", "nd", "7"]})
    values, _ = nmd.censored(frame, limits={"lead": 0.5, "zinc": 2})
    assert values.iloc[:2].to_numpy().tolist() == [[0.5, 3.0], [1.0, 2.0]]


def test_what_is_not_clear_is_refused():
    lead = lambda texts: nmd.censored(pd.DataFrame({"lead": texts}))  # noqa: E731
    some = lambda limits: nmd.censored(pd.DataFrame({"lead": ["ND", "1", "2"]}), limits)  # noqa: E731
    check_all_refused([
        (r"'lead' has 2 cells such as 'ND' below .* give limits=\{'lead': \.{3}\}", lead,
         ["ND", "1", "n.d."]),
        ("'<0.5 mg/L', which is no num", lead, ["<0.5 mg/L", "1", "2", "3", "4", "5"]),
        ("'7,123', .* a comma that may be decimal", lead, [*"12345", "7,123"]),
        (r"give limits=\{'lead': ", some, {"zinc": 1}),
        ("limits of 'lead'=inf is out of range", some, np.inf),
        ("limits of 'lead'='0.5' is not a number", some, "0.5"),
        ("frame is a list: give a DataFrame", nmd.censored, [["<0.5"]]),
    ])  # fmt: skip


def test_a_frame_of_another_library_stays_one():
    pl = pytest.importorskip("polars")
    values, limits = nmd.censored(pl.DataFrame({"lead": ["0.7", "<0.5"], "n": [1, 2]}))
    assert values.schema == {"lead": pl.Float64, "n": pl.Int64}
    assert limits["at_most"].to_numpy().tolist() == [[False, False], [True, False]]
