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
    >>> import warnings, numpy as np, nmd_lab as nmd
    >>> X = np.maximum(np.random.default_rng(0).normal(size=(30, 20)), 0)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     fit = nmd.decompose(X, 5, max_iter=10, random_state=0)
    >>> caught[0].category.__name__
    'NotConvergedWarning'
    """


class OverfitWarning(NMDWarning):
    """Predictions of missing entries are far outside the range of the observed ones.

    Examples
    --------
    >>> import warnings, numpy as np, nmd_lab as nmd
    >>> rng = np.random.default_rng(0)
    >>> X = np.where(rng.random((40, 30)) < 0.5, rng.normal(size=(40, 30)), np.nan)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     fit = nmd.complete(X, 6, "identity", alpha=0, offsets="none", random_state=0)
    >>> "OverfitWarning" in [each.category.__name__ for each in caught]
    True
    """


class UnobservedWarning(NMDWarning):
    """Rows or columns without an observed entry are predicted as f(0).

    Examples
    --------
    >>> import warnings, numpy as np, nmd_lab as nmd
    >>> X = np.array([[1.0, 2.0], [2.0, 4.0], [np.nan, np.nan]])
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     fit = nmd.complete(X, 1, "relu", alpha=0.1, offsets="none")
    >>> caught[0].category.__name__, fit.reconstruct().values[2].tolist()
    ('UnobservedWarning', [0.0, 0.0])
    """


class UnitsWarning(NMDWarning):
    """Columns are in different units, so that the largest of them decide.

    Examples
    --------
    >>> import warnings, numpy as np, nmd_lab as nmd
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 3)) * [1000, 1, 0.1]
    >>> X[0, 0] = np.nan
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     fit = nmd.complete(X, 1, random_state=0)
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
