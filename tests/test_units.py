"""Tables whose columns are in different units, and the warnings of a finished fit.

Each is where it is due, with a remedy that helps.
"""

import re
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from helpers import stored

import nmd_lab as nmd
from nmd_lab.data.inputs import observe
from nmd_lab.data.units import facts_of, units_of_columns

OF_UNITS = nmd.warnings.UnitsWarning
SCALES = np.array([1000.0, 100.0, 10.0, 1.0, 1.0, 0.1, 0.01, 0.01])


@pytest.fixture(scope="module")
def table():
    """Return a table of low rank in different units, and its missing entries."""
    rng = np.random.default_rng(0)
    plain = rng.normal(size=(150, 2)) @ rng.normal(size=(2, SCALES.size))
    truth = pd.DataFrame((plain + 0.1 * rng.normal(size=plain.shape) + 3) * SCALES).add_prefix("c")
    return truth, rng.random(truth.shape) < 0.2


def errors(filled, truth, hidden):
    """Return the RMSE of each column at missing entries, in standard deviations."""
    off = (np.asarray(filled) - truth.values) / truth.std().values
    return np.sqrt(np.sum(np.square(off) * hidden, axis=0) / hidden.sum(axis=0))


def all_told(function, *arguments, **options):
    """Return a result and its warnings, of which each category comes once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*arguments, random_state=0, **options)
    found = {each.category: str(each.message) for each in caught}
    assert len(found) == len(caught)
    return result, found


UNITS = [(1e-9, 0, "f8"), (1e12, 0, "f4"), (1, 1e9, "f8"), (2e4, 5e4, "f4"), (3e7, 1.7e9, "f8")]


@pytest.fixture(scope="module")
def related():
    """Return a table in one unit, whose choice has close rivals, and its missing entries."""
    rng = np.random.default_rng(0)
    plain = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 6)) + 0.3 * rng.normal(size=(300, 6))
    return pd.DataFrame(plain), rng.random(plain.shape) < 0.2


VERBS = {
    "complete": lambda X: (fit := nmd.complete(X, random_state=0), fit.impute(X), fit.chosen),
    "l1": lambda X: (fit := nmd.complete(X, 2, loss="l1", random_state=0), fit.impute(X), 0),
    "sample": lambda X: (posterior := nmd.sample(X, 2, draws=30, tune=30, random_state=0),
                         posterior.impute(X), posterior.noise),
    "estimator": lambda X: (model := nmd.MatrixCompletion(random_state=0),
                            model.fit_transform(X), model.alpha_),
}  # fmt: skip


@pytest.fixture(scope="module", params=VERBS)
def filled(request, related):
    """Return a verb, and what it fills and chooses in one unit."""
    truth, hidden = related
    X = truth * (1 if request.param != "l1" else 30.0 ** np.arange(6))  # of one unit without
    return VERBS[request.param], X, *VERBS[request.param](X.mask(hidden))[1:]


@pytest.mark.parametrize(("size", "shift", "dtype"), UNITS)
def test_the_unit_of_a_column_changes_nothing(related, filled, size, shift, dtype):
    verb, X, plain, chosen = filled
    columns = np.array([1, 1, 1, 1, size, 1]), np.array([0, 0, 0, 0, shift, 0])
    _, found, again = verb((X * columns[0] + columns[1]).mask(related[1]).astype(dtype))
    off = (np.asarray(found) - columns[1]) / columns[0] - np.asarray(plain)
    assert (np.abs(off) / X.std().to_numpy()).max() < 0.01
    if isinstance(chosen, dict):
        assert again.keys() == chosen.keys()
        assert again["alpha"] == pytest.approx(chosen["alpha"], rel=1e-4)
        assert [again["rank"], again["offsets"]] == [chosen["rank"], chosen["offsets"]]
    elif isinstance(chosen, float):
        assert again == pytest.approx(chosen, rel=1e-4)
    else:
        assert again == chosen


def test_far_predictions_are_those_of_a_column(related):
    """Values of one column hide nothing in another one."""
    truth, hidden = related
    X = (truth * [1, 1, 1, 1, 1e9, 1]).iloc[:30].mask(hidden[:30])
    with pytest.warns(nmd.warnings.OverfitWarning, match=r"missing entries of column [0-9]"):
        nmd.complete(X, 5, loss={}, alpha=0, offsets="none", max_iter=300, random_state=0)


def test_a_data_frame_is_fitted_in_the_units_of_its_columns(table):
    truth, hidden = table
    X = truth.mask(hidden)
    fit, found = all_told(nmd.complete, X, 2)
    assert OF_UNITS not in found
    assert errors(fit.impute(X), truth, hidden).max() < 0.5
    same = nmd.complete(X.values, 2, loss={}, random_state=0)
    np.testing.assert_array_equal(fit.reconstruct().values, same.reconstruct().values)


def test_a_data_frame_of_one_scale_may_have_another_nonlinearity(table):
    truth, hidden = table
    X = np.maximum(truth / SCALES - 3, 0).mask(hidden)
    assert nmd.complete(X, 2, random_state=0).nonlinearity == nmd.ReLU()
    limited = (truth / SCALES).clip(2, 4).mask(hidden)
    assert nmd.complete(limited, 2, random_state=0).nonlinearity == nmd.MinMax(2, 4)
    below = pd.DataFrame(False, truth.index, truth.columns).assign(c0=truth["c0"] < 3000)
    of_limits = (truth / SCALES).mask(hidden & ~below)
    assert nmd.complete(of_limits, 2, at_most=below, random_state=0).nonlinearity == nmd.Identity()


def test_an_array_is_warned_of(table):
    truth, hidden = table
    X = truth.mask(hidden).values
    fit, found = all_told(nmd.complete, X, 2)
    assert errors(fit.reconstruct(), truth, hidden).max() > 5  # why there is a warning
    assert re.search(r"column 0 has .*loss={}", found[OF_UNITS])
    assert OF_UNITS not in all_told(nmd.complete, X, 2, loss={})[1]
    far = truth.abs().assign(c0=1e9 * truth["c0"].abs()).mask(hidden)
    assert "column 'c0' has " in all_told(nmd.complete, far, 2, loss="kl")[1][OF_UNITS]


def test_one_nonlinearity_for_all_keeps_the_units_of_x(table):
    truth, hidden = table
    _, found = all_told(nmd.complete, truth.mask(hidden), 2, "identity", alpha=1.0)
    assert "column 'c0' has " in found[OF_UNITS]
    _, found = all_told(nmd.complete, truth, 2, "identity", alpha=1.0)
    assert OF_UNITS not in found  # nothing is missing


def test_the_sampler_warns(table):
    truth, hidden = table
    X = truth.mask(hidden)
    options = {"draws": 8, "tune": 2}
    assert OF_UNITS not in all_told(nmd.sample, X, 2, **options)[1]  # those of the columns
    _, found = all_told(nmd.sample, X.to_numpy(), 2, **options)
    assert "divide the columns by their standard deviations" in found[OF_UNITS]


def apart_in(X):
    return units_of_columns(facts_of(observe(X), by_column=True))


def test_pictures_and_ratings_have_one_unit():
    digits = nmd.datasets.digits()
    assert apart_in(digits) is None
    rng = np.random.default_rng(0)
    relu = np.maximum(rng.normal(size=(70, 3)) @ rng.normal(size=(3, 24)), 0)
    assert apart_in(relu) is None
    rare = rng.poisson(0.01 * np.arange(1, 31), size=(400, 30)).astype(float)
    assert apart_in(rare) is None
    assert apart_in(np.column_stack([rare[:, 29], np.full(400, 1e9)])) is None


def low_rank(rank, share, noise=0.0, shape=(100, 80), seed=0):
    """Return a matrix and the mask of its observed entries."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1]))
    return X + noise * rng.normal(size=shape), rng.random(shape) < share


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
    fit, found = all_told(nmd.complete, container(X.astype(dtype), seen), 5, alpha=0, max_iter=100)
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
    _, found = all_told(nmd.complete, stored(X * size, seen), 5, alpha=0, max_iter=100)
    assert f"between {size:.3g} and {5 * size:.3g}:" in found[nmd.warnings.OverfitWarning]
    X, seen = low_rank(3, 0.6)
    data = np.where(seen, X * size, np.nan)
    assert not all_told(nmd.complete, data, 3, alpha=0, max_iter=1000)[1]


