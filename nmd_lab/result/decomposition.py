"""`Decomposition`, the labelled result of a fit."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from nmd_lab._runtime.progress import StopReason
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.labels import Labels
from nmd_lab.model.fitted_values import NO_OFFSETS, Offsets
from nmd_lab.model.losses import Loss
from nmd_lab.model.model import Model
from nmd_lab.model.nonlinearities import Nonlinearity

from . import netcdf, serialization
from .column_words import columns_in_words
from .entries import DataErrors
from .factors import Rotations
from .filling import Filling
from .predictions import Appending
from .rankings import Rankings
from .selection import Selections
from .summary import fit_html

if TYPE_CHECKING:
    from nmd_lab.plots import PlotAccessor


@dataclass(frozen=True, eq=False, repr=False)
class Decomposition(DataErrors, Filling, Appending, Rankings, Rotations, Selections):
    """X ≈ f(WH), with the labels of X.

    Attributes
    ----------
    W : xarray.DataArray (row, component)
        Left factor.  Its row dimension is that of X; if several dimensions of X make the rows, it
        has all of them.
    H : xarray.DataArray (component, column)
        Right factor, likewise with the column dimensions of X.
    nonlinearity : Nonlinearity
        Nonlinearity f; for a mixed table, a sequence with that of each column.
    loss : Loss
        Loss d, likewise.
    history : xarray.Dataset
        Numbers of each iteration, along `iteration` (1 for the first): objective and relative_error
        of f(WH) on the observed entries, primal_residual ‖T - WH‖, dual_residual, penalty ρ,
        seconds since the start, and validation_rmse if there are held-out entries.
    stop_reason : StopReason
        Why the iteration ended: a sentence for people.  Its attribute `code` is for programs, such
        as "converged", "max_iter", "time_limit", "callback" or "validation".
    labels : Labels
        Dimensions, coordinates and name of X.
    parameters : dict
        Options of the fit, numbers of the result, and the origin of data and software.
    offsets : Offsets
        Offsets, which are added to WH inside f: the number `mean`, and the arrays `rows` (m,) and
        `columns` (n,), each None if the fit has none.
    kinds : Model or None
        The kinds of a mixed table, with the units of each column; None for one f and one loss.

    Examples
    --------
    >>> import numpy as np, nmd_lab as nmd
    >>> X = np.outer([1.0, 2.0, 3.0], [1.0, 0.5, 2.0])
    >>> fit = nmd.decompose(X, 1, "identity", random_state=0)
    >>> fit.reconstruct().values.round(6)[2]
    array([3. , 1.5, 6. ])
    """

    W: xr.DataArray
    H: xr.DataArray
    nonlinearity: Nonlinearity
    loss: Loss
    history: xr.Dataset
    stop_reason: StopReason
    labels: Labels
    parameters: dict[str, Any] = field(default_factory=dict)
    offsets: Offsets = NO_OFFSETS
    kinds: Model | None = None

    def __post_init__(self) -> None:
        """Convert a string `stop_reason` to a `StopReason`."""
        object.__setattr__(self, "stop_reason", StopReason.of(self.stop_reason))

    @classmethod
    def from_matrices(
        cls,
        labels: Labels,
        W: FloatArray,
        H: FloatArray,
        history: Mapping[str, Sequence[float]],
        **fields: Any,
    ) -> Decomposition:
        """Return a decomposition from plain factors and recorded numbers.

        Parameters
        ----------
        labels : Labels
            Labels of X.
        W, H : ndarray (m, rank) and (rank, n)
            Factors.
        history : mapping of str to sequence of float
            Numbers of each iteration, "seconds" among them.
        **fields
            The other fields of `Decomposition`.
        """
        labelled_W, labelled_H = labels.label_factors(W, H)
        iterations = np.arange(1, len(history["seconds"]) + 1)
        recorded = xr.Dataset(
            {name: ("iteration", list(numbers)) for name, numbers in history.items()},
            coords={"iteration": iterations},
        )
        return cls(W=labelled_W, H=labelled_H, history=recorded, labels=labels, **fields)

    @property
    def n_iter(self) -> int:
        """Number of iterations done."""
        return self.history.sizes["iteration"]

    @property
    def relative_error(self) -> float:
        """Relative error of f(WH) on the observed entries, as the loss defines it."""
        return self._returned("relative_error")

    @property
    def objective(self) -> float:
        """Objective of the returned factors."""
        rescaled = self.parameters.get("objective")  # what rotate() notes under a ridge
        return self._returned("objective") if rescaled is None else float(rescaled)

    @property
    def optimality(self) -> float:
        """Relative violation of the first-order (KKT) conditions; 0 at a stationary point.

        The conditions are T = WH, Λ Hᵀ = alpha W and Wᵀ Λ = alpha H, where the multiplier Λ is a
        subgradient of -d(x, f(t)) at T.  A converged fit with the Frobenius loss has less than
        about 1e-4.  At the kinks of L1, and under KL where x > 0 and f(WH) = 0, the number stays
        larger.  It is NaN for results of baselines, and under a ridge after `rotate`.
        """
        return float(self.parameters.get("optimality", math.nan))

    @property
    def starts(self) -> xr.Dataset:
        """Summary of all starts, along `start`.

        Its variables are `kind` (such as "svd", "random" or "given"), `objective`,
        `relative_error`, `n_iter`, `seconds` and `stop_reason`.
        """
        table = self.parameters.get("starts", [])
        names = table[0] if table else ()
        return xr.Dataset(
            {name: ("start", [row[name] for row in table]) for name in names},
            coords={"start": np.arange(len(table))},
        )

    @property
    def _n_observed(self) -> str:
        """How many entries of X the fit observed, and of how many, as text."""
        m, n = self.shape
        appended = int(self.parameters.get("appended_rows", 0))
        total = (m - appended) * n
        text = f"{self.parameters.get('n_observed', total)} of {total} entries"
        return f"{text}, {appended} appended rows" if appended else text

    def to_dataset(self) -> xr.Dataset:
        """Return all fields as one Dataset; ``attrs["nmd_lab"]`` has the plain values, as JSON."""
        return serialization.to_dataset(self)

    @classmethod
    def from_dataset(
        cls, dataset: xr.Dataset, *, known: Iterable[type[Nonlinearity | Loss]] = ()
    ) -> Decomposition:
        """Return the decomposition from a Dataset of `to_dataset`.

        Parameters
        ----------
        dataset : xarray.Dataset
            Dataset that `to_dataset` returned.
        known : iterable of type, optional
            Classes of your own nonlinearity or loss, if the fit uses one.

        Raises
        ------
        ValueError
            If `to_dataset` did not make the Dataset, if its layout is newer than this version, or
            if its nonlinearity or loss is unknown.
        """
        return cls(**serialization.from_dataset(dataset, known))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one NetCDF file; if this fails, an older file of that name is not damaged.

        Parameters
        ----------
        path : path-like
            Path of the file, for example "fit.nc".

        Raises
        ------
        ImportError
            If h5netcdf is missing.
        OSError
            If the file cannot be written.
        TypeError
            If a coordinate has values that a file cannot store, such as Python objects.

        Examples
        --------
        >>> import tempfile, numpy as np, nmd_lab as nmd
        >>> fit = nmd.decompose(np.eye(4), 3, random_state=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     fit.save(f"{folder}/fit.nc")
        ...     nmd.load(f"{folder}/fit.nc").W.identical(fit.W)
        True
        """
        netcdf.write(self.to_dataset(), path)

    @property
    def plot(self) -> PlotAccessor:
        """Plots of the fit, such as ``fit.plot.convergence()``; they need matplotlib."""
        from nmd_lab.plots import PlotAccessor

        return PlotAccessor(self)

    def _repr_html_(self) -> str:
        """Return the HTML summary that notebooks show."""
        facts = {
            "W": f"({_sizes(self.W)}) {self.W.dtype}",
            "H": f"({_sizes(self.H)}) {self.H.dtype}",
            "relative error": f"{self.relative_error:.4g} ({self.loss.name})",
            "observed": self._n_observed,
            "iterations": f"{self.n_iter} in {float(self.history['seconds'][-1]):.2f} s",
            "ended": self.stop_reason,
            **self._columns,
            **self._choice,
        }
        return fit_html(self, facts)

    def __repr__(self) -> str:
        """Return a summary of a few lines."""
        W, H = (_sizes(factor) for factor in (self.W, self.H))
        return (
            f"<nmd_lab.Decomposition>  X ≈ {self.nonlinearity}(W H), loss {self.loss.name}\n"
            f"  W ({W}), H ({H}), {self.W.dtype}\n"
            f"  relative error {self.relative_error:.4g} on {self._n_observed}\n"
            f"  {self.n_iter} iterations, {float(self.history.seconds[-1]):.2f} s, "
            f"{self.stop_reason}"
            + "".join(
                f"\n  {name}: {text}" for name, text in {**self._columns, **self._choice}.items()
            )
        )

    @property
    def _columns(self) -> dict[str, str]:
        """What the columns of a table were taken for; nothing for one kind."""
        words = columns_in_words(self.labels, self.kinds)
        return {"columns": words} if words else {}


def _sizes(array: xr.DataArray) -> str:
    """Return the dimensions of an array and their sizes, as text."""
    return ", ".join(f"{dim}: {size}" for dim, size in array.sizes.items())
