"""Checks of a loss or a nonlinearity of your own: `check_loss` and `check_nonlinearity`.

>>> import nmd_lab as nmd
>>> nmd.losses.check_loss(nmd.L1()).passed
True
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.checks import sentence
from nmd_lab._runtime.html import Summary, table

from . import _property_checks as checks
from ._property_checks import Failure
from .losses import L1, Frobenius, Loss
from .nonlinearities import Identity, Modulus, Nonlinearity, ReLU

Array = NDArray[np.float64]


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
        verdict = f"{count} failure{'s' if count > 1 else ''}" if count else "all checks passed"
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
            [f"{len(self.checks)} checks tried"],
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
            found = (_cause(error), COMPILED) if compiling else (sentence(error)[:300], "no error")
            failures.append(Failure(check, "", *found))
    return CheckReport(repr(subject), tuple(check for check, _ in tried), tuple(failures))


def _cause(error: Exception) -> str:
    """Return the line of an error of the compiler that names the fault."""
    lines = [line.strip() for line in str(error).splitlines()]
    causes = (line for line in lines if line and not line.startswith("Failed in nopython mode"))
    cause = next(causes, type(error).__name__)
    told_of = re.split(r", defined at | Raised from ", cause)[0].removesuffix(".")
    return f"an error of the compiler ({told_of})"


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
    tried: list[Check] = [
        (
            "d is a number inside its domain, and bounded below",
            lambda: checks.loss_values(loss, few, y),
        ),
        (checks.CONVEX, lambda: checks.loss_is_convex(loss, few[::3], y[::2])),
        ("derivatives are those of d", lambda: checks.loss_derivatives(loss, few, y)),
        (checks.PROXIMAL, lambda: checks.proximal_is_minimiser(loss, data, centre, rho)),
    ]
    for f in (Identity(), ReLU(), Modulus()):
        tried.append(
            (f"{checks.MINIMISER} with {f!r}", _t_update_check(f, loss, data, centre, rho))
        )
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
    tried: list[Check] = [
        ("f is finite", lambda: checks.f_is_finite(f, points)),
        ("f is continuous", lambda: checks.f_is_continuous(f, points)),
        ("derivative is that of f", lambda: checks.f_derivative(f, points)),
        ("f is its pieces", lambda: checks.f_pieces(f, points)),
        ("f keeps float32", lambda: checks.keeps_single_precision(f, points)),
    ]
    v, rho = rng.choice(points, n), 10.0 ** rng.uniform(-3, 3, n)
    with np.errstate(all="ignore"):
        x = np.asarray(f(rng.choice(points, n)), dtype=float) + _spread(rng, n) * (
            rng.random(n) < 0.5
        )
    x = np.where(np.isfinite(x), np.clip(x, -1e6, 1e6), 1.0)
    for d in (Frobenius(), L1()) if loss is None else (loss,):
        inside = np.clip(x, *np.clip(d.domain, -1e6, 1e6))
        tried.append((f"{checks.MINIMISER} with {d!r}", _t_update_check(f, d, inside, v, rho)))
    return report_of(f, tried)


def _t_update_check(
    f: Nonlinearity, d: Loss, x: Array, v: Array, rho: Array
) -> Callable[[], Iterator[Failure]]:
    """Return the check of the T-update of a pair at these inputs."""
    return lambda: checks.t_update_is_minimiser(f, d, x, v, rho)


def _spread(rng: np.random.Generator, n: int) -> Array:
    """Return numbers of many sizes and both signs."""
    numbers: Array = rng.normal(size=n) * 10.0 ** rng.uniform(-2, 1, n)
    return numbers


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
            if np.all(np.isfinite(checks.values_of(loss, kind, y))):
                return kind
        except ValueError:
            continue
    return spread
