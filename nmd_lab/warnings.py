"""Warnings of this package."""


class NMDWarning(UserWarning):
    """Base class of all warnings of this package."""


class NotConvergedWarning(NMDWarning):
    """A fit stopped at `max_iter` before it converged."""
