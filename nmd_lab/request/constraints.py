"""Constraints and penalties on the rows of a factor, and those of both factors as options and text.

A constraint is one small class.  Its proximal map defines the allowed rows, or their cost.
The rows are those of W, or the columns of H.  A step of a factor is then a small constrained
least-squares problem for each row (`nmd_lab.kernels.row_steps`).

>>> import nmd_lab as nmd
>>> nmd.NonNegative()
NonNegative()
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from nmd_lab._runtime.checks import check_number
from nmd_lab.data.entries import FloatArray
from nmd_lab.model.loss import as_object


class FactorConstraint:
    """A constraint, or a penalty, on each row of W or on each column of H.

    A subclass writes `prox`, and `value` if it is a penalty, in NumPy.

    Attributes
    ----------
    name : str
        Name, for messages and `Decomposition.parameters`.
    parameters : tuple of float
        Numbers of the constraint; empty by default.

    Examples
    --------
    Weights between 0 and 1:

    >>> import numpy as np, nmd_lab as nmd
    >>> class Fraction(nmd.FactorConstraint):
    ...     name = "fraction"
    ...
    ...     def prox(self, rows, step):
    ...         return np.clip(rows, 0, 1)
    >>> digits = nmd.datasets.digits(100)
    >>> fit = nmd.decompose(digits, 5, "identity", w_constraint=Fraction(), random_state=0)
    >>> bool(fit.W.min() >= 0), bool(fit.W.max() <= 1)
    (True, True)
    """

    name: ClassVar[str] = "own"
    parameters: tuple[float, ...] = ()

    def prox(self, rows: FloatArray, step: FloatArray) -> FloatArray:
        """Return argmin over Z of value(Z) + Σ ‖z_i - rows_i‖² / (2 step_i).

        Parameters
        ----------
        rows : ndarray (k, rank)
            Rows of W, or columns of H, in double precision.
        step : ndarray (k, 1)
            Length of the step of each row, >= 0; 0 asks for the nearest rows that are allowed.

        Returns
        -------
        ndarray (k, rank)
            For a constraint, the nearest rows that are allowed, whatever the step.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no prox: write prox(self, rows, step), the nearest rows "
            "that are allowed."
        )

    def value(self, rows: FloatArray) -> float:
        """Return the penalty of allowed rows (k, rank), a term of the objective; by default 0."""
        return 0.0

    def project(self, rows: FloatArray) -> FloatArray:
        """Return the nearest rows that are allowed, in the precision of `rows`."""
        nearest = self.prox(rows.astype(np.float64), np.zeros((len(rows), 1)))
        return np.ascontiguousarray(nearest, dtype=rows.dtype)

    def check(self, rows: FloatArray) -> None:
        """Raise ValueError if the map is not one to the nearest rows that are allowed.

        Parameters
        ----------
        rows : ndarray (k, rank)
            Rows at which it is tried.
        """
        step = np.zeros((len(rows), 1))
        nearest = np.asarray(self.prox(rows.copy(), step))
        fault = ""
        if nearest.shape != rows.shape:
            fault = f"returns the shape {nearest.shape} for rows of shape {rows.shape}"
        elif not np.all(np.isfinite(nearest)):
            fault = "returns NaN or infinity for finite rows"
        else:
            again = self.prox(nearest.copy(), step)
            scale = 1e-6 * (1.0 + float(np.abs(nearest).max(initial=0.0)))
            if not np.allclose(again, nearest, rtol=1e-6, atol=scale):
                fault = "moves rows that it returned itself, with a step of 0"
        if fault:
            raise ValueError(
                f"prox() of the constraint {self!r} {fault}: let it return the nearest rows that "
                "are allowed, in the shape of `rows`."
            )

    def scaled(self, size: float, objective: float) -> FactorConstraint:
        """Return the constraint for rows divided by `size`, with values divided by `objective`."""
        return self if size == objective == 1.0 else InUnits(self, size, objective)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{p:g}' for p in self.parameters)})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), self.parameters))


