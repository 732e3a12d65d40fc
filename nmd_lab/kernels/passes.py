"""Compiled passes over flat arrays of entries: T-update and envelope.

Each pass is one loop, compiled for a model and the types of its arguments.  This and
`nmd_lab.devices.tensors` alone use X, f and d in an iteration.

In a table of several column models the entries of a block are gathered in the order of these and in
their units,

    a' = centre + size a,    v' = centre + size v,    ρ' = ρ / (weight size²),

where the loops of one column model solve for t' = centre + size t.  What comes back is in the units
of WH.  Column models that differ in their units alone share one call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import pairwise, starmap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.compiler import cached_kernel, compile_kernel
from nmd_lab.data.entries import FloatArray
from nmd_lab.model.column_model import Structure
from nmd_lab.model.entry import EntryMaps, compile_entry, entry_maps
from nmd_lab.model.model import Model, groups

Doubles = NDArray[np.float64]
Sums = tuple[float, float, float]


class SortedBlock(NamedTuple):
    """The entries of a block, sorted by the f and d of their kinds.

    Attributes
    ----------
    order : ndarray of int32
        Their positions in the block; those of missing entries come last.
    model_index : ndarray of int16
        Position of the column model of each, in this order.
    ends : ndarray of int
        Where those of each f and d begin, and the last ones end.
    """

    order: NDArray[np.int32]
    model_index: NDArray[np.int16]
    ends: NDArray[np.intp]


def sorted_block(model: Model, model_index: NDArray[np.int16], seen: Any) -> SortedBlock:
    """Return the entries of a block by their kinds; `seen` says which are not missing, or None."""
    different, positions, _ = model.by_function
    group = positions[model_index]
    group = group if seen is None else np.where(seen, group, len(different))
    order, ends = groups(group, len(different))
    return SortedBlock(order.astype(np.int32), model_index[order], ends)


class MixedPasses:
    """The passes of a model, which take the arguments of those of one kind."""

    def __init__(self, model: Model, *, limited: bool) -> None:
        self.maps = [entry_maps(each.structure, limited) for each in model.by_function[0]]
        # new memory for each block would take longer than the loops
        self._spare: list[Doubles] = []

    @contextmanager
    def _gathered(self, *data: Any) -> Iterator[_Gathered]:
        """Give the entries of a block in memory that serves the next block, too."""
        size = data[1].size
        work = self._spare.pop() if self._spare else np.empty(8 * size)
        work = work if work.size >= 8 * size else np.empty(8 * size)
        yield _Gathered(self.maps, work, *data)
        self._spare.append(work)

    def update(self, *arguments: Any) -> Sums:
        """Update T and U, and turn A into S; see `passes_of`."""
        *data, t, u, penalty, dual_scale, numbers = arguments
        with self._gathered(*data, u, numbers) as here:
            here.gather(penalty, dual_scale)
            here.solve()
            here.losses_at(here.a, 6)
            sums: Sums = here.finish(_finish_update, t, dual_scale)
        return sums

    def envelope(self, *arguments: Any) -> Sums:
        """Turn A into the gradient of L; see `passes_of`."""
        *data, u, penalty, update_from, numbers = arguments
        with self._gathered(*data, u, numbers) as here:
            if update_from > 0.0:
                here.gather(update_from)
                here.solve()
                size = here.units[1][here.model_index]
                here.u[here.order] = (here.t - here.v) / size * (update_from / penalty)
            here.gather(penalty)
            here.solve()
            here.losses_at(here.a, 6)
            here.losses_at(here.t, 7)
            sums: Sums = here.finish(_finish_envelope, penalty)
        return sums


class _Gathered:
    """The observed entries of a block, in the order and in the units of their kinds.

    The rows of `work` are x, weight, a', v', ρ', t', and the losses at a' and at t'.
    """

    def __init__(self, maps: list[EntryMaps], work: Doubles, *data: Any) -> None:
        x, self.A, weights, limits, uppers, self.parts, self.u, numbers = data
        (self.units, self.numbers), self.maps, self.ends = numbers, maps, self.parts.ends.tolist()
        self.order, self.model_index = (each[: self.ends[-1]] for each in self.parts[:2])
        self.work = work[: 8 * self.order.size].reshape(8, -1)
        self.x, self.weights, self.a, self.v, self.rho, self.t = self.work[:6]
        self._x_and_weights = x, x[:0] if weights is None else weights.astype(x.dtype, copy=False)
        self.limits = None if limits is None else limits[self.order]
        self.uppers = None if uppers is None else uppers[self.order]

    def gather(self, penalty: float, dual_scale: float = 1.0) -> None:
        """Set x, weights, a', v' and ρ'."""
        places = self.order, self.model_index, self.units
        arrays = *self._x_and_weights, self.A, self.u, self.work
        cached_kernel(_gather, f"gather_{self.A.dtype}")(*places, *arrays, penalty, dual_scale)

    def finish(self, kernel: Callable[..., Any], *arguments: Any) -> Any:
        """Take what was found back to the entries, missing ones too."""
        compiled = cached_kernel(kernel, f"{kernel.__name__.strip('_')}_{self.A.dtype}")
        order, model_index, _ = self.parts
        return compiled(order, model_index, self.units, self.work, self.A, self.u, *arguments)

    def solve(self) -> None:
        """Set t' to the T-update."""
        for maps, at, *limits in self._each():
            maps.solve(self.v[at], self.x[at], self.rho[at], *limits, self.t[at])

    def losses_at(self, a: Doubles, row: int) -> None:
        """Put the losses into a row of `work`."""
        for maps, at, *limits in self._each():
            maps.losses(self.x[at], a[at], *limits, self.work[row, at])

    def _each(self) -> Iterator[tuple[Any, ...]]:
        """Yield the loops of each f and d, its entries, their limits, and its numbers."""
        slices = starmap(slice, pairwise(self.ends))
        for maps, numbers, at in zip(self.maps, self.numbers, slices, strict=True):
            if at.start < at.stop:
                limits = (None if each is None else each[at] for each in (self.limits, self.uppers))
                yield maps, at, *limits, numbers


