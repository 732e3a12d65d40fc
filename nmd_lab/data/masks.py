"""Masks of observed entries, and groups of rows, that belong to X."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from ._masks_and_weights import as_booleans, at_entries, dense_values
from .base import Observations
from .labels import is_frame
from .tensors import without_tensors


def is_mask(entries: Any) -> bool:
    """Return whether a matrix holds booleans, and not values."""
    if is_frame(entries):
        kinds = {getattr(dtype, "kind", "") for dtype in entries.dtypes}
        return kinds == {"b"} and not bool(entries.isna().any(axis=None))
    entries = without_tensors(entries)
    dtype = entries.dtype if hasattr(entries, "dtype") else np.asarray(entries).dtype
    return bool(dtype.kind == "b")


def at_observed(name: str, mask: Any, X: Any, observations: Observations) -> NDArray[np.bool_]:
    """Return a mask in the shape of X at the observed entries, flat."""
    X, mask = without_tensors(X), without_tensors(mask)
    rows, columns, _ = observations.entries()
    if observations.pattern is not None:
        values = at_entries(name, mask, observations.shape, rows, columns)
    else:
        mask = mask.toarray() if hasattr(mask, "toarray") else mask
        if is_frame(mask):
            _check_labels(name, mask, X)
            mask = mask.astype(bool)
        values = dense_values(name, mask, X, observations.labels)[rows, columns]
    return as_booleans(values, name, "True = held out")


def _check_labels(name: str, mask: pd.DataFrame, X: Any) -> None:
    """Raise ValueError if a mask lacks a label of X."""
    pairs = ((mask.index, X.index), (mask.columns, X.columns)) if is_frame(X) else ()
    for labels, wanted in pairs:
        absent = wanted.difference(labels)
        if len(absent) and len(labels) != len(wanted):
            raise ValueError(
                f"{name} lacks the label {absent[0]!r} of X: give a mask with all labels of X."
            )


def row_groups(groups: Any, X: Any, observations: Observations) -> NDArray[np.intp]:
    """Return the group of each row as a number, from labels or the name of what has them in X."""
    m = observations.shape[0]
    labels = _named(groups, X, observations) if isinstance(groups, str) else _in_order(groups, X)
    if labels.shape != (m,):
        raise ValueError(f"groups has shape {labels.shape}: give a label for each of the {m} rows.")
    missing = pd.isna(labels)
    if np.any(missing):
        raise ValueError(
            f"groups has no label for row {int(np.argmax(missing))}: give one to each row."
        )
    text = labels.astype(str) if labels.dtype == object else labels
    found: NDArray[np.intp] = np.unique(text, return_inverse=True)[1].reshape(m)
    return found


def _in_order(groups: Any, X: Any) -> NDArray[Any]:
    """Return labels in the order of the rows of X, matched by index where both have one."""
    has_index = is_frame(X) and hasattr(groups, "index") and hasattr(groups, "reindex")
    if not has_index or groups.index.equals(X.index):
        return np.asarray(groups)
    if not (groups.index.is_unique and X.index.is_unique):
        raise ValueError(
            "groups has another index than X, and labels come twice: give an array in the order of "
            "X."
        )
    return np.asarray(groups.reindex(X.index))


def _named(name: str, X: Any, observations: Observations) -> NDArray[Any]:
    """Return the labels of a column, an index level or a coordinate."""
    if is_frame(X):
        if name in X.columns:
            return np.asarray(X[name], dtype=object)
        if name in X.index.names:
            return np.asarray(X.index.get_level_values(name))
    labels = observations.labels
    coords = X.coords if isinstance(X, xr.DataArray) else labels.coords.coords
    if name in coords and set(coords[name].dims) <= set(labels.rows):
        sizes = [labels.shape[labels.dims.index(dim)] for dim in labels.rows]
        along = coords[name].broadcast_like(_empty(labels.rows, sizes)).transpose(*labels.rows)
        return np.asarray(along.values).ravel()
    raise ValueError(
        f"groups={name!r} is no column, index level or coordinate of the rows of X: give the name "
        "of one, or a label for each row."
    )


def _empty(dims: tuple[str, ...], sizes: list[int]) -> xr.DataArray:
    return xr.DataArray(np.empty(sizes, dtype=bool), dims=dims)