class Entrywise(FactorConstraint):
    """A bound and an l1 penalty on each number of a factor.

    Attributes
    ----------
    lowest : float
        Smallest number that is allowed; minus infinity without a bound.
    weight : float or None
        Weight of the sum of magnitudes in the objective.
    """

    lowest: float = -np.inf
    weight: float | None = 0.0

    def prox(self, rows: FloatArray, step: FloatArray) -> FloatArray:
        """Return the rows, shrunk towards 0 by step times weight, and not below the bound."""
        shrunk = rows
        if self.weight:
            shrunk = np.sign(rows) * np.maximum(np.abs(rows) - step * self.weight, 0.0)
        return np.maximum(shrunk, self.lowest)

    def value(self, rows: FloatArray) -> float:
        """Return the weight times the sum of magnitudes."""
        return self.weight * float(np.abs(rows).sum(dtype=np.float64)) if self.weight else 0.0


class NonNegative(Entrywise):
    """No negative number in a factor: parts that add up, as in nonnegative matrix factorisation.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> digits = nmd.datasets.digits(100)
    >>> both = {"w_constraint": "nonnegative", "h_constraint": nmd.NonNegative()}
    >>> fit = nmd.decompose(digits, 8, "identity", **both, random_state=0)
    >>> bool((fit.W >= 0).all() and (fit.H >= 0).all()), fit.relative_error < 0.4
    (True, True)
    """

    name = "nonnegative"
    lowest = 0.0

    def scaled(self, size: float, objective: float) -> NonNegative:
        """Return the constraint itself: multiples of allowed rows are allowed."""
        return self


class SparseFactor(Entrywise):
    """An l1 penalty, weight Σ abs(w): many numbers of a factor become 0.

    A factor could escape its penalty: W / 2 and 2 H have the same product.  If the other factor has
    neither a ridge (`alpha`) nor a constraint that bounds it, the objective therefore has the term
    ridge/2 ‖other factor‖² as well, with the ridge equal to a given weight.

    Parameters
    ----------
    weight : float, optional
        Weight of the penalty, >= 0.  By default 3 % of what would remove the numbers of a component
        of ordinary size; ``fit.parameters`` tells the number.
    nonnegative : bool, default False
        Whether the factor must be nonnegative, too.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> digits = nmd.datasets.digits(100)
    >>> sparse = nmd.SparseFactor(0.05)
    >>> fit = nmd.decompose(digits, 8, "identity", h_constraint=sparse, random_state=0)
    >>> bool((fit.H == 0).mean() > 0.3)
    True
    """

    name = "sparse"

    def __init__(self, weight: float | None = None, nonnegative: bool = False) -> None:
        self.weight = None if weight is None else check_number("weight", weight, 0)
        self.lowest = 0.0 if nonnegative else -np.inf
        self.nonnegative = bool(nonnegative)

    @property
    def parameters(self) -> tuple[float, ...]:  # type: ignore[override]
        """The weight, if it is known, and 1 if the factor is nonnegative."""
        weights = () if self.weight is None else (self.weight,)
        return (*weights, 1.0) if self.nonnegative else weights

    def weighted(self, weight: float) -> SparseFactor:
        """Return the same constraint with another weight."""
        return SparseFactor(weight, self.nonnegative)

    def scaled(self, size: float, objective: float) -> SparseFactor:
        """Return the constraint for rows divided by `size`."""
        return self.weighted((self.weight or 0.0) * size / objective)


