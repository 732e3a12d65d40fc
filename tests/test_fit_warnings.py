"""The warnings of a finished fit: each where it is due, with a remedy that helps."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from stored import stored

import nmd_lab as nmd


def low_rank(rank, share, noise=0.0, shape=(100, 80), seed=0):
    """Return a matrix and the mask of its observed entries."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1]))
    return X + noise * rng.normal(size=shape), rng.random(shape) < share


def told(verb, *arguments, **options):
    """Return a fit and its warnings."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        fit = verb(*arguments, random_state=0, **options)
    return fit, {each.category: str(each.message) for each in found}


@pytest.fixture(scope="module")
def ratings():
    """Ratings from 1 to 5 of 20 % of the pairs, in which 5 components find noise."""
    X, seen = low_rank(3, 0.2, noise=1.0)
    return np.clip(np.round(3 + X), 1, 5), seen


# Overfits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("container", [stored, lambda X, seen: np.where(seen, X, np.nan)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_predictions_far_from_the_data_are_told_of(ratings, container, dtype):
    X, seen = ratings
    fit, found = told(nmd.complete, container(X.astype(dtype), seen), 5, alpha=0, max_iter=100)
    model = fit.reconstruct().values
    assert model.max() > 10 or model.min() < -4
    message = found[nmd.warnings.OverfitWarning]
    assert "though X lies between 1 and 5: give a ridge (alpha), validation=0.1 or a" in message
    assert issubclass(nmd.warnings.OverfitWarning, nmd.warnings.NMDWarning)
    advice = found[nmd.warnings.NotConvergedWarning]  # more iterations harm
    assert "raise max_iter" not in advice
    assert "give a ridge (alpha) or validation=0.1" in advice


@pytest.mark.parametrize("size", [1e-30, 1e-6, 1e6, 1e30])
def test_they_do_not_depend_on_the_size_of_the_data(ratings, size):
    X, seen = ratings
    _, found = told(nmd.complete, stored(X * size, seen), 5, alpha=0, max_iter=100)
    assert f"between {size:.3g} and {5 * size:.3g}:" in found[nmd.warnings.OverfitWarning]
    X, seen = low_rank(3, 0.6)
    data = np.where(seen, X * size, np.nan)
    assert not told(nmd.complete, data, 3, alpha=0, max_iter=1000)[1]


def test_the_advice_follows_the_options(ratings):
    data = stored(*ratings)
    options = {"alpha": 1e-6, "validation": 0.01, "max_iter": 100, "solver": nmd.ADMM(patience=100)}
    _, found = told(nmd.complete, data, 12, **options)
    assert "give a larger alpha or a smaller rank." in found[nmd.warnings.OverfitWarning]


@pytest.mark.parametrize("share", [0.3, 0.5, 0.8])
@pytest.mark.parametrize("rank", [2, 5])
@pytest.mark.parametrize(
    ("f", "loss"),
    [(f, "frobenius") for f in ("identity", "relu", "modulus")] + [("identity", "l1")],
)
def test_no_false_alarm_on_fits_that_are_determined(share, rank, f, loss):
    X, seen = low_rank(rank, share)
    X = {"identity": X, "relu": np.maximum(X, 0), "modulus": np.abs(X)}[f]
    fit, found = told(nmd.complete, X, rank, f, loss, observed=seen, alpha=0, max_iter=300)
    error = np.sqrt(np.mean((fit.reconstruct().values - X)[~seen] ** 2))
    if error < 0.5 * np.std(X):
        assert nmd.warnings.OverfitWarning not in found


@pytest.mark.parametrize("verb", [nmd.complete, partial(nmd.sample, draws=20, tune=20)])
def test_values_that_are_all_equal_are_told_of(verb):
    ones, seen = np.ones((20, 6)), np.random.default_rng(0).random((20, 6)) < 0.7
    gaps = np.where(seen, ones, np.nan)
    equal = "all observed values are equal to 1, so nothing can be learned from them"
    clicks = f'{equal}: decompose(csr, rank, "identity", "kl") treats absent entries as zeros.'
    frame = pd.DataFrame(gaps, columns=[*"abcdef"])
    for X, text in ((stored(ones, seen), clicks), (gaps, f"{equal}."), (frame, f"{equal}.")):
        assert told(verb, X, 1)[1][nmd.warnings.NMDWarning] == text
    for X in (frame.assign(a=np.arange(20.0)), ones):
        assert nmd.warnings.NMDWarning not in told(verb, X, 1)[1]
    zeros = told(nmd.decompose, stored(ones, seen), 1, "identity", "kl")[1]
    assert nmd.warnings.NMDWarning not in zeros


def test_more_iterations_are_the_advice_where_they_help():
    X, seen = low_rank(3, 0.7, noise=0.1)
    _, found = told(nmd.complete, np.where(seen, X, np.nan), 3, alpha=0, max_iter=3)
    assert "raise max_iter" in found[nmd.warnings.NotConvergedWarning]


# Rows and columns without an entry -------------------------------------------------------------


@pytest.mark.parametrize("container", [stored, lambda X, seen: np.where(seen, X, np.nan)])
@pytest.mark.parametrize(
    ("rows", "columns", "words"),
    [([3], [], "1 row, w"), ([], [1, 2], "2 columns, w"), ([0, 5], [7], "2 rows and 1 column, w")],
)
def test_empty_rows_and_columns_are_told_of(container, rows, columns, words):
    X, seen = low_rank(2, 0.7)
    seen[rows], seen[:, columns] = False, False
    data = container(X, seen)
    fit, found = told(nmd.complete, data, 2, alpha=0)
    message = found.pop(nmd.warnings.UnobservedWarning)
    assert message.startswith(f"X has no observed entry in {words}")
    assert "offsets='both'" in message
    assert not found
    assert not fit.reconstruct().values[rows].any()
    _, found = told(nmd.complete, data, 2, alpha=0, offsets="both")
    assert nmd.warnings.UnobservedWarning not in found


# Cells that may be missing -----------------------------------------------------------------------


def usual():
    """Return a table without anything to say of, with holes."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=90)
    frame = pd.DataFrame(
        {"x": 20 + z, "y": z + 0.2 * rng.normal(size=90), "w": np.where(z > 0, "yes", "no")}
    )
    frame.loc[30:40, "x"] = np.nan
    return frame


