"""Smooth nonlinearities: sigmoid, softplus, tanh, powers, exp, and `Smooth` of any scalar function.

>>> import nmd_lab as nmd
>>> nmd.nonlinearities.Softplus()([-2.0, 0.0, 2.0]).round(4)
array([0.1269, 0.6931, 2.1269])

The T-update of f(t) = exp(t) with a loss that is convex in t is a proximal map: that of d(x, e^t).
"""

from __future__ import annotations

import ctypes
import math
import pickle
from collections.abc import Callable
from functools import lru_cache, partial
from types import FunctionType
from typing import Any, ClassVar

import numpy as np
from numba import types
from numpy.typing import NDArray
from scipy.special import logit

from nmd_lab._runtime.checks import check_number, fault_of_compiler
from nmd_lab._runtime.compiler import compile_scalar

from .curve_search import curve_of, formula_with
from .loss import FloatArray
from .losses import KL, Frobenius, Loss
from .nonlinearity import Nonlinearity
from .positive import ItakuraSaito, NegativeBinomial, SquaredLog, exponential_minimum

EDGE = 0.02
"""Fraction of the range of f that the starting T leaves out at each bound, where f is flat."""


class Sigmoid(Nonlinearity):
    """f(t) = 1 / (1 + exp(-t)): fractions and probabilities, between 0 and 1.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.nonlinearities.Sigmoid()([-2.0, 0.0, 2.0]).round(4)
    array([0.1192, 0.5   , 0.8808])
    """

    name = "sigmoid"
    label = "sigmoid: 1 / (1 + exp(-t))"
    range = (0.0, 1.0)
    monotone = True

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return 1 / (1 + exp(-t))."""
        small = math.exp(-abs(t))
        return 1.0 / (1.0 + small) if t > 0.0 else small / (1.0 + small)

    def pseudo_inverse(self, x: FloatArray) -> FloatArray:
        """Return log(x / (1 - x)) for x moved away from 0 and 1."""
        return np.asarray(logit(np.clip(x, EDGE, 1 - EDGE)), dtype=x.dtype)


class Tanh(Nonlinearity):
    """f(t) = tanh(t): correlations and other data between -1 and 1.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.nonlinearities.Tanh()([-1.0, 0.0, 3.0]).round(4)
    array([-0.7616,  0.    ,  0.9951])
    """

    name = "tanh"
    label = "tanh(t)"
    range = (-1.0, 1.0)
    monotone = True

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return tanh(t)."""
        return math.tanh(t)

    def pseudo_inverse(self, x: FloatArray) -> FloatArray:
        """Return artanh(x) for x moved away from -1 and 1."""
        return np.asarray(np.arctanh(np.clip(x, 2 * EDGE - 1, 1 - 2 * EDGE)), dtype=x.dtype)


class Softplus(Nonlinearity):
    """f(t) = log(1 + exp(t)): positive data; a smooth ReLU.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.nonlinearities.Softplus()([-2.0, 0.0, 2.0]).round(4)
    array([0.1269, 0.6931, 2.1269])
    """

    name = "softplus"
    label = "softplus: log(1 + exp(t))"
    range = (0.0, math.inf)
    monotone = True

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return log(1 + exp(t))."""
        return max(t, 0.0) + math.log1p(math.exp(-abs(t)))

    def pseudo_inverse(self, x: FloatArray) -> FloatArray:
        """Return log(exp(x) - 1), at least about -4."""
        above = np.maximum(x, EDGE)
        return np.asarray(above + np.log(-np.expm1(-above)), dtype=x.dtype)


class Power(Nonlinearity):
    """f(t) = abs(t)^p: non-negative data; p = 1 is the modulus, p = 2 the square.

    Parameters
    ----------
    p : float, default 2
        Exponent, > 0.

    Raises
    ------
    ValueError
        If the exponent is not a positive, finite number.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.nonlinearities.Power(3)([-2.0, 0.5])
    array([8.   , 0.125])
    """

    name = "power"
    label = "power: |t|^p"
    range = (0.0, math.inf)
    even = True
    parameter_names = ("p",)

    def __init__(self, p: float = 2.0) -> None:
        self.p = check_number("p", p, above=0)
        self.parameters = (self.p,)

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return |t|^p."""
        return math.pow(abs(t), p[0])

    def pseudo_inverse(self, x: FloatArray) -> FloatArray:
        """Return X^(1/p), 0 for negative x."""
        return np.asarray(np.maximum(x, 0) ** (1 / self.p), dtype=x.dtype)


MAX_EXPONENT = 300.0
"""Where exp(t) stops: it is exp(300) or exp(-300) beyond, so that no product overflows."""


def exp_frobenius(v: float, x: float, rho: float) -> float:
    """Return the minimiser of (x - e^t)^2 / 2 + rho/2 (t - v)^2."""
    t: float = exponential_minimum(rho, v, 1.0, x, -math.inf, MAX_EXPONENT)
    return t


