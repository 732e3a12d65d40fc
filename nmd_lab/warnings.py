"""The warnings of this package, all of them of the class `NMDWarning`."""


class NMDWarning(UserWarning):
    """Base class of all warnings of this package.

    Examples
    --------
    Make them errors, in a script that runs by itself:

    >>> import warnings, nmd_lab as nmd
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", nmd.warnings.NMDWarning)
    ...     fit = nmd.decompose([[1.0, 2.0], [2.0, 4.0]], 1)
    """


class NotConvergedWarning(NMDWarning):
    """A fit stopped at `max_iter` before it converged, or the chains of a posterior differ.

    Examples
    --------
    >>> import warnings, nmd_lab as nmd
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     fit = nmd.decompose(nmd.datasets.digits(100), 8, max_iter=10, random_state=0)
    >>> caught[0].category.__name__
    'NotConvergedWarning'
    """


class OverfitWarning(NMDWarning):
    """Predictions of missing entries are far outside the range of the observed ones.

    Examples
    --------
    >>> import warnings, nmd_lab as nmd
    >>> seen, _ = nmd.split_observed(nmd.datasets.digits(100), 0.6, random_state=0)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     fit = nmd.complete(seen, 16, "identity", alpha=0, offsets="none", random_state=0)
    >>> "OverfitWarning" in [each.category.__name__ for each in caught]
    True
    """


class UnobservedWarning(NMDWarning):
    """Rows or columns without an observed entry are predicted as f(0).

    Examples
    --------
    >>> import warnings, nmd_lab as nmd
    >>> X = nmd.datasets.digits(50).values
    >>> X[2] = float("nan")
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     fit = nmd.complete(X, 4, "relu", alpha=0.1, offsets="none", random_state=0)
    >>> caught[0].category.__name__, float(fit.reconstruct()[2].max())
    ('UnobservedWarning', 0.0)
    """


class UnitsWarning(NMDWarning):
    """Columns are in different units, so that the largest of them decide.

    Examples
    --------
    >>> import warnings, nmd_lab as nmd
    >>> from sklearn.datasets import load_wine
    >>> wine = load_wine().data  # an array: proline has values of 1000, hue of 1
    >>> wine[0, 0] = float("nan")
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     fit = nmd.complete(wine, 1, random_state=0)
    >>> caught[0].category.__name__
    'UnitsWarning'
    """


class OutOfBoundsWarning(NMDWarning):
    """Some values of X lie outside the bounds of the nonlinearity, where no fit reaches them.

    Examples
    --------
    >>> import warnings, nmd_lab as nmd
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     fit = nmd.decompose([[1.0, 2.0], [2.0, 9.0]], 1, nmd.MinMax(0, 5))
    >>> caught[0].category.__name__
    'OutOfBoundsWarning'
    """


class CheckpointWarning(NMDWarning):
    """A checkpoint could not be written; the run continues without.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> issubclass(nmd.warnings.CheckpointWarning, nmd.warnings.NMDWarning)
    True
    """
