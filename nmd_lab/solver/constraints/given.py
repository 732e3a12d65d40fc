"""The constraints of a fit: from the options to those of a problem."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from nmd_lab._checks import check_word

from .base import BY_NAME, Entrywise, FactorConstraint, NonNegative, Orthonormal, Simplex
from .base import SparseFactor as Sparse

SHARE = 0.1
"""Default weight of an l1 penalty, as a share of the one that removes an ordinary component."""


def as_constraint(option: str, constraint: Any) -> FactorConstraint | None:
    """Return the constraint for a name, an object or None.

    Parameters
    ----------
    option : {"w_constraint", "h_constraint"}
        Name of the option, for messages.
    constraint : str, FactorConstraint or None
        Value of the option.

    Raises
    ------
    ValueError, TypeError
        If the name is unknown, or the object is no constraint.
    """
    if constraint is None or isinstance(constraint, FactorConstraint):
        return constraint
    if isinstance(constraint, type) and issubclass(constraint, FactorConstraint):
        raise TypeError(
            f"{option}={constraint.__name__} is a class: give an object, {constraint.__name__}()."
        )
    name = constraint.lower() if isinstance(constraint, str) else constraint
    check_word(option, name, sorted(BY_NAME), ", None, or a FactorConstraint object")
    return BY_NAME[name]()


def check_both(of_W: FactorConstraint | None, of_H: FactorConstraint | None) -> None:
    """Raise ValueError if both factors are to be orthonormal."""
    if isinstance(of_W, Orthonormal) and isinstance(of_H, Orthonormal):
        raise ValueError(
            "h_constraint='orthonormal' does not go with w_constraint='orthonormal', since WH "
            "would have singular values of 1 only: give one of the two."
        )


@dataclass(frozen=True)
class GivenConstraints:
    """Constraints in the units of X, with the ridges that their penalties need.

    Attributes
    ----------
    of_W, of_H : FactorConstraint or None
        Constraints, whose weights are known.
    ridge_W, ridge_H : float
        Ridges in addition to alpha.
    """

    of_W: FactorConstraint | None = None
    of_H: FactorConstraint | None = None
    ridge_W: float = 0.0
    ridge_H: float = 0.0

    @classmethod
    def of(
        cls,
        of_W: FactorConstraint | None,
        of_H: FactorConstraint | None,
        alpha: float,
        shape: tuple[int, int],
        *,
        natural: float = 1.0,
        size: float = 1.0,
    ) -> GivenConstraints:
        """Return constraints with their default weights and ridges.

        An l1 penalty can be escaped (W / 2 and 2 H) if nothing bounds the other factor.  It then
        gets a ridge of the same weight.

        Parameters
        ----------
        of_W, of_H : FactorConstraint or None
            Constraints of the options.
        alpha : float
            Ridge of the options.
        shape : tuple of int
            Shape of X.
        natural : float
            Natural penalty of the data (`nmd_lab.solver.problem.natural_penalty`); only default
            weights depend on it.
        size : float
            Size of an ordinary component of T: its singular value; likewise.
        """
        free = alpha == 0
        free_W, free_H = free and not _is_bounded(of_W), free and not _is_bounded(of_H)
        of_W = _weighted(of_W, shape[0], natural, size, escapes=free_H)
        of_H = _weighted(of_H, shape[1], natural, size, escapes=free_W)
        ridge_W = _penalty_weight(of_H) if free_W else 0.0
        ridge_H = _penalty_weight(of_W) if free_H else 0.0
        return cls(of_W, of_H, ridge_W, ridge_H)

    def __bool__(self) -> bool:
        """Return whether a factor has a constraint."""
        return self.of_W is not None or self.of_H is not None

    @property
    def nonnegative(self) -> bool:
        """Whether a factor must be nonnegative."""
        return is_nonnegative(self.of_W) or is_nonnegative(self.of_H)

    @property
    def ridges(self) -> tuple[float, float]:
        """Ridges of W and of H in addition to alpha."""
        return self.ridge_W, self.ridge_H

    def scaled(
        self, exponent: int, of_objective: int
    ) -> tuple[FactorConstraint | None, FactorConstraint | None]:
        """Return the constraints in the units of a problem, given by their logarithms."""
        units = 2.0**exponent, 2.0**of_objective
        of_W, of_H = (
            None if each is None else each.scaled(*units) for each in (self.of_W, self.of_H)
        )
        return of_W, of_H


NO_CONSTRAINTS = GivenConstraints()


def _is_bounded(constraint: FactorConstraint | None) -> bool:
    """Return whether a constraint or a penalty keeps a factor from growing."""
    if isinstance(constraint, Sparse):
        return constraint.weight != 0
    return not (constraint is None or isinstance(constraint, NonNegative))


def _penalty_weight(constraint: FactorConstraint | None) -> float:
    return (constraint.weight or 0.0) if isinstance(constraint, Entrywise) else 0.0


def _weighted(
    constraint: FactorConstraint | None, length: int, natural: float, size: float, *, escapes: bool
) -> FactorConstraint | None:
    """Return a constraint whose weight is known.

    For a component of singular value s, split evenly, the l1 weight `threshold` below acts on a
    number of ordinary size as a share of it.  If the other factor has a ridge of the same weight,
    only weight² times ridge matters; the two are then such that the split is even.
    """
    if not isinstance(constraint, Sparse) or constraint.weight is not None:
        return constraint
    threshold = SHARE * natural * size**1.5 / math.sqrt(length)
    ridge = SHARE * natural * size
    weight = (threshold**2 * ridge) ** (1 / 3) if escapes else threshold
    return constraint.weighted(weight)


def is_nonnegative(constraint: FactorConstraint | None) -> bool:
    """Return whether a constraint allows no negative number."""
    if isinstance(constraint, Entrywise):
        return constraint.lowest >= 0
    return isinstance(constraint, Simplex)