def _gather(order, model_index, units, x, weights, A, u, work, penalty, dual_scale):  # type: ignore[no-untyped-def]
    for k in range(order.size):
        i, centre, size = order[k], units[0, model_index[k]], units[1, model_index[k]]
        weight = units[2, model_index[k]] * (weights[i] if weights.size else 1.0)
        work[0, k], work[1, k] = x[i], weight
        work[2, k] = centre + size * A[i]
        work[3, k] = centre + size * (A[i] - dual_scale * u[i])
        work[4, k] = penalty / (weight * size * size)


def _finish_update(order, model_index, units, work, A, u, t, dual_scale):  # type: ignore[no-untyped-def]
    data_term, primal, dual = 0.0, 0.0, 0.0
    for k in range(order.size):
        i = order[k]
        v = A[i] - dual_scale * u[i]
        new = v
        if k < work.shape[1]:
            new = (work[5, k] - units[0, model_index[k]]) / units[1, model_index[k]]
            data_term += work[1, k] * work[6, k]
        residual, step = new - A[i], new - t[i]
        primal += residual * residual
        dual += step * step
        t[i], u[i], A[i] = new, new - v, residual + (new - v)
    return data_term, primal, dual


def _finish_envelope(order, model_index, units, work, A, u, penalty):  # type: ignore[no-untyped-def]
    value, data_term, squares = 0.0, 0.0, 0.0
    for k in range(order.size):
        i = order[k]
        if k >= work.shape[1]:
            A[i] = 0.0
            continue
        v, t = A[i] - u[i], (work[5, k] - units[0, model_index[k]]) / units[1, model_index[k]]
        data_term += work[1, k] * work[6, k]
        value += work[1, k] * work[7, k] + 0.5 * penalty * (t - v) * (t - v)
        squares += (t - A[i]) * (t - A[i])
        A[i] = penalty * (v - t)
    return value, data_term, squares


def passes_of(model: Model, *, limited: bool) -> EntryPasses | MixedPasses:
    """Return the passes over a flat block, of entries with limits or without.

    ``update`` takes (x, a, weights, limits, uppers, parts, t, u, penalty, dual_scale,
    model.numbers), turns `a` into T + U - a and returns the sums of the loss, of (t - a)² and of
    the squared change of t.

    ``envelope`` takes (x, a, weights, limits, uppers, parts, u, penalty, update_from,
    model.numbers), turns `a` into the gradient of L and returns the sums of L, of the loss of f(a)
    and of (t - a)².
    """
    if model.is_mixed:
        return MixedPasses(model, limited=limited)
    return EntryPasses(model, limited=limited)


