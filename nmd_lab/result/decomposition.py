"""`Decomposition`, the labelled result of a fit: its fields, and what can be asked of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.inputs import GivenLimits
from nmd_lab.data.labels import COMPONENT, Labels, any_frame
from nmd_lab.model.fitted_values import NO_OFFSETS, FittedValues, Offsets

from .entries import Unknown, compared_entries, entries_of
from .fill import fill_by_fit
from .fitted import Fitted
from .fold_in import append, fold_in, row_model
from .loadings import Rotation, main_components, rotate
from .netcdf import dataset_of_fit
from .selection import chosen_arguments, trials_of
from .summary import fit_facts, formula_of, summary_of

if TYPE_CHECKING:
    from nmd_lab.plots import PlotAccessor


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Decomposition(Fitted):
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
    history: xr.Dataset
    offsets: Offsets = NO_OFFSETS

    @classmethod
    def _from_matrices(
        cls,
        _labels: Labels,
        W: FloatArray,
        H: FloatArray,
        history: Mapping[str, Sequence[float]],
        **fields: Any,
    ) -> Decomposition:
        """Return a decomposition from plain factors and the numbers of each iteration."""
        iterations = np.arange(1, len(history["seconds"]) + 1)
        recorded = xr.Dataset(
            {name: ("iteration", list(numbers)) for name, numbers in history.items()},
            coords={"iteration": iterations},
        )
        fields |= {"W": _labels.label_rows(W), "H": _labels.label_columns(H)}
        return cls(history=recorded, _labels=_labels, **fields)

    @property
    def rank(self) -> int:
        """Number of components.

        Examples
        --------
        >>> import nmd_lab as nmd
        >>> digits = nmd.datasets.digits(100)
        >>> fit = nmd.decompose(digits, 5, "relu", random_state=0)
        >>> fit.rank
        5
        """
        return self.W.sizes[COMPONENT]

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
        columns = {name: ("start", [row[name] for row in table]) for name in names}
        return xr.Dataset(columns, coords={"start": np.arange(len(table))})

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

    @any_frame
    def predict(
        self,
        rows: Any,
        columns: ArrayLike | None = None,
        *,
        without: ArrayLike = (),
        unknown: Unknown = "error",
    ) -> Any:
        """Return f(WH) at rows and columns, by label or position, or at the entries of test data.

        Parameters
        ----------
        rows, columns, unknown
            See `Posterior.predict`.
        without : int or array_like of int, optional
            Numbers of components that are left out of WH.

        Returns
        -------
        ndarray, 1-D, or the type of the test data
            One prediction for each pair of row and column, or for each observed entry of test data.

        Raises
        ------
        KeyError, TypeError, ValueError
            See `Posterior.predict`.
        IndexError
            If a position lies outside X, or there is no such component.

        Examples
        --------
        >>> import nmd_lab as nmd
        >>> from sklearn.datasets import load_wine
        >>> wine = load_wine(as_frame=True).data
        >>> fit = nmd.complete(wine, 3, alpha=0.1, random_state=0)
        >>> bool(12 < fit.predict(0, "alcohol")[0] < 15)
        True
        >>> fit.predict(0, ["alcohol", "ash"], without=[0, 1]).shape
        (2,)
        """
        entries = entries_of(self._labels, rows, columns, unknown)
        return entries.back(self._fitted.without(without).at(entries.i, entries.j))

    def score(
        self, X: Any, *, observed: ArrayLike | None = None, weights: ArrayLike | None = None
    ) -> float:
        """Return the fraction of X that f(WH) explains, for example of held-out entries.

        Parameters
        ----------
        X : array_like, masked array, DataFrame, DataArray, scipy.sparse or SparseObservations
            Data of the fit, or other data: of the same shape, or with labels that the fit has, in
            any order.  Entries that a sparse matrix does not store are missing.
        observed : array_like of bool, optional
            True where an entry counts.  By default all observed entries.
        weights : array_like, optional
            Weights of the entries, >= 0.

        Returns
        -------
        float
            1 - ‖X - f(WH)‖² / ‖X‖² over the observed entries, as the estimators have it: higher is
            better, 1 is perfect, a prediction of 0 everywhere has the score 0.  For the error in
            the units of X see `nmd_lab.metrics.rmse`, with ``fit.predict(X)``, and
            `nmd_lab.compare`.

        Raises
        ------
        ValueError, TypeError
            If X is invalid, or its shape or labels are not those of the fit.

        Examples
        --------
        >>> import nmd_lab as nmd
        >>> digits = nmd.datasets.digits(100)
        >>> train, test = nmd.split_observed(digits, 0.1, random_state=0)
        >>> 0.8 < nmd.complete(train, 5, alpha=1, random_state=0).score(test) < 1
        True
        """
        x, y, w = compared_entries(self, X, observed, weights)
        error, size = float(np.sum(w * np.square(x - y))), float(np.sum(w * np.square(x)))
        return 1.0 - error / size if size > 0 else float(error == 0)

    @any_frame
    def impute(self, X: Any) -> Any:
        """Return X with its missing cells filled, each by what suits its column.

        Parameters
        ----------
        X : array_like, masked array, DataFrame or DataArray
            Data with missing entries, of the shape of the fitted data or with labels that they
            have.

        Returns
        -------
        same type as X, or ndarray for a masked array
            Observed entries are kept.  A missing number becomes its prediction, a missing boolean,
            level or category the most probable one.  A DataFrame keeps its dtypes; predictions of
            whole numbers ("Int64") are rounded.

        Raises
        ------
        ValueError, TypeError
            If X is sparse, or has another shape or other labels.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> train, test = nmd.split_observed(wine, 0.1, random_state=0)
        >>> fit = nmd.complete(train, 3, loss={}, alpha=0.1, random_state=0)
        >>> filled = fit.impute(train)
        >>> (
        ...     bool(filled.notna().all(axis=None)),
        ...     bool((filled[train.notna()] == train).any(axis=None)),
        ... )
        (True, True)
        """
        return fill_by_fit(self._labels, self._fitted, X)

    def fold_in(
        self,
        X: Any,
        *,
        observed: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        at_most: ArrayLike | None = None,
        at_least: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        unknown: Unknown = "error",
    ) -> xr.DataArray:
        """Return the rows of W for new rows of X, with H fixed.

        Each row of W minimises the part of the objective of its row of X.  It is computed by the
        same kind of iteration as the fit, from several starts, and does not depend on other rows.

        Parameters
        ----------
        X : array_like (k, n), Series, DataFrame, DataArray, scipy.sparse or SparseObservations
            New rows; a pandas.Series is one row.  NaN and masked entries are missing.  Absent
            entries of a sparse matrix are zeros for a fit of `decompose` to a sparse matrix, such
            as one of documents, and missing for any other.  Columns with labels may be some of
            those of the fit, in any order; the others are missing.  A Dask array gives a DataArray
            over a Dask array, which is computed block by block.
        observed : array_like of bool (k, n), optional
            True where X is observed.
        weights : array_like (k, n), optional
            Weights of the entries, >= 0.
        at_most, at_least, upper : array_like (k, n), optional
            Entries of which only limits are known, as for `nmd_lab.complete`; the noise is that of
            the fit.
        unknown : {"error", "offsets"}, default "error"
            What is done with rows without entries and with columns that the fit does not have.
            "error": a sentence names them.  "offsets": the row of W and its offset are 0, and
            unknown columns are left out.

        Returns
        -------
        xarray.DataArray (row, component)
            Rows of W with the row labels of X; 0 for rows of a Dask array without entries.  If the
            fit has row offsets, the coordinate `offset` has those of the new rows.  `append` takes
            them.

        Raises
        ------
        ValueError, TypeError
            If X is invalid, or has rows without entries or columns that the fit does not have.

        Examples
        --------
        >>> import numpy as np, nmd_lab as nmd
        >>> digits = nmd.datasets.digits(100)
        >>> fit = nmd.complete(digits[:90], 5, alpha=1, random_state=0)
        >>> lower_half = digits[90:].where(np.arange(64) >= 32)
        >>> fit.fold_in(lower_half).sizes
        Frozen({'image': 10, 'component': 5})
        """
        limits = GivenLimits(at_most, at_least, upper)
        options = {"observed": observed, "weights": weights}
        return fold_in(self._labels, self._row_model, X, unknown, limits, **options)

    def append(
        self,
        rows: Any,
        *,
        observed: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        at_most: ArrayLike | None = None,
        at_least: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        unknown: Unknown = "error",
    ) -> Self:
        """Return the fit with new rows in it, for predictions, rankings and saving.

        Parameters
        ----------
        rows : array_like (k, n), Series, DataFrame, DataArray, sparse data, or result of `fold_in`
            New rows of X, as for `fold_in`; or their rows of W, which `fold_in` returned.
        observed, weights, at_most, at_least, upper : array_like (k, n), optional
            As for `fold_in`, if `rows` are rows of X.
        unknown : {"error", "offsets"}, default "error"
            As for `fold_in`.

        Returns
        -------
        Decomposition
            Fit with the new rows after its own.  H, the other rows of W, history, objective and
            `relative_error` are those of this fit; ``parameters["appended_rows"]`` counts the new
            rows.  If the rows of the fit have labels, so do the new ones; where the fit was made
            without row labels, those of the new rows are not kept.

        Raises
        ------
        ValueError, TypeError
            If `fold_in` would refuse the rows; if a row label is in the fit already, or comes
            twice; if the fit has row labels and the new rows have none; or if several dimensions
            make the rows.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> fit = nmd.complete(wine[:150], 3, loss={}, alpha=0.1, random_state=0)
        >>> more = fit.append(wine[150:].assign(alcohol=float("nan")))
        >>> bool(12 < more.predict(177, "alcohol")[0] < 15)
        True
        """
        options = {"observed": observed, "weights": weights, "unknown": unknown}
        options |= {"at_most": at_most, "at_least": at_least, "upper": upper}
        return append(self, rows, **options)  # type: ignore[no-any-return]

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
        return main_components(self, k)

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
        return rotate(self, method)  # type: ignore[no-any-return]

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

    @property
    def _n_iter(self) -> int:
        """Number of iterations done."""
        return self.history.sizes["iteration"]

    @property
    def _fitted(self) -> FittedValues:
        """f(WH) at positions."""
        return FittedValues(*self._factors, self.offsets, self._model)

    _values = _fitted

    @property
    def _factors(self) -> tuple[FloatArray, FloatArray]:
        """W (m, rank) and H (rank, n) as plain matrices."""
        return self.W.values.reshape(-1, self.rank), self.H.values.reshape(self.rank, -1)

    def _returned(self, name: str) -> float:
        """Return a number of the history, at the iteration of W and H."""
        at = np.flatnonzero(self.history.iteration.values == self.parameters["iteration"])
        return float(self.history[name].values[at[0] if at.size else -1])

    _row_model = property(row_model)
    _to_dataset = dataset_of_fit
    _formula, _facts, _in_short = formula_of, fit_facts, summary_of
