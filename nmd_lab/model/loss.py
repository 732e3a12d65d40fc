"""The base class of losses, and what losses and nonlinearities share."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import laplace, norm

from nmd_lab._runtime.checks import check_word, refuse_class
from nmd_lab._runtime.compiler import compile_kernel, compile_scalar, is_ours

Array = NDArray[np.float64]
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
    table : ndarray or None
        The parameters as an array, where their count varies; None (default) where it does not.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    parameter_names: ClassVar[tuple[str, ...]] = ()
    parameters: tuple[float, ...] = ()
    degree: ClassVar[int | None] = None
    learns: bool = False
    table: Array | None = None

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

        Their count is a part of the compiled type.  Where it varies, they are the count and the
        address of `table`.
        """
        if self.table is None:
            return tuple(map(float, self.parameters))
        return float(self.table.size), float(self.table.ctypes.data)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(_shown, self.settings))})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.settings == getattr(other, "settings", None)

    def __hash__(self) -> int:
        return hash((type(self), self.settings))


Part = TypeVar("Part")


def as_object(
    argument: str, value: Any, base: type[Part], named: dict[str, type[Part]], others: str = ""
) -> Part:
    """Return an object of the base class as it is, and a new one for its name.

    `others` are further values that an error message offers.
    """
    if isinstance(value, base):
        return value
    refuse_class(argument, value)
    name = value.lower() if isinstance(value, str) else value
    check_word(argument, name, sorted(named), f"{others} or a {base.__name__} object")
    return named[name]()