class EntryPasses:
    """The passes of a model of one kind, two loops of a kernel."""

    def __init__(self, model: Model, *, limited: bool) -> None:
        self._kernel = _pass_kernel(model.only.structure, limited)

    def update(self, *arguments: Any) -> Sums:
        """Update T and U, and turn A into S; see `passes_of`."""
        *data, _, t, u, penalty, dual_scale, numbers = arguments
        sums: Sums = self._kernel(*data, t, u, penalty, dual_scale, False, numbers)
        return sums

    def envelope(self, *arguments: Any) -> Sums:
        """Turn A into the gradient of L; see `passes_of`."""
        x, a, *data, _, u, penalty, update_from, numbers = arguments
        if update_from > 0.0:
            t = np.zeros_like(a)
            self._kernel(x, a.copy(), *data, t, u, update_from, 1.0, False, numbers)
            u *= update_from / penalty
        sums: Sums = self._kernel(x, a, *data, u, u, penalty, 1.0, True, numbers)
        return sums


@cache
def _pass_kernel(structure: Structure, limited: bool) -> Callable[..., Any]:
    """Return the compiled passes; selections in the place of branches let the loops vectorise."""
    solve, loss = compile_entry(structure, limited)

    def run(x, a, weights, limits, uppers, t, u, penalty, dual_scale, gradient, model):  # type: ignore[no-untyped-def]
        value, data_term, primal, dual = 0.0, 0.0, 0.0, 0.0
        if gradient:
            for i in range(x.size):
                weight = 1.0 if weights is None else 1.0 * weights[i]
                seen = weight > 0
                limit = 0 if limits is None else limits[i]
                upper = x[i] if uppers is None else uppers[i]
                known = x[i] if seen else x.dtype.type(0)
                v = a[i] - u[i]
                new = solve(v, known, penalty / (weight if seen else 1.0), limit, upper, model)
                new = new if seen else v
                data_term += weight * loss(known, a[i], limit, upper, model) if seen else 0.0
                value += weight * loss(known, new, limit, upper, model) if seen else 0.0
                value += 0.5 * penalty * (new - v) * (new - v)
                primal += (new - a[i]) * (new - a[i]) if seen else 0.0
                a[i] = penalty * (v - new)
            return value, data_term, primal
        for i in range(x.size):
            weight = 1.0 if weights is None else 1.0 * weights[i]
            seen = weight > 0
            limit = 0 if limits is None else limits[i]
            upper = x[i] if uppers is None else uppers[i]
            known = x[i] if seen else x.dtype.type(0)
            rho = penalty / (weight if seen else 1.0)  # infinity would never converge
            v = a[i] - dual_scale * u[i]
            new = solve(v, known, rho, limit, upper, model)
            new = new if seen else v
            data_term += weight * loss(known, a[i], limit, upper, model) if seen else 0.0
            residual, step = new - a[i], new - t[i]
            primal += residual * residual
            dual += step * step
            t[i], u[i] = new, new - v
            a[i] = residual + (new - v)
        return data_term, primal, dual

    name = f"pass_{structure.name}{'_limits' if limited else ''}"
    return compile_kernel(run, name, cached=structure.is_ours)


CHUNK = 512
"""Number of entries that are summed up in the precision of the data.  The loops run over a view of
them from 0, since the compiler vectorises no loop whose index might be negative."""


class ZeroLoss:
    """The loss of zeros under a model."""

    def __init__(self, model: Model, dtype: np.dtype[Any]) -> None:
        column_model = model.only
        is_relu = column_model.nonlinearity.form == "relu"
        form = FORMS.get(column_model.loss.of_zero) if is_relu else None
        if form is None:
            self._kernel = zero_kernel(column_model.structure)
            self._model: tuple[Any, ...] = (model.numbers,)
        else:
            name = f"zeros_{form.__name__.strip('_')}_{dtype}"
            self._kernel, self._model = compile_kernel(form, name, cached=True), ()
        self._dtype = dtype

    def __call__(self, A: FloatArray, penalty: float) -> tuple[float, float, float]:
        """Turn A = WH of a tile into the gradient of the envelope."""
        sums: tuple[float, float, float] = self._kernel(A, self._dtype.type(penalty), *self._model)
        return sums


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


@cache
def zero_kernel(structure: Structure) -> Callable[..., Any]:
    """Return the compiled pass for any model; it takes (a, penalty, model.numbers)."""
    solve, loss = compile_entry(structure, False)

    def evaluate(a, penalty, model):  # type: ignore[no-untyped-def]
        value, data_term, squares = 0.0, 0.0, 0.0
        zero = a.dtype.type(0)
        for i in range(a.size):
            v = a[i]
            t = solve(v, zero, penalty, 0, zero, model)
            data_term += loss(zero, v, 0, zero, model)
            value += loss(zero, t, 0, zero, model) + 0.5 * penalty * (t - v) * (t - v)
            squares += (t - v) * (t - v)
            a[i] = penalty * (v - t)
        return value, data_term, squares

    return compile_kernel(evaluate, f"zeros_{structure.name}", cached=structure.is_ours)
