"""What results refuse: one table of (words of the sentence, function, what it refuses)."""

from functools import partial

import made_draws
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from helpers import check_all_refused
from made_draws import made_up
from scipy import sparse

import nmd_lab as nmd
from nmd_lab import metrics
from nmd_lab.data.labels import labels_of

RNG = np.random.default_rng(0)
USERS, ITEMS = [f"user {i}" for i in range(1, 13)], [f"item {j}" for j in range(9)]
X = RNG.normal(size=(15, 2)) @ RNG.normal(size=(2, 9)) + 4
NEW, SHORT = X[12:], {"alpha": 0, "max_iter": 5, "tol": 0, "random_state": 0}
TABLE = pd.DataFrame(X[:12], USERS, ITEMS)
CUBE = xr.DataArray(X.reshape(5, 3, 9), dims=("lat", "lon", "time"))
LEVELS = pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)])

W = np.ones((1, 4, 2, 1))
SEVERAL = r"^compare\(\) got fits in several .* compare\(\[a, b\]\)\.$"


def new(rows):
    """Return new rows with labels."""
    return pd.DataFrame(NEW, rows, ITEMS)


def posterior_of(options):
    """Return a posterior of arrays, with other options."""
    arrays = {"W": W, "H": np.ones((1, 4, 3, 1)), "rho": np.ones((1, 4))} | options
    return made_draws.posterior_of(labels_of(np.zeros((2, 3))), **arrays)


