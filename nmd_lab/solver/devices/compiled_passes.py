"""Compiled passes over flat arrays of entries: T-update, envelope and curvature.

Each pass is one loop, compiled for a model and the types of its arguments.  This and
`nmd_lab.solver.devices.tensor_passes` alone use X, f and d in an iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from nmd_lab._runtime.compiler import compile_kernel, compile_scalar
from nmd_lab.model.entry import compile_entry
from nmd_lab.model.kind import AnyStructure
from nmd_lab.model.model import Model


@cache
def compile_entry_update(structure: AnyStructure, limited: bool) -> Callable[..., Any]:
    """Return the compiled T-update of one entry.

    It takes (a, u, x, penalty, dual_scale, limit, upper, kind, model) and returns v = a -
    dual_scale u, the new t, and the loss of f(a); the new u is t - v.
    """
    solve, loss = compile_entry(structure, limited)

    def update(a, u, x, penalty, dual_scale, limit, upper, kind, model):  # type: ignore[no-untyped-def]
        v = a - dual_scale * u
        t = solve(v, x, penalty, limit, upper, kind, model)
        return v, t, loss(x, a, limit, upper, kind, model)

    return compile_scalar(update)


def update_kernel(model: Model, kind: str) -> Callable[..., tuple[float, float, float, float]]:
    """Return the compiled update of a flat block, for arguments of one kind.

    It takes (x, a, weights, limits, uppers, parts, t, u, previous, change, penalty, dual_scale,
    model.numbers).
    """
    return _update_kernel(model.structure, f"update_{model.name}_{kind}", model.is_ours)


@cache
def _update_kernel(structure: AnyStructure, name: str, cached: bool) -> Callable[..., Any]:
    update_entry = compile_entry_update(structure, has_limits(name))

    def update(  # type: ignore[no-untyped-def]
        x, a, weights, limits, uppers, parts, t, u, previous, change, penalty, dual_scale, model
    ):
        data_term, primal, dual, shifted = 0.0, 0.0, 0.0, 0.0
        for i in range(x.size):
            weight = 1.0 if weights is None else 1.0 * weights[i]
            limit = 0 if limits is None else limits[i]
            upper = x[i] if uppers is None else uppers[i]
            kind = 0 if parts is None else parts[i]
            if parts is not None and weight == 0.0:  # one kind alone is quicker without a branch
                v = a[i] - dual_scale * u[i]
                new, loss = v, v - v
            else:
                value = x[i] if weight > 0 else x.dtype.type(0)
                rho = penalty / weight if weight > 0 else penalty  # infinity would never converge
                v, new, loss = update_entry(
                    a[i], u[i], value, rho, dual_scale, limit, upper, kind, model
                )
                new = new if weight > 0 else v
            data_term += weight * loss if weight > 0 else 0.0  # it may be infinite at x = 0
            residual, step, shift = new - a[i], new - t[i], 0.0
            if previous is not None:
                shift = a[i] - previous[i]
                previous[i] = a[i]
            if change is not None:
                change[i] = step - shift
            primal += residual * residual
            dual += step * step
            shifted += shift * shift
            t[i], u[i] = new, new - v
            a[i] = residual + (new - v)
        return data_term, primal, dual, shifted

    return compile_kernel(update, name, cached=cached)


def envelope_kernel(model: Model, kind: str) -> Callable[..., tuple[float, float, float]]:
    """Return the compiled pass over a flat block, for arguments of one kind.

    It takes (x, a, weights, limits, uppers, parts, u, penalty, update_from, model.numbers), turns
    `a` into the gradient of L and returns the sums of L, of the loss of f(a) and of (t - a)².
    """
    return _envelope_kernel(model.structure, f"envelope_{model.name}_{kind}", model.is_ours)


@cache
def _envelope_kernel(structure: AnyStructure, name: str, cached: bool) -> Callable[..., Any]:
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
            kind = 0 if parts is None else parts[i]
            if update_from > 0.0:
                v = a[i] - u[i]
                t = solve(v, x[i], update_from / weight, limit, upper, kind, model)
                u[i] = (t - v) * (update_from / penalty)
            v = a[i] - u[i]
            t = solve(v, x[i], penalty / weight, limit, upper, kind, model)
            data_term += weight * loss(x[i], a[i], limit, upper, kind, model)
            value += weight * loss(x[i], t, limit, upper, kind, model)
            value += 0.5 * penalty * (t - v) * (t - v)
            squares += (t - a[i]) * (t - a[i])
            a[i] = penalty * (v - t)
        return value, data_term, squares

    return compile_kernel(evaluate, name, cached=cached)


def curvature_kernel(model: Model, kind: str) -> Callable[..., None]:
    """Return the compiled curvature of L over a flat block, for arguments of one kind.

    It takes (x, a, weights, limits, uppers, parts, u, penalty, model.numbers) and overwrites `a`.
    """
    name = f"curvature_{model.name}_{kind}"
    return _curvature_kernel(model.structure, model.degrees[0] or 1, name, model.is_ours)


@cache
def _curvature_kernel(
    structure: AnyStructure, degree: int, name: str, cached: bool
) -> Callable[..., Any]:
    solve, _ = compile_entry(structure, has_limits(name))
    to_T = 1.0 / degree  # the step has the unit of T, whatever the size of X

    def curvature(  # type: ignore[no-untyped-def]
        x, a, weights, limits, uppers, parts, u, penalty, model
    ):
        for i in range(x.size):
            weight = 1.0 if weights is None else 1.0 * weights[i]
            if weight == 0.0:
                a[i] = 0.0
                continue
            limit = 0 if limits is None else limits[i]
            upper = float(x[i]) if uppers is None else float(uppers[i])
            kind = 0 if parts is None else parts[i]
            v, rho = float(a[i]) - float(u[i]), penalty / weight
            size = abs(float(x[i])) if to_T == 1.0 else abs(float(x[i])) ** to_T
            if parts is not None:
                size = 1.0  # the unit of T where each kind has its own
            step = 1e-4 * (abs(v) + size + 1e-100)
            rise = solve(v + step, float(x[i]), rho, limit, upper, kind, model) - solve(
                v, float(x[i]), rho, limit, upper, kind, model
            )
            a[i] = penalty * min(max(1.0 - rise / step, 0.0), 1.0)

    return compile_kernel(curvature, name, cached=cached)


def has_limits(name: str) -> bool:
    """Return whether the kernel of this name is one for entries with limits."""
    return "_limits" in name or "_both" in name
