"""The mixed pair of a table: a nonlinearity and a loss for each column, or for each entry.

The units of a column come from its best constant y, the value of lowest loss among those that f
takes: its centre is the T with f(T) = y, so that WH = 0 stands for the constant.  The size is the
standard deviation of the starting T where the loss measures x - y, and 1 where T has a natural unit
(log-odds, logarithms).

A loss that measures x - y has no natural unit, and is divided by twice its mean at the best
constant.  Every other loss is a likelihood, and stays as it is, unless its mean at the constant is
above one half, as that of large counts may be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from nmd_lab.data.base import Observations
from nmd_lab.data.labels import Labels
from nmd_lab.model.losses import Loss, as_loss
from nmd_lab.model.mixed import MixedPair, Part
from nmd_lab.model.nonlinearities import Nonlinearity, as_nonlinearity
from nmd_lab.model.proximal import make_pair


def is_mixed(part: Any) -> bool:
    """Return whether an argument gives nonlinearities or losses of columns or entries."""
    return isinstance(part, Mapping) or (isinstance(part, Sequence) and not isinstance(part, str))


def mixed_pair(nonlinearity: Any, loss: Any, observations: Observations) -> MixedPair:
    """Return the mixed pair that arguments describe, with units from the data.

    Parameters
    ----------
    nonlinearity, loss : str, object, dict, or (sequence, ndarray of int)
        One for all columns; by column label; or several, with the position of each column's (n,) or
        entry's (m, n) own among them.
    observations : Observations
        Data.
    """
    shape, labels = observations.shape, observations.labels
    losses, which_loss = _listed("loss", loss, labels, shape, "frobenius")
    functions, which_f = _listed("nonlinearity", nonlinearity, labels, shape, "identity")
    both = np.stack(np.broadcast_arrays(which_loss, which_f), axis=-1)
    which: NDArray[np.intp]
    if both.ndim == 2:  # each column has units of its own
        pairs, which = both, np.arange(shape[1], dtype=np.intp)
    else:
        pairs, inverse = np.unique(both.reshape(-1, 2), axis=0, return_inverse=True)
        which = inverse.reshape(both.shape[:2])
    rows, columns, x = observations.entries()
    x, (_, weights) = x.astype(np.float64), observations.observed()
    at = which[columns] if both.ndim == 2 else which[rows, columns]
    order = np.argsort(at, kind="stable")
    ends = np.searchsorted(at[order], np.arange(len(pairs) + 1))
    parts = []
    for k, (d, f) in enumerate(pairs.tolist()):
        own = order[ends[k] : ends[k + 1]]
        parts.append(_part(as_nonlinearity(functions[f]), as_loss(losses[d]), x[own], weights[own]))
    return MixedPair(tuple(parts), which)


def _listed(
    name: str, given: Any, labels: Labels, shape: tuple[int, int], default: Any
) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the different parts, and the position of each column's or entry's among them."""
    n = shape[1]
    if isinstance(given, Mapping):
        known = labels.flat(labels.columns).tolist()
        unknown = [label for label in given if label not in known]
        if unknown:
            raise ValueError(
                f"{name} has the column {unknown[0]!r}, which X does not have: give labels of X."
            )
        return [given.get(label, default) for label in known], np.arange(n)
    if not is_mixed(given):
        return [given], np.zeros(n, dtype=np.intp)
    if len(given) == 2 and isinstance(given[1], np.ndarray):
        parts, which = list(given[0]), given[1]
        if which.shape not in ((n,), shape) or which.dtype.kind not in "iu":
            raise ValueError(
                f"{name} has positions of shape {which.shape} and type {which.dtype}: give whole "
                f"numbers of shape {(n,)} or {shape}."
            )
        if which.size and not 0 <= which.min() <= which.max() < len(parts):
            raise ValueError(f"{name} has a position outside its list of {len(parts)}.")
        return parts, which.astype(np.intp)
    if len(given) != n:
        raise ValueError(f"{name} has {len(given)} parts: give one for each of the {n} columns.")
    return list(given), np.arange(n)


def _part(f: Nonlinearity, loss: Loss, x: NDArray[Any], weights: NDArray[Any]) -> Part:
    """Return the pair of a column with its units."""
    pair = make_pair(f, loss)
    if not x.size:
        return Part(pair)
    loss.check_data(float(x.min()), float(x.max()))
    T = np.asarray(pair.preimage(x), dtype=np.float64)
    mean = float(np.average(T, weights=weights))
    spread = math.sqrt(float(np.average(np.square(T - mean), weights=weights)))
    measures_distance = loss.domain == (-math.inf, math.inf) and loss.degree is not None

    def cost(t: float) -> float:
        return float(np.average(loss(x, f(np.full(x.size, t))), weights=weights))

    if f.even:
        centre, size = 0.0, math.sqrt(float(np.average(np.square(T), weights=weights))) or 1.0
    else:
        reach = 4 * spread + 1
        centre = float(
            minimize_scalar(cost, bounds=(mean - reach, mean + reach), method="bounded").x
        )
        size = spread if measures_distance and spread > 0 else 1.0
    null = cost(centre)
    weight = 1.0
    if measures_distance:
        weight = 0.5 / null if null > 0 else 1.0
    elif null > 0.5:
        weight = 0.5 / null if loss.degree is not None else 1.0
    return Part(pair, centre, size, weight)
