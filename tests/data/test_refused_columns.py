"""Columns without numbers are named all at once, with lines of code that mend them."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from nmd_lab.data.inputs import observe
from nmd_lab.data.masks import GivenLimits


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
            "when": pd.to_datetime(["2020-01-01", "2020-01-03", None, "2020-01-01"]),
            "took": pd.to_timedelta([60, None, 90, 60], unit="s"),
            "both": ["a", 1, "a", 2],
            "none": [None] * 4,
            "smoker": [True, None, False, True],
            "price": [Decimal("1.5"), None, Decimal(2), 1],
            "z": [1j, 2, 3, 4],
        }
    )
    assert said.startswith(
        "X has identifiers or free text in column 'name', limits such as '<0.5' in column 'lead', "
        "numbers as text or objects in column 'price', dates in column 'when', durations in column "
        "'took', values of several types in column 'both', no value in column 'none' and neither "
        "numbers nor text in column 'z': run `X = X.drop(columns=['name', 'both', 'none', 'z']); "
        "X[['price']] = X[['price']].apply(pd.to_numeric); X[['when']] = X[['when']].apply(lambda "
        "when: (when - "
    )
    assert said.endswith("`, and give at_most=at_most and at_least=at_least.")
    limits = GivenLimits(at_most=names["at_most"], at_least=names["at_least"])
    seen = observe(names["X"], limits=limits)
    columns = seen.labels.table.labels
    assert columns == ["age", "sex=m", "stage=II", "lead", "when", "took", "smoker", "price"]
    nan, codes = np.nan, seen.limits.codes.reshape(4, 8)
    times, others = [[0, 2, nan, 0], [60, nan, 90, 60]], [[1, nan, 0, 1], [1.5, nan, 2, 1]]
    expected = [[0.5, 0.7, nan, 100], *times, *others]
    np.testing.assert_array_equal(seen.to_array()[:, 3:].T, expected)
    assert codes[:, 3].tolist() == [1, 0, 0, 2]
    assert not np.delete(codes, 3, axis=1).any()


@pytest.mark.parametrize(
    ("values", "arguments"),
    [(["<0.5", 0.7], ["at_most"]), (["≤ 1", "3"], ["at_most"]), ([">=7", "2"], ["at_least"])],
)
def test_only_the_limits_that_are_there_are_advised(values, arguments):
    said, names = mended({"lead": values})
    assert [name for name in ("at_most", "at_least") if name in names] == arguments
    assert said.endswith(f"`, and give {arguments[0]}={arguments[0]}.")
    observe(names["X"], limits=GivenLimits(**{arguments[0]: names[arguments[0]]}))


def test_text_with_few_values_is_taken_for_classes():
    seen = observe(pd.DataFrame({"a": [1.0, 2, 3], "b": ["x", None, "x"], "c": ["u", "v", "u"]}))
    assert seen.labels.table.labels == ["a", "b=x", "c=v"]
    many = pd.DataFrame({"a": np.arange(400.0), "b": [f"town {k // 4}" for k in range(400)]})
    with pytest.raises(TypeError, match=r"free text in column 'b': run `X = X.drop\(columns"):
        observe(many)


VALUES = ["0.7", "<0.5", "1.2", "ND", "2.5", "0.9", "<0.5", "3.1"]


def test_words_among_limits_are_named_and_take_the_limit():
    said, names = mended({"lead": VALUES, "iron": ["> 9", "<2", *VALUES[2:6], "0.8", "3.1"]})
    assert said.startswith("X has limits such as '<0.5' and 'ND' in columns 'lead', 'iron': run `")
    assert names["X"]["iron"].tolist() == [9, 2, 1.2, 2, 2.5, 0.9, 0.8, 3.1]
    assert names["at_most"]["lead"].tolist() == [value in ("ND", "<0.5") for value in VALUES]
    assert names["X"]["lead"].tolist() == [0.7, 0.5, 1.2, 0.5, 2.5, 0.9, 0.5, 3.1]


def test_words_among_numbers_become_missing_and_the_other_reading_is_named():
    said, names = mended({"lead": [*(f"{k / 7:.3f}" for k in range(20)), "lost"]})
    assert "numbers together with 'lost' in column 'lead'" in said
    assert said.endswith("; where a word means below a limit, write '<' and the limit before.")
    assert names["X"]["lead"].isna().tolist() == [False] * 20 + [True]


@pytest.mark.parametrize("word", ["ND", "n.d.", "trace", "<LOD"])
def test_a_usual_word_for_below_a_limit_makes_no_classes_of_repeated_numbers(word):
    said, names = mended({"lead": [word, *(f"{k % 8 / 10}" for k in range(40))]})
    assert f"X has numbers together with {word!r} in column 'lead'" in said
    assert said.endswith(f".replace([{word!r}], '<LIMIT')` with the limit in place of LIMIT.")
    limits = mended(names["X"].replace("<LIMIT", "<0.05"))[1]
    assert limits["at_most"]["lead"].tolist() == [True] + [False] * 40
    assert limits["X"]["lead"][0] == 0.05


def test_classes_with_a_sign_stay_classes():
    columns = {"x": np.arange(12.0), "age": ["<30", "30-50", ">50"] * 4, "n": ["0", "1", "2+"] * 4}
    classes = ["age=30-50", "age=<30", "age=>50", "n=0", "n=1", "n=2+"]
    assert observe(pd.DataFrame(columns)).labels.table.labels == ["x", *classes]
