"""Every kind of input is taken for what it is, limits too, or refused in one sentence."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import nmd_lab as nmd
from nmd_lab.data.inputs import GivenLimits, observe

A = np.abs(np.random.default_rng(0).normal(size=(5, 4)))


TAKEN = {

    "booleans": (A > 1, A > 1),
    "half precision": (A.astype(np.float16), A.astype(np.float16)),
    "long double": (A.astype(np.longdouble), A),
    "big endian": (A.astype(">f8"), A),
    "np.matrix": (A.view(np.matrix), A),
    "large integers": (np.array([[2**60, 1], [2, 3]]), [[2**60, 1], [2, 3]]),
    "masked integers": (np.ma.masked_array([[1, 2], [3, 4]], [[0, 1], [0, 0]], fill_value=999),
                        [[1, np.nan], [3, 4]]),
    "nullable integers": (pd.DataFrame([[pd.NA, 2], [3, 4]], dtype="Int64"), [[np.nan, 2], [3, 4]]),
    "nullable booleans": (pd.DataFrame([[pd.NA, False], [False, True]], dtype="boolean"),
                          [[np.nan, 0], [0, 1]]),
    "sparse columns": (pd.DataFrame(A).astype(pd.SparseDtype(float, 0.0)), A),
    "columns that are named twice": (pd.DataFrame(A, columns=list("aabc")), A),
    "columns with names of attributes": (pd.DataFrame(A, columns=["dtype", *"abc"]), A),
}  # fmt: skip


@pytest.mark.parametrize("kind", TAKEN)
def test_what_is_taken(kind):
    X, expected = TAKEN[kind]
    np.testing.assert_array_equal(observe(X).to_array(), np.asarray(expected, dtype=float))


SEEN = np.random.default_rng(1).random((16, 12)) < 0.8
CLEAN = np.where(SEEN, np.add.outer(np.arange(16.0), np.arange(12.0)), np.nan)
MASKED = np.ma.masked_array(np.where(SEEN, CLEAN, 1e6), ~SEEN)
FILLED = np.where(SEEN, CLEAN, -9999.0)
WITH_MASK = {
    "masked": MASKED,
    "list": [*MASKED],
    "protocol": type("WithMask", (), {"__array__": lambda *_, **__: MASKED})(),
    "of Dask": type(
        "Lazy", (), {"__array__": lambda _: MASKED.data, "compute": lambda _: MASKED}
    )(),
    "fill value": xr.DataArray(FILLED, attrs={"_FillValue": -9999}),
    "missing value": xr.DataArray(FILLED, attrs={"missing_value": [-9999, 1e20]}),
}
FIT = nmd.decompose(np.nan_to_num(CLEAN), 2, "identity", alpha=0.1)
DOORS = {
    "decompose": lambda X: nmd.decompose(X, 2, "identity", alpha=0.1).reconstruct(),
    "fold_in": FIT.fold_in,
    "impute": FIT.impute,
    "estimator": nmd.MatrixCompletion(1, random_state=0).fit_transform,
    "split_observed": lambda X: nmd.split_observed(X, 0.2, random_state=0)[0],
    "baseline": lambda X: nmd.baselines.soft_impute(X, 2, max_iter=3).reconstruct(),
    "patches": lambda X: nmd.patches(X, 4, 4),
    "inpaint": lambda X: nmd.inpaint(X, random_state=0)["picture"],
    "noise": lambda X: nmd.datasets.gaussian(X, 0.1, random_state=0),
    "rmse": lambda X: nmd.metrics.rmse(X, np.ones(X.shape if hasattr(X, "shape") else (16, 12))),
    "energy_score": lambda X: nmd.metrics.energy_score(X, np.stack([np.eye(16, 12)] * 2)),
}


@pytest.mark.parametrize("kind", WITH_MASK)
@pytest.mark.parametrize("door", DOORS)
def test_masked_values_are_missing_in_every_call(door, kind):
    of_mask, expected = DOORS[door](WITH_MASK[kind]), DOORS[door](CLEAN)
    np.testing.assert_allclose(np.asarray(of_mask), np.asarray(expected))


def test_masks_and_limits_that_are_masked_say_nothing():
    yes = np.ma.masked_array(np.ones(SEEN.shape, bool), ~SEEN)
    full = np.nan_to_num(CLEAN)
    np.testing.assert_array_equal(observe(full, observed=yes).observed()[0], full[SEEN])
    limits = GivenLimits(at_most=yes)
    assert np.count_nonzero(observe(full, limits=limits).limits.codes) == SEEN.sum()
    with pytest.raises(ValueError, match="weights holds a negative or non-finite"):
        observe(full, weights=MASKED)
    by_mask, by_nan = (nmd.inpaint(*X, random_state=0) for X in ((full, yes), (CLEAN,)))
    xr.testing.assert_identical(by_mask, by_nan)
    shown = xr.DataArray(np.uint8([[1, 2], [3, 4]]), attrs={"_FillValue": -9999})
    assert observe(shown).n_observed == 4


@pytest.mark.parametrize("made", [pd.DataFrame, xr.DataArray])
def test_labels_that_come_twice_go_with_the_same_ones_alone(made):
    X, other = (pd.DataFrame(A, list(rows)) for rows in ("aabcd", "abcde"))
    assert observe(made(X), observed=made(X > 1)).n_observed == np.sum(A > 1)
    with pytest.raises(ValueError, match=r"^observed has a label along .* more than once, or X"):
        observe(made(X), observed=made(other > 1))


def test_a_file_in_memory_is_left_as_it_is(tmp_path):
    X = np.memmap(tmp_path / "X.dat", dtype=float, mode="w+", shape=A.shape)
    X[:] = A
    X.flush()
    before = (tmp_path / "X.dat").read_bytes()
    opened = np.memmap(tmp_path / "X.dat", dtype=float, mode="r+", shape=A.shape)
    assert np.shares_memory(observe(opened).values, opened)
    nmd.decompose(opened, 2, "identity", max_iter=3)
    opened.flush()
    assert (tmp_path / "X.dat").read_bytes() == before


X = np.arange(1.0, 13.0).reshape(3, 4)
MASK = np.zeros((3, 4), bool)
MASK[1, 2] = MASK[0, 0] = True


def codes(data, **limits):
    return observe(data, limits=GivenLimits(**limits)).as_sparse().limit_reader().codes


def test_labels_follow_those_of_X():
    frame = pd.DataFrame(X, index=list("abc"), columns=list("pqrs"))
    mask = pd.DataFrame(MASK, index=frame.index, columns=frame.columns)
    np.testing.assert_array_equal(
        codes(frame, at_most=mask.loc[["c", "a", "b"], list("srqp")]), MASK.ravel()
    )
    of_one = codes(frame, at_most=mask[["p"]])  # where a frame says nothing is no limit
    np.testing.assert_array_equal(of_one, MASK.ravel() & (np.arange(12) % 4 == 0))
    for name in ("observed", "weights"):
        with pytest.raises(ValueError, match=f"{name} lacks the label 'q' of X"):
            observe(frame, **{name: mask[["p"]]})
    with pytest.raises(ValueError, match="at_most lacks the label 'p' of X"):
        codes(frame, at_most=mask.rename(columns={"p": "P"}))
    array = xr.DataArray(X, dims=("site", "kind"))
    other = xr.DataArray(MASK, dims=("site", "kind")).transpose("kind", "site")
    np.testing.assert_array_equal(codes(array, at_most=other), MASK.ravel())


def test_upper_limits_of_dates_and_ordinal_columns_are_given_as_a_table():
    days = pd.to_datetime(["2020-01-01", "2020-01-05", "2020-01-03"])
    order = pd.CategoricalDtype(["low", "middle", "high"], ordered=True)
    marks = pd.Series(["low", "high", "middle"], dtype=order)
    frame, both = pd.DataFrame({"day": days, "mark": marks}), np.arange(6).reshape(3, 2) < 2
    highest = frame.assign(day=days[1], mark="middle").astype({"mark": order})
    seen = observe(frame, limits=GivenLimits(both, both, highest))
    lower, upper = (ends.reshape(3, 2) for ends in seen.limits.ends(seen.stored.ravel()))
    np.testing.assert_array_equal(lower, seen.stored)
    assert upper[0].tolist() == [seen.stored[1, 0], seen.stored[2, 1]]
    np.testing.assert_array_equal(upper[1:], seen.stored[1:])
    assert codes(frame, at_most=both).tolist() == [1, 1, 0, 0, 0, 0]
    with pytest.raises(TypeError, match="upper has dtype object: give numbers, or a table as X"):
        observe(frame, limits=GivenLimits(both, both, frame.to_numpy()))
