"""`pool`, `pool_test` and `pool_covariance` against R's mice."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from helpers import check_all_refused
from scipy import stats

import nmd_lab as nmd

BY_MICE = json.loads((Path(__file__).parent / "pooled_by_mice.json").read_text())
"""Estimates and variances of each copy, and the summary of mice, by the call in R."""
TESTED_BY_MICE = json.loads((Path(__file__).parent / "tested_by_mice.json").read_text())
"""Estimates and covariances of each copy, their pooled covariances, and D1 with several df."""
COVARIANCE = np.array([[0.2, 0.1], [0.1, 0.3]])


@pytest.mark.parametrize("call", [call for call in BY_MICE if call != "source"])
def test_pool_equals_mice(call):
    case, df = BY_MICE[call], BY_MICE[call]["df_complete"] or np.inf
    fits = [
        SimpleNamespace(params=pd.Series(b, case["terms"]), bse=np.sqrt(v), df_resid=df)
        for b, v in zip(case["estimates"], case["variances"], strict=True)
    ]
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
    lifelines = [
        SimpleNamespace(
            params_=x, variance_matrix_=pd.DataFrame(np.diag(y), list("ab"), list("ab"))
        )
        for x, y in zip([first, *turned[1:]], v, strict=True)
    ]
    pd.testing.assert_frame_equal(nmd.pool(lifelines), nmd.pool(forms[0]))
    one = nmd.pool((float(x), float(y)) for x, y in zip(b[:, 0], v[:, 0], strict=True))
    assert one.iloc[0].tolist() == pytest.approx(nmd.pool(forms[0]).iloc[0].tolist())


def fits_of(case):
    """Return results with what a fit of statsmodels has, df_resid apart."""
    names = case["terms"]
    return [
        SimpleNamespace(
            params=pd.Series(b, names), cov_params=lambda v=v: pd.DataFrame(v, names, names)
        )
        for b, v in zip(case["estimates"], case["covariances"], strict=True)
    ]


@pytest.mark.parametrize("call", [call for call in TESTED_BY_MICE if call != "source"])
def test_joint_tests_and_pooled_covariances_equal_mice(call):
    case = TESTED_BY_MICE[call]
    fits = fits_of(case)
    lines = pd.Index(case["terms"], name="term")
    total = pd.DataFrame(case["total"], lines, lines)
    pd.testing.assert_frame_equal(nmd.pool_covariance(fits), total, rtol=1e-10, atol=0)
    tests = [(case["tested"], expected) for expected in case["tests"]]
    tests += [(case["contrasts"], expected) for expected in case.get("contrasts_tests", [])]
    for contrasts, expected in tests:
        found = nmd.pool_test(fits, contrasts, df=expected["df"] or np.inf)
        pd.testing.assert_series_equal(found, pd.Series(expected).drop("df"), rtol=1e-10, atol=0)


def test_a_pooled_contrast_equals_that_of_a_model_with_another_first_level():
    case = next(case for case in TESTED_BY_MICE.values() if "contrasts" in case)
    fits, name = fits_of(case), "60-99 - 40-59"
    for contrasts in (case["contrasts"], pd.DataFrame(case["contrasts"])):
        found = nmd.pool(fits, contrasts, df=case["df_complete"]).loc[name]
        assert found.to_dict() == pytest.approx(case["pooled"], rel=1e-10)
    listed = nmd.pool(fits, ["chl", "hypyes"])
    pd.testing.assert_frame_equal(listed, nmd.pool(fits).loc[["chl", "hypyes"]])
    total = nmd.pool_covariance(fits)
    weights = pd.DataFrame(case["contrasts"]).reindex(total.index).fillna(0)
    pd.testing.assert_frame_equal(
        nmd.pool_covariance(fits, case["contrasts"]), weights.T @ total @ weights, check_names=False
    )


@pytest.mark.parametrize("df", [3, 20, np.inf])
@pytest.mark.parametrize("m", [2, 3, 5])
def test_with_few_copies_one_term_is_tested_as_pool_tests_it(m, df):
    pairs = [([1.0 + k, 2.0], COVARIANCE) for k in range(m)]
    found, alone = nmd.pool_test(pairs, [0], df=df), nmd.pool(pairs, df=df).loc[0]
    assert found["statistic"] == pytest.approx(alone["statistic"] ** 2)
    for column in ("p_value", "variance_increase"):
        assert found[column] == pytest.approx(alone[column])


def test_small_degrees_of_freedom_and_copies_that_agree_have_a_p_value():
    apart = [([1.0 + k, 2.0 - 2 * k], COVARIANCE) for k in range(8)]
    alike = [([1.0, 2.0], COVARIANCE)] * 8
    for pairs, df in [(apart, 1.0), (apart, 5.0), (alike, np.inf), (alike, 5.0)]:
        found = nmd.pool_test(pairs, [0, 1], df=df)
        assert 0 < found["df2"] < np.inf
        assert 0 < found["p_value"] < 1
    wald = np.array([1.0, 2.0]) @ np.linalg.inv(COVARIANCE) @ [1.0, 2.0]
    complete = nmd.pool_test(alike, [0, 1])
    assert complete["statistic"] == pytest.approx(wald / 2)
    assert complete["p_value"] == pytest.approx(stats.chi2.sf(wald, 2), rel=1e-6)


def test_terms_of_two_levels_are_pooled_as_those_of_one():
    two = pd.MultiIndex.from_tuples([("mu", "age"), ("mu", "Intercept"), ("sigma", "Intercept")])
    rng = np.random.default_rng(0)
    covariance = np.cov(rng.normal(size=(3, 9)))
    copies = rng.normal(size=(4, 3))
    fits = [
        SimpleNamespace(
            params_=pd.Series(b, two), variance_matrix_=pd.DataFrame(covariance, two, two)
        )
        for b in copies
    ]
    pairs = [(b, covariance) for b in copies]
    pd.testing.assert_frame_equal(nmd.pool(fits), nmd.pool(pairs).set_axis(two))
    difference = {"of age": {two[0]: 1, two[2]: -2}}
    expected = nmd.pool(pairs, {"of age": {0: 1, 2: -2}})
    pd.testing.assert_frame_equal(nmd.pool(fits, difference), expected)
    found, expected = nmd.pool_test(fits, list(two[:2])), nmd.pool_test(pairs, [0, 1])
    pd.testing.assert_series_equal(found, expected)


def test_what_cannot_be_pooled_or_tested_is_refused():
    names, pool = ["a", "b", "copy of a"], nmd.pool
    one, two = (1.0, 0.1), pd.Series([1.0, 2.0], ["a", "b"])
    covariance = pd.DataFrame([[0.2, 0.1, 0.2], [0.1, 0.3, 0.1], [0.2, 0.1, 0.2]], names, names)
    pairs = [(pd.Series([1.0, 2.0, 1.0], names), covariance)] * 2
    test, variances = lambda contrasts: nmd.pool_test(pairs, contrasts), [(two, [0.2, 0.3])] * 2
    check_all_refused([
        ("results has 1 of them", pool, [one]),
        (r"results\[1\] is a float", pool, [one, 2.0]),
        (r"results\[1\] has estimates of shape", pool, [one, ([1.0, 2.0], 0.1)]),
        ("differ in the term 1", pool, [one, ([1.0, 2.0], [0.1, 0.1])]),
        ("an estimate of 0 that is not finite", pool, [one, (np.nan, 0.1)]),
        ("not positive", pool, [one, (1.0, -0.1)]),
        (r"results\[1\] is a Simple", pool, [one, SimpleNamespace(params=1.0)]),
        ("'a', or have it twice", pool, [(two.set_axis(["a", "a"]), COVARIANCE)] * 2),
        (r"results\[0\] and the estimates of results\[0\] differ", pool,
         [(two, pd.DataFrame(COVARIANCE))] * 2),
        ("has no weights", test, [], {"a": 1, "b": -1}),
        ("the term 'c'", test, ["a", "c"]),
        ("an estimate of 'none'", test, {"none": {"a": 0}}),
        ("depend on each other", test, ["a", "copy of a"],
         {"up": {"a": 1, "b": -1}, "down": {"a": -1, "b": 1}}),
        ("covariance matrix, which contrasts need", nmd.pool_covariance, variances),
        ("covariance matrix, which contrasts need", lambda pairs: pool(pairs, ["a"]), variances),
    ])  # fmt: skip
