"""`pool` against R's mice."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import nmd_lab as nmd

BY_MICE = json.loads((Path(__file__).parent / "pooled_by_mice.json").read_text())
"""Estimates and variances of each copy, and the summary of mice, by the call in R."""


@pytest.mark.parametrize("call", [call for call in BY_MICE if call != "source"])
def test_pool_equals_mice(call):
    case = BY_MICE[call]
    fits = [
        SimpleNamespace(params=pd.Series(b, case["terms"]), bse=np.sqrt(v))
        for b, v in zip(case["estimates"], case["variances"], strict=True)
    ]
    if case["df_complete"] is not None:
        fits = [SimpleNamespace(**vars(fit), df_resid=case["df_complete"]) for fit in fits]
    expected = pd.DataFrame(case["pooled"], pd.Index(case["terms"], name="term"))
    pd.testing.assert_frame_equal(nmd.pool(fits, level=0.9), expected, rtol=1e-10, atol=0)
    given = nmd.pool([(fit.params, fit.bse**2) for fit in fits], df=case["df_complete"], level=0.9)
    pd.testing.assert_frame_equal(given, expected, rtol=1e-10, atol=0)


def test_all_forms_of_results_are_pooled_alike():
    b, v = np.array([[1.0, 2.0], [1.5, 1.0], [0.5, 1.4]]), np.array([[0.2, 0.3]] * 3)
    names = SimpleNamespace(exog_names=["a", "b"])
    turned = [pd.Series(each[::-1], ["b", "a"]) for each in b]
    first = pd.Series(b[0], ["a", "b"])
    forms = [
        [SimpleNamespace(params=x, bse=np.sqrt(y), model=names) for x, y in zip(b, v, strict=True)],
        [(first, v[0]), (turned[1], v[1][::-1]), (turned[2], np.diag(v[2][::-1]))],
        [SimpleNamespace(params=pd.Series(x, ["a", "b"]), cov_params=lambda: np.diag(v[0]))
         for x in b],
    ]  # fmt: skip
    for form in forms:
        pd.testing.assert_frame_equal(nmd.pool(form), nmd.pool(forms[0], level=0.95))
    one = nmd.pool((float(x), float(y)) for x, y in zip(b[:, 0], v[:, 0], strict=True))
    assert one.iloc[0].tolist() == pytest.approx(nmd.pool(forms[0]).iloc[0].tolist())


@pytest.mark.parametrize(
    ("results", "error", "sentence"),
    [
        ([(1.0, 0.1)], ValueError, "results has 1 of them"),
        ([(1.0, 0.1), 2.0], TypeError, r"results\[1\] is a float"),
        ([(1.0, 0.1), ([1.0, 2.0], 0.1)], ValueError, r"results\[1\] has estimates of shape"),
        ([(1.0, 0.1), ([1.0, 2.0], [0.1, 0.1])], ValueError, "differ in the term 1"),
        ([(1.0, 0.1), (np.nan, 0.1)], ValueError, "an estimate of 0 that is not finite"),
        ([(1.0, 0.1), (1.0, -0.1)], ValueError, "not positive"),
    ],
)
def test_results_that_cannot_be_pooled_are_refused(results, error, sentence):
    with pytest.raises(error, match=sentence):
        nmd.pool(results)
