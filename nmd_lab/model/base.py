"""The common base class of nonlinearities and losses, and the noise that a loss stands for."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

FloatArray = NDArray[np.floating]

FORMULAS = ("forward", "value", "proximal", "proximal_within", "pieces")
"""Methods that define a part.  A class that has one of its own does not inherit the degree."""


class ModelPart:
    """A nonlinearity or a loss.  Two of them are equal if class and parameters are.

    Attributes
    ----------
    name : str
        Name by which functions select the class.
    label : str
        Short text for menus and legends; `name` by default.
    parameters : tuple of float
        Numbers that compiled functions receive at run time, if `numbers` is not overridden.  Other
        numbers need no new compilation.
    parameter_names : tuple of str
        Names of the arguments that set them; none by default.
    degree : int or None
        Degree of homogeneity.  A loss of degree q has d(s x, s y) = s^q d(x, y) for s > 0.  A
        nonlinearity of degree p has f(s t) = s^p f(t), if `scaled` changes its parameters.  None
        (default): data of any size are fitted as they are.
    learns : bool
        Whether the method `learned` can change parameters; False by default.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    parameter_names: ClassVar[tuple[str, ...]] = ()
    parameters: tuple[float, ...] = ()
    degree: ClassVar[int | None] = None
    learns: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        """Set the label of a class with a name, and no degree for one with formulas of its own."""
        super().__init_subclass__(**options)
        defined = vars(cls)
        if "name" in defined and "label" not in defined:
            cls.label = defined["name"]
        if defined.keys() & {*FORMULAS}:
            for claim in {"degree", "form"} - defined.keys():
                setattr(cls, claim, None)

    @property
    def settings(self) -> tuple[Any, ...]:
        """Arguments that make an equal object; numbers, words, None, and tuples of these.

        By default they are `parameters`.  A class whose constructor takes others has a property of
        its own.  Files hold them as JSON, so that the constructor takes lists for tuples.
        """
        return tuple(self.parameters)

    @property
    def numbers(self) -> tuple[float, ...]:
        """Numbers that compiled functions receive at run time; `parameters` by default.

        Their count is a part of the compiled type.  Where it varies, they hold an address.
        """
        return tuple(map(float, self.parameters))

    @property
    def code_name(self) -> str:
        """Name of compiled code, which depends on the count of its numbers."""
        return f"{self.name}{len(self.numbers) or ''}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(_shown, self.settings))})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.settings == getattr(other, "settings", None)

    def __hash__(self) -> int:
        return hash((type(self), self.settings))


def _shown(value: Any) -> str:
    """Return an argument as code, with six digits if that is short."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_shown, value))}]"
    return f"{value:g}" if isinstance(value, float) else repr(value)


class Normal:
    """The standard normal distribution."""

    cdf, ppf = staticmethod(ndtr), staticmethod(ndtri)

    @staticmethod
    def logpdf(z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the logarithm of the density."""
        logs: NDArray[np.float64] = -0.5 * z**2 - 0.5 * math.log(2 * math.pi)
        return logs

    @staticmethod
    def rvs(size: Any, random_state: np.random.Generator) -> NDArray[np.float64]:
        """Return random numbers."""
        numbers: NDArray[np.float64] = random_state.standard_normal(size)
        return numbers

    @staticmethod
    def var() -> float:
        """Return the variance."""
        return 1.0


class Laplace:
    """The standard Laplace distribution."""

    @staticmethod
    def cdf(z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the distribution function."""
        half = 0.5 * np.exp(-np.abs(z))
        return np.where(z < 0, half, 1 - half)

    @staticmethod
    def ppf(level: float) -> float:
        """Return a quantile."""
        return math.copysign(math.log1p(-abs(2 * level - 1)), level - 0.5)

    @staticmethod
    def logpdf(z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the logarithm of the density."""
        logs: NDArray[np.float64] = -np.abs(z) - math.log(2)
        return logs

    @staticmethod
    def rvs(size: Any, random_state: np.random.Generator) -> NDArray[np.float64]:
        """Return random numbers."""
        numbers: NDArray[np.float64] = random_state.laplace(size=size)
        return numbers

    @staticmethod
    def var() -> float:
        """Return the variance."""
        return 2.0


class NoiseModel(NamedTuple):
    """A distribution of x around y = f(T), with a density in exp(-β d(x, y)).

    A posterior draws the precision β.

    Attributes
    ----------
    name : str
        Name; "" for an unknown distribution.
    shape : float
        Shape that an entry adds to the Gamma distribution of β; 0 if β stays 1.
    power : int
        Power of the unit of X that the rate of the prior of β has.
    standard : object or None
        Distribution of (x - y) β^(1/power), with the methods `cdf`, `ppf`, `logpdf`, `rvs` and
        `var` of those of `scipy.stats`; None (default): a posterior has no intervals with noise.

    Examples
    --------
    Of fourth powers, d(x, y) = (x - y)⁴ / 4:

    >>> from scipy.stats import gennorm
    >>> NoiseModel("fourth powers", 0.25, 4, gennorm(4, scale=4**0.25)).power
    4
    """

    name: str = ""
    shape: float = 0.0
    power: int = 0
    standard: Any = None


UNKNOWN, POISSON = NoiseModel(), NoiseModel("Poisson")
NORMAL, LAPLACE = NoiseModel("normal", 0.5, 2, Normal), NoiseModel("Laplace", 1.0, 1, Laplace)