def with_cells(column, value, rows=slice(0, 12)):
    frame = usual()
    frame.loc[rows, column] = value
    return frame


IN_BOTH = {
    "sample": lambda X, **options: nmd.sample(X, 1, draws=4, tune=2, random_state=0, **options),
    "complete": lambda X, **options: nmd.complete(X, 1, alpha=1.0, random_state=0, **options),
    "estimator": lambda X, **options: nmd.MatrixCompletion(1, alpha=1.0, random_state=0).fit(X),
}


@pytest.mark.parametrize("call", IN_BOTH.values(), ids=IN_BOTH)
@pytest.mark.parametrize(
    ("column", "value", "remedy"),
    [
        ("w", text, rf"replace\({{{text!r}: None}}\)".replace("?", r"\?"))
        for text in ("", "NA", "?", " ", "None", "unknown")
    ]
    + [("x", code, rf"mask\(X\['x'\] == {code}\)") for code in (-999, 9999)],
)  # fmt: skip
def test_what_may_mean_missing_is_told_of_and_not_changed(call, column, value, remedy):
    X = with_cells(column, value)
    before = X.copy()
    with pytest.warns(nmd.warnings.NMDWarning, match=remedy) as caught:
        call(X)
    assert len([w for w in caught if w.category is nmd.warnings.NMDWarning]) == 1
    pd.testing.assert_frame_equal(X, before)


@pytest.mark.parametrize("value", [-1.0, 0.0, 30.0, "maybe", "none"])
def test_usual_values_are_no_codes(value):
    IN_BOTH["complete"](with_cells("w" if isinstance(value, str) else "x", value))
    few = with_cells("x", -999, rows=[3, 4])  # an outlier, twice
    IN_BOTH["complete"](few)


@pytest.mark.parametrize("name", ["sample", "complete"])
def test_a_missing_cell_that_is_said_to_be_observed_is_told_of(name):
    X = usual()
    observed = X.notna()
    IN_BOTH[name](X, observed=observed)  # without a word
    observed.loc[33, "x"] = True
    with pytest.warns(nmd.warnings.NMDWarning, match="no value, first at row 33, column 'x'"):
        fit = IN_BOTH[name](X, observed=observed)
    assert fit.impute(X).notna().all(axis=None)


@pytest.mark.parametrize("options", [{}, {"offsets": "columns"}])
def test_rows_without_any_cell_are_told_of(options):
    X = usual()
    X.loc[[7, 9]] = None
    call = IN_BOTH["complete" if options else "sample"]
    with pytest.warns(
        nmd.warnings.UnobservedWarning, match="no observed cell in row 7, 9, which get means"
    ):
        filled = call(X, **options).impute(X)
    assert filled.notna().all(axis=None)