def refused_calls():
    """Return words of sentences, functions, and what each of them refuses."""
    fit, plain = (nmd.complete(data, 2, **SHORT) for data in (TABLE, X[:12]))
    numbered = nmd.complete(TABLE.set_axis(range(1, 13)), 1, **SHORT)
    digits = nmd.complete(TABLE.set_axis([f"{k:03}" for k in range(12)]).T, 1, **SHORT)
    twice = nmd.complete(TABLE.set_axis([*"abcdefghijk", "a"]), 2, **SHORT)
    grid = nmd.complete(CUBE, 2, sample_dims=["lat", "lon"], **SHORT)
    offsets = nmd.complete(TABLE, 2, offsets="both", **SHORT)
    rows = offsets.fold_in(pd.DataFrame(NEW, [*"abc"], ITEMS))
    divergence = nmd.complete(np.abs(TABLE), 2, loss="kl", **SHORT)
    kinds = nmd.complete(TABLE.assign(yes=TABLE["item 0"] > 4), 2, **SHORT | {"alpha": 0.5})
    draws, ordinal = (made_up(np.zeros((5, 4)), noise=noise) for noise in ("gaussian", "ordinal"))
    empty, turned = np.full((12, 9), np.nan), np.ones((9, 12))
    stranger = pd.DataFrame([[1.0]], ["user 3"], ["item 77"])
    pair = pd.DataFrame([[1.0], [2.0]], ["user 3", "user 3"], ["item 7"])
    a, b = fit, offsets
    calls = [
        # new rows
        ("label 'user 3', which is there already", fit.append, new(["ann", "user 3", "bo"])),
        ("row label 'ann', which is there already", fit.append, new(["ann", "bo", "ann"])),
        ("no row labels, but the fit has labels along 'row'", fit.append, NEW, new(None)),
        ("2 index levels: give the 1", fit.append, new(LEVELS)),
        ("with 2 components", offsets.append, rows.isel(component=[0])),
        ("no coordinate 'offset'", offsets.append, rows.drop_vars("offset")),
        ("NaN or infinite", offsets.append, rows * np.nan),
        ("needs rows of one", grid.append, CUBE),
        ("labels along 'column', such as 'item 77'", fit.fold_in, stranger),
        ("label 'item 2' twice", fit.fold_in, TABLE.rename(columns={"item 7": "item 2"})),
        ("X has 5 columns: give the 9", fit.fold_in, np.ones((2, 5))),
        ("negative", divergence.fold_in, -np.ones((2, 9))),
        ("no observed entry", fit.fold_in, empty),
        # other data
        ("columns=None goes with test data only", fit.predict, [0, 1], 3, None, "x"),
        ("complex", lambda Y: metrics.rmse(X, Y), X * 1j),
        ("is a Decomposition: give data", fit.fold_in, fit),
        ("is a Decomposition: give data", fit.append, fit),
        ("is a Decomposition: give data", lambda Y: metrics.rmse(TABLE, Y), fit),
        ("is a Decomposition: give data", lambda X: metrics.rmse(X, TABLE), fit),
        ("is a Decomposition: give data", fit.score, fit),
        # comparisons
        ("put all fits into the collection", lambda b: nmd.compare([a], b), b),
        (SEVERAL, lambda more: nmd.compare(a, *more), [[b]], [(b,), X[:12]], [b, {"c": b}]),
        (SEVERAL, lambda more: nmd.compare([a], more), [b]),
        (SEVERAL, lambda X: nmd.compare(a, X=X), [b]),
        ("empty", nmd.compare, []),
        (r"fits\['a'\] is a ndarray", nmd.compare, {"a": np.ones(3)}),
        ("9 rows: give the 12", lambda X: nmd.compare([plain], X), X[:12].T),
        # rankings and labels
        ("k=", fit.top_of_components, 0, -1, 1.5, "two", None),
        ("k=", lambda k: fit.top(0, k), 0, True, 2.5, "3"),
        ("k=", lambda k: fit.top([0, 1], k), 0, True, 2.5, "3"),
        (r"row holds .* from 0 to 11", fit.top, 12, -13, [0, 99]),
        ("row has no label", fit.top, 1.0, True, "1", [True, False]),
        ("exclude has 3 rows", lambda i: fit.top(i, exclude=np.ones((3, 3))), 0, [0, 1]),
        ("exclude holds 9", lambda j: fit.top(0, exclude=j), [0, 9]),
        ("no label 'itm 3': did you mean 'item 3'", lambda j: fit.top(3, exclude=j), ["itm 3"]),
        (r"row has no label 'usr 3': did you mean 'user 3'\?", fit.top, ["user 1", "usr 3"]),
        ("columns has no label 'itm 3': did you", lambda j: fit.predict(1, j), "itm 3"),
        ("row has no label 0: the labels are numbers from 1 to 12", numbered.top, 0),
        (r"no label '3': did you mean 3\?", numbered.top, [1, "3"]),
        (r"has no label 7: did you mean '007'\?", lambda j: digits.predict("item 1", j), 7),
        (r"has no label 7: did you mean '007'\?", lambda j: digits.top(0, exclude=j), [7]),
        ("row holds 'ann', and no labels .* integer positions", plain.top, "ann"),
        ("rows holds the label 'a', .*once: use", lambda i: twice.predict(i, "item 1"), "a"),
        ("'z'", twice.top, "z"),
        ("did you mean 'varimax'", fit.rotate, "varimaxx"),
        ("method=None is unknown", fit.rotate, None),
        # classes and filled data
        ("gives classes no probability", kinds.probabilities, "item 1"),
        ("'colour'", kinds.probabilities, "colour"),
        ("sparse", kinds.impute, sparse.csr_array(np.eye(3))),
        # posteriors
        ("X is sparse", draws.impute, sparse.csr_array(np.eye(5, 4))),
        ("X is sparse.*predict", partial(nmd.impute, callback=pytest.fail), sparse.eye_array(5)),
        ("by='most' is unknown", lambda by: draws.top(0, by=by), "most"),
        ("level=1 is out of range", lambda level: draws.predict_interval(0, 0, level=level), 1),
        ("rows holds 5, .* outside X", lambda i: draws.predict_std(i, 0), 5),
        ("columns=None goes with test data only", draws.predict, [0, 1]),
        ("values=None goes with test data only", lambda j: draws.log_density(0, j), 1),
        ("above='a' is not a number", lambda x: draws.probability(0, 0, above=x), "a"),
        ("for ordinal data, and noise='gaussian'", lambda j: draws.level_probabilities(0, j), 0),
        ("lacks 'row_precision'", lambda level: draws.correlations(level=level), 0.5),
        ("3, which is no level: .* of .1.0", lambda x: ordinal.log_density(0, 0, x), 3.0),
        ("did you mean 'before'", posterior_of, {"noise": "befor"}),
    ]  # fmt: skip
    for call in (fit.predict, fit.score, lambda X: nmd.compare(fit, X)):
        calls += [
            ("9 rows: give the 12", call, turned, sparse.csr_array(turned)),
            ("no observed entry", call, empty),
            ("labels along 'column', such as 'item 77'", call, stranger),
            ("label 'user 3' twice along 'row'", call, pair),
        ]
    return calls


def test_refused_in_one_sentence():
    check_all_refused(refused_calls())
