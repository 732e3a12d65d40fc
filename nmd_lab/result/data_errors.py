"""A fit beside data: residual and score."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from nmd_lab.data.containers import like
from nmd_lab.data.matching import match_data

from .entries import compared_entries, entries_in, values_at
from .factors import Factors


class DataErrors(Factors):
    """What a result says about data: those of the fit, or entries that it has not seen."""

    def reconstruct(self) -> xr.DataArray:
        """Return f(WH) as an array with the dimensions, labels and name of X.

        Examples
        --------
        >>> import pandas as pd, nmd_lab as nmd
        >>> X = pd.DataFrame([[1.0, 2.0], [2.0, 4.0]], index=["ann", "bo"], columns=["p", "q"])
        >>> fit = nmd.decompose(X, 1, random_state=0)
        >>> float(fit.reconstruct().sel(row="bo", column="q").round(6))
        4.0
        """
        return self.labels.label(self.fitted.block())

    def residual(self, X: Any, *, observed: ArrayLike | None = None) -> Any:
        """Return X - f(WH) at the observed entries of X.

        Parameters
        ----------
        X : array_like, masked array, DataFrame, DataArray, scipy.sparse or SparseObservations
            Data of the fit, or other data: of the same shape, or with labels that the fit has, in
            any order.  Entries that a sparse matrix does not store are missing.
        observed : array_like of bool, optional
            True where X is observed.

        Returns
        -------
        xarray.DataArray, scipy.sparse matrix or SparseObservations
            Residual in the units of X.  For dense X: an array with the dimensions and labels of the
            fit, NaN where X is not observed.  For sparse X: of the type of X, CSR for matrices,
            with the residual at its stored entries.

        Raises
        ------
        ValueError, TypeError
            If X is invalid, or its shape or labels are not those of the fit.

        Examples
        --------
        >>> import numpy as np, nmd_lab as nmd
        >>> X = np.array([[1.0, 0.5], [2.0, np.nan]])
        >>> bool(abs(nmd.complete(X, 1, alpha=0, random_state=0).residual(X)).max() < 1e-9)
        True
        """
        data = match_data(self.labels, X, observed=observed)
        if data.is_sparse:
            values = data.observations.entries().values
            return like(X, data.observations, values - values_at(self.fitted, entries_in(data)))
        model = self.reconstruct()
        return model.copy(data=self.labels.label(data.to_array(self.shape)).values - model.values)

    def aligned(self, X: Any, *, observed: ArrayLike | None = None) -> NDArray[np.floating]:
        """Return X in the shape and the order of the fit's data, NaN where it is not observed.

        Parameters
        ----------
        X, observed
            As for `residual`; the errors are the same.  A sparse X becomes dense here.

        Returns
        -------
        ndarray
            By label where X and the fit both have labels, by position elsewhere.
        """
        data = match_data(self.labels, X, observed=observed)
        aligned: NDArray[np.floating] = self.labels.label(data.to_array(self.shape)).values
        return aligned

    def score(
        self, X: Any, *, observed: ArrayLike | None = None, weights: ArrayLike | None = None
    ) -> float:
        """Return the share of X that f(WH) explains, for example of held-out entries.

        Parameters
        ----------
        X : array_like, masked array, DataFrame, DataArray, scipy.sparse or SparseObservations
            Data, as for `residual`.
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
        >>> import numpy as np, nmd_lab as nmd
        >>> X = np.outer([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0])
        >>> train, test = nmd.split_observed(X, test_size=2, random_state=0)
        >>> round(nmd.complete(train, 1, alpha=0, random_state=0).score(test), 6)
        1.0
        """
        x, y, w = compared_entries(self, X, observed, weights)
        error, size = float(np.sum(w * np.square(x - y))), float(np.sum(w * np.square(x)))
        return 1.0 - error / size if size > 0 else float(error == 0)
