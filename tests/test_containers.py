"""Whatever container data come in, a call gives what it gives for an array with NaN."""

import copy
from functools import cache

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import sparse

import nmd_lab as nmd
from nmd_lab import metrics

RNG = np.random.default_rng(0)
USERS, ITEMS = [f"user {i}" for i in range(12)], [f"item {j}" for j in range(9)]
X = RNG.normal(size=(12, 2)) @ RNG.normal(size=(2, 9)) + 4
SEEN = RNG.random(X.shape) < 0.6
ARRAY = np.where(SEEN, X, np.nan)
STORED = sparse.coo_array((X[SEEN], np.nonzero(SEEN)), shape=X.shape)
FRAME = pd.DataFrame(ARRAY, USERS, ITEMS)
LONG = FRAME.stack().rename("value").rename_axis(["row", "column"]).reset_index()
LABELLED = xr.DataArray(FRAME, dims=("row", "column"))

MASKED = {
    "mask": (np.where(SEEN, X, 1e9), {"observed": SEEN}),
    "weights": (np.where(SEEN, X, 7.0), {"weights": SEEN.astype(float)}),
}
IN_ORDER = {
    "list": ARRAY.tolist(),
    "fortran": np.asfortranarray(ARRAY),
    "masked": np.ma.masked_array(X, ~SEEN),
    "frame": FRAME,
    "frame without labels": pd.DataFrame(ARRAY),
    "labelled": LABELLED,
    "observations": nmd.observations_from_sparse(STORED, USERS, ITEMS),
    "matrix": sparse.csc_matrix(STORED),
    **{each: STORED.asformat(each) for each in ("csr", "csc", "coo", "bsr", "lil", "dok", "dia")},
}
BY_LABEL = {
    "frame in another order": FRAME.iloc[RNG.permutation(12), RNG.permutation(9)],
    "transposed": LABELLED.transpose(),
    "long table": nmd.observations_from_table(LONG, "row", "column", "value"),
}

SHORT = {"max_iter": 5, "tol": 0, "random_state": 0}
DRAWN = {"draws": 12, "tune": 8, "noise_by": "one", "groups": 1, "random_state": 0}


@cache
def fit():
    return nmd.complete(FRAME, 2, alpha=0.1, offsets="both", **SHORT)


VERBS = {
    "complete": lambda data, **seen: nmd.complete(
        data, 2, alpha=0.1, **SHORT, **seen
    ).reconstruct(),
    "sample": lambda data, **seen: nmd.sample(data, 2, **DRAWN, **seen).reconstruct(),
    "baseline": lambda data, **seen: nmd.baselines.soft_impute(data, 2, **SHORT, **seen).W,
}
COMPARED = {
    "score": lambda data, **seen: fit().score(data, **seen),
    "compare": lambda data, **seen: float(nmd.compare(fit(), X=data, **seen).rmse[0]),
    "rmse": lambda data, **seen: metrics.rmse(data, fit().reconstruct(), **seen),
    "mae": lambda data, **seen: metrics.mae(data, fit().reconstruct(), **seen),
    "fold_in": lambda data, **seen: by_label(fit().fold_in(data, **seen)),
}
OTHERS = {
    "predict": lambda data: metrics.rmse(data, fit().predict(data)),
    "exclude": lambda data: np.sort(fit().top(3, 9, exclude=data).position),
    "residuals": lambda data: fit().plot.residuals(data, bins=10)[1].lines[0].get_ydata(),
    "reconstruction": lambda data: (
        fit().plot.reconstruction(data, rows=[3, 1]).images[0].get_array()
    ),
}
ESTIMATOR = {"estimator": nmd.MatrixCompletion(2, alpha=0.1, **SHORT).fit_transform}
CASES = [
    *((call, data) for call in (VERBS | COMPARED) for data in MASKED),
    *((call, data) for call in (VERBS | COMPARED | OTHERS | ESTIMATOR) for data in IN_ORDER),
    *((call, data) for call in (COMPARED | OTHERS) for data in BY_LABEL),
]


def by_label(W):
    return W.sel(row=USERS) if "row" in W.coords and W["row"].dtype.kind != "i" else W


def array_of(data):
    """Return the numbers of a container in its own order."""
    if isinstance(data, nmd.SparseObservations):
        return data.to_array()
    return data.toarray() if sparse.issparse(data) else np.ma.filled(data, np.nan)


@pytest.mark.parametrize(("call", "container"), CASES)
def test_a_call_gives_what_it_gives_for_an_array(call, container):
    pytest.importorskip("matplotlib").use("Agg")
    data, seen = MASKED.get(container, (None, {}))
    data = (IN_ORDER | BY_LABEL).get(container, data)
    before = copy.deepcopy(data)
    function = (VERBS | COMPARED | OTHERS | ESTIMATOR)[call]
    found, expected = function(data, **seen), function(ARRAY)
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(array_of(data), array_of(before))


@pytest.mark.parametrize("container", [*IN_ORDER, "frame in another order"])
def test_predictions_look_like_the_data(container):
    data = (IN_ORDER | BY_LABEL)[container]
    predicted, plain = fit().predict(data), container in ("list", "fortran", "masked")
    like = data.tocsr() if sparse.issparse(data) else data
    assert type(predicted) is (np.ndarray if plain else type(like))
    for name in ("index", "columns", "dims"):
        assert plain or np.array_equal(getattr(predicted, name, 0), getattr(data, name, 0))
    whole, numbers = fit().reconstruct().to_pandas(), array_of(data)
    if container == "frame in another order":
        whole = whole.loc[data.index, data.columns]
    there = ~np.isnan(numbers) & (numbers != 0)
    np.testing.assert_allclose(array_of(predicted)[there], whole.to_numpy()[there])
