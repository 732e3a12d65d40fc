"""The constraints of both factors: from the options of a fit to those of a problem, and as text."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Self

from nmd_lab._runtime.checks import check_word

from .base import BY_NAME, Entrywise, FactorConstraint, NonNegative, Simplex, SparseFactor

SHARE = 0.03
"""Default weight of an l1 penalty, as a fraction of the one that removes an ordinary component."""


def as_constraint(option: str, constraint: Any) -> FactorConstraint | None:
    """Return the constraint for a name, an object or None."""
    if constraint is None or isinstance(constraint, FactorConstraint):
        return constraint
    if isinstance(constraint, type) and issubclass(constraint, FactorConstraint):
        raise TypeError(
            f"{option}={constraint.__name__} is a class: give an object, {constraint.__name__}()."
        )
    name = constraint.lower() if isinstance(constraint, str) else constraint
    check_word(option, name, sorted(BY_NAME), ", None, or a FactorConstraint object")
    return BY_NAME[name]()


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
        cls,
        W: FactorConstraint | None,
        H: FactorConstraint | None,
        alpha: float,
        shape: tuple[int, int],
        *,
        natural: float = 1.0,
        size: float = 1.0,
    ) -> GivenConstraints:
        """Return constraints with their default weights and ridges.

        An l1 penalty can be escaped (W / 2 and 2 H) if nothing bounds the other factor.  It then
        gets a ridge: of the same weight, or, with the default weight, of about the same effect.
        """
        free_W, free_H = (alpha == 0 and not _is_bounded(each) for each in (W, H))
        ridge = SHARE * natural * size
        against_H = _ridge_against(H, ridge) if free_W else 0.0
        against_W = _ridge_against(W, ridge) if free_H else 0.0
        W = _weighted(W, ridge * math.sqrt(size / shape[0]))
        H = _weighted(H, ridge * math.sqrt(size / shape[1]))
        return cls(W, H, (against_H, against_W))

    def __bool__(self) -> bool:
        """Return whether a factor has a constraint."""
        return self.W is not None or self.H is not None

    @property
    def nonnegative(self) -> bool:
        """Whether a factor must be nonnegative."""
        return is_nonnegative(self.W) or is_nonnegative(self.H)

    def scaled(
        self, exponent: int, of_objective: int
    ) -> tuple[FactorConstraint | None, FactorConstraint | None]:
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


def _ridge_against(constraint: FactorConstraint | None, ridge: float) -> float:
    """Return the ridge of a factor whose partner has a constraint, and perhaps an l1 penalty."""
    if not isinstance(constraint, SparseFactor):
        return 0.0
    return ridge if constraint.weight is None else constraint.weight


def _weighted(constraint: FactorConstraint | None, weight: float) -> FactorConstraint | None:
    """Return a constraint whose weight is known.

    For a component of singular value s that is split evenly, natural · s · √(s / length) is the l1
    weight that would remove a number of ordinary size.
    """
    if not isinstance(constraint, SparseFactor) or constraint.weight is not None:
        return constraint
    return constraint.weighted(weight)


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
