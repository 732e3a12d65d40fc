"""DataFrames of polars, of Arrow, and of pandas with types of Arrow: what comes in goes out."""

import numpy as np
import pandas as pd
import pytest
from helpers import check_filled as check_pandas

import nmd_lab as nmd
from nmd_lab.data.labels import pandas_of

pl = pytest.importorskip("polars")

QUICK = {"draws": 4, "tune": 2, "random_state": 0, "progress": False}

WORDS = ["low", "mid", "high"]


def words(x):
    return np.take(WORDS, np.digitize(x, [-0.5, 0.5])).tolist()


def whole(x):
    return np.round(9 * x).astype(int).tolist()


VALUES = {
    "Float64": lambda x: x.tolist(),
    "Float32": lambda x: x.astype(np.float32).tolist(),
    "Int64": whole,
    "Int8": whole,
    "UInt16": lambda x: whole(np.abs(x)),
    "Boolean": lambda x: (x > 0).tolist(),
    "String": words,
    "Categorical": words,
    "Enum": words,
}
"""Values of a column by the name of its type in polars."""


def of_polars(kinds, table):
    levels = pl.Enum([*WORDS, "never"])
    dtypes = [levels if kind == "Enum" else getattr(pl, kind) for kind in kinds]
    return pl.DataFrame(table, schema=dict(zip(table, dtypes, strict=True)), strict=False)


def of_arrow(kinds, table):
    pytest.importorskip("pyarrow")
    return of_polars(kinds, table).to_arrow()


def of_pandas(kinds, table):
    frame = of_arrow(kinds, table).to_pandas(types_mapper=pd.ArrowDtype)
    m = len(frame)
    return frame.set_axis(pd.Index([f"p{k}" for k in range(m)][::-1], name="person"))


def check_filled(filled, frame):
    """Check that a table is another one without its missing cells: types, order, known cells."""
    if isinstance(frame, pd.DataFrame):
        check_pandas(filled, frame)
        return
    assert type(filled) is type(frame)
    assert filled.schema == frame.schema
    filled, frame = (pl.DataFrame(each) for each in (filled, frame))
    for name in frame.columns:
        after, before = filled[name].to_list(), frame[name].to_list()
        assert None not in after
        assert [None if b is None else a for a, b in zip(after, before, strict=True)] == before


@pytest.fixture(params=[of_polars, of_arrow, of_pandas])
def frame(request):
    rng = np.random.default_rng(0)
    w, kinds = rng.normal(size=60), list(VALUES)
    table = {kind: VALUES[kind](w + 0.3 * rng.normal(size=60)) for kind in kinds}
    for values in table.values():
        for k in np.flatnonzero(rng.random(60) < 0.2):
            values[k] = None
    return request.param(kinds, table)


def test_each_call_that_fills_takes_them_and_intervals_have_a_column_for_each_end(frame):
    fit = nmd.complete(frame, 2, alpha=0.1, random_state=0)
    filled, posterior = nmd.impute(frame, return_posterior=True, **QUICK)
    model = nmd.MatrixCompletion(1, inference="sample", n_draws=4, n_tune=2, random_state=0)
    for each in (fit.impute(frame), filled, model.fit(frame).transform(frame),
                 *model.sample_transform(frame, 2)):  # fmt: skip
        check_filled(each, frame)
    as_pandas = nmd.sample(pandas_of(frame), **QUICK)
    assert as_pandas.draws.equals(posterior.draws)
    new = posterior.fold_in(frame, random_state=0)
    assert new.draws.equals(posterior.fold_in(pandas_of(frame), random_state=0).draws)
    train, test = nmd.split_observed(frame, 0.2, random_state=0)
    assert type(train) is type(test) is type(frame)
    assert len(posterior.reliability(test)) > 0
    assert "Enum" in posterior.report(frame)._repr_html_()
    intervals = posterior.intervals(frame)
    assert type(intervals) is type(frame)
    inside, within = pandas_of(intervals), posterior.intervals(pandas_of(frame))
    if not isinstance(frame, pd.DataFrame):
        assert list(inside) == [f"{name}_{end}" for name, end in within.columns]
    np.testing.assert_array_equal(inside.iloc[:, :4].to_numpy(float), within.iloc[:, :4])
    assert inside.iloc[:, -1].dtype == within.iloc[:, -1].dtype
    assert inside.iloc[:, -1].dtype.ordered


def test_a_prediction_of_whole_numbers_is_no_whole_number():
    frame = pl.DataFrame({"a": [1, 2, 3, 4, None], "b": [2, 4, 6, 8, 10], "c": [1.0, 2, 2, 4, 5]})
    predicted = nmd.complete(frame, 1, alpha=0.1, random_state=0).predict(frame)
    assert predicted.schema == dict.fromkeys("abc", pl.Float64)
    assert predicted["a"].null_count() == 1


def test_limits_may_be_frames_of_the_same_library():
    rng = np.random.default_rng(0)
    w = rng.normal(size=(40, 1)) + 0.3 * rng.normal(size=(40, 3))
    below = w < -0.5
    frame, limits = (pl.DataFrame(x, schema=list("abc")) for x in (np.maximum(w, -0.5), below))
    filled = nmd.impute(frame, at_most=limits, **QUICK).to_numpy()
    assert (filled[below] <= -0.5).all()
    np.testing.assert_array_equal(filled[~below], w[~below])


def test_a_lazy_frame_is_refused_with_the_remedy():
    with pytest.raises(TypeError, match=r"LazyFrame.*give X\.collect\(\)"):
        nmd.impute(pl.DataFrame({"a": [1.0, 2.0]}).lazy())


def test_decimals_are_numbers_of_double_precision():
    texts = {"a": ["1.25", None, "2.50", "4.00"], "b": ["1.00", "2.00", "2.25", "4.50"]}
    decimals = pl.DataFrame(texts).cast(pl.Decimal(10, 2))
    arrow = decimals.to_arrow()
    for frame in (decimals, arrow, arrow.to_pandas(types_mapper=pd.ArrowDtype)):
        pd.testing.assert_frame_equal(pandas_of(frame), pd.DataFrame(texts).astype(float))
