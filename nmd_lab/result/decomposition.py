"""`Decomposition`, the labelled result of a fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import xarray as xr

from nmd_lab._runtime.checks import check_word
from nmd_lab._runtime.progress import StopReason
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.labels import COMPONENT, Labels
from nmd_lab.model.fitted_values import NO_OFFSETS, Offsets
from nmd_lab.model.losses import Loss
from nmd_lab.model.model import Model
from nmd_lab.model.nonlinearities import Nonlinearity

from . import serialization
from .factors import Factors
from .loadings import Rotation, canonical_form, component_shares
from .rankings import main_columns
from .selection import chosen_arguments, trials_of
from .summary import lines_of, summary_of

if TYPE_CHECKING:
    from nmd_lab.plots import PlotAccessor


@dataclass(frozen=True, eq=False, repr=False)
class Decomposition(Factors):
    """X ≈ f(WH), with the labels of X.

    Attributes
    ----------
    W : xarray.DataArray (row, component)
        Left factor, with the dimensions of X that make the rows.
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
    parameters : dict
        Options of the fit, numbers of the result, and the origin of data and software.  Among them
        is "optimality", the relative violation of the first-order (KKT) conditions T = WH,
        Λ Hᵀ = alpha W and Wᵀ Λ = alpha H, where the multiplier Λ is a subgradient of -d(x, f(t)) at
        T: 0 at a stationary point, and less than about 1e-4 for a converged fit with the Frobenius
        loss.  At the kinks of L1, and under KL where x > 0 and f(WH) = 0, it stays larger.
    offsets : Offsets
        Offsets, which are added to WH inside f: the number `mean`, and the arrays `rows` (m,) and
        `columns` (n,), each None if the fit has none.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> digits = nmd.datasets.digits(100)
    >>> fit = nmd.decompose(digits, 5, "relu", random_state=0)
    >>> fit.W.dims, fit.H.dims
    (('image', 'component'), ('component', 'pixel'))
    >>> fit.nonlinearity, fit.loss, fit.stop_reason.code
    (ReLU(), Frobenius(), 'converged')
    >>> bool(fit.history.objective[-1] < fit.history.objective[0])
    True
    >>> fit.offsets.mean, fit.parameters["n_observed"], fit.parameters["optimality"] < 1e-2
    (0.0, 6400, True)
    """

    W: xr.DataArray
    H: xr.DataArray
    nonlinearity: Nonlinearity
    loss: Loss
    history: xr.Dataset
    stop_reason: StopReason
    _labels: Labels
    parameters: dict[str, Any] = field(default_factory=dict)
    offsets: Offsets = NO_OFFSETS
    _kinds: Model | None = None

    def __post_init__(self) -> None:
        """Convert a string `stop_reason` to a `StopReason`."""
        object.__setattr__(self, "stop_reason", StopReason.of(self.stop_reason))

    @classmethod
    def _from_matrices(
        cls,
        labels: Labels,
        W: FloatArray,
        H: FloatArray,
        history: Mapping[str, Sequence[float]],
        kinds: Model | None = None,
        **fields: Any,
    ) -> Decomposition:
        """Return a decomposition from plain factors and the numbers of each iteration."""
        labelled_W, labelled_H = labels.label_factors(W, H)
        iterations = np.arange(1, len(history["seconds"]) + 1)
        recorded = xr.Dataset(
            {name: ("iteration", list(numbers)) for name, numbers in history.items()},
            coords={"iteration": iterations},
        )
        return cls(labelled_W, labelled_H, history=recorded, _labels=labels, _kinds=kinds, **fields)

    @property
    def _n_iter(self) -> int:
        """Number of iterations done."""
        return self.history.sizes["iteration"]

    @property
    def relative_error(self) -> float:
        """Relative error of f(WH) on the observed entries, as the loss defines it.

        Examples
        --------
        >>> import nmd_lab as nmd
        >>> digits = nmd.datasets.digits(100)
        >>> fit = nmd.decompose(digits, 5, "relu", random_state=0)
        >>> 0.2 < fit.relative_error < 0.4
        True
        """
        return self._returned("relative_error")

    @property
    def objective(self) -> float:
        """Objective of the returned factors.

        Examples
        --------
        >>> import nmd_lab as nmd
        >>> digits = nmd.datasets.digits(100)
        >>> fit = nmd.decompose(digits, 5, "relu", random_state=0)
        >>> fit.objective == float(fit.history.objective.min())
        True
        """
        rescaled = self.parameters.get("objective")  # what rotate() notes under a ridge
        return self._returned("objective") if rescaled is None else float(rescaled)

    @property
    def starts(self) -> xr.Dataset:
        """Summary of all starts, along `start`.

        Its variables are `kind` (such as "svd", "random" or "given"), `objective`,
        `relative_error`, `n_iter`, `seconds` and `stop_reason`.

        Examples
        --------
        >>> import nmd_lab as nmd
        >>> digits = nmd.datasets.digits(100)
        >>> fit = nmd.decompose(digits, 5, "square", n_init=2, random_state=0)
        >>> fit.starts.kind.values.tolist()
        ['random', 'random']
        """
        table = self.parameters.get("starts", [])
        names = table[0] if table else ()
        return xr.Dataset(
            {name: ("start", [row[name] for row in table]) for name in names},
            coords={"start": np.arange(len(table))},
        )

    @property
    def selection(self) -> xr.Dataset:
        """Trials from which the options of the fit were chosen, along `trial`, in their order.

        Its variables are the options of each trial (`nonlinearity`, `loss`, `rank`, `alpha`,
        `offsets` and `offset_alpha`), the `error` at the held-out entries, its `spread` (the
        standard error of its difference to the lowest error), whether it is `tied` with that, since
        the difference is not larger than its spread, `n_iter` and `seconds`.  The error of a trial
        that did not finish is NaN.

        Its attributes are `sentence` (what was chosen, by what, and what is as good), `chosen` (the
        trial that was chosen), `reason`, `measure` (of the error),
        `options` (those that were chosen), `held_out_entries`, `held_out_parts`, `held_out_drawn`,
        and `note`, sentences on what the trials cannot tell, if there is such a thing.  Where they
        are known, `offsets_alone` is the lowest error without components, and `error_where_seen`
        that of the fit at the entries it has seen.  If nothing was chosen, the Dataset has no trial
        and no attribute.

        Examples
        --------
        >>> import nmd_lab as nmd
        >>> digits = nmd.datasets.digits(100)
        >>> fit = nmd.complete(digits, 3, "identity", random_state=0)
        >>> fit.selection.attrs["options"]
        'alpha, offsets, offset_alpha'
        >>> errors = fit.selection.error
        >>> bool(errors[fit.selection.attrs["chosen"]] < errors.max())
        True
        """
        return trials_of(self.parameters)

    @property
    def chosen(self) -> dict[str, Any]:
        """Arguments with which ``nmd.complete(X, **fit.chosen)`` repeats the fit without a choice.

        They are `rank`, `alpha`, `offsets` and `offset_alpha`, and `nonlinearity` and `loss` if all
        columns share them, or ``loss={}`` for numbers in units of their columns; ``init="path"``,
        `max_iter` and `tol` if the fit ends early; and `solver` if the choice decided on the
        algorithm, or on the noise at entries with limits.
        Other arguments of the fit, such as `weights`, are to be given again.

        See Also
        --------
        Decomposition.selection : All that was tried.

        Examples
        --------
        >>> import numpy as np, nmd_lab as nmd
        >>> digits = nmd.datasets.digits(100)
        >>> fit = nmd.complete(digits, 3, "identity", random_state=0)
        >>> again = nmd.complete(digits, **fit.chosen, random_state=0)
        >>> bool(np.allclose(again.reconstruct(), fit.reconstruct()))
        True
        """
        return chosen_arguments(self)

    def top_of_components(self, k: int = 10) -> xr.DataArray:
        """Return the k columns with the numbers of largest size in each row of H, the main terms.

        Parameters
        ----------
        k : int, default 10
            Number of columns.

        Returns
        -------
        xarray.DataArray (rank, k)
            Numbers of H along `component` and `place` (1 has the largest absolute value), with the
            labels of the columns as coordinates.  The coordinate `position` has the positions of
            the columns, and `explained` the fraction of each component in WH, ⟨w h, WH⟩ / ‖WH‖²,
            where w h is its term of WH.  Their sum is 1.  For orthogonal components, as after
            ``rotate("svd")``, they are ‖w h‖² / ‖WH‖², and a component that others cancel may have
            a negative one.  Offsets and f do not count.

        Raises
        ------
        TypeError, ValueError
            If `k` is invalid.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> fit = nmd.decompose(wine / wine.std(), 3, w_constraint="nonnegative", random_state=0)
        >>> top = fit.top_of_components(k=2)
        >>> top.column.shape, round(float(top.explained.sum()), 6)
        ((3, 2), 1.0)
        """
        top = main_columns(self._labels, self.H, k)
        return top.assign_coords(explained=(COMPONENT, component_shares(*self._factors)))

    def rotate(self, method: Rotation = "size") -> Decomposition:
        """Return the fit with its components in a canonical form; WH stays the same.

        A fit leaves order, signs and scales of its components open, and often more: W M and M⁻¹ H
        have the same product for every invertible M.  In each form below the components are ordered
        by the size of their term w h of WH, largest first, and the entry of largest absolute value
        of each row of H is positive.

        Parameters
        ----------
        method : {"size", "svd", "varimax", "quartimax"}, default "size"
            "size": only the order and the signs change.  "svd": the singular value decomposition of
            WH, with orthonormal rows of H, and orthogonal columns of W whose norms are the singular
            values.  "varimax": the rows of H of "svd", rotated so that each has few large entries;
            they stay orthonormal.  "quartimax": likewise, so that each column of H has few large
            entries.

        Returns
        -------
        Decomposition
            Fit with the new W and H.  Offsets, predictions and errors are those of this fit, up to
            rounding.  Under a ridge (alpha > 0) the forms other than "size" change the norms of the
            factors: `objective` has the new ones, `parameters` lacks the optimality, and `fold_in`
            weighs its own ridge anew.

        Raises
        ------
        ValueError
            If the method is unknown.

        Examples
        --------
        >>> import numpy as np, nmd_lab as nmd
        >>> digits = nmd.datasets.digits(100)
        >>> fit = nmd.decompose(digits, 5, "relu", random_state=0)
        >>> svd = fit.rotate("svd")
        >>> bool(np.allclose(svd.H @ svd.H.rename(component="other"), np.eye(5)))
        True
        >>> bool(np.allclose(svd.reconstruct(), fit.reconstruct()))
        True
        """
        check_word("method", method, get_args(Rotation))
        W, H = canonical_form(*self._factors, method)
        return _with_factors(self, W, H, rescaled=method != "size")

    @property
    def plot(self) -> PlotAccessor:
        """Plots of the fit, such as ``fit.plot.convergence()``; they need matplotlib.

        Examples
        --------
        >>> import nmd_lab as nmd
        >>> digits = nmd.datasets.digits(100)
        >>> fit = nmd.decompose(digits, 5, "relu", random_state=0)
        >>> fit.plot.convergence().get_xlabel()
        'iteration'
        """
        from nmd_lab.plots import PlotAccessor

        return PlotAccessor(self)

    _to_dataset = serialization.to_dataset
    _in_lines, _in_short = lines_of, summary_of


def _with_factors(
    fit: Decomposition, W: FloatArray, H: FloatArray, *, rescaled: bool
) -> Decomposition:
    """Return the fit with other factors in its own precision."""
    dtype = fit.W.dtype
    W, H = W.astype(dtype), H.astype(dtype)
    labelled_W, labelled_H = fit._labels.label_factors(W, H)
    parameters = dict(fit.parameters)
    alpha = float(parameters.get("alpha", 0.0))
    if rescaled and alpha > 0:
        before, after = (
            sum(float(np.sum(np.square(factor, dtype=np.float64))) for factor in factors)
            for factors in (fit._factors, (W, H))
        )
        parameters["objective"] = fit.objective + alpha / 2 * (after - before)
        parameters.pop("optimality", None)
    return replace(fit, W=labelled_W, H=labelled_H, parameters=parameters)