def exp_squared_log(v: float, x: float, rho: float) -> float:
    """Return the minimiser of (log x - t)^2 / 2 + rho/2 (t - v)^2."""
    return (math.log(x) + rho * v) / (1.0 + rho)


def _exp(t):  # type: ignore[no-untyped-def]
    """Return exp(t) and its derivatives."""
    y = math.exp(min(max(t, -MAX_EXPONENT), MAX_EXPONENT))
    return y, y, y


def _log(y):  # type: ignore[no-untyped-def]
    """Return log y, where it is finite."""
    return math.log(y) if y > 0.0 else -MAX_EXPONENT


class Exp(Nonlinearity):
    """f(t) = exp(t): positive data whose effects multiply, such as counts and rates.

    With Poisson or negative binomial counts this is the usual log link.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.nonlinearities.Exp()([0.0, 1.0]).round(4)
    array([1.    , 2.7183])
    """

    name = "exp"
    label = "exp(t)"
    range = (0.0, math.inf)
    monotone = True
    closed_forms: ClassVar[dict[type[Loss], Callable[..., float]]] = {
        Frobenius: exp_frobenius,
        SquaredLog: exp_squared_log,
        **{each: formula_with(each, _exp, _log) for each in (KL, ItakuraSaito, NegativeBinomial)},
    }

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return exp(t)."""
        return math.exp(min(max(1.0 * float(t), -MAX_EXPONENT), MAX_EXPONENT))

    def pseudo_inverse(self, x: FloatArray) -> FloatArray:
        """Return log(x), and log(0.1) where x is not positive."""
        positive = np.where(x > 0, np.maximum(x, 1e-30), 0.1)
        return np.asarray(np.log(positive), dtype=x.dtype)


ScalarFunction = Callable[[float], float]


class Smooth(Nonlinearity):
    """f given by any continuous function of one number.

    The T-update searches for the global minimiser on a bracket, with every loss.  Where f is
    smooth, it takes Newton steps along a table of f; elsewhere golden sections, which are slower.

    Parameters
    ----------
    f : callable
        Function ``f(t) -> float`` that Numba can compile: a lambda or a function of numbers, which
        may use `math` and numbers from outside.  It must be finite and continuous near the values
        that a fit needs.
    derivative : callable, optional
        Its derivative, for `check_nonlinearity`, which compares the two.  A fit takes derivatives
        from the table of f.
    name : str, optional
        Name for messages and files; by default that of the function, "smooth" for a lambda.
    compile : bool, default True
        Whether Numba compiles f.  With False, Python calls f, which is many times slower.

    Raises
    ------
    TypeError
        If `f` or `derivative` is not callable.
    ValueError
        If Numba cannot compile f.

    Notes
    -----
    Two objects made of the same function are equal, and share compiled code.  A file keeps the name
    alone: ``nmd.load(path, known=[type(nmd.nonlinearities.Smooth(f))])`` gives f again.

    Examples
    --------
    >>> import math
    >>> import nmd_lab as nmd
    >>> f = nmd.nonlinearities.Smooth(lambda t: math.log1p(math.exp(t)), name="softplus")
    >>> f([0.0]).round(3)
    array([0.693])
    >>> float(nmd.prox(0.0, 1.0, 1.0, nonlinearity=f, loss="frobenius").round(3))
    0.128
    """

    name = "smooth"
    label = "smooth: your own f"
    function: ClassVar[ScalarFunction]
    compiled: ClassVar[bool] = True
    arguments: ClassVar[tuple[Any, ...]] = ()

    def __new__(
        cls,
        f: ScalarFunction | None = None,
        derivative: ScalarFunction | None = None,
        *,
        name: str | None = None,
        compile: bool = True,
    ) -> Smooth:
        """Return an object of the class that belongs to f."""
        if cls is not Smooth:  # the class of a function makes its one object without arguments
            return super().__new__(cls)
        for argument, function in (("f", f), ("derivative", derivative)):
            if not callable(function) and (argument == "f" or function is not None):
                raise TypeError(f"{argument}={function!r} is not callable: give a function of t.")
        assert f is not None
        if not name:  # one that can stand in a message
            name = str(getattr(f, "__name__", "smooth"))
            name = name if name.isidentifier() else "smooth"
        return super().__new__(_class_of(f, derivative, name, compile))

    def __init__(self, *args: Any, **options: Any) -> None:
        """Do nothing: the class holds the function."""

    def pseudo_inverse(self, x: FloatArray) -> FloatArray:
        """Return the t nearest to 0 with f(t) = x.

        Where f becomes flat, as a sigmoid does, the way ends: a value beyond has the t at this end.
        """
        above, below = _ways(self)
        x = np.asarray(x)
        up = np.interp(x, above[0], above[1])
        down = np.interp(-x, -below[0], below[1])
        return np.asarray(np.where(x >= above[0][0], up, down), dtype=x.dtype)

    def __repr__(self) -> str:
        return f"Smooth({self.name})" if self.arguments else "Smooth"

    def __deepcopy__(self, memo: Any = None) -> Smooth:
        return self

    __copy__ = __deepcopy__

    def __reduce__(self) -> tuple[Any, ...]:
        try:
            pickle.dumps(self.arguments)
        except Exception as error:
            raise TypeError(
                f"{self!r} cannot be pickled, since its function has no importable name: define f "
                "with def in a module, or use fit.save."
            ) from error
        f, derivative, name, compiled = self.arguments
        return partial(Smooth, name=name, compile=compiled), (f, derivative)


_CLASSES: dict[Any, type[Smooth]] = {}


def _class_of(f: Any, derivative: Any, name: str, compiled: bool) -> type[Smooth]:
    """Return the class of a function; the same for the same function."""
    key = _key(f), _key(derivative), name, compiled
    if key not in _CLASSES:
        scalar = _compiled(f, name) if compiled else _called(f)
        body = {
            "__module__": str(getattr(f, "__module__", None) or "__main__"),
            "__doc__": f"f = {name}, given as a function.",
            "name": name,
            "function": staticmethod(f),
            "compiled": compiled,
            "arguments": (f, derivative, name, compiled),
            "forward": staticmethod(_with_parameters(scalar)),
        }
        if derivative is not None:
            slope = _compiled(derivative, f"{name}'") if compiled else _called(derivative)
            body["derivative"] = staticmethod(_with_parameters(slope))
        _CLASSES[key] = type("Smooth", (Smooth,), body)
    return _CLASSES[key]


def _key(f: Any) -> Any:
    """Return what identifies the code of a function: its bytecode and the numbers it captures."""
    plain = getattr(f, "py_func", f)
    if not isinstance(plain, FunctionType):
        return f
    code, cells = plain.__code__, plain.__closure__ or ()
    captured = [cell.cell_contents for cell in cells]
    captured += [plain.__globals__.get(word) for word in code.co_names]
    values = tuple(v if isinstance(v, int | float | str | bool) else id(v) for v in captured)
    return code, values, plain.__defaults__, id(plain.__globals__)


def _with_parameters(scalar: Any) -> Any:
    """Return f with the signature of `Nonlinearity.forward`."""

    def forward(t, p):  # type: ignore[no-untyped-def]
        return scalar(t)

    return forward


def _compiled(f: Any, name: str) -> Any:
    """Return f, compiled for a float."""
    plain = getattr(f, "py_func", f)
    scalar: Any = compile_scalar(plain)
    try:
        scalar.compile((types.float64,))
    except Exception as error:
        raise ValueError(
            f"Smooth: Numba cannot compile {name!r} ({fault_of_compiler(error)}): use numbers "
            "and `math` only, or give compile=False, which calls f in plain Python and is slow."
        ) from error
    returned = scalar.nopython_signatures[0].return_type
    if not isinstance(returned, types.Float | types.Integer | types.Boolean):
        raise ValueError(f"Smooth: {name}(0.5) is of type {returned}: return one real number.")
    return scalar


_KEPT: list[Any] = []  # a callback must live as long as code that calls it


def _called(f: Any) -> Any:
    """Return f as a function that compiled code can call, through Python."""

    def call(t: float) -> float:
        try:
            return float(f(t))
        except Exception:  # for compiled code, an error is a value that is not a number
            return math.nan

    callback = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(call)
    _KEPT.append(callback)
    return callback


@lru_cache(maxsize=64)
def _ways(f: Nonlinearity) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return (values, t) of the first t at which f exceeds, and falls below, each value."""
    t = np.sort(np.append(curve_of(f).cells[:, 0], 0.0))
    with np.errstate(all="ignore"):
        y = np.asarray(f(t), dtype=np.float64)
        slope = np.abs(np.gradient(y, t))
    order = np.argsort(np.abs(t), kind="stable")
    t, y, slope = t[order], y[order], slope[order]
    keep = t == 0
    for side in (t >= 0, t <= 0):
        # The way from 0 ends where f is nearly flat.
        steep = slope[side] >= 0.02 * np.fmax.accumulate(slope[side])
        keep[side] |= np.logical_and.accumulate(steep & np.isfinite(y[side]))
    t, y = t[keep], np.nan_to_num(y[keep])
    rising = np.concatenate([[True], y[1:] > np.maximum.accumulate(y)[:-1]])
    falling = np.concatenate([[True], y[1:] < np.minimum.accumulate(y)[:-1]])
    return np.stack([y[rising], t[rising]]), np.stack([y[falling], t[falling]])
