"""What is refused as data: tables of (words of the sentence, function, what it refuses)."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from helpers import check_all_refused
from scipy import sparse

import nmd_lab as nmd
from nmd_lab.data.inputs import GivenLimits, observe
from nmd_lab.data.matching import known_positions
from nmd_lab.data.typed_table import table_of

A = np.abs(np.random.default_rng(0).normal(size=(5, 4)))
STORED = sparse.csr_array([[4.0, 5.0], [3.0, 0.0]])
CUBE = xr.DataArray(np.ones((3, 4, 5)), dims=("time", "lat", "lon"))
LABELLED = CUBE.assign_coords(lat=list("abcd"))
USERS = [f"user {k}" for k in range(4)]
LONG = pd.DataFrame({"user": USERS[:3], "item": [1, 2, 1], "rating": [1.0, 2.0, 3.0]})
ABOUT = pd.DataFrame({"age": [20.0, 30, 40, np.nan], "member": [True, False, True, True]}, USERS)


def test_matrices():
    complete = partial(nmd.complete, rank=1)
    check_all_refused([
        ("^X .*rows of unequal lengths", complete, [[1, 2], [3]]),
        ("^X .*0 dimensions", complete, 3.0, {"a": [1]}),
        ("^X .*1 dimensions", complete, A[0], pd.Series([1.0]), sparse.coo_array(np.ones(2))),
        ("^X .*dtype <U1", complete, [["1", "2"], ["3", "4"]]),
        ("^X .*dtype object", complete, np.array([[1, None], [2, 3]]), [[10**400, 1], [2, 3]]),
        ("^X .*dtype complex128", complete, A + 1j, sparse.csr_array(A + 1j)),
        ("^X .*dtype datetime64", complete, A.astype("int64").astype("datetime64[s]")),
        ("^X .*dtype timedelta64", complete, A.astype("int64").astype("timedelta64[s]")),
        ("^X .*in column 'b'", complete, pd.DataFrame({"a": [1.0], "b": ["x"]})),
        (r"^X .*Dataset of \['a'\]: select one array", complete,
         xr.Dataset({"a": (("x", "y"), A)})),
        ("^X .*infinity", complete, np.array([[np.longdouble("1e4000"), 1], [2, 3]])),
        ("^X .*holds no entry", complete, pd.DataFrame(), pd.DataFrame(columns=["a", "b"])),
        ("^X .*holds no entry", complete, sparse.csr_array((3, 0))),
        ("row 0, column 1 more than once: keep one, or add", complete,
         sparse.csr_array((np.ones(3), [1, 1, 0], [0, 2, 3]), shape=(2, 2)),
         sparse.coo_array((np.ones(3), ([0, 0, 1], [1, 1, 0])), shape=(2, 2))),
        ("row 1, column 0 more than once: keep one, or add", complete,
         sparse.csc_array((np.ones(3), [1, 1, 0], [0, 2, 3]), shape=(2, 2))),
        ("^X .*no observed entry", complete, sparse.csr_array((3, 4)), np.full((3, 3), np.nan)),
    ])  # fmt: skip


@pytest.mark.parametrize("X", [A, sparse.csr_array(A)], ids=["dense", "sparse"])
def test_masks_and_weights(X):
    check_all_refused([
        ("^weights .*non-finite", lambda w: observe(X, weights=w), np.full((5, 4), np.nan)),
        ("^weights .*negative", lambda w: observe(X, weights=w), -A),
        ("^weights .*dtype", lambda w: observe(X, weights=w), A.astype(str)),
        ("^weights .*shape", lambda w: observe(X, weights=w), A.T),
        ("^X .*no observed entry", lambda w: observe(X, weights=w), np.zeros((5, 4))),
        ("^observed .*booleans", lambda m: observe(X, observed=m), A, (A > 1).astype(object)),
        ("^observed .*, for example observed > 0, True", lambda m: observe(X, observed=m),
         np.full((5, 4), 2)),
        ("^observed .*shape", lambda m: observe(X, observed=m), A.T > 1, A[0] > 1),
    ])  # fmt: skip


def test_limits():
    X, mask = np.arange(1.0, 13.0).reshape(3, 4), np.zeros((3, 4), bool)
    X[2, 3], mask[1, 2] = np.nan, True
    both = {"at_most": mask, "at_least": mask}
    check_all_refused(
        (words, lambda limits: observe(X, limits=GivenLimits(**limits)), limits)
        for words, limits in [
            ("at_most has shape", {"at_most": mask[:2]}),
            ("give booleans", {"at_most": np.full((3, 4), 0.5)}),
            ("where X has no value", {"at_least": ~mask}),
            ("upper=None", both),
            ("no upper limit of X", both | {"upper": X - 1}),
            ("finite numbers", both | {"upper": X + np.inf}),
            ("has no use", {"upper": X}),
        ]
    )


def test_labels_and_dimensions():
    decompose, cube = partial(nmd.decompose, rank=1), r"sample_dims=.*\('time', 'lat', 'lon'\)"
    of_sparse, by_axis = nmd.observations_from_sparse, ("time", "lat", "lon")
    check_all_refused([
        (cube, lambda dims: decompose(CUBE, sample_dims=dims), "depth", [], by_axis, ["time"] * 2),
        ("sample_dims=", decompose, CUBE),
        ("sample_dims='time'.*ndarray", lambda X: decompose(X, sample_dims="time"), A),
        ("^sample_dims=.* is not a dimension: give some, not all",
         lambda dims: decompose(xr.DataArray(A), sample_dims=dims), 1.5),
        ("'component'", decompose, xr.DataArray(A, dims=("component", "x"))),
        ("3 dimensions", decompose, np.ones((3, 4, 5))),
        ("X is a ndarray: give a scipy.sparse matrix", of_sparse, STORED.toarray()),
        (r"rows has shape \(3,\): give 2 labels", lambda i: of_sparse(STORED, i), list("abc")),
        ("columns holds a label more than once", lambda j: of_sparse(STORED, columns=j), ["a"] * 2),
        ("the fit has the label 'a' twice along 'column'",
         decompose(pd.DataFrame(A, columns=list("aabc"))).fold_in,
         pd.DataFrame(A, columns=list("abcd"))),
        (r"along 'lat, lon', such as \('\?', 0\), ",
         decompose(LABELLED, sample_dims="time").fold_in, LABELLED.assign_coords(lat=list("?bcd"))),
        ("test_size=", lambda size: nmd.split_observed(STORED, size),
         0, 1.0, -0.1, 1.5, 10**6, True, "half"),
    ])  # fmt: skip


def test_long_tables():
    of_table = nmd.observations_from_table
    table = LONG.rename(columns={"user": "userId"}).assign(userId=[1, 1, 2])
    no_matrix = (
        r"X has the columns 'userId', 'item', 'rating', one observation in each line: "
        r"give nmd.observations_from_table\(X, row='userId', column='item', value='rating'\)"
    )
    uses = [
        lambda X: nmd.complete(X, 1), lambda X: nmd.sample(X, 1), nmd.split_observed,
        lambda X: nmd.Study(X, rank=[1]), nmd.MatrixCompletion(1).fit,
        lambda X: nmd.baselines.soft_impute(X, 1),
        lambda X: observe(X.assign(timestamp=9, title="x")),
    ]  # fmt: skip
    check_all_refused((no_matrix, use, table) for use in uses)
    check_all_refused([
        ("component", lambda t: of_table(t, row="component"), table.assign(component=[1, 2, 3])),
        ("row='item' and column='item' are one column", lambda t: of_table(t, row="item"), LONG),
        (r"value='rating' has shape \(2,\): give one column, as long as", of_table,
         LONG.to_dict("list") | {"rating": [4.0, 5.0]}),
        (r"row=\['user', 'item'\] has shape \(3, 2\): give",
         lambda row: of_table(LONG.assign(t=1), row, "t"), ["user", "item"]),
        (r"row='user' has shape \(3, 2\): give", of_table, LONG.iloc[:, [0, 0, 1, 2]]),
    ])  # fmt: skip


def test_attributes_and_typed_columns():
    given = lambda about: nmd.observations_from_table(LONG, attributes=about)  # noqa: E731
    levels = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)
    income = ABOUT.assign(income=pd.Categorical.from_codes([0, 1, 2, 1], dtype=levels))
    fewer = income.assign(income=income["income"].cat.set_categories(["mid", "high"]))
    pets = pd.DataFrame({"a": [1.0, 2, 3], "pet": pd.Categorical(["a", "b", "c"])})
    check_all_refused([
        ("attributes is a ndarray: give a DataFrame", given, ABOUT.to_numpy()),
        ("attributes has 0 columns", given, ABOUT[[]]),
        ("set_index", given, ABOUT.reset_index(names="user")),
        ("row labels 0, 1, 2, 3", given, ABOUT.reset_index(drop=True)),
        ("a label twice or a line without one", given, pd.concat([ABOUT, ABOUT])),
        ("With X = attributes, X has ident", given, ABOUT.assign(name=USERS)),
        ("attributes has the column 1", given, ABOUT.rename(columns={"age": 1})),
        ("column 'rating'", given, ABOUT.rename(columns={"age": "rating"})),
        ("date columns does not go with .* zeros: use complete",
         lambda about: nmd.decompose(given(about), 2), ABOUT),
        ("the ordered values 'mid', 'high' in column 'income': give those",
         lambda about: known_positions(given(about).labels, given(income).labels, "columns"),
         fewer),
        ("no category in column 'a'", table_of, pd.DataFrame({"a": pd.Categorical([None] * 2)})),
        ("'pet=b' twice", lambda X: table_of(X).encode(X), pets.rename(columns={"a": "pet=b"})),
    ])  # fmt: skip
