"""Checks of a loss or a nonlinearity of your own: `check_loss` and `check_nonlinearity`.

Each property is a function that yields what fails it.

>>> import nmd_lab as nmd
>>> nmd.losses.check_loss(nmd.L1()).passed
True
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from nmd_lab._runtime.checks import fault_of_compiler, many, sentence
from nmd_lab._runtime.compiler import compile_kernel, compile_scalar
from nmd_lab._runtime.html import Summary, table

from .column_model import make_column_model
from .entry import t_update
from .loss import Array, Loss, values_of
from .losses import L1, Frobenius
from .nonlinearities import Identity, Modulus, Nonlinearity, ReLU


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
    derivatives, slopes = compile_scalar(d.derivatives), np.empty(a.size)

    def fill(x, y, p, out):  # type: ignore[no-untyped-def]
        for i in range(x.size):
            out[i] = derivatives(x[i], y[i], p)[0]

    compile_kernel(fill, "slopes", cached=False)(a, b, d.numbers, slopes)
    check = "derivatives gives d' in y"
    yield from _wrong_slope(check, lambda y: values_of(d, a, y), slopes, x=a, y=b)


def _wrong_slope(
    check: str, function: Callable[[Array], Any], slope: Array, **inputs: Array
) -> Iterator[Failure]:
    """Yield where a slope lies outside the differences on both sides, at the last of the inputs."""
    *_, t = inputs.values()
    step = 1e-5 * (1e-2 + np.abs(t))
    with np.errstate(all="ignore"):
        at, ahead, behind = (np.asarray(function(t + k * step), dtype=float) for k in (0, 1, -1))
        rise, fall = (ahead - at) / step, (at - behind) / step
        slack = 1e-3 * (np.abs(rise) + np.abs(fall)) + 1e-12 * (1 + np.abs(at)) / step + 1e-5
        low, high = np.minimum(rise, fall) - slack, np.maximum(rise, fall) + slack
        bad = np.isfinite(rise) & np.isfinite(fall) & ~((slope >= low) & (slope <= high))
    yield from _first(check, bad, slope, (rise + fall) / 2, **inputs)


def t_update_is_minimiser(
    f: Nonlinearity, d: Loss, x: Array, v: Array, rho: Array
) -> Iterator[Failure]:
    """Yield where a point of a nested grid has a lower d(x, f(t)) + rho/2 (t - v)^2.

    The T-update of the identity is the proximal map of the loss.
    """
    found = t_update(make_column_model(f, d), v, x, rho)
    of_f = f"the T-update of {f!r} with {d!r} is the minimiser"
    check = PROXIMAL if isinstance(f, Identity) else of_f
    at = {"v": v, "x": x, "rho": rho}

    def objective(t: Array) -> Array:
        y = np.asarray(f(t), dtype=float)
        flat = values_of(d, np.broadcast_to(x, t.shape).flatten(), y.ravel()).reshape(t.shape)
        inside = (y >= d.domain[0]) & (y <= d.domain[1]) & ~np.isnan(flat)
        return np.where(inside, flat, np.inf) + rho / 2 * (t - v) ** 2

    yield from _first(check, ~np.isfinite(found), found, "a finite number", **at)
    with np.errstate(all="ignore"):
        best = np.where(np.isfinite(found), found, v)
        attained = objective(best)
        reach = np.where(np.isfinite(attained), np.sqrt(2 * np.maximum(attained, 0) / rho), 1e3)
        small = np.logspace(-8, 0, 60)
        shape = np.concatenate([-small, small, np.linspace(-1, 1, 121)])[:, None]
        points = np.vstack([v + reach * shape, x])
        for _ in range(8):
            points = np.vstack([best, points])
            best = points[np.argmin(objective(points), axis=0), np.arange(x.size)]
            reach = reach / 16
            points = best + reach * np.linspace(-1, 1, 25)[:, None]
        lowest = objective(best)
        bad = ~(attained <= lowest + 1e-6 * np.abs(lowest) + 1e-12 * (1 + np.abs(x)) ** 2)
    yield from _first(check, bad, found, best, **at)


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
    left, right = t[:-1], t[1:]
    with np.errstate(all="ignore"):
        first = np.abs(f(right) - f(left))
        for _ in range(40):
            middle = (left + right) / 2
            go_right = np.abs(f(right) - f(middle)) > np.abs(f(middle) - f(left))
            left, right = np.where(go_right, middle, left), np.where(go_right, right, middle)
        jump, size = f(right) - f(left), np.abs(f(left)) + np.abs(f(right))
        bad = (np.abs(jump) > 1e-3 * first) & (np.abs(jump) > 1e-6 * size)
    yield from _first("f is continuous", bad, jump, "no jump", t=left)


def f_derivative(f: Nonlinearity, t: Array) -> Iterator[Failure]:
    """Yield where the derivative differs from differences of f on both sides."""
    if type(f).derivative is Nonlinearity.derivative:
        return
    with np.errstate(all="ignore"):
        slopes = np.array([float(f.derivative(float(each), f.numbers)) for each in t])
    yield from _wrong_slope("derivative is that of f", f, slopes, t=t)


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


@dataclass(frozen=True)
class CheckReport:
    """Result of the checks of one object.

    Attributes
    ----------
    subject : str
        The object that was checked.
    checks : tuple of str
        Checks that were tried.
    failures : tuple of Failure
        What failed: check, input, found, expected.
    """

    subject: str
    checks: tuple[str, ...]
    failures: tuple[Failure, ...]

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return not self.failures

    def raise_for_failure(self) -> None:
        """Raise ValueError with the first failure, if there is one."""
        if self.failures:
            check, at, found, expected = self.failures[0]
            where = f"at {at} " if at else ""
            raise ValueError(
                f"{self.subject} fails the check that {check}: {where}it gives {found}, expected "
                f"is {expected}; correct it, and try nmd.losses.check_loss or "
                "nmd.nonlinearities.check_nonlinearity."
            )

    def __str__(self) -> str:
        """Return one line for each check, and the input that fails it."""
        count = len(self.failures)
        verdict = many(count, "failure") if count else "all checks passed"
        lines = [f"{self.subject}: {verdict}"]
        lines += [f"  tried: {check}" for check in self.checks]
        for check, at, found, expected in self.failures:
            lines.append(f"  FAILED: {check}: at {at or 'any input'}: {found}, expected {expected}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        verdict = "all checks passed" if self.passed else "some checks failed"
        rows = table(("check", "input", "found", "expected"), self.failures)
        return Summary(
            {"value": self.subject, "text": verdict},
            [f"{many(len(self.checks), 'check')} tried"],
            [] if self.passed else [rows],
        ).html()


COMPILED = (
    "a static method that Numba compiles: its arguments are numbers, so that if and else take the "
    "place of np.where, with functions of math or NumPy, and the arguments of the base class"
)
"""What is expected of the functions of a loss or a nonlinearity."""

Check = tuple[str, Callable[[], Iterator[Failure]]]


def report_of(subject: object, tried: list[Check]) -> CheckReport:
    """Return the report of the checks; an exception is a failure of its check."""
    failures: list[Failure] = []
    for check, run in tried:
        try:
            failures += run()
        except NotImplementedError:
            failures.append(Failure(check, "", "a method is missing", "a static method"))
        except Exception as error:
            compiling = type(error).__module__.startswith("numba.")
            cause = f"an error of the compiler ({fault_of_compiler(error)})"
            found = (cause, COMPILED) if compiling else (sentence(error)[:300], "no error")
            failures.append(Failure(check, "", *found))
    return CheckReport(repr(subject), tuple(check for check, _ in tried), tuple(failures))


def check_loss(loss: Loss, *, x: object = None, n: int = 300, random_state: int = 0) -> CheckReport:
    """Check a loss: domain, bound, convexity, derivatives, proximal map, T-updates.

    Parameters
    ----------
    loss : Loss
        Loss to check.
    x : array_like, optional
        Values of X to try; by default numbers of many sizes for which the loss is defined.
    n : int, default 300
        Number of inputs for the proximal map and for each T-update.
    random_state : int, default 0
        Seed of the inputs.

    Returns
    -------
    CheckReport
        With `passed`, `failures` and `raise_for_failure()`; it prints as a list of the checks.

    Raises
    ------
    TypeError
        If `loss` is not a Loss object.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.losses.check_loss(nmd.KL()).failures
    ()
    """
    if not isinstance(loss, Loss):
        raise TypeError(f"loss={loss!r} is not a Loss object: give an object such as nmd.L1().")
    rng = np.random.default_rng(random_state)
    data = _data_for(loss, rng, n) if x is None else np.ravel(np.asarray(x, dtype=float))
    data = rng.choice(data, n)
    few, y = np.unique(data)[:: max(1, n // 25)], _values_inside(loss, rng)
    rho, centre = 10.0 ** rng.uniform(-3, 3, n), data + _spread(rng, n)
    tried = checks_of_loss(loss, data, few, y, centre, rho)
    for f in (ReLU(), Modulus()):
        check = partial(t_update_is_minimiser, f, loss, data, centre, rho)
        tried.append((f"{MINIMISER} with {f!r}", check))
    return report_of(loss, tried)


def check_nonlinearity(
    nonlinearity: Nonlinearity,
    *,
    loss: Loss | None = None,
    t: object = None,
    n: int = 300,
    random_state: int = 0,
) -> CheckReport:
    """Check a nonlinearity: finite, continuous, derivative, pieces, dtype, T-updates.

    Parameters
    ----------
    nonlinearity : Nonlinearity
        Nonlinearity to check.
    loss : Loss, optional
        Loss for the T-updates; by default `Frobenius` and `L1`.
    t : array_like, optional
        Where to look; by default numbers between -8 and 8.
    n : int, default 300
        Number of inputs for each T-update.
    random_state : int, default 0
        Seed of the inputs.

    Returns
    -------
    CheckReport
        With `passed`, `failures` and `raise_for_failure()`; it prints as a list of the checks.

    Raises
    ------
    TypeError
        If `nonlinearity` is not a Nonlinearity object.

    Examples
    --------
    >>> import math
    >>> import nmd_lab as nmd
    >>> wrong = nmd.nonlinearities.Smooth(
    ...     math.tanh, derivative=lambda t: 1.0, name="tanh", compile=False
    ... )
    >>> nmd.nonlinearities.check_nonlinearity(wrong, loss=nmd.losses.L1()).failures[0].check
    'derivative is that of f'
    """
    f = nonlinearity
    if not isinstance(f, Nonlinearity):
        raise TypeError(
            f"nonlinearity={f!r} is not a Nonlinearity object: give one such as nmd.ReLU()."
        )
    rng = np.random.default_rng(random_state)
    points = np.linspace(-8, 8, 321) if t is None else np.ravel(np.asarray(t, dtype=float))
    points = np.concatenate([points, rng.uniform(points.min(), points.max(), 100)])
    tried = checks_of_nonlinearity(f, points)
    tried.append(("f keeps float32", partial(keeps_single_precision, f, points)))
    v, rho = rng.choice(points, n), 10.0 ** rng.uniform(-3, 3, n)
    with np.errstate(all="ignore"):
        x = np.asarray(f(rng.choice(points, n)), dtype=float) + _spread(rng, n) * (
            rng.random(n) < 0.5
        )
    x = np.where(np.isfinite(x), np.clip(x, -1e6, 1e6), 1.0)
    for d in (Frobenius(), L1()) if loss is None else (loss,):
        inside = np.clip(x, *np.clip(d.domain, -1e6, 1e6))
        check = partial(t_update_is_minimiser, f, d, inside, v, rho)
        tried.append((f"{MINIMISER} with {d!r}", check))
    return report_of(f, tried)


def checks_of_loss(
    d: Loss, x: Array, few: Array, y: Array, centre: Array, rho: Array
) -> list[Check]:
    """Return the checks of a loss: at few x with all y, and of the proximal map at all x."""
    return [
        ("d is a number", partial(loss_values, d, few, y)),
        (CONVEX, partial(loss_is_convex, d, few[::3], y[::2])),
        ("derivatives are those of d", partial(loss_derivatives, d, few, y)),
        (PROXIMAL, partial(t_update_is_minimiser, Identity(), d, x, centre, rho)),
    ]


def checks_of_nonlinearity(f: Nonlinearity, t: Array) -> list[Check]:
    """Return the checks of a nonlinearity at some T."""
    return [
        ("f is finite", partial(f_is_finite, f, t)),
        ("f is continuous", partial(f_is_continuous, f, t)),
        ("derivative is that of f", partial(f_derivative, f, t)),
        ("f is its pieces", partial(f_pieces, f, t)),
    ]


def _spread(rng: np.random.Generator, n: int) -> Array:
    """Return numbers of many sizes and both signs."""
    return np.asarray(rng.normal(size=n) * 10.0 ** rng.uniform(-2, 1, n))


def _values_inside(loss: Loss, rng: np.random.Generator) -> Array:
    """Return modelled values inside the domain of a loss."""
    low, high = loss.domain
    y = np.concatenate([_spread(rng, 16), [0.5, 1.0, 2.0]])
    if math.isfinite(low):
        y = low + np.abs(y - low)
    if math.isfinite(high):
        y = np.clip(y, None, high - 1e-3 * (1.0 if low == -math.inf else high - low))
    return np.unique(y)


def _data_for(loss: Loss, rng: np.random.Generator, n: int) -> Array:
    """Return values of X for which a loss is defined."""
    spread = np.concatenate([_spread(rng, n), [0.0, 1.0]])
    for kind in (spread, np.abs(spread), np.abs(spread) + 1e-3, np.array([0.0, 1.0]),
                 np.array([-1.0, 1.0]), np.arange(1.0, 6.0)):  # fmt: skip
        try:
            loss.check_data(float(kind.min()), float(kind.max()))
            y = np.full(kind.size, float(np.median(_values_inside(loss, rng))))
            if np.all(np.isfinite(values_of(loss, kind, y))):
                return kind
        except ValueError:
            continue
    return spread
