"""Compiled passes over flat arrays of entries: T-update and envelope.

Each pass is one loop, compiled for a model and the types of its arguments.  This and
`nmd_lab.devices.tensors` alone use X, f and d in an iteration.

In a table of several column models the loop of each runs over its entries of a block, in its units,

    a' = centre + size a,    v' = centre + size v,    ρ' = ρ / (weight size²),

and solves for t' = centre + size t.  What comes back is in the units of WH.  Column models that
differ in their units alone share one call.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import pairwise, starmap
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nmd_lab._runtime.compiler import cached_kernel, compile_kernel
from nmd_lab.data.entries import FloatArray
from nmd_lab.model.column_model import Structure
from nmd_lab.model.entry import compile_entry
from nmd_lab.model.model import Model

Sums = NDArray[np.float64]


class EntryPasses:
    """The passes of a model over a flat block of entries: a compiled loop for each kind."""

    def __init__(self, model: Model, *, limited: bool) -> None:
        kinds, _, self._units = model.by_function
        self._model, structures = model, [each.structure for each in kinds]
        self._numbers = [each.numbers for each in kinds]  # which may hold addresses in the model
        self._updates = [_pass_kernel(each, limited, False) for each in structures]
        self._envelopes = [_pass_kernel(each, limited, True) for each in structures]

    def update(self, *arguments: Any) -> Sums:
        """Update T and U, and turn A into S = T + U - A.

        The arguments are (x, A, weights, limits, uppers, parts, T, U, penalty).  Returned are the
        sums of the loss, of (T - A)² and of the squared change of T.
        """
        return self._over_kinds(self._updates, *arguments)

    def envelope(self, *arguments: Any) -> Sums:
        """Turn A into the gradient of L.

        The arguments are (x, A, weights, limits, uppers, parts, U, penalty, update_from).  Returned
        are the sums of L, of the loss of f(A) and of (T - A)².
        """
        x, a, *marks, u, penalty, update_from = arguments
        if update_from > 0.0:
            self.update(x, a.copy(), *marks, a.copy(), u, update_from)
            u *= update_from / penalty
        return self._over_kinds(self._envelopes, x, a, *marks, u, u, penalty)

    def zeros(self, A: FloatArray, penalty: float) -> Sums:
        """Turn A = WH of a tile of zeros into the gradient of L, and return its sums."""
        is_relu, of_zero = self._model.nonlinearity.form == "relu", self._model.loss.of_zero
        if not (is_relu and of_zero):
            zeros = all_of(0, A.size, A.dtype)
            return self.envelope(zeros, A, None, None, None, None, zeros, penalty, 0.0)
        kernel = cached_kernel(FORMS[of_zero], f"zeros_{of_zero}_{A.dtype}")
        return np.array(kernel(A, A.dtype.type(penalty)))

    def _over_kinds(self, kernels: list[Callable[..., Any]], *arguments: Any) -> Sums:
        """Return the sums of the passes over the entries of each kind."""
        x, a, weights, *limits, parts, t, u, penalty = arguments
        data = x, a, all_of(1, x.size, bool) if weights is None else weights, *limits
        if parts is None:
            return np.array(kernels[0](*data, None, t, u, penalty, self._numbers[0]))
        (order, which, ends), sums = parts, np.zeros(3)
        slices = starmap(slice, pairwise(ends.tolist()))
        for kernel, numbers, at in zip(kernels, self._numbers, slices, strict=True):
            if at.start < at.stop:
                kinds = order[at], which[at], self._units
                sums += kernel(*data, kinds, t, u, penalty, numbers)
        return sums


@lru_cache(8)
def all_of(value: float, size: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return equal numbers, not to be changed: new ones for each block are not in the cache."""
    return np.full(size, value, dtype)


@cache
def _pass_kernel(structure: Structure, limited: bool, gradient: bool) -> Callable[..., Any]:
    """Return a compiled pass; selections in the place of branches let the loop vectorise."""
    solve, loss = compile_entry(structure, limited)

    def run(x, a, weights, limits, uppers, kinds, t, u, penalty, model):  # type: ignore[no-untyped-def]
        value, data_term, primal, dual = 0.0, 0.0, 0.0, 0.0
        if kinds is not None:
            order, which, units = kinds
        for k in range(x.size if kinds is None else order.size):
            i = k if kinds is None else order[k]
            centre = 0.0 if kinds is None else units[0, which[k]]
            size = 1.0 if kinds is None else units[1, which[k]]
            weight = weights[i] * (1.0 if kinds is None else units[2, which[k]])
            seen = weight > 0
            limit = 0 if limits is None else limits[i]
            upper = x[i] if uppers is None else uppers[i]
            reach = x.dtype.type(math.inf if seen else 0.0)
            known = max(-reach, min(reach, x[i]))  # 0 if missing, and loaded: under a mask is slow
            rho = penalty / ((weight if seen else 1.0) * size * size)  # infinity never converges
            v, here = a[i] - u[i], centre + size * a[i]
            solved = centre + size * v
            if kinds is None or seen:
                solved = solve(solved, known, rho, limit, upper, model)
            new = (solved - centre) / size if seen else v
            data_term += weight * loss(known, here, limit, upper, model) if seen else known
            residual = new - a[i]
            if gradient:
                value += weight * loss(known, solved, limit, upper, model) if seen else 0.0
                value += 0.5 * penalty * (new - v) * (new - v)
                primal += residual * residual if seen else 0.0
                a[i] = penalty * (v - new)
            else:
                primal += residual * residual
                dual += (new - t[i]) * (new - t[i])
                t[i], u[i] = new, new - v
                a[i] = residual + (new - v)
        return (value, data_term, primal) if gradient else (data_term, primal, dual)

    name = f"{'envelope' if gradient else 'update'}_{structure.name}{'_limits' if limited else ''}"
    return compile_kernel(run, name, cached=structure.is_ours)


CHUNK = 512
"""Number of entries that are summed up in the precision of the data.  The loops run over a view of
them from 0, since the compiler vectorises no loop whose index might be negative."""


def _half_square(a, penalty):  # type: ignore[no-untyped-def]
    """Return the sums for max(0, a)² / 2."""
    zero, one = a.dtype.type(0), a.dtype.type(1)
    share, total = penalty / (one + penalty), 0.0
    for first in range(0, a.size, CHUNK):
        chunk, chunk_sum = a[first : first + CHUNK], zero
        for i in range(chunk.size):
            y = max(chunk[i], zero)
            chunk_sum += y * y
            chunk[i] = share * y
        total += chunk_sum
    return 0.5 * share * total, 0.5 * total, total / (1.0 + penalty) ** 2


def _half_line(a, penalty):  # type: ignore[no-untyped-def]
    """Return the sums for max(0, a)."""
    zero, one = a.dtype.type(0), a.dtype.type(1)
    losses, products, squares = 0.0, 0.0, 0.0
    for first in range(0, a.size, CHUNK):
        chunk = a[first : first + CHUNK]
        loss, product, square = zero, zero, zero
        for i in range(chunk.size):
            y = max(chunk[i], zero)
            slope = min(penalty * y, one)
            loss += y
            product += y * slope
            square += slope * slope
            chunk[i] = slope
        losses += loss
        products += product
        squares += square
    return products - 0.5 * squares / penalty, losses, squares / penalty**2


FORMS: dict[str, Callable[..., Any]] = {"square": _half_square, "absolute": _half_line}
"""The envelope with ReLU, for each form of the loss of a zero (`Loss.of_zero`)."""
