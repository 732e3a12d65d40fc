"""Limits as text become numbers and masks, whatever a laboratory writes."""

import numpy as np
import pandas as pd
import pytest
from refused import check_all_refused

import nmd_lab as nmd

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


def codes(limits, name):
    """Return the kind of limit of each cell of a column."""
    return sum(k * limits[side][name].to_numpy() for k, side in ((1, "at_most"), (2, "at_least")))


def test_each_text_is_its_number_and_its_limit():
    frame = pd.DataFrame({"lead": [*TEXTS]}, [f"s{k}" for k in range(len(TEXTS))], dtype=object)
    before = frame.copy()
    values, limits = nmd.censored(frame, limits=0.1)
    numbers, kinds = zip(*TEXTS.values(), strict=True)
    np.testing.assert_array_equal(values["lead"], numbers)
    np.testing.assert_array_equal(codes(limits, "lead"), kinds)
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
