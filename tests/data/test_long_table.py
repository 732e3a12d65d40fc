"""Observations to and from tables and SciPy matrices, with their labels."""

import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import sparse

import nmd_lab
from nmd_lab.data.inputs import observe

TABLE = pd.DataFrame({"user": ["ann", "ann", "bo"], "item": [7, 9, 7], "rating": [4.0, 5.0, 3.0]})


def test_a_long_table_comes_back():
    pd.testing.assert_frame_equal(nmd_lab.observations_from_table(TABLE).to_table(), TABLE)
    shuffled = nmd_lab.observations_from_table(TABLE.iloc[[2, 0, 1]])
    pd.testing.assert_frame_equal(shuffled.to_table(), TABLE)


@pytest.mark.parametrize("kind", ["S3", "<U3", ">i8", "M8[s]"])
def test_labels_and_numbers_of_arrays_keep_their_type(kind):
    labels, numbers = np.array([3, 1, 1], kind), np.array([4, 5, 3], ">f4")
    arrays = TABLE.to_dict("list") | {"user": labels, "rating": numbers}
    observed = nmd_lab.observations_from_table(arrays)
    assert observed.dtype == np.float32
    assert observed.labels.coords["user"].dtype == labels.dtype.newbyteorder("=")
    np.testing.assert_array_equal(observed.row_labels, np.unique(labels))


LABELS = {"rows": pd.Index(["ann", "bo"], name="user"), "columns": pd.Index([7, 9], name="item")}
POSITIONS = pd.DataFrame({"row": [0, 0, 1], "column": [0, 1, 0], "value": [4.0, 5.0, 3.0]})


@pytest.mark.parametrize("format", ["csr", "lil"])
@pytest.mark.parametrize(
    ("labels", "table"), [(LABELS | {"name": "rating"}, TABLE), ({}, POSITIONS)]
)
def test_a_scipy_matrix_comes_back_with_its_labels_or_positions(format, labels, table):
    X = sparse.csr_array([[4.0, 5.0], [3.0, 0.0]]).asformat(format)
    observed = nmd_lab.observations_from_sparse(X, **labels)
    pd.testing.assert_frame_equal(observed.to_table(), table, check_dtype=bool(labels))
    assert abs(observed.to_csr() - X).sum() == 0
    assert observed.row_labels.tolist() == table.iloc[1:, 0].tolist()
    assert observed.column_labels.tolist() == table.iloc[:2, 1].tolist()


def test_a_table_of_several_dimensions(rng):
    cube = xr.DataArray(rng.random((2, 3, 2)), dims=("time", "lat", "lon"), name="time ",
                        coords={"lon": ["e", "w"]})  # fmt: skip
    observed = observe(cube, sample_dims="time").as_sparse()
    table = observed.to_table()
    assert list(table.columns) == ["time", "lat", "lon", "time "]
    for line in table.itertuples(index=False):
        assert line[3] == float(cube[line.time, line.lat].sel(lon=line.lon))
    assert observed.column_labels[3] == (1, "w")


def test_pairs_that_come_twice_are_mended_by_their_message():
    table = nmd_lab.datasets.make_ratings(60, 40, 700, random_state=0)
    frame = pd.concat([table, table.head(3).assign(rating=1.0)])
    with pytest.raises(ValueError, match="more than once: give frame") as caught:
        nmd_lab.observations_from_table(frame)
    code = str(caught.value).split("give ")[1].split(", which")[0]
    assert nmd_lab.observations_from_table(eval(code, {"frame": frame})).n_observed == 700


LONG = pd.DataFrame([[1, 1, 3.0], [1, 2, 4.0], [2, 1, 5.0]], columns=["userId", "item", "rating"])


RNG = np.random.default_rng(0)
PAIRS = np.argwhere(RNG.random((50, 40)) < 0.5)
RATED = pd.DataFrame(PAIRS, columns=["who", "what"]).assign(mark=RNG.integers(1, 6, len(PAIRS)))


@pytest.mark.parametrize(
    "frame",
    [RATED, RATED.assign(ts=10**9 + np.arange(len(RATED))),
     RATED.assign(who=RATED["who"].map("person {}".format), what=RATED["what"].map(str))],
)  # fmt: skip
def test_a_long_table_is_known_by_what_it_holds(frame):
    call = "nmd.observations_from_table(X, row='who', column='what', value='mark')"
    said = re.escape(f"one observation in each line: give {call}")
    with pytest.raises((ValueError, TypeError), match=said):
        observe(frame)
    assert eval(call, {"nmd": nmd_lab, "X": frame}).n_observed == len(frame)


GRID = pd.DataFrame(np.argwhere(np.ones((25, 30))), columns=["heat", "hours"])
SURVEY = pd.DataFrame(RNG.integers(0, [70, 60, 4], (300, 3)), columns=["age", "hours", "children"])


@pytest.mark.parametrize(
    "frame",
    [
        GRID.assign(works=RNG.integers(0, 2, len(GRID))),
        RATED.assign(mark=RNG.random(len(RATED))),
        RATED.assign(more=RNG.integers(0, 3, len(RATED))),
        SURVEY, SURVEY[:60], SURVEY.assign(id=np.arange(300)),
        LONG.assign(age=[31, 50, 44]), LONG.assign(userId=[1, 2, 3]), LONG.iloc[1:],
    ],
)  # fmt: skip
def test_a_table_of_numbers_is_no_long_table(frame):
    np.testing.assert_array_equal(observe(frame).to_array(), frame.to_numpy(dtype=float))
