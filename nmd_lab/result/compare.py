"""Comparison of several fits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from .decomposition import Decomposition


def compare(
    fits: Iterable[Decomposition] | Mapping[str, Decomposition],
    X: Any = None,
    *,
    mask: ArrayLike | None = None,
) -> xr.Dataset:
    """Return the scores of several fits as one Dataset.

    Parameters
    ----------
    fits : iterable of Decomposition, or dict
        Fits, labelled by the keys of a dict, and otherwise by their positions.
    X : array_like (m, n), optional
        Data for the scores `rmse` and `mae`, such as held-out entries.  These two can be compared
        between losses, while `relative_error` depends on the loss of the fit.
    mask : array_like of bool (m, n), optional
        Mask of the entries of X that count; NaN never counts.

    Returns
    -------
    xarray.Dataset
        Variables over the dimension `fit`: nonlinearity, loss, rank, objective, relative_error,
        n_iter, seconds, stop_reason and observations_hash, which is equal for fits of equal data.
        With X also rmse and mae, in the units of X.

    Raises
    ------
    ValueError
        If `fits` is empty, or X has another shape or other labels than the fits.
    TypeError
        If an item is not a Decomposition.

    Examples
    --------
    >>> import numpy as np, nmd_lab as nmd
    >>> X = np.maximum(np.random.default_rng(0).normal(size=(30, 20)), 0)
    >>> fits = {f: nmd.decompose(X, 4, f, random_state=0) for f in ("relu", "identity")}
    >>> errors = nmd.compare(fits, X)["rmse"]
    >>> bool(errors.sel(fit="relu") < errors.sel(fit="identity"))
    True
    """
    named = dict(fits) if isinstance(fits, Mapping) else dict(enumerate(fits))
    if not named:
        raise ValueError("fits is empty: give at least one fit.")
    for name, fit in named.items():
        if not isinstance(fit, Decomposition):
            raise TypeError(f"fits[{name!r}] is a {type(fit).__name__}: give decompositions.")
    scores = [_scores(fit) | ({} if X is None else _errors(fit, X, mask)) for fit in named.values()]
    columns = {name: ("fit", [score[name] for score in scores]) for name in scores[0]}
    return xr.Dataset(columns, coords={"fit": list(named)})


def _scores(fit: Decomposition) -> dict[str, Any]:
    """Return the scores that a fit has without data."""
    return {
        "nonlinearity": repr(fit.nonlinearity),
        "loss": fit.loss.name,
        "rank": fit.rank,
        "objective": fit.objective,
        "relative_error": fit.relative_error,
        "n_iter": fit.n_iter,
        "seconds": float(fit.history["seconds"][-1]),
        "stop_reason": fit.stop_reason,
        "observations_hash": fit.parameters.get("observations_hash", ""),
    }


def _errors(fit: Decomposition, X: Any, mask: ArrayLike | None) -> dict[str, float]:
    """Return the root mean squared and the mean absolute error of a fit."""
    residual = fit.residual(X, mask=mask).values
    residual = residual[~np.isnan(residual)].astype(np.float64)
    return {
        "rmse": float(np.sqrt(np.mean(np.square(residual)))),
        "mae": float(np.mean(np.abs(residual))),
    }
