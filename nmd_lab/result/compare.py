"""Scores at entries, in ways that suit their columns, and of several fits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.observations import Observations
from nmd_lab.data.typed_table import TypedColumn

from .decomposition import Decomposition
from .entries import compared_entries, entries_at
from .selection import as_text
from .summary import unfinished

CLASS_ERRORS = {"misclassified": "fraction of wrong classes", "level_error": "mean error of levels"}
"""Errors of classes, yes and no, and errors of ordered levels, with their names for people."""


def error_of(column: TypedColumn) -> str:
    """Return the name of the error of a column of classes."""
    return "level_error" if column.kind == "ordered" else "misclassified"


def class_errors(result: Any, X: Observations, model: FloatArray) -> dict[str, FloatArray]:
    """Return the errors of the most probable classes at the entries of X, by name.

    Each cell of a table has one, at its first entry; other entries have NaN.  A result without
    probabilities has the class that is nearest to `model`, its values at the entries.
    """
    rows, columns, values = X.entries()
    errors: dict[str, FloatArray] = {}
    for column, at in () if X.labels.table is None else X.labels.table.blocks():
        if not column.is_class:
            continue
        first = np.flatnonzero(columns == at[0])
        cells = first[:, None] + np.arange(at.size)  # the entries of a cell follow one another
        right, most_probable = (column.nearest(each[cells]) for each in (values, model))
        with suppress(AttributeError, KeyError, ValueError):
            shares = result.probabilities(column.name).to_numpy()
            most_probable = shares.argmax(axis=1)[rows[first]]
        name, distance = error_of(column), np.abs(most_probable - right)
        each = errors.setdefault(name, np.full(values.size, np.nan))
        each[first] = distance if name == "level_error" else distance > 0
    return errors


def interval_scores(
    posterior: Any, X: Observations, values: FloatArray, at: NDArray[np.bool_], unit: Any
) -> dict[str, FloatArray]:
    """Return whether 90 % intervals cover some values, and the log-density of these in a unit.

    There is one value for each entry of X.  Where `at` is False, or there is no distribution, the
    scores are NaN.
    """
    rows, columns, _ = X.entries()
    inside, density = np.full((2, values.size), np.nan)
    entries, x = entries_at(rows[at], columns[at]), values[at]
    with suppress(ValueError):  # a loss of the user, or a level that the posterior lacks
        low, high = posterior.predict_interval(entries, level=0.9).T
        inside[at] = (low <= x) & (x <= high)
        density[at] = posterior.log_density(entries, values=x)
    return {"coverage_90": inside, "log_density": density + np.log(unit)}


def compare(
    fits: Decomposition | Iterable[Decomposition] | Mapping[str, Decomposition],
    *more: Any,
    X: Any = None,
    observed: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> xr.Dataset:
    """Return the scores of several fits as one Dataset.

    Parameters
    ----------
    fits : Decomposition, iterable of Decomposition, or dict
        Fits, labelled by the keys of a dict, and otherwise by their positions.
    *more : Decomposition, or data
        After a single fit: other fits, as in ``compare(a, b)``.  The last argument may be X.
    X : array_like, masked array, DataFrame, DataArray, scipy.sparse or SparseObservations, optional
        Data for the scores `rmse` and `mae`, such as held-out entries, of the shape of the fits or
        with labels that they have.  These two scores can be compared between losses, while
        `relative_error` depends on the loss of the fit.
    observed : array_like of bool, optional
        Mask of the entries of X that count; NaN, and what a sparse matrix does not store, never
        count.
    weights : array_like, optional
        Weights of the entries of X, >= 0.

    Returns
    -------
    xarray.Dataset
        Variables over the dimension `fit`: nonlinearity, loss, rank, objective, relative_error,
        n_iter, seconds, stop_reason and observations_hash, which is equal for fits of equal data.
        With X also rmse and mae, in the units of X.  Its attribute `sentence` names the fit with
        the lowest error, whether the second best differs from it, and which have not converged.

    Raises
    ------
    ValueError
        If `fits` is empty, or X has another shape or other labels than the fits.
    TypeError
        If an item is not a Decomposition.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> digits = nmd.datasets.digits(100)
    >>> fits = {f: nmd.decompose(digits, 5, f, random_state=0) for f in ("relu", "identity")}
    >>> errors = nmd.compare(fits, digits)["rmse"]
    >>> bool(errors.sel(fit="relu") < errors.sel(fit="identity"))
    True
    """
    named, X = _named(fits, list(more), X)
    scores, compared = [_scores(fit) for fit in named.values()], []
    if X is not None:
        compared = [compared_entries(fit, X, observed, weights) for fit in named.values()]
    for score, (x, y, w) in zip(scores, compared, strict=False):
        score["rmse"] = float(np.sqrt(np.average(np.square(x - y), weights=w)))
        score["mae"] = float(np.average(np.abs(x - y), weights=w))
    columns = {name: ("fit", [score[name] for score in scores]) for name in scores[0]}
    scored = xr.Dataset(columns, coords={"fit": list(named)})
    return scored.assign_attrs(sentence=_sentence(named, scored, compared))


def _named(fits: Any, more: list[Any], X: Any) -> tuple[dict[Any, Decomposition], Any]:
    """Return the fits by name, and the data, from the arguments of `compare`."""
    if X is None and more and not isinstance(more[-1], Decomposition):
        X = more.pop()
    if any(map(_holds_fits, (X, *more))) or (more and not isinstance(fits, Decomposition)):
        raise TypeError(
            "compare() got fits in several arguments, one of them a collection: put all fits into "
            "the collection, as in compare([a, b])."
        )
    fits = [fits, *more] if isinstance(fits, Decomposition) else fits
    named = dict(fits) if isinstance(fits, Mapping) else dict(enumerate(fits))
    if not named:
        raise ValueError("fits is empty: give at least one fit.")
    for name, fit in named.items():
        if not isinstance(fit, Decomposition):
            raise TypeError(f"fits[{name!r}] is a {type(fit).__name__}: give decompositions.")
    return named, X


def _holds_fits(item: Any) -> bool:
    """Return whether an item is a list, tuple or dict with a fit among its values."""
    values = item.values() if isinstance(item, Mapping) else item
    return isinstance(item, Mapping | list | tuple) and any(
        isinstance(value, Decomposition) for value in values
    )


def _scores(fit: Decomposition) -> dict[str, Any]:
    """Return the scores that a fit has without data."""
    return {
        "nonlinearity": repr(fit.nonlinearity),
        "loss": fit.loss.name,
        "rank": fit.rank,
        "objective": fit.objective,
        "relative_error": fit.relative_error,
        "n_iter": fit._n_iter,
        "seconds": float(fit.history["seconds"][-1]),
        "stop_reason": fit.stop_reason,
        "observations_hash": fit.parameters.get("observations_hash", ""),
    }


def _sentence(named: Mapping[Any, Any], scored: xr.Dataset, compared: list[Any]) -> str:
    """Return the results of the scores: the best fit, its lead over the next, and diagnostics."""
    sentences = ["Give X= for errors that compare."]
    if compared:
        order = np.argsort(scored["rmse"].values, kind="stable")[:2]
        best, *second = (list(named)[k] for k in order)
        errors = scored["rmse"].values[order]
        sentences = [f"{best} has the lowest root mean squared error, {as_text(errors[0])}."]
    if compared and second:
        excess = errors[1] - errors[0]
        (x, y, w), (_, z, _) = (compared[k] for k in order)
        spread = _spread(np.square(x - z) - np.square(x - y), w) / (errors.sum() or 1.0)
        verdict = "differs" if excess > 2 * spread else "does not differ significantly"
        sentences.append(
            f"{second[0]} is second and {verdict} from it, with {excess:.2g} ± {spread:.2g} more."
        )
    if names := [str(name) for name, fit in named.items() if unfinished(fit)]:
        sentences.append(f"Not converged: {', '.join(names)}.")
    if len({*scored["observations_hash"].values}) > 1:
        sentences.append("The fits are of different data.")
    return " ".join(sentences)


def _spread(values: NDArray[Any], weights: NDArray[Any]) -> float:
    """Return the standard error of a weighted mean."""
    share = weights / weights.sum()
    return float(np.sqrt(np.sum(np.square(share * (values - np.sum(share * values))))))
