"""What a fit and a posterior have in common: predictions, rankings, files, labels that X lacks."""

import fits
import numpy as np
import pandas as pd
import pytest
from helpers import check_all_refused
from made_draws import made_up
from scipy import sparse

import nmd_lab as nmd

ROWS, COLUMNS = [f"u{i}" for i in range(12)], list("abcdef")
RNG = np.random.default_rng(0)
X = pd.DataFrame(3 + RNG.normal(size=(12, 2)) @ RNG.normal(size=(2, 6)), ROWS, COLUMNS)
NEW = X.iloc[:3].set_axis(["n0", "n1", "n2"]).copy()
NEW.iloc[1] = np.nan


@pytest.fixture(scope="module")
def fit():
    return nmd.complete(X, 2, "relu", alpha=0.1, offsets="both", random_state=0, max_iter=30)


@pytest.fixture(scope="module")
def posterior():
    options = {"noise_by": "one", "offsets": "both", "random_state": 0, "progress": False}
    return nmd.sample(X, 2, draws=10, tune=10, **options)


@pytest.fixture(params=["fit", "posterior"])
def result(request):
    return request.getfixturevalue(request.param)


def test_one_prediction_whatever_names_its_entry(result):
    whole = result.reconstruct()
    assert whole.dims == ("row", "column")
    by_label = result.predict(["u3", "u7"], ["c", "a"])
    np.testing.assert_array_equal(by_label, result.predict([3, 7], [2, 0]))
    np.testing.assert_allclose(by_label, [whole[3, 2], whole[7, 0]], rtol=1e-6)
    test = pd.DataFrame([[np.nan, 2.0], [1.0, 0.5]], ["u7", "u3"], ["c", "a"])
    found = result.predict(test)
    assert found.index.equals(test.index)
    wanted = whole.sel(row=test.index, column=test.columns) + 0 * test
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    matrix = sparse.csr_array(([3.0, 4.0], ([3, 7], [2, 0])), shape=(12, 6))
    np.testing.assert_allclose(result.predict(matrix).data, by_label, rtol=1e-6)


OTHERS = {
    "mixed table": lambda: fits.of_people()[2],  # with members, groups and cut points
    "noise after f": lambda: made_up(X, "minmax", "l1", "after"),
    "ordinal": lambda: made_up(X, noise="ordinal"),
}


@pytest.mark.parametrize("kind", ["fit", "posterior", *OTHERS])
def test_a_file_gives_the_same_bits_predictions_rankings_and_texts(kind, request, read_back):
    result = OTHERS[kind]() if kind in OTHERS else request.getfixturevalue(kind)
    again = read_back(result)
    assert type(again) is type(result)
    assert again.reconstruct().identical(result.reconstruct())
    assert again.top([3, 1], 2).identical(result.top([3, 1], 2))
    for name in ("parameters", "nonlinearity", "loss", "stop_reason"):
        assert getattr(again, name) == getattr(result, name)
    assert (repr(again), again._repr_html_()) == (repr(result), result._repr_html_())
    if isinstance(result, nmd.Posterior):
        assert again.draws.identical(result.draws)
        assert again.trace.identical(result.trace)
        for name in ("mean", "noise", "levels", "_model"):
            assert getattr(again, name) == getattr(result, name)


def expected(result, row, column):
    """Return the prediction from the offsets that there are, by their definition."""
    at = lambda labels, label: labels.index(label) if label in labels else None  # noqa: E731
    i, j = at(ROWS, row), at(COLUMNS, column)
    if isinstance(result, nmd.Decomposition):
        mean, b, c = result.offsets
        return max(mean + (0 if i is None else b[i]) + (0 if j is None else c[j]), 0)
    b, c = (result.draws[name].values for name in ("row_offsets", "column_offsets"))
    v = result.mean + (0 if i is None else b[..., i]) + (0 if j is None else c[..., j])
    return np.mean(v)


@pytest.mark.parametrize(("row", "column"), [("zed", "a"), ("u1", "zz"), ("zed", "zz")])
def test_what_is_unknown_is_predicted_from_offsets(result, row, column):
    found = result.predict([row, "u2"], [column, "b"], unknown="offsets")
    np.testing.assert_allclose(found[0], expected(result, row, column), rtol=1e-6)
    np.testing.assert_array_equal(found[1:], result.predict("u2", "b"))
    frame = pd.DataFrame(1.0, ["u2", row], ["b", column])
    table = result.predict(frame, unknown="offsets")
    np.testing.assert_allclose(table.loc[row, column], found[0], rtol=1e-6)
    np.testing.assert_allclose(table.loc["u2", "b"], found[1], rtol=1e-6)


