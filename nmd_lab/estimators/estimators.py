"""The estimators `MatrixCompletion` and `NMD`: only observed entries count, or every entry does."""

from __future__ import annotations

from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, OneToOneFeatureMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from nmd_lab._runtime.checks import as_generator, check_integer
from nmd_lab.api.fits import complete, decompose
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.labels import any_frame, is_frame
from nmd_lab.data.sparse import is_sparse
from nmd_lab.fit.support import DATA, refuse
from nmd_lab.result.fold_in import at_rows
from nmd_lab.result.imputation import copies, filled

from ._base import EstimatorOptions, FactorModel, with_parameters_of
from ._sampling import SampledModel


def _is_of_draws(model: Any) -> bool:
    """Return whether a model draws a posterior, which has more than one way to fill a cell."""
    if model.inference == "sample":
        return True
    raise AttributeError("sample_transform needs a posterior: use inference='sample'.")


class MatrixCompletion(OneToOneFeatureMixin, SampledModel):  # type: ignore[misc]
    """Impute missing values by X ≈ f(WH), or predict single entries, in pipelines of scikit-learn.

    With ``inference="fit"`` the factors minimise ::

        Σ_(i,j) observed d(x_ij, f((WH)_ij + b_ij)) + alpha/2 (‖W‖² + ‖H‖²) + offset_alpha/2 ‖b‖²

    as in `complete`.  With ``inference="sample"`` they are drawn from the posterior of `sample`,
    and predictions have standard deviations.

    Parameters
    ----------
    n_components : int or "auto", default "auto"
        Number of components r.  "auto": chosen by held-out entries; with "sample" an upper bound.
    inference : {"fit", "sample"}, default "fit"
        "fit": one fit, by `complete`.  "sample": a posterior, by `sample`, without a ridge;
        `n_components` is then an upper bound.
    n_draws : int, default 300
        Number of draws of "sample".
    n_tune : int, optional
        Number of sweeps of "sample" before them; by default 100.
    add_indicator : bool, default False
        Whether `transform` appends a column for each one with missing cells in the fit, which is 1
        where a cell is missing, by a `sklearn.impute.MissingIndicator`.
    keep_empty_features : bool, default False
        Whether `transform` keeps columns without any observed cell in the fit.
    nonlinearity : {"relu", "square", "minmax", "modulus", "identity", "auto"} or Nonlinearity
        Entrywise function f, by default "auto" if `alpha` is "auto", and "identity" otherwise and
        for "sample".
    loss : {"frobenius", "l1", "kl", "auto"} or Loss
        Entrywise loss d, by default "frobenius".  "kl" requires X >= 0.  "sample" also accepts
        "ordinal".
    alpha : float or "auto", default "auto"
        Ridge of the factors; only for "fit".
    offsets : {"auto", "none", "global", "rows", "columns", "both"}, default "auto"
        Offsets inside f.
    max_iter : int, default 500
        Largest number of iterations of a fit.
    random_state : int, Generator, RandomState or None, default None
        Seed.

    Attributes
    ----------
    components_, n_components_, alpha_, offset_alpha_, decomposition_, n_iter_, \
    reconstruction_err_, n_features_in_, feature_names_in_
        As for `NMD`.  "sample" has no `components_`, `alpha_`, `offset_alpha_` and
        `decomposition_`; its `n_iter_` is the number of sweeps.
    posterior_ : Posterior
        Result of `sample`, with the labels of X; only for "sample".
    indicator_ : sklearn.impute.MissingIndicator or None
        Columns that `add_indicator` appends.

    Other Parameters
    ----------------
    offset_alpha, w_constraint, h_constraint, validation, solver : as for `complete`
        Only for "fit"; "sample" refuses a value for these and for `alpha`.
    init, n_init, tol, time_limit, callback, progress, dtype, compute : as for `complete`
        "sample" ignores `n_init`, `max_iter` and `tol`.

    See Also
    --------
    impute : The same imputation of a DataFrame as a function.
    complete, sample : The functions behind `inference`.
    NMD : The estimator for matrices in which every entry counts.
    sklearn.impute.IterativeImputer : Imputation by regressions of each column on the others.

    Notes
    -----
    NaN in X and absent entries of a sparse X are missing.  If all options that can be
    "auto" are "auto", a DataFrame is fitted in the units of its columns, as by `complete`;
    standardise an array, or pass ``loss={}``.

    A DataFrame with booleans, levels, categories or text with few values has a model for the kind
    of each column, as in `complete`.  With "sample", `transform` returns a DataFrame with the
    columns, types and index of X, as `Posterior.impute` does, and `sample_transform` several.  With
    "fit", `transform` returns the matrix of numbers, in which a missing boolean has its
    probability, a level its expected number, and a category a column of probabilities for each of
    its values; `get_feature_names_out` has the labels of these columns.

    Within a `GridSearchCV`, numbers for `n_components` and `alpha` avoid the choice in each fit.
    With "sample", a row with the observed entries of a fitted row is taken as this row.  Other rows
    are drawn given the draws of H, as by `Posterior.fold_in`, or 60 of these if all rows are new.

    Examples
    --------
    An imputer in a pipeline; half of the cells of a medical table are missing:

    >>> import numpy as np
    >>> from nmd_lab import MatrixCompletion
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> holed = X.mask(np.random.default_rng(0).random(X.shape) < 0.5)
    >>> imputer = MatrixCompletion(4, alpha=1.0, offsets="both", random_state=0)
    >>> pipeline = make_pipeline(StandardScaler(), imputer, LogisticRegression())
    >>> bool(cross_val_score(pipeline, holed, y, cv=3).mean() > 0.9)
    True

    Predictions of single entries with standard deviations:

    >>> standard = (X - X.mean()) / X.std()
    >>> seen = standard.where(holed.notna()).iloc[:200]
    >>> model = MatrixCompletion(5, inference="sample", n_draws=50, random_state=0).fit(seen)
    >>> mean, std = model.predict([0, 1], ["mean radius", "mean area"], return_std=True)
    >>> mean.shape, bool((std > 0).all())
    ((2,), True)

    Several copies for multiple imputation:

    >>> copies = model.sample_transform(seen, n=5, random_state=0)
    >>> len(copies), bool(copies[0].notna().all(axis=None))
    (5, True)
    """

    _command = staticmethod(complete)
    _absent_are_zeros = False

    @with_parameters_of(complete)
    def __init__(
        self,
        n_components: int | Literal["auto"] = "auto",
        *,
        inference: Literal["fit", "sample"] = "fit",
        n_draws: int = 300,
        n_tune: int | None = None,
        add_indicator: bool = False,
        keep_empty_features: bool = False,
        **parameters: Unpack[EstimatorOptions],
    ) -> None:
        pass

    @any_frame
    def transform(self, X: Any) -> Any:
        """Return X with its missing entries filled by f(WH); with "sample", by the posterior mean.

        Parameters
        ----------
        X : array_like, DataFrame, scipy.sparse or SparseObservations (n_samples, n_features)
            Rows; they may be rows of the fit or new ones.

        Returns
        -------
        ndarray (n_samples, n_features) or DataFrame
            Filled rows; see the notes for a DataFrame of several kinds.
        """
        check_is_fitted(self)
        checked = self._checked(X, reset=False)
        if self._keeps_types and is_frame(X):
            place, others = self._posteriors_of(checked)
            frame, data = self._to_fill(X, checked, place)
            return self._as_output(filled(self.posterior_, frame, data, others=others), checked)
        model = self._modelled(checked).astype(checked.dtype, copy=False)
        values, seen = self._dense_and_seen(checked)
        return self._as_output(np.where(seen, values, model), checked)

    @available_if(_is_of_draws)
    @any_frame
    def sample_transform(self, X: Any, n: int = 10, *, random_state: Any = None) -> list[Any]:
        """Return X n times with its missing entries filled by draws, for multiple imputation.

        Parameters
        ----------
        X : array_like, DataFrame, scipy.sparse or SparseObservations (n_samples, n_features)
            Rows; they may be rows of the fit or new ones.
        n : int, default 10
            Number of copies.
        random_state : int, Generator, RandomState or None, default None
            Seed of the draws and of the noise.

        Returns
        -------
        list of DataFrame or ndarray (n_samples, n_features)
            Filled rows, as those of `Posterior.impute`; a DataFrame has the types of X.
        """
        check_is_fitted(self)
        count, rng = check_integer("n", n, 1), as_generator(random_state)
        checked = self._checked(X, reset=False)
        place, new = self._places(checked, numbered=True)
        all_new = new is not None and bool((place < 0).all())
        posterior = self.posterior_._with_draws() if all_new else self.posterior_
        others = None if new is None else posterior._of_new_rows(new, numbered=True)
        posterior = at_rows(posterior, np.maximum(place, -1), others)
        each = copies(posterior, *self._to_fill(X, checked, np.arange(place.size)), count, rng)
        return [self._as_output(copy, checked) for copy in each]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns of a filled X.

        Parameters
        ----------
        input_features : array_like of str, optional
            Names of the features, if X had none; otherwise those of X.

        Returns
        -------
        ndarray of str
            Names.
        """
        check_is_fitted(self)
        if self._keeps_types and self._table is not None:
            names = np.array([column.name for column in self._table.columns], dtype=object)
        else:
            names = np.asarray(super().get_feature_names_out(input_features))
        more = [] if self.indicator_ is None else self.indicator_.get_feature_names_out(names)
        return np.concatenate([names[self._in_output], np.asarray(more, dtype=object)])

    @any_frame
    def predict(self, X: Any, columns: ArrayLike | None = None, return_std: bool = False) -> Any:
        """Return f(WH) at (row, column) pairs of the fitted matrix, or for rows of X.

        Parameters
        ----------
        X : array_like
            Labels or positions of rows, if `columns` is given, by the rule of
            `Decomposition.predict`.  Otherwise integers (n_pairs, 2), rows and columns by the same
            rule; or dense rows (n_samples, n_features), also of two features.
        columns : label, int or array_like, optional
            Labels or positions of columns; they broadcast with the rows.
        return_std : bool, default False
            Whether to return standard deviations of new observations too, with "sample".

        Returns
        -------
        ndarray (n_pairs,) or (n_samples, n_features)
            Modelled values; with "sample", posterior means.  With `return_std`, a pair of arrays:
            means and standard deviations.
        """
        check_is_fitted(self)
        if return_std and not self._is_sampled:
            raise ValueError("return_std=True needs a posterior: use inference='sample'.")
        if columns is None and is_sparse(X):
            whole = "posterior_" if self._is_sampled else "decomposition_"
            raise TypeError(
                f"X is sparse: give rows and columns, or use transform(X) or {whole}.predict(X)."
            )
        if columns is not None:
            return self._predict_entries(X, columns, return_std)
        pairs = np.asarray(X)
        if pairs.dtype.kind in "iu" and pairs.shape[1:] == (2,) != (self.n_features_in_,):
            return self._predict_entries(pairs[:, 0], pairs[:, 1], return_std)
        checked = self._checked(X, reset=False)
        return self._of_rows(checked, std=True) if return_std else self._modelled(checked)


class NMD(ClassNamePrefixFeaturesOutMixin, FactorModel):  # type: ignore[misc]
    """Dimension reduction by X ≈ f(WH), as an estimator of scikit-learn; every entry of X counts.

    `fit` computes the components H (r, n) by `decompose`; `transform` then computes for each row x
    of a matrix ::

        argmin_w  Σ_j d(x_j, f((wH)_j + b_j)) + alpha/2 ‖w‖²

    Parameters
    ----------
    n_components : int or "auto", default "auto"
        Number of components r.  "auto": chosen by held-out entries.
    nonlinearity : {"relu", "square", "minmax", "modulus", "identity", "auto"} or Nonlinearity
        Entrywise function f, by default "relu".
    loss : {"frobenius", "l1", "kl", "auto"} or Loss
        Entrywise loss d, by default "frobenius".  "kl" requires X >= 0.
    alpha : float or "auto", default 0
        Ridge of the factors.
    offsets : {"none", "global", "columns", "auto"}, default "none"
        Offsets inside f.  Offsets of rows are refused, and so is "auto" together with
        ``alpha="auto"``, which may choose them.
    w_constraint, h_constraint : {"nonnegative", "simplex", "orthonormal", "sparse"} or \
    FactorConstraint, optional
        Constraints on the rows of W and on the columns of H.
    n_init : int, default 1
        Number of starts.
    max_iter : int, default 500
        Largest number of iterations of a start.
    random_state : int, Generator, RandomState or None, default None
        Seed.

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

    Other Parameters
    ----------------
    offset_alpha, validation, solver : as for `decompose`
        Ridge of the offsets, held-out entries, and settings of the algorithm.
    init, tol, time_limit, callback, progress, dtype, compute : as for `decompose`
        Starts, iterations and the machine.

    See Also
    --------
    decompose : The function behind `fit`; it documents all options.
    MatrixCompletion : The estimator for matrices with missing entries.
    sklearn.decomposition.NMF : Nonnegative factors without a nonlinearity.

    Notes
    -----
    `transform` computes each row of W for the fixed components separately, from several
    starts.  `fit_transform` is `fit` followed by `transform`, so that its W differs from that of
    `decomposition_` and may have a lower error.  NaN in X are missing; absent entries of a sparse X
    are zeros.  A DataFrame with booleans, levels or categories has a model for the kind of each
    column, as in `decompose`, and `n_features_in_` counts the columns of its matrix of numbers.

    Examples
    --------
    Sixteen features of handwritten digits, for new images too:

    >>> import nmd_lab as nmd
    >>> from sklearn.datasets import load_digits
    >>> images, digit = load_digits(return_X_y=True)
    >>> model = nmd.NMD(16, random_state=0).fit(images[:300])
    >>> features = model.transform(images[300:310])
    >>> features.shape, model.inverse_transform(features).shape
    ((10, 16), (10, 64))

    In a pipeline, in front of a classifier:

    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> pipeline = make_pipeline(nmd.NMD(16, random_state=0), LogisticRegression(max_iter=1000))
    >>> pipeline.fit(images[:300], digit[:300]).score(images[300:500], digit[300:500]) > 0.7
    True

    Nonnegative parts, with the names of the features:

    >>> both = {"w_constraint": "nonnegative", "h_constraint": "nonnegative"}
    >>> parts = nmd.NMD(5, nonlinearity="identity", **both, random_state=0).fit(images[:300])
    >>> bool((parts.components_ >= 0).all()), parts.get_feature_names_out()[0]
    (True, 'nmd0')
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

    @any_frame
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
