"""What a result can do beyond holding W and H."""

import pandas as pd
import xarray as xr
from scipy import sparse

import nmd_lab


def test_provenance(small):
    one = nmd_lab.decompose(small, 3, max_iter=5, random_state=3)
    two = nmd_lab.decompose(small + 1e-12, 3, max_iter=5)
    assert one.parameters["random_state"] == 3
    assert one.parameters["shape"] == [20, 15]
    assert one.parameters["dtype"] == "float64"
    assert one.parameters["observations_hash"] != two.parameters["observations_hash"]
    assert one.parameters["versions"]["nmd_lab"] == nmd_lab.__version__
    labelled = nmd_lab.decompose(pd.DataFrame(small), 3, max_iter=5)
    assert labelled.parameters["observations_hash"] == one.parameters["observations_hash"]


def test_the_hash_of_sparse_data_knows_what_absent_means(small):
    X = sparse.csr_array(small)
    zeros = nmd_lab.decompose(X, 2, max_iter=2).parameters["observations_hash"]
    missing = nmd_lab.complete(X, 2, alpha=0, max_iter=2).parameters["observations_hash"]
    assert zeros != missing
    assert missing == nmd_lab.complete(X.tocoo(), 2, alpha=0).parameters["observations_hash"]


def test_repr(small):
    X = xr.DataArray(small, dims=("day", "gene"))
    fit = nmd_lab.decompose(X, 3, max_iter=40, random_state=1)
    for part in ("ReLU()", "frobenius", "day: 20", "gene: 15", "component: 3", "300 of 300",
                 "40 iterations", fit.stop_reason):  # fmt: skip
        assert part in repr(fit)