class Simplex(FactorConstraint):
    """Rows of W (columns of H) that are nonnegative and have the sum one: mixtures, archetypes.

    Source of the projection: J. Duchi, S. Shalev-Shwartz, Y. Singer and T. Chandra, "Efficient
    projections onto the l1-ball for learning in high dimensions", 2008.

    Examples
    --------
    >>> import numpy as np, nmd_lab as nmd
    >>> digits = nmd.datasets.digits(100)
    >>> fit = nmd.decompose(digits, 5, "identity", w_constraint="simplex", random_state=0)
    >>> bool(np.allclose(fit.W.sum("component"), 1))
    True
    """

    name = "simplex"

    def prox(self, rows: FloatArray, step: FloatArray) -> FloatArray:
        """Return the nearest rows that are nonnegative and sum to one."""
        k, rank = rows.shape
        falling = -np.sort(-rows, axis=1)
        excess = np.cumsum(falling, axis=1) - 1.0
        n_positive = np.count_nonzero(falling * np.arange(1, rank + 1) > excess, axis=1)
        n_positive = np.maximum(n_positive, 1)  # rounding of large numbers
        shift = excess[np.arange(k), n_positive - 1] / n_positive
        nearest = np.maximum(rows - shift[:, None], 0.0)
        total = nearest.sum(axis=1, keepdims=True)
        even = np.full_like(nearest, 1.0 / rank)
        return np.asarray(np.divide(nearest, total, out=even, where=total > 0))


class Orthonormal(FactorConstraint):
    """Orthonormal columns of W (rows of H); at most one factor can have them.

    Examples
    --------
    >>> import numpy as np, nmd_lab as nmd
    >>> digits = nmd.datasets.digits(100)
    >>> fit = nmd.decompose(digits, 3, "identity", w_constraint="orthonormal", random_state=0)
    >>> W = fit.W.values
    >>> bool(np.allclose(W.T @ W, np.eye(3)))
    True
    """

    name = "orthonormal"

    def prox(self, rows: FloatArray, step: FloatArray) -> FloatArray:
        """Return the nearest matrix (k, rank) with orthonormal columns, the polar factor."""
        U, _, Vt = np.linalg.svd(rows, full_matrices=False)
        return np.asarray(U @ Vt)


class InUnits(FactorConstraint):
    """A constraint on rows that are divided by a power of two (`nmd_lab.problem.problem`)."""

    def __init__(self, plain: FactorConstraint, size: float, objective: float) -> None:
        self.plain, self.size, self.objective = plain, size, objective

    def prox(self, rows: FloatArray, step: FloatArray) -> FloatArray:
        """Return the proximal map in the units of the problem."""
        nearest = self.plain.prox(rows * self.size, step * (self.size**2 / self.objective))
        return np.asarray(nearest / self.size)

    def value(self, rows: FloatArray) -> float:
        """Return the penalty in the units of the problem."""
        return self.plain.value(rows * self.size) / self.objective


def couples_rows(constraint: FactorConstraint | None) -> bool:
    """Return whether a constraint holds for all rows together."""
    plain = constraint.plain if isinstance(constraint, InUnits) else constraint
    return isinstance(plain, Orthonormal)


BY_NAME: dict[str, type[FactorConstraint]] = {
    each.name: each for each in (NonNegative, Simplex, Orthonormal, SparseFactor)
}
"""Constraints of the package by name."""


def as_constraint(option: str, constraint: Any) -> FactorConstraint | None:
    """Return the constraint for a name, an object or None."""
    if constraint is None:
        return None
    return as_object(option, constraint, FactorConstraint, BY_NAME, ", None,")


Both = tuple[FactorConstraint | None, FactorConstraint | None]
"""Constraints on W and on H."""


