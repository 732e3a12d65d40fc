"""Columns without numbers are named all at once, with what they hold and what to do."""

import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

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


def test_text_with_few_values_is_taken_for_classes():
    seen = observe(pd.DataFrame({"a": [1.0, 2, 3], "b": ["x", None, "x"], "c": ["u", "v", "u"]}))
    assert seen.labels.table.labels == ["a", "b=x", "c=v"]


def test_the_line_of_each_kind_does_what_it_says():
    X = pd.DataFrame({"x": np.arange(8.0), "name": list("abcdefgh"), "price": list("13221321")})
    X["took"] = pd.to_timedelta([60, None] * 4, unit="s")
    X["lead"] = ["0.7", "<0.5", "1.2", None, "2.5", "0.9", "<0.5", "3.1"]
    with pytest.raises(TypeError) as refused:
        observe(X)
    names = {"X": X, "pd": pd, "nmd": nmd}
    for line in re.findall("`(.*?)`", str(refused.value)):
        exec(line, names)
    np.testing.assert_array_equal(names["X"]["took"], [60, np.nan] * 4)
    np.testing.assert_array_equal(names["X"]["lead"], [0.7, 0.5, 1.2, np.nan, 2.5, 0.9, 0.5, 3.1])
    assert names["limits"]["at_most"]["lead"].sum() == 2
    assert observe(names["X"]).n_observed == 8 + 8 + 4 + 7


NUMBERS = [f"{k / 7:.3f}" for k in range(20)]
REPEATED = [f"{k % 8 / 10}" for k in range(40)]


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
        *(({"lead": [word, *REPEATED]}, f"{word!r} in column 'lead'")
          for word in ("ND", "n.d.", "trace", "<LOD")),
    ],
)  # fmt: skip
def test_text_and_words_among_numbers_are_named(columns, words):
    said = refusal(columns)
    assert words in said
    assert said.startswith("X has numbers together with ") == ("lead" in columns)


def test_classes_with_a_sign_stay_classes():
    columns = {"x": np.arange(12.0), "age": ["<30", "30-50", ">50"] * 4, "n": ["0", "1", "2+"] * 4}
    classes = ["age=30-50", "age=<30", "age=>50", "n=0", "n=1", "n=2+"]
    assert observe(pd.DataFrame(columns)).labels.table.labels == ["x", *classes]
