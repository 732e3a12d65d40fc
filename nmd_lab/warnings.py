"""The one kind of warning that this package gives."""


class NMDWarning(UserWarning):
    """Something about a fit that its user should know."""
