"""The warnings that this package gives."""


class NMDWarning(UserWarning):
    """Something about a fit that its user should know."""


class NotConvergedWarning(NMDWarning):
    """A fit ended at max_iter while it was still improving."""
