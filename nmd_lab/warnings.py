"""Warnings of this package."""


class NMDWarning(UserWarning):
    """Base class of all warnings of this package."""


class NotConvergedWarning(NMDWarning):
    """A fit stopped at `max_iter` before it converged."""


class OutOfBoundsWarning(NMDWarning):
    """Some values of X lie outside the bounds of the nonlinearity, where no fit reaches them."""
