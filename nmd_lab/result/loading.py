"""Reading a saved result of any kind."""

from __future__ import annotations

import os
from collections.abc import Iterable

import xarray as xr

from nmd_lab.model.losses import Loss
from nmd_lab.model.nonlinearities import Nonlinearity

from . import netcdf
from .decomposition import Decomposition
from .posterior.files import is_posterior
from .posterior.posterior import Posterior


def load(
    path: str | os.PathLike[str], *, known: Iterable[type[Nonlinearity | Loss]] = ()
) -> Decomposition | Posterior:
    """Read what `Decomposition.save` or `Posterior.save` wrote, without executing code of the file.

    Parameters
    ----------
    path : path-like
        Path of the file.
    known : iterable of type, optional
        Classes of your own nonlinearity or loss, if the fit uses one.  They are called with the
        saved `parameters`.

    Returns
    -------
    Decomposition or Posterior
        Saved result, with the same values, types, labels and parameters.

    Raises
    ------
    FileNotFoundError, ValueError
        If the file does not exist, is damaged or of another kind, has a layout that is newer than
        this version, or has an unknown nonlinearity or loss.
    ImportError
        If h5netcdf is missing.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.load("nowhere.nc")
    Traceback (most recent call last):
    FileNotFoundError: path='nowhere.nc' is not a file: check the name.
    """
    return result_of(netcdf.read(path), known)


def result_of(
    dataset: xr.Dataset, known: Iterable[type[Nonlinearity | Loss]] = ()
) -> Decomposition | Posterior:
    """Return the result that a Dataset holds."""
    result = Posterior if is_posterior(dataset) else Decomposition
    return result.from_dataset(dataset, known=known)
