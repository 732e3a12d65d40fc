"""Fits on a cluster and in this process, for the tests that compare the two."""

from dataclasses import replace
from typing import Any

import numpy as np
from helpers import PLAIN as ALGORITHM
from scipy import sparse

import nmd_lab as nmd

STORAGES = ("dense", "masked", "observed", "sparse", "zeros", "weights")
EVERYWHERE = replace(ALGORITHM, split="everywhere")
OBSERVED = replace(ALGORITHM, split="observed")

PLAIN: dict[str, Any] = {"max_iter": 6, "tol": 0, "random_state": 0, "solver": ALGORITHM}


def made(storage: str, shape: tuple[int, int] = (120, 40)) -> tuple[Any, dict[str, Any]]:
    """Return data between 0 and 1, and the arguments with which they are fitted."""
    rng = np.random.default_rng(0)
    X = np.clip(rng.gamma(2.0, size=(shape[0], 3)) @ rng.random((3, shape[1])) / 6, 0.02, 0.98)
    X *= rng.random(shape) < 0.9
    seen = rng.random(shape) < 0.7
    seen[:, 0] = seen[0] = True
    return {
        "dense": (X, {}),
        "masked": (X, {"observed": seen, "solver": EVERYWHERE}),
        "observed": (X, {"observed": seen, "solver": OBSERVED}),
        "sparse": (sparse.csr_array(np.where(seen, X + 0.01, 0)), {"solver": EVERYWHERE}),
        "zeros": (sparse.csr_array(X), {}),
        "weights": (X, {"weights": np.where(seen, rng.random(shape), 0)}),
    }[storage]


def both(X: Any, client: Any, *model: Any, **options: Any) -> tuple[Any, Any]:
    """Return the fit of this process and that of a cluster."""
    zeros = sparse.issparse(X) and "solver" not in options
    function = nmd.decompose if zeros else nmd.complete
    options = {"alpha": 0.0, "offsets": "none"} | PLAIN | options
    on_cluster = nmd.Compute(client=client)
    return function(X, *model, **options), function(X, *model, compute=on_cluster, **options)


def assert_close(one: nmd.Decomposition, other: nmd.Decomposition, tol: float = 1e-8) -> None:
    """Compare all iterates by their numbers, and the last ones entry by entry."""
    for name in ("objective", "primal_residual", "dual_residual", "penalty"):
        expected = one.history[name].values
        np.testing.assert_allclose(
            other.history[name], expected, rtol=tol, atol=tol * np.abs(expected).max(), err_msg=name
        )
    product, found = (fit.W.values @ fit.H.values for fit in (one, other))
    np.testing.assert_allclose(found, product, rtol=tol, atol=tol * np.abs(product).max())
