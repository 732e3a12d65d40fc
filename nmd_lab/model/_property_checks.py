"""The checks of a loss and of a nonlinearity, each a function that yields what fails it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.compiler import is_ours

from .kind import make_kind
from .loss import Loss, values_kernel
from .nonlinearities import Nonlinearity
from .proximal import compile_proximal, t_update

Array = NDArray[np.float64]


class Failure(NamedTuple):
    """A check that an object fails.

    Attributes
    ----------
    check : str
        The claim that is checked, in words.
    input : str
        The numbers at which it is broken.
    found, expected : str
        What the object gives there, and what the check wants.
    """

    check: str
    input: str
    found: str
    expected: str


MINIMISER = "the T-update is the minimiser"
PROXIMAL = "the proximal map is the minimiser"
CONVEX = "d is convex in y, or has convex = False"


def _first(check: str, bad: Any, found: Any, expected: Any, **inputs: Array) -> Iterator[Failure]:
    """Yield the failure at the first bad input."""
    positions = np.flatnonzero(bad)
    if positions.size:
        i = positions[0]
        at = ", ".join(f"{name}={a.ravel()[i]:.6g}" for name, a in inputs.items())
        wanted = expected if isinstance(expected, str) else f"{np.ravel(expected)[i]:.6g}"
        yield Failure(check, at, f"{np.ravel(found)[i]:.6g}", wanted)


def values_of(d: Loss, x: Array, y: Array) -> Array:
    """Return d(x, y) without the floors of reported objectives."""
    out = np.empty(x.size)
    kernel = values_kernel(d.value, d.code_name, is_ours(type(d)))
    kernel(x, y, d.numbers, (-math.inf, 0.0), out)
    return out


def loss_values(d: Loss, x: Array, y: Array) -> Iterator[Failure]:
    """Yield where d is NaN, infinite inside its domain, below its bound, or not least at y = x."""
    x_all, y_all = (a.ravel() for a in np.meshgrid(x, y, indexing="ij"))
    low, high = d.domain
    inside = (y_all > low) & (y_all < high)
    value = values_of(d, x_all, y_all)
    at = {"x": x_all, "y": y_all}
    yield from _first("d is no NaN", np.isnan(value), value, "a number or inf", **at)
    broken = inside & ~np.isfinite(value) & ~np.isnan(value)
    yield from _first("d is finite inside its domain", broken, value, "a finite number", **at)
    at_x = values_of(d, x_all, x_all)
    bottom = np.where(np.isfinite(at_x), np.minimum(at_x, 0.0), 0.0)
    slack = 1e-9 * (1 + np.abs(bottom))
    check = "d is bounded below, by 0 or by d(x, x)"
    yield from _first(check, value < bottom - slack, value, bottom, **at)


def loss_is_convex(d: Loss, x: Array, y: Array) -> Iterator[Failure]:
    """Yield where a chord of d lies below d, for a loss that claims to be convex."""
    if not d.convex:
        return
    a, b, c = (m.ravel() for m in np.meshgrid(x, y, y, indexing="ij"))
    ends = values_of(d, a, b), values_of(d, a, c)
    middle, chord = values_of(d, a, (b + c) / 2), (ends[0] + ends[1]) / 2
    with np.errstate(invalid="ignore"):
        bad = np.isfinite(chord) & ~(middle <= chord + 1e-9 * (1e-3 + np.abs(chord)))
    yield from _first(CONVEX, bad, middle, chord, x=a, y=(b + c) / 2)


def loss_derivatives(d: Loss, x: Array, y: Array) -> Iterator[Failure]:
    """Yield where the derivatives differ from differences of d."""
    if type(d).derivatives is Loss.derivatives:
        return
    a, b = (m.ravel() for m in np.meshgrid(x, y, indexing="ij"))
    step = 1e-5 * (1e-2 + np.abs(b))
    at, ahead, behind = (values_of(d, a, b + k * step) for k in (0, 1, -1))
    slopes = [d.derivatives(float(s), float(t), d.numbers)[0] for s, t in zip(a, b, strict=True)]
    slope = np.array(slopes, dtype=float)
    rise, fall = (ahead - at) / step, (at - behind) / step
    slack = 1e-3 * (1e-3 + np.abs(rise) + np.abs(fall))
    inside = np.isfinite(rise) & np.isfinite(fall)
    bad = inside & ~(
        (slope >= np.minimum(rise, fall) - slack) & (slope <= np.maximum(rise, fall) + slack)
    )
    yield from _first("derivatives gives d' in y", bad, slope, (rise + fall) / 2, x=a, y=b)


def proximal_is_minimiser(d: Loss, x: Array, q: Array, rho: Array) -> Iterator[Failure]:
    """Yield where another y has a lower d(x, y) + rho/2 (y - q)^2 than the proximal map."""
    if type(d).proximal is Loss.proximal:
        return
    proximal, p = compile_proximal(cast(Any, type(d))), d.numbers
    y = np.array([proximal(*map(float, row), p) for row in zip(q, x, rho, strict=True)])
    at = {"q": q, "x": x, "rho": rho}

    def objective(y: Array) -> Array:
        flat = values_of(d, np.broadcast_to(x, y.shape).ravel(), y.ravel()).reshape(y.shape)
        return flat + rho / 2 * (y - q) ** 2

    yield from _better_point(PROXIMAL, y, q, objective, d.domain, at)


def t_update_is_minimiser(
    f: Nonlinearity, d: Loss, x: Array, v: Array, rho: Array
) -> Iterator[Failure]:
    """Yield where another t has a lower d(x, f(t)) + rho/2 (t - v)^2 than the T-update."""
    kind = make_kind(f, d)
    t = t_update(kind, v, x, rho).astype(np.float64)
    check = f"the T-update of {f!r} with {d!r} is the minimiser"

    def objective(t: Array) -> Array:
        y = np.asarray(f(t), dtype=float)
        flat = values_of(d, np.broadcast_to(x, t.shape).ravel(), y.ravel()).reshape(t.shape)
        flat = np.where((y >= d.domain[0]) & (y <= d.domain[1]), flat, np.inf)
        return flat + rho / 2 * (t - v) ** 2

    at = {"v": v, "x": x, "rho": rho}
    yield from _better_point(check, t, v, objective, (-math.inf, math.inf), at)


def _better_point(
    check: str, found: Array, centre: Array, objective: Any, domain: tuple[float, float], at: Any
) -> Iterator[Failure]:
    """Yield where a point of a nested grid around the centre beats what was found."""
    yield from _first(check, ~np.isfinite(found), found, "a finite number", **at)
    found = np.where(np.isfinite(found), found, centre)
    with np.errstate(all="ignore"):
        attained = objective(found)
        best_t, best = found.copy(), np.where(np.isnan(attained), np.inf, attained)
        reach = np.where(np.isfinite(best), np.sqrt(2 * np.maximum(best, 0) / at["rho"]), 1e3)
        shape = np.concatenate([-np.logspace(0, -8, 60), [0.0], np.logspace(-8, 0, 60)])
        grids = [centre + reach * s for s in np.union1d(shape, np.linspace(-1, 1, 121))]
        grids += [np.clip(at["x"], *domain)]
        points = np.clip(np.stack(grids), *domain)
        for _ in range(8):
            values = objective(points)
            values = np.where(np.isnan(values), np.inf, values)
            k = np.argmin(values, axis=0)
            here, lowest = (np.take_along_axis(a, k[None], axis=0)[0] for a in (points, values))
            best_t = np.where(lowest < best, here, best_t)
            best = np.minimum(best, lowest)
            reach = reach / 16
            points = np.clip(best_t + reach * np.linspace(-1, 1, 25)[:, None], *domain)
        scale = 1e-12 * (1 + np.abs(at["x"])) ** 2
        bad = ~(attained <= best + 1e-6 * np.abs(best) + scale)
    yield from _first(check, bad, found, best_t, **at)


def f_is_finite(f: Nonlinearity, t: Array) -> Iterator[Failure]:
    """Yield where f is NaN or infinite."""
    with np.errstate(all="ignore"):
        y = np.asarray(f(t))
    yield from _first("f is finite", ~np.isfinite(y), y, "a finite number", t=t)


def f_is_continuous(f: Nonlinearity, t: Array) -> Iterator[Failure]:
    """Yield where f jumps between two points whose distance a bisection brings to rounding."""
    if f.periodic:  # its jumps of one period are meant
        return
    t = np.unique(t)
    with np.errstate(all="ignore"):
        left, right = t[:-1].copy(), t[1:].copy()
        at_left, at_right = (np.asarray(f(a), dtype=float) for a in (left, right))
        first = np.abs(at_right - at_left)
        for _ in range(40):
            middle = (left + right) / 2
            at = np.asarray(f(middle), dtype=float)
            go_right = np.abs(at_right - at) > np.abs(at - at_left)
            left, at_left = np.where(go_right, middle, left), np.where(go_right, at, at_left)
            right, at_right = np.where(go_right, right, middle), np.where(go_right, at_right, at)
        jump = np.abs(at_right - at_left)
        bad = (jump > 1e-3 * first) & (jump > 1e-6 * (np.abs(at_left) + np.abs(at_right)))
    yield from _first("f is continuous", bad, at_right - at_left, "no jump", t=left)


def f_derivative(f: Nonlinearity, t: Array) -> Iterator[Failure]:
    """Yield where the derivative differs from differences of f on both sides."""
    derivative = getattr(f, "derivative", None)
    if derivative is None or derivative is getattr(Nonlinearity, "derivative", None):
        return
    p = f.numbers
    with np.errstate(all="ignore"):
        slope = np.array([float(derivative(float(s), p)) for s in t])
        step = 1e-5 * (1 + np.abs(t))
        at, ahead, behind = (np.asarray(f(t + k * step), dtype=float) for k in (0, 1, -1))
        rise, fall = (ahead - at) / step, (at - behind) / step
        slack = 1e-3 * (np.abs(rise) + np.abs(fall)) + 1e-9 * (1 + np.abs(at)) / step * 1e-3 + 1e-5
        low, high = np.minimum(rise, fall) - slack, np.maximum(rise, fall) + slack
        bad = np.isfinite(rise) & np.isfinite(fall) & ~((slope >= low) & (slope <= high))
    yield from _first("derivative is that of f", bad, slope, (rise + fall) / 2, t=t)


def f_pieces(f: Nonlinearity, t: Array) -> Iterator[Failure]:
    """Yield where f differs from its pieces, or has none."""
    pieces = f.pieces()
    if pieces is None:
        return
    size = np.abs(t) if f.even else t
    expected = np.full(t.size, np.nan)
    for low, high, slope, intercept in pieces:
        inside = (size >= low) & (size <= high)
        with np.errstate(all="ignore"):
            expected[inside] = (slope * size + intercept if slope else 0 * size + intercept)[inside]
    y = np.asarray(f(t), dtype=float)
    bad = ~(np.abs(y - expected) <= 1e-9 * (1 + np.abs(y)))
    yield from _first("f is its pieces", bad, y, expected, t=t)


def keeps_single_precision(f: Nonlinearity, t: Array) -> Iterator[Failure]:
    """Yield where f of float32 numbers is not float32, or far from f of float64."""
    single = f(t.astype(np.float32))
    if single.dtype != np.float32:
        yield Failure("f keeps float32", "an array of float32", str(single.dtype), "float32")
    with np.errstate(all="ignore"):
        double = np.asarray(f(t.astype(np.float32).astype(float)))
        bad = np.isfinite(double) & (np.abs(double) < 1e30)
        bad &= ~(np.abs(single - double) <= 1e-4 * (1 + np.abs(double)))
    yield from _first("f of float32 is near f of float64", bad, single, double, t=t)
