"""Completed copies of tables from the joint distribution of their columns."""

import numpy as np
import pandas as pd
import pytest
from people import check_filled
from refused import check_all_refused

import nmd_lab as nmd

N = 400


def table(seed=0, share=0.3):
    """Return generated columns of every kind, with one factor and a weak effect of t on y."""
    rng = np.random.default_rng(seed)
    f = rng.normal(size=N)
    t = rng.normal(size=N)
    frame = pd.DataFrame(
        {
            "a": f + rng.normal(size=N),
            "t": t,
            "y": 0.3 * t + rng.normal(size=N),
            "dose": np.exp(0.8 * f + 0.6 * rng.normal(size=N)),
            "percent": np.clip(70 + 20 * f + 10 * rng.normal(size=N), 1, 99),
            "yes": pd.array(f + rng.normal(size=N) > 0.5, "boolean"),
            "level": pd.Categorical(pd.cut(f + rng.normal(size=N), 3, labels=False), ordered=True),
            "kind": pd.Categorical(
                np.array(list("uvw"))[1 * (f + rng.normal(size=N) > 0) + (t > 1)]
            ),
        }
    )
    return frame, frame.mask(rng.random(frame.shape) < share)


@pytest.fixture(scope="module")
def sampled():
    frame, holed = table()
    bounds = {"percent": (0, 100)}
    return frame, holed, nmd.sample(holed, draws=60, bounds=bounds, random_state=0)


def test_copies_repeat_with_a_seed_and_after_a_file(sampled, read_back):
    _, holed, posterior = sampled
    of_each = posterior, posterior, read_back(posterior)
    first, *others = (each.impute(holed, n=2, random_state=1)[1] for each in of_each)
    for other in others:
        pd.testing.assert_frame_equal(other, first)


def test_copies_keep_what_is_observed_within_bounds_and_positive_columns_positive(sampled):
    _, holed, posterior = sampled
    assert posterior._joint is not None
    copies = posterior.impute(holed, n=50, random_state=0)
    for copy in copies[:3]:
        check_filled(copy, holed)
    dose, percent = (
        np.concatenate([copy[name] for copy in copies]) for name in ("dose", "percent")
    )
    assert dose.min() > 0
    assert 0 < percent.min() < percent.max() < 100
    ends = posterior.intervals(holed, level=0.99)
    assert (ends["dose"] > 0).all(axis=None)
    assert ends["percent"].stack().between(0, 100).all()


def test_new_rows_are_completed_given_what_they_show(sampled):
    _, holed, posterior = sampled
    new = holed.iloc[:2].assign(a=[-3.0, 3.0], percent=np.nan, dose=[0.1, 8.0])
    new.index = [1000, 1001]
    low, high = np.mean(
        [copy["percent"] for copy in posterior.impute(new, n=50, random_state=0)], 0
    )
    assert low + 20 < high


def test_wrong_bounds_are_refused_in_words():
    impute = lambda bounds: nmd.impute(table()[1], bounds=bounds)  # noqa: E731
    check_all_refused([
        (r"bounds\['percent'\]=\(10, 20\) leaves out values", impute, {"percent": (10, 20)}),
        ("bounds has 'yes', which is no column of numbers", impute, {"yes": (0, 1)}),
        ("bounds has 'no', which is no column of numbers", impute, {"no": (0, 1)}),
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "options"), [(N, {"rank": 2}), (N, {"groups": 1}), (60, {})], ids=str
)
def test_a_model_that_was_asked_for_or_of_few_rows_makes_the_copies(rows, options):
    _, holed = table()
    assert nmd.sample(holed[:rows], draws=20, tune=20, random_state=0, **options)._joint is None
