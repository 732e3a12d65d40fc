"""Constraints as text, for the parameters of a fit and for files."""

from __future__ import annotations

import re
from typing import Any, Self

from .base import BY_NAME, FactorConstraint, SparseFactor
from .factor_constraints import GivenConstraints


class ConstraintText(str):
    """A constraint in a word, with the object as the attribute `constraint`."""

    constraint: FactorConstraint

    def __new__(cls, constraint: FactorConstraint) -> Self:
        """Create the string: the name of a class of the package, or the text of an object."""
        is_named = BY_NAME.get(constraint.name) is type(constraint)
        text = super().__new__(cls, constraint.name if is_named else repr(constraint))
        if isinstance(constraint, SparseFactor):
            weight = (
                f"{constraint.weight!r}, nonnegative"
                if constraint.nonnegative
                else (f"{constraint.weight!r}")
            )
            text = super().__new__(cls, f"sparse({weight})")
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
    """Return what `Decomposition.parameters` says of the constraints; nothing without any."""
    if not constraints:
        return {}
    texts = (
        None if each is None else ConstraintText(each) for each in (constraints.W, constraints.H)
    )
    found = dict(zip(("w_constraint", "h_constraint"), texts, strict=True))
    return found | {"constraint_ridges": list(constraints.ridges)}
