"""Compiled passes over flat arrays of entries: T-update and envelope.

Each pass is one loop, compiled for a model and the types of its arguments.  This and
`nmd_lab.solver.devices.tensors` alone use X, f and d in an iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from nmd_lab._runtime.compiler import compile_kernel, compile_scalar
from nmd_lab.data.entries import FloatArray
from nmd_lab.model.entry import compile_entry
from nmd_lab.model.kind import Structure
from nmd_lab.model.model import Model

from .mixed_passes import MixedPasses


@cache
def compile_entry_update(structure: Structure, limited: bool) -> Callable[..., Any]:
    """Return the compiled T-update of one entry.

    It takes (a, u, x, penalty, dual_scale, limit, upper, model) and returns v = a -
    dual_scale u, the new t, and the loss of f(a); the new u is t - v.
    """
    solve, loss = compile_entry(structure, limited)

    def update(a, u, x, penalty, dual_scale, limit, upper, model):  # type: ignore[no-untyped-def]
        v = a - dual_scale * u
        t = solve(v, x, penalty, limit, upper, model)
        return v, t, loss(x, a, limit, upper, model)

    return compile_scalar(update)


def update_kernel(model: Model, kind: str) -> Callable[..., tuple[float, float, float]]:
    """Return the compiled update of a flat block, for arguments of one kind.

    It takes (x, a, weights, limits, uppers, parts, t, u, penalty, dual_scale, model.numbers), and
    returns the sums of the loss, of (t - a)² and of the squared change of t.
    """
    if model.is_mixed:
        return MixedPasses(model, limited=has_limits(kind)).update
    one = model.only
    return _update_kernel(one.structure, f"update_{one.name}_{kind}", one.is_ours)


@cache
def _update_kernel(structure: Structure, name: str, cached: bool) -> Callable[..., Any]:
    update_entry = compile_entry_update(structure, has_limits(name))

    def update(x, a, weights, limits, uppers, parts, t, u, penalty, dual_scale, model):  # type: ignore[no-untyped-def]
        data_term, primal, dual = 0.0, 0.0, 0.0
        for i in range(x.size):
            weight = 1.0 if weights is None else 1.0 * weights[i]
            limit = 0 if limits is None else limits[i]
            upper = x[i] if uppers is None else uppers[i]
            value = x[i] if weight > 0 else x.dtype.type(0)
            rho = penalty / weight if weight > 0 else penalty  # infinity would never converge
            v, new, loss = update_entry(a[i], u[i], value, rho, dual_scale, limit, upper, model)
            new = new if weight > 0 else v
            data_term += weight * loss if weight > 0 else 0.0  # it may be infinite at x = 0
            residual, step = new - a[i], new - t[i]
            primal += residual * residual
            dual += step * step
            t[i], u[i] = new, new - v
            a[i] = residual + (new - v)
        return data_term, primal, dual

    return compile_kernel(update, name, cached=cached)


def envelope_kernel(model: Model, kind: str) -> Callable[..., tuple[float, float, float]]:
    """Return the compiled pass over a flat block, for arguments of one kind.

    It takes (x, a, weights, limits, uppers, parts, u, penalty, update_from, model.numbers), turns
    `a` into the gradient of L and returns the sums of L, of the loss of f(a) and of (t - a)².
    """
    if model.is_mixed:
        return MixedPasses(model, limited=has_limits(kind)).envelope
    one = model.only
    return _envelope_kernel(one.structure, f"envelope_{one.name}_{kind}", one.is_ours)


@cache
def _envelope_kernel(structure: Structure, name: str, cached: bool) -> Callable[..., Any]:
    solve, loss = compile_entry(structure, has_limits(name))

    def evaluate(  # type: ignore[no-untyped-def]
        x, a, weights, limits, uppers, parts, u, penalty, update_from, model
    ):
        value, data_term, squares = 0.0, 0.0, 0.0
        for i in range(x.size):
            weight = 1.0 if weights is None else 1.0 * weights[i]
            if weight == 0.0:
                a[i] = 0.0
                continue
            limit = 0 if limits is None else limits[i]
            upper = x[i] if uppers is None else uppers[i]
            if update_from > 0.0:
                v = a[i] - u[i]
                t = solve(v, x[i], update_from / weight, limit, upper, model)
                u[i] = (t - v) * (update_from / penalty)
            v = a[i] - u[i]
            t = solve(v, x[i], penalty / weight, limit, upper, model)
            data_term += weight * loss(x[i], a[i], limit, upper, model)
            value += weight * loss(x[i], t, limit, upper, model)
            value += 0.5 * penalty * (t - v) * (t - v)
            squares += (t - a[i]) * (t - a[i])
            a[i] = penalty * (v - t)
        return value, data_term, squares

    return compile_kernel(evaluate, name, cached=cached)


def has_limits(name: str) -> bool:
    """Return whether the kernel of this name is one for entries with limits."""
    return "_limits" in name or "_both" in name


CHUNK = 512
"""Number of entries that are summed up in the precision of the data.  The loops run over a view of
them from 0, since the compiler vectorises no loop whose index might be negative."""


class ZeroLoss:
    """The loss of zeros under a model."""

    def __init__(self, model: Model, dtype: np.dtype[Any]) -> None:
        kind = model.only
        form = FORMS.get(kind.loss.of_zero) if kind.nonlinearity.form == "relu" else None
        if form is None:
            name = f"zeros_{kind.name}_{dtype}"
            self._kernel = _zero_kernel(kind.structure, name, kind.is_ours)
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
def _zero_kernel(structure: Structure, name: str, cached: bool) -> Callable[..., Any]:
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

    return compile_kernel(evaluate, name, cached=cached)
