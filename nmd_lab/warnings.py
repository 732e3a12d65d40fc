"""Warnings of this package."""


class NMDWarning(UserWarning):
    """Base class of all warnings of this package."""


class NotConvergedWarning(NMDWarning):
    """A fit stopped at `max_iter` before it converged, or the chains of a posterior differ."""


class OverfitWarning(NMDWarning):
    """Predictions of missing entries are far outside the range of the observed ones."""


class UnobservedWarning(NMDWarning):
    """Rows or columns without an observed entry are predicted as f(0)."""


class OutOfBoundsWarning(NMDWarning):
    """Some values of X lie outside the bounds of the nonlinearity, where no fit reaches them."""