def test_the_advice_follows_the_options(ratings):
    data = stored(*ratings)
    options = {"alpha": 1e-6, "validation": 0.01, "max_iter": 100, "solver": nmd.ADMM(patience=100)}
    _, found = all_told(nmd.complete, data, 12, **options)
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
    fit, found = all_told(nmd.complete, X, rank, f, loss, observed=seen, alpha=0, max_iter=300)
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
        assert all_told(verb, X, 1)[1][nmd.warnings.NMDWarning] == text
    for X in (frame.assign(a=np.arange(20.0)), ones):
        assert nmd.warnings.NMDWarning not in all_told(verb, X, 1)[1]
    zeros = all_told(nmd.decompose, stored(ones, seen), 1, "identity", "kl")[1]
    assert nmd.warnings.NMDWarning not in zeros


def test_more_iterations_are_the_advice_where_they_help():
    X, seen = low_rank(3, 0.7, noise=0.1)
    _, found = all_told(nmd.complete, np.where(seen, X, np.nan), 3, alpha=0, max_iter=3)
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
    fit, found = all_told(nmd.complete, data, 2, alpha=0)
    message = found.pop(nmd.warnings.UnobservedWarning)
    assert message.startswith(f"X has no observed entry in {words}")
    assert "offsets='both'" in message
    assert not found
    assert not fit.reconstruct().values[rows].any()
    _, found = all_told(nmd.complete, data, 2, alpha=0, offsets="both")
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
