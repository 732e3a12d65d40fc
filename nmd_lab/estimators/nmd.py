"""The estimator of a decomposition, in which every entry counts."""

from __future__ import annotations

from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_array, check_is_fitted

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.sparse import is_sparse
from nmd_lab.fit import decompose
from nmd_lab.solver.support import DATA, refuse

from ._base import FactorModel
from ._parameters import EstimatorOptions, with_parameters_of


class NMD(ClassNamePrefixFeaturesOutMixin, FactorModel):  # type: ignore[misc]
    """Nonlinear matrix decomposition X ≈ f(WH); every entry of X counts.

    Parameters
    ----------
    n_components : int or "auto", default "auto"
        Number of components r.  "auto": chosen by held-out entries.
    nonlinearity : {"relu", "square", "minmax", "modulus", "identity", "auto"} or Nonlinearity
        Entrywise function f, by default "relu".
    loss : {"frobenius", "l1", "kl", "auto"} or Loss
        Entrywise loss d, by default "frobenius".  "kl" needs X >= 0.
    alpha, offsets, offset_alpha, w_constraint, h_constraint, validation, init, n_init, max_iter, \
    tol, time_limit, callback, progress, random_state, dtype, solver, compute
        As for `decompose`, with the same defaults.  `offsets` of rows are refused, and so is "auto"
        together with ``alpha="auto"``, which may choose them.

    Attributes
    ----------
    components_ : ndarray (n_components, n_features)
        Right factor H.
    n_components_ : int
        Number of components, given or chosen.
    alpha_, offset_alpha_ : float
        Ridges of the factors and of the offsets, given or chosen.
    decomposition_ : Decomposition
        Result of `decompose`, with the labels of X if X was a DataFrame.
    n_iter_ : int
        Number of iterations.
    reconstruction_err_ : float
        ‖X - f(WH)‖ of the fit for the Frobenius loss, the sum of the loss for other losses.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X was a DataFrame with strings as column names.

    Notes
    -----
    `transform` computes each row of W for the fixed components by itself, from several starts.
    `fit_transform` is `fit` followed by `transform`, so its W is not that of `decomposition_` and
    may have a lower error.  NaN in X are missing.  Absent entries of a sparse X are zeros.  A
    DataFrame with booleans, levels or categories is fitted as by `decompose`, a kind for each
    column, and `n_features_in_` counts the columns of its matrix of numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from nmd_lab import NMD
    >>> X = np.maximum(np.random.default_rng(0).normal(size=(50, 20)), 0)
    >>> model = NMD(n_components=4, loss="l1", random_state=0).fit(X)
    >>> model.inverse_transform(model.transform(X[:3])).shape
    (3, 20)
    """

    _command = staticmethod(decompose)
    _absent_are_zeros = True

    @with_parameters_of(decompose)
    def __init__(
        self, n_components: int | Literal["auto"] = "auto", **parameters: Unpack[EstimatorOptions]
    ) -> None:
        pass

    def _check_options(self, X: Any) -> None:
        free = self._chosen()
        if free and is_sparse(X):
            refuse({"zeros": DATA["zeros"], "choice": f"{free[0]}='auto'"})
        may_be_chosen = self.offsets == "auto" and "alpha" in free
        if self.offsets in ("rows", "both") or may_be_chosen:
            raise ValueError(
                f"offsets={self.offsets!r} would be lost in transform(), if they are of rows: use "
                "'columns' or 'none', or MatrixCompletion."
            )

    def transform(self, X: Any) -> FloatArray:
        """Return the rows of W that are best for the rows of X.

        Parameters
        ----------
        X : array_like, DataFrame, scipy.sparse or SparseObservations (n_samples, n_features)
            Rows; NaN are missing.

        Returns
        -------
        ndarray (n_samples, n_components)
            Rows of W.
        """
        check_is_fitted(self)
        return self._fold(self._checked(X, reset=False))[0]

    def inverse_transform(self, W: ArrayLike) -> FloatArray:
        """Return f(WH).

        Parameters
        ----------
        W : array_like (n_samples, n_components)
            Rows of W.

        Returns
        -------
        ndarray (n_samples, n_features)
            Modelled values.
        """
        check_is_fitted(self)
        rows = check_array(W, dtype=(np.float64, np.float32))
        rank = self.components_.shape[0]
        if rows.shape[1] != rank:
            raise ValueError(f"W has {rows.shape[1]} columns: give the {rank} of the model.")
        return self._at(rows, np.zeros(rows.shape[0], rows.dtype))

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])
