"""Tables with booleans, levels and categories, as matrices of numbers and back."""

import numpy as np
import pandas as pd
import pytest

from nmd_lab.data.typed_table import table_of
from nmd_lab.warnings import NMDWarning


def frame():
    """Return a table with a column of each kind, each with a hole."""
    return pd.DataFrame(
        {
            "age": [31.0, np.nan, 54.0, 20.0],
            "visits": pd.array([1, 2, None, 0], dtype="Int64"),
            "smoker": pd.array([True, None, False, True], dtype="boolean"),
            "grade": pd.Categorical(["low", "high", None, "mid"], ["low", "mid", "high"], True),
            "dose": pd.Categorical([0.5, 2.0, None, 10.0], [0.5, 2.0, 10.0], True),
            "pet": pd.Categorical(["cat", None, "dog", "fish"]),
            "side": pd.Categorical(["left", "right", None, "left"]),
        },
        index=list("wxyz"),
    )


def test_each_kind_becomes_numbers():
    nan = np.nan
    encoded = table_of(frame()).encode(frame())
    assert list(encoded.index) == list("wxyz")
    expected = {
        "age": [31, nan, 54, 20],
        "visits": [1, 2, nan, 0],
        "smoker": [1, nan, 0, 1],
        "grade": [0, 2, nan, 1],
        "dose": [0.5, 2, nan, 10],
        "pet=cat": [1, nan, 0, 0],
        "pet=dog": [0, nan, 1, 0],
        "pet=fish": [0, nan, 0, 1],
        "side=right": [0, 1, nan, 0],
    }
    assert list(encoded.columns) == list(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(encoded[name], values)


def test_holes_are_filled_in_the_dtype_of_the_column():
    table, X = table_of(frame()), frame()
    fillers = [40.5, 1.75, 0.7, 1, 2, 0, 1]
    wanted = [40.5, 2, True, "mid", 10.0, "cat", "right"]
    for column, filler, value in zip(table.columns, fillers, wanted, strict=True):
        given, hole = X[column.name], X[column.name].isna()
        filled = column.filled(given, np.full(4, float(filler)), hole.to_numpy())
        assert (filled[~hole] == given[~hole]).all()
        assert filled[hole].tolist() == [value]
        assert filled.dtype == given.dtype


def test_other_rows_get_the_same_columns():
    """A class or level that these do not show says nothing, and stays what it is."""
    table, rows = table_of(frame()), frame().iloc[:3].assign(pet=["cat", "cow", None])
    rows["grade"] = pd.Categorical(["high", "top", None], ["top", "high"], ordered=True)
    with pytest.warns(NMDWarning, match=r"\['top'\] in .*'grade' and \['cow'\] in .*'pet'"):
        encoded = table.columns_of(rows).encode(rows)
    assert list(encoded.columns) == table.labels
    np.testing.assert_array_equal(encoded["grade"], [2, np.nan, np.nan])
    np.testing.assert_array_equal(encoded["pet=cat"], [1, np.nan, np.nan])
    grade = table.columns[3].filled(rows["grade"], np.array([2, 2, 1.0]), rows["grade"].isna())
    assert grade.tolist() == ["high", "top", "mid"]
    assert list(grade.cat.categories) == ["top", "mid", "high"]
