"""Columns that are linear in others, such as a length in two units, or a sum and its parts.

An f that is learned for each column bends such relations.  The copy of a column in other units gets
the f of this column in its units.  All columns of another relation are straight.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .loss import Array
from .monotone import Monotone

MAX_REST, MAX_RATIO = 0.02, 0.8
"""Fraction of the variance of a column that others leave at most, and the ratio of this fraction to
that with the f of each column."""

MAX_OTHERS, MIN_ROWS, MAX_ROWS, MIN_SLOPE = 5, 50, 2000, 0.05
"""Number of other columns in a relation at most, of rows that know all of them at least, of rows
that are looked at, and smallest slope in standard deviations."""

LINE = Monotone([-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0])


def with_relations(functions: list[Any], X: Array) -> list[Monotone]:
    """Return the f of each column of X (m, n), the same one or a line in relations."""
    X = X[:: -(-len(X) // MAX_ROWS)].astype(np.float64)
    learned = [f.for_data(x[~np.isnan(x)]) for f, x in zip(functions, X.T, strict=True)]
    T = [np.where(np.isnan(x), x, f.pseudo_inverse(x)) for f, x in zip(learned, X.T, strict=True)]
    x, t = _standard(X), _standard(np.column_stack(T))
    found = list(_relations(~np.isnan(X), x, t))
    straight = {j for column, others in found if len(others) > 1 for j in (column, *others)}
    copies: dict[int, Monotone] = {}
    for j, (k, *more) in found:
        if more or straight & {j, k}:
            straight |= {j, k}
        elif j not in copies:
            copies.setdefault(k, Monotone(learned[k].t, learned[k].x))
            both = ~np.isnan(X[:, [j, k]]).any(axis=1)
            slope, shift = np.polyfit(X[both, k], X[both, j], 1)
            knots = shift + slope * np.array([copies[k].t, copies[k].x])
            copies[j] = Monotone(*np.sort(knots).tolist())
    each = enumerate(functions)
    return [LINE if j in straight else copies.get(j, f) for j, f in each]


def _standard(X: Any) -> Array:
    """Return columns in standard deviations from their mean, 0 where missing."""
    frame = pd.DataFrame(X)
    return np.asarray(((frame - frame.mean()) / frame.std(ddof=0)).fillna(0.0))


def _relations(known: NDArray[np.bool_], x: Array, t: Array) -> Iterator[tuple[int, list[int]]]:
    """Yield columns of x that are linear in others, and these; but less so in their T."""
    for j in range(x.shape[1]):
        rest, rows, others = x[:, j], known[:, j], [j]
        while len(others) <= MAX_OTHERS:
            squares = np.square(x[rows]).sum(axis=0)
            shares = np.square(rest[rows] @ x[rows]) / np.where(squares > 0, squares, np.inf)
            shares[others] = -1.0
            others.append(int(np.argmax(shares)))
            rows = rows & known[:, others[-1]]
            if shares.max() <= 0 or rows.sum() < MIN_ROWS:
                break
            (left, slopes), (of_t, _) = (_rest(each[rows][:, others]) for each in (x, t))
            rest = np.zeros(len(x))
            rest[rows] = left
            if left.var() < min(MAX_REST * x[rows, j].var(), MAX_RATIO * of_t.var()):
                yield j, np.array(others[1:])[np.abs(slopes) > MIN_SLOPE].tolist()
                break


def _rest(x: Array) -> tuple[Array, Array]:
    """Return what the other columns leave of the first one, and its slopes on them."""
    y, *others = (x - x.mean(axis=0)).T
    slopes = np.linalg.lstsq(np.array(others).T, y)[0]
    return y - slopes @ others, slopes
