"""Columns without numbers are named all at once, with lines of code that mend them."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from nmd_lab.data.limits import GivenLimits
from nmd_lab.data.observations import observe


def mended(columns):
    """Return the message, and the names after its lines have run."""
    names = {"X": pd.DataFrame(columns), "pd": pd}
    with pytest.raises(TypeError) as caught:
        observe(names["X"])
    exec(str(caught.value).split("`")[1], names)
    return str(caught.value), names


def test_all_columns_are_named_and_mended_at_once():
    said, names = mended(
        {
            "age": [31.0, 50, 44, 20],
            "sex": ["f", "m", None, "f"],
            "stage": ["I", "I", "II", "II"],
            "name": list("abcd"),
            "lead": ["<0.5", "0.7", None, "> 100"],
            "when": pd.to_datetime(["2020-01-01"] * 4),
            "smoker": [True, None, False, True],
            "price": [Decimal("1.5"), None, Decimal(2), 1],
            "z": [1j, 2, 3, 4],
        }
    )
    assert said.startswith(
        "X has text in columns 'sex', 'stage', identifiers or free text in column 'name', limits "
        "such as '<0.5' in column 'lead', booleans among objects in column 'smoker', numbers as "
        "text or objects in column 'price' and neither numbers nor text in columns 'when', 'z': "
        "run `X = X.drop(columns=['name', 'when', 'z']); X[['sex', 'stage']] = "
        "X[['sex', 'stage']].astype('category'); "
    )
    assert said.endswith("`, and give at_most=at_most and at_least=at_least to nmd.complete.")
    limits = GivenLimits(at_most=names["at_most"], at_least=names["at_least"])
    seen = observe(names["X"], limits=limits)
    columns = seen.labels.table.labels
    assert columns == ["age", "sex=m", "stage=II", "lead", "smoker", "price"]
    nan = np.nan
    np.testing.assert_array_equal(seen.to_array()[:, 3], [0.5, 0.7, nan, 100])
    np.testing.assert_array_equal(seen.to_array()[:, 5], [1.5, nan, 2, 1])
    codes = seen.limits.codes.reshape(4, 6)
    assert codes[:, 3].tolist() == [1, 0, 0, 2]
    assert not np.delete(codes, 3, axis=1).any()


@pytest.mark.parametrize(
    ("values", "arguments"),
    [(["<0.5", 0.7], ["at_most"]), (["≤ 1", "3"], ["at_most"]), ([">=7", "2"], ["at_least"])],
)
def test_only_the_limits_that_are_there_are_advised(values, arguments):
    said, names = mended({"lead": values})
    assert [name for name in ("at_most", "at_least") if name in names] == arguments
    assert said.endswith(f"`, and give {arguments[0]}={arguments[0]} to nmd.complete.")
    observe(names["X"], limits=GivenLimits(**{arguments[0]: names[arguments[0]]}))


def test_text_alone_needs_one_line():
    said, names = mended({"a": [1.0, 2, 3], "b": ["x", "y", "x"]})
    assert said == "X has text in column 'b': run `X[['b']] = X[['b']].astype('category')`."
    assert observe(names["X"]).to_array()[:, 1].tolist() == [0, 1, 0]