@dataclass(frozen=True)
class GivenConstraints:
    """Constraints in the units of X, with the ridges that their penalties need.

    Attributes
    ----------
    W, H : FactorConstraint or None
        Constraints, whose weights are known.
    ridges : (float, float)
        Ridges of W and H in addition to alpha.
    """

    W: FactorConstraint | None = None
    H: FactorConstraint | None = None
    ridges: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def of(
        cls, both: Both, alpha: float, shape: tuple[int, int], natural: float, size: float
    ) -> GivenConstraints:
        """Return constraints with their default weights and ridges.

        An l1 penalty can be escaped (W / 2 and 2 H) if nothing bounds the other factor.  It then
        gets a ridge: of the same weight, or, with the default weight, of about the same effect.

        For a component of singular value s that is split evenly, natural · s · √(s / length) is the
        l1 weight that would remove a number of ordinary size; `size` is that of s.
        """
        ridge = 0.03 * natural * size  # 3 % of what removes an ordinary component
        known, ridges = list[FactorConstraint | None](), list[float]()
        for each, other, length in zip(both, both[::-1], shape, strict=True):
            is_free = alpha == 0 and not _is_bounded(each)
            weight = other.weight if is_free and isinstance(other, SparseFactor) else 0.0
            ridges.append(ridge if weight is None else weight)
            if isinstance(each, SparseFactor) and each.weight is None:
                each = each.weighted(ridge * math.sqrt(size / length))
            known.append(each)
        return cls(known[0], known[1], (ridges[0], ridges[1]))

    def __bool__(self) -> bool:
        """Return whether a factor has a constraint."""
        return self.W is not None or self.H is not None

    @property
    def nonnegative(self) -> bool:
        """Whether a factor must be nonnegative."""
        return is_nonnegative(self.W) or is_nonnegative(self.H)

    def scaled(self, exponent: int, of_objective: int) -> Both:
        """Return the constraints in the units of a problem, given by their logarithms."""
        units = 2.0**exponent, 2.0**of_objective
        W, H = (None if each is None else each.scaled(*units) for each in (self.W, self.H))
        return W, H


NO_CONSTRAINTS = GivenConstraints()


def _is_bounded(constraint: FactorConstraint | None) -> bool:
    """Return whether a constraint or a penalty keeps a factor from growing."""
    if isinstance(constraint, SparseFactor):
        return constraint.weight != 0
    return not (constraint is None or isinstance(constraint, NonNegative))


def is_nonnegative(constraint: FactorConstraint | None) -> bool:
    """Return whether a constraint allows no negative number."""
    if isinstance(constraint, Entrywise):
        return constraint.lowest >= 0
    return isinstance(constraint, Simplex)


class ConstraintText(str):
    """A constraint in a word, with the object as the attribute `constraint`."""

    constraint: FactorConstraint

    def __new__(cls, constraint: FactorConstraint) -> Self:
        """Create the string: the name of a class of the package, or the text of an object."""
        is_named = BY_NAME.get(constraint.name) is type(constraint)
        text = super().__new__(cls, constraint.name if is_named else repr(constraint))
        if isinstance(constraint, SparseFactor):
            sign = ", nonnegative" if constraint.nonnegative else ""
            text = super().__new__(cls, f"sparse({constraint.weight!r}{sign})")
        text.constraint = constraint
        return text

    def __getnewargs__(self) -> tuple[FactorConstraint]:  # type: ignore[override]
        """Return the arguments of `__new__`, for copying and pickling."""
        return (self.constraint,)


def constraint_from(text: str | None) -> FactorConstraint | None:
    """Return the constraint that a text from ``fit.parameters`` means."""
    if text is None:
        return None
    if isinstance(text, ConstraintText):
        return text.constraint
    if text in BY_NAME and text != SparseFactor.name:
        return BY_NAME[text]()
    match = re.fullmatch(r"sparse\(([^,)]+)(, nonnegative)?\)", text)
    if match:
        return SparseFactor(float(match[1]), match[2] is not None)
    raise ValueError(
        f"w_constraint={text} is a class of your own, which a saved fit does not hold: fold_in() "
        "needs the fit itself, or one under a constraint of nmd_lab."
    )


def constraints_in_parameters(constraints: GivenConstraints) -> dict[str, Any]:
    """Return the entries of `Decomposition.parameters` for the constraints; none without any."""
    if not constraints:
        return {}
    texts = (
        None if each is None else ConstraintText(each) for each in (constraints.W, constraints.H)
    )
    found = dict(zip(("w_constraint", "h_constraint"), texts, strict=True))
    return found | {"constraint_ridges": list(constraints.ridges)}