def test_a_fit_without_offsets_predicts_f_of_0():
    plain = nmd.complete(X, 2, alpha=0.1, offsets="none", random_state=0, max_iter=5)
    assert plain.predict("zed", "a", unknown="offsets") == 0


def test_all_that_is_unknown_is_named_with_the_remedy(result):
    rows = ["u1", *(f"new {i}" for i in range(7))]
    frame = pd.DataFrame(1.0, rows, ["a"])
    check_all_refused([
        ("'new 0', .*'new 4' and 2 more: give unknown='offsets'",
         lambda rows: result.predict(rows, "a"), rows),
        (r"did you mean 'u1' \(or give unknown='offsets'\)\?",
         lambda row: result.predict(row, "a"), "uu1"),
        ("'new 4' and 2 more: .*, or give unknown='offsets'", result.predict, frame),
        ("unknown='mean' is unknown", lambda how: result.predict(frame, unknown=how), "mean"),
        ("no observed entry in the rows 'n1': .*'offsets'", result.fold_in, NEW),
        ("along 'column', such as 'zz': .*unknown='offsets'",
         result.fold_in, NEW.rename(columns={"a": "zz"})),
    ])  # fmt: skip


@pytest.mark.parametrize("as_sparse", [False, True])
def test_rows_without_entries_get_zeros(fit, as_sparse):
    holes = sparse.csr_array(NEW.fillna(0).values) if as_sparse else NEW
    W = fit.fold_in(holes, unknown="offsets")
    assert not W[1].any()
    assert W.offset[1] == 0
    np.testing.assert_array_equal(W[[0, 2]], fit.fold_in(NEW.iloc[[0, 2]]))
    assert not fit.fold_in(holes[[1]] if as_sparse else NEW.iloc[[1]], unknown="offsets").any()
    longer = fit.append(NEW, unknown="offsets")
    zeros = fit.predict("?", COLUMNS, unknown="offsets")
    np.testing.assert_allclose(longer.predict("n1", COLUMNS), zeros)


def test_unknown_columns_say_nothing_of_new_rows(fit):
    some = NEW[["b", "d"]].iloc[[0]]
    more = some.assign(zz=7.0)[["zz", "d", "b"]]
    np.testing.assert_array_equal(fit.fold_in(more, unknown="offsets"), fit.fold_in(some))


def test_columns_with_losses_of_their_own_have_none_for_an_unknown_column():
    frame = pd.DataFrame({"size": [1.0, 2, 3, 4], "adult": pd.array([True, False] * 2, "boolean")})
    mixed = nmd.complete(frame.set_axis(list("wxyz")), 1, alpha=0.1, random_state=0, max_iter=3)
    assert np.isfinite(mixed.predict("?", "size", unknown="offsets"))
    with pytest.raises(ValueError, match="columns has labels that the fit does not have"):
        mixed.predict("w", "age", unknown="offsets")


def test_estimators_predict_rows_without_entries_from_offsets():
    model = nmd.MatrixCompletion(2, alpha=0.1, offsets="columns", random_state=0).fit(X.values)
    mean, _, c = model.decomposition_.offsets
    for empty in (sparse.csr_array((1, 6)), np.full((1, 6), np.nan)):
        np.testing.assert_allclose(model.transform(empty)[0], mean + c)


def test_an_unknown_person_has_the_interval_of_a_row_from_the_prior():
    X = nmd.observations_from_table(nmd.datasets.make_ratings(60, 40, 700, random_state=0))
    posterior = nmd.sample(X, 2, draws=50, random_state=0)
    items = X.column_labels[:3]
    ends = posterior.predict_interval(["nobody"] * 3, items, unknown="offsets")
    empty = pd.Series([], dtype=float, name="nobody")
    folded = posterior.fold_in(empty, unknown="offsets").predict_interval("nobody", items)
    np.testing.assert_array_equal(ends, folded)
    known = posterior.predict_interval(X.row_labels[0], items)
    assert np.diff(ends).mean() > np.diff(known).mean()
    first, every = X.row_labels[0], X.column_labels
    pairs = ["nobody", "nobody", first], [items[0], "new", "new"]
    three = posterior.predict_interval(*pairs, unknown="offsets")
    np.testing.assert_array_equal(three[0], ends[0])
    nobody = posterior.fold_in(empty, unknown="offsets")
    for (low, _), rows, name in zip(three[1:], (nobody, posterior), ("nobody", first), strict=True):
        above = rows.probability(name, every, above=low).mean()  # of one of the items, at random
        assert above == pytest.approx(0.95, abs=0.04)
    with pytest.raises((KeyError, TypeError)):
        posterior.predict_interval("nobody", items)