def _shown(value: Any) -> str:
    """Return an argument as code, with six digits if that is short."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_shown, value))}]"
    return f"{value:g}" if isinstance(value, float) else repr(value)


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
NORMAL, LAPLACE = NoiseModel("normal", 0.5, 2, norm), NoiseModel("Laplace", 1.0, 1, laplace)


class Loss(ModelPart):
    """An entrywise loss d(x, y).

    A subclass sets `name` and writes the static method `value` in plain scalar Python, and
    `proximal` where its formula is known.  Numba compiles them, so they may use functions of `math`
    or NumPy of one number, ``if`` and ``else``, but no arrays and no Python objects.  Their
    argument `p` is the tuple `parameters`.  Outside its domain, `value` is infinite.

    A loss that is not convex in y has ``convex = False``, and `proximal_within` in the place of
    `proximal`.  For a convex, smooth loss of all numbers, `derivatives` are as good.
    A loss with none of these is solved by a search, with which a fit takes many times as long.

    Attributes
    ----------
    name : str
        Name that selects the loss, as in ``loss="frobenius"``.
    label : str
        Short text for menus and legends; `name` by default.
    noise : str
        Noise that the loss fits, such as "Gaussian", "Laplace" or "Poisson"; "" (default) for one
        without a name.
    noise_model : NoiseModel
        Distribution of x around y whose density is proportional to exp(-β d(x, y)); by default, and
        for a subclass with a `value` of its own that sets none, an unknown one.
    likelihood : bool
        Whether `log_scores` are minus the logarithms of a likelihood, for the metric "log_score" of
        `Choice`; False by default, as above.
    squares : bool
        Whether d(x, y) = (x - y)² / 2; False by default, as above.
    classes : {"", "two", "ordered"}
        Whether x is one of two classes, or one of several with an order; "" (default): a number.
    level_values : tuple of float
        Values of ordered classes; empty by default, and if they are not known.
    residual_name : str
        Name of what `residuals` returns; "residual" by default.
    parameters : tuple of float
        Numbers that the compiled functions receive as `p`; empty by default.
    domain : tuple of float
        Smallest and largest y with a finite d, both included; all numbers by default.
    link : str
        Name of the nonlinearity that the loss has in a mixed table unless a dict has another, as
        "exp" for counts; "" (default) for a loss that takes the one of the other columns.
    of_zero : {"square", "absolute", ""}
        What d(0, y) is for y >= 0: y² / 2, y, or something else ("", default, and for a subclass
        with a `value` of its own that sets none).  Zeros of sparse data are faster if it is set.
    smallest_at_x : bool
        Whether d(x, y) is smallest at y = x; True by default.  If not, x is no value of y,
        as a class is none of its log-odds.
    floor, relative_floor : float
        Reported objectives put the lower bound floor + relative_floor |x| on the modelled value of
        an entry x; none by default.
    convex : bool
        Whether d is convex in y; True by default.
    smooth : bool
        Whether d has a derivative in y everywhere inside its domain; False by default.  If so, the
        last iterations descend on the objective itself.
    reference_is_sum : bool
        Whether `reference` is a sum over the entries; False by default, and for a subclass with a
        `reference` of its own that does not set it.  If so, it gets the entries in blocks, and
        their results are added, without arrays of the size of X.

    Examples
    --------
    >>> import numpy as np, nmd_lab as nmd
    >>> class Fair(nmd.losses.Loss):
    ...     name = "fair"
    ...
    ...     @staticmethod
    ...     def value(x, y, p):
    ...         return abs(x - y) - np.log1p(abs(x - y))
    >>> Fair()([0.0, 1.0], [0.0, 2.0]).round(3)
    array([0.   , 0.307])
    >>> fit = nmd.decompose(nmd.datasets.digits(50), 2, "identity", Fair(), random_state=0)
    """

    noise: ClassVar[str] = ""
    noise_model: ClassVar[NoiseModel] = UNKNOWN
    likelihood: ClassVar[bool] = False
    squares: ClassVar[bool] = False
    classes: ClassVar[str] = ""
    level_values: tuple[float, ...] = ()
    residual_name: ClassVar[str] = "residual"
    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = False
    domain: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    floor: ClassVar[float] = -math.inf
    relative_floor: ClassVar[float] = 0.0
    reference_is_sum: ClassVar[bool] = False
    link: ClassVar[str] = ""
    of_zero: ClassVar[str] = ""
    smallest_at_x: ClassVar[bool] = True

    def __init_subclass__(cls, **options: Any) -> None:
        """Claim nothing for a class that has a `reference` or a `value` of its own."""
        super().__init_subclass__(**options)
        defined = vars(cls)
        if "reference" in defined and "reference_is_sum" not in defined:
            cls.reference_is_sum = False
        if "value" in defined:
            for name in {"of_zero", "noise_model", "squares", "likelihood"} - defined.keys():
                setattr(cls, name, getattr(Loss, name))

    @property
    def floors(self) -> tuple[float, float]:
        """`floor` and `relative_floor`, as compiled functions take them."""
        return float(self.floor), float(self.relative_floor)

    @staticmethod
    def value(x: float, y: float, p: tuple[float, ...]) -> float:
        """Return d(x, y)."""
        raise NotImplementedError

    @staticmethod
    def proximal(q: float, x: float, rho: float, p: tuple[float, ...]) -> float:
        """Return the minimiser y of d(x, y) + rho/2 (y - q)^2 over the domain."""
        raise NotImplementedError

    @staticmethod
    def proximal_within(
        q: float, x: float, rho: float, low: float, high: float, p: tuple[float, ...]
    ) -> float:
        """Return the minimiser y of d(x, y) + rho/2 (y - q)^2 over low <= y <= high.

        Only a loss that is not convex needs it.  The interval lies in the domain; its ends may be
        infinite.
        """
        raise NotImplementedError

    @staticmethod
    def derivatives(x: float, y: float, p: tuple[float, ...]) -> tuple[float, float]:
        """Return the first and the second derivative of d(x, y) in y.

        A loss may leave it out.  With it, the T-update of a smooth f takes Newton steps, which are
        many times faster, and so does the proximal map of a smooth, convex loss of all numbers.
        """
        raise NotImplementedError

    @staticmethod
    def least_at(x: float, p: tuple[float, ...]) -> float:
        """Return the y, perhaps infinite, from which d(x, y) never falls; x by default.

        The search for the T-update of an f without pieces ends where f takes this value.
        """
        return x

    @staticmethod
    def latent_ends(x: float, p: tuple[float, ...]) -> tuple[float, float]:
        """Return between which numbers a latent variable lies for the class x.

        Only a loss of classes with an order has one, with mean y: so a limit of x is one of it.
        """
        raise NotImplementedError

    def log_scores(self, losses: FloatArray, x: FloatArray) -> FloatArray:
        """Return minus the log-likelihood of each x, given the losses; these by default."""
        return losses

    @classmethod
    def is_solved_on_pieces(cls) -> bool:
        """Return whether d plus a quadratic is solved on an interval, if need be by a search."""
        return cls.convex or cls.proximal_within is not Loss.proximal_within

    def learned(self, x: FloatArray, y: FloatArray, weights: FloatArray) -> Loss:
        """Return the loss with the parameters of highest likelihood.

        Parameters
        ----------
        x, y, weights : ndarray (n_observed,)
            Observed values, modelled values and weights.

        Returns
        -------
        Loss
            Loss whose weighted sum of `value` is at most that of this one; itself by default.
        """
        return self

    def for_data(self, x: FloatArray, weights: FloatArray | None = None) -> Loss:
        """Return the loss with what the data decide, such as the values of an ordinal column.

        Parameters
        ----------
        x : ndarray (n_observed,)
            All observed values.
        weights : ndarray (n_observed,), optional
            Their weights; ones by default.

        Returns
        -------
        Loss
            Itself by default, and for a loss that needs nothing more.

        Raises
        ------
        ValueError
            If the loss does not define some value.
        """
        return self

    def target(self, x: FloatArray) -> FloatArray:
        """Return finite modelled values that suit each x, with which a fit begins; x by default."""
        return x

    def constant(self, mean: float) -> float:
        """Return the y of a constant model for data of a given mean; the mean by default."""
        return mean

    def expected(self, y: FloatArray) -> FloatArray:
        """Return the expected value of x for each modelled value y; y by default."""
        return y

    def reference(self, x: FloatArray, weights: FloatArray) -> float:
        """Return the objective at which the relative error is one.

        Parameters
        ----------
        x, weights : ndarray (n_observed,)
            Observed values and their weights.

        Returns
        -------
        float
            By default the objective of the constant matrix of `constant`.

        Notes
        -----
        If X is constant, that objective is zero.  The rounding error of the sum takes its place.
        """
        rounding = float(np.finfo(np.float64).eps * np.sum(weights * np.abs(x)))
        constant = self.constant(float(np.average(x, weights=weights)))
        return max(float(np.sum(weights * self(x, constant))), rounding)

    def relative_error(self, objective: float, reference: float) -> float:
        """Return the relative error of a fit.

        Parameters
        ----------
        objective : float
            Sum of the weighted losses over the observed entries.
        reference : float
            Result of the method `reference` for the same data.

        Returns
        -------
        float
            By default the ratio of the two.
        """
        return objective / reference if reference > 0 else (0.0 if objective == 0 else math.inf)

    def scaled(self, size: float) -> Loss:
        """Return the same loss for data that are divided by `size`, if it has a `degree`."""
        return self

    def residuals(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Return the residuals of a model, for plots that compare them with the noise.

        Parameters
        ----------
        x, y : ndarray (n_observed,)
            Observed and modelled values.

        Returns
        -------
        ndarray
            By default x - y.
        """
        return x - y

    def check_data(self, smallest: float, largest: float) -> None:
        """Raise ValueError if d is not defined for every x from smallest to largest."""

    def __call__(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        """Return d(x, y) for each entry of the broadcast arrays, with the floors on y."""
        x, y = np.array(x, float), np.array(y, float)  # Numba compiles anew for read-only ones
        if x.shape != y.shape:
            x, y = (each.copy() for each in np.broadcast_arrays(x, y))
        return values_of(self, x.ravel(), y.ravel(), self.floors).reshape(x.shape)


@cache
def values_kernel(loss: type[Loss]) -> Callable[..., None]:
    """Return the compiled loop of a loss over flat arrays."""
    compiled = compile_scalar(loss.value)

    def values(x: Any, y: Any, p: Any, floors: Any, out: Any) -> None:
        for i in range(x.size):
            out[i] = compiled(x[i], max(y[i], floors[0] + floors[1] * abs(x[i])), p)

    return compile_kernel(values, f"values_{loss.name}", cached=is_ours(loss))


def values_of(d: Loss, x: Array, y: Array, floors: tuple[float, float] = (-math.inf, 0.0)) -> Array:
    """Return d(x, y) of flat arrays, by default without the floors of reported objectives."""
    out = np.empty(x.size)
    kernel = values_kernel(type(d))  # type: ignore[arg-type]  # a class has a hash
    kernel(x, y, d.numbers, floors, out)
    return out
