"""The base of both scikit-learn estimators, and `NMD`, in which every entry of X counts."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar, Literal, Self, TypeVar, Unpack

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted, check_non_negative, validate_data

from nmd_lab._runtime.checks import is_auto
from nmd_lab.api.fits import decompose
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.inputs import observe
from nmd_lab.data.labels import any_frame, is_frame, plain_array
from nmd_lab.data.matching import known_positions
from nmd_lab.data.sparse import SparseObservations, is_sparse
from nmd_lab.data.typed_table import TypedTable, kind_of_objects, refuse_repeats, table_of
from nmd_lab.fit.support import DATA, refuse
from nmd_lab.model.losses import as_loss
from nmd_lab.problem.columns import LossArgument, NonlinearityArgument, is_mixed
from nmd_lab.problem.problem import constants
from nmd_lab.request.options import FitOptions
from nmd_lab.request.settings import as_choice, as_compute
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.fold_in import fold_rows
from nmd_lab.warnings import NotConvergedWarning

OF_THE_DATA = ("X", "rank", "observed", "weights", "at_most", "at_least", "upper", "sample_dims")
"""Arguments of a fit that are no parameters of an estimator; `rank` is its `n_components`."""

Function = TypeVar("Function", bound=Callable[..., Any])


class EstimatorOptions(FitOptions, total=False):
    """The parameters that an estimator has from a fit, for editors and type checkers."""

    nonlinearity: NonlinearityArgument | None
    loss: LossArgument
    dtype: DTypeLike | None


def with_parameters_of(function: Callable[..., Any]) -> Callable[[Function], Function]:
    """Return a decorator for `__init__`, which takes its own parameters and those of a fit."""

    def decorate(init: Function) -> Function:
        of_init = inspect.signature(init).parameters.values()
        first = [p for p in of_init if p.kind is p.POSITIONAL_OR_KEYWORD]
        of_fit = inspect.signature(function).parameters.values()
        further = [p.replace(kind=p.KEYWORD_ONLY) for p in of_fit if p.name not in OF_THE_DATA]
        further += [p for p in of_init if p.kind is p.KEYWORD_ONLY]
        signature = inspect.Signature([*first, *further])

        @wraps(init)
        def set_parameters(self: Any, *args: Any, **parameters: Any) -> None:
            bound = signature.bind(self, *args, **parameters)
            bound.apply_defaults()
            for name, value in list(bound.arguments.items())[1:]:
                setattr(self, name, value)  # without any check, as scikit-learn asks

        set_parameters.__signature__ = signature  # type: ignore[attr-defined]
        return set_parameters  # type: ignore[return-value]

    return decorate


def has_kinds(column: Any) -> bool:
    """Return whether a column holds booleans, levels, categories, dates or text with few values."""
    is_class = hasattr(column.dtype, "categories") or getattr(column.dtype, "kind", "O") == "b"
    return is_class or kind_of_objects(column) in ("text", "booleans", "dates", "date texts")


def as_numbers(table: TypedTable | None, X: Any) -> Any:
    """Return a DataFrame with the columns of the matrix."""
    if table is None:
        refuse_classes(X)
        return X
    names = [column.name for column in table.columns]
    if list(X.columns) != names:
        raise ValueError(f"X has the columns {list(X.columns)}: give those of the fit, {names}.")
    return table.columns_of(X).encode(X)


def refuse_classes(X: Any) -> None:
    """Raise TypeError if a column of a DataFrame holds levels, categories or dates."""
    types = X.dtypes.items()
    names = [name for name, each in types if hasattr(each, "categories") or each.kind == "M"]
    if names:
        columns = f"column{'s' * (len(names) > 1)} {', '.join(map(repr, names))}"
        raise TypeError(
            f"X has categories or dates in {columns}, which the fit has not, or partial_fit does "
            "not take: use fit(X)."
        )


def _has_batches(model: Any) -> bool:
    """Return whether a model can learn from batches: a posterior cannot."""
    if getattr(model, "inference", "fit") == "fit":
        return True
    raise AttributeError("partial_fit goes with inference='fit': use that.")


class FactorModel(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The base of both estimators.

    A subclass sets `_command`, the function that fits, and `_absent_are_zeros`, the meaning of the
    absent entries of a sparse X.
    """

    _command: ClassVar[Callable[..., Decomposition]]
    _absent_are_zeros: ClassVar[bool]

    decomposition_: Decomposition
    _table: TypedTable | None

    @any_frame
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        at_most: ArrayLike | None = None,
        at_least: ArrayLike | None = None,
        upper: ArrayLike | None = None,
    ) -> Self:
        """Fit the model to X.

        Parameters
        ----------
        X : array_like, DataFrame, scipy.sparse or SparseObservations (n_samples, n_features)
            Data.
        y : None
            Ignored.
        at_most, at_least, upper : array_like (n_samples, n_features), optional
            Entries of which only limits are known; see `nmd_lab.complete`.

        Returns
        -------
        self
        """
        self._check_options(X)
        self.__dict__.pop("_batches", None)
        checked = self._checked(X, reset=True)
        self._check_rank(checked)
        options = self.get_params(deep=False)
        data = checked
        if isinstance(X, SparseObservations) or self._table is not None:
            data = X  # with its labels, and the kinds of its columns
        elif is_frame(X):
            data = type(X)(checked, index=X.index, columns=X.columns)
        if is_frame(data) and "keep_empty_features" in options:
            data = data.copy(deep=False)
            data.attrs = {"keep_empty_features": True}  # `transform` leaves out or keeps them
        options |= {"at_most": at_most, "at_least": at_least, "upper": upper}
        self._run(data, checked, options)
        return self

    def _check_options(self, X: Any) -> None:
        """Raise ValueError if the parameters do not suit the estimator or X."""

    def _check_rank(self, X: Any) -> None:
        """Raise ValueError if X is too small for the number of components."""
        if isinstance(self.n_components, int) and self.n_components > min(X.shape):
            m, n = X.shape
            raise ValueError(
                f"n_components={self.n_components} exceeds the smaller of n_samples={m} and "
                f"n_features={n}: give a smaller number."
            )

    @available_if(_has_batches)
    @any_frame
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from a batch of rows, in addition to those of earlier calls.

        The batch is appended, and at most 20 iterations on all rows so far continue from there, so
        that no batch is forgotten.  Whenever the number of rows has doubled, they are fitted anew,
        and what is "auto" is chosen again.  The estimator therefore keeps all these rows, sparse
        ones as they are: its memory, and the time of a call, grow with them.  `transform` takes
        rows that H need not learn from.

        `decomposition_` has all rows in the order of their arrival.  After `fit`, the next batch is
        a first one.
        """
        self._check_options(X)
        if is_frame(X):
            refuse_classes(X)
        earlier = getattr(self, "_batches", None)
        batch = self._checked(X, reset=earlier is None)
        options = self.get_params(deep=False)
        if earlier is None:
            self._check_rank(batch)
            rows, self._n_fitted = batch.copy(), 0
        elif sparse.issparse(batch) != sparse.issparse(earlier):
            raise ValueError(
                "X is sparse and the earlier batches were dense, or the other way round: give all "
                "batches alike."
            )
        else:
            both: Any = [earlier, batch]
            rows = sparse.vstack(both, format="csr") if sparse.issparse(batch) else np.vstack(both)
        if rows.shape[0] >= 2 * self._n_fitted:  # a component that was 0 could not learn
            self._run(rows, rows, options)
            self._n_fitted = rows.shape[0]
        else:
            # 20 iterations on all rows: digits in 6 batches end within 1 % of a fit.
            options |= self._chosen_before(options) | {
                "init": self.decomposition_.append(batch, unknown="offsets"),
                "n_init": 1,
                "max_iter": min(self.max_iter, 20),
            }
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NotConvergedWarning)
                self._run(rows, rows, options)
        self._batches = rows
        return self

    def _chosen_before(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return what the last whole fit chose for the parameters that are "auto" or None."""
        choice, chosen = as_choice(options["validation"]), self.decomposition_.chosen
        free = {name for name, value in options.items() if value is None or is_auto(value)}
        found = {name: chosen[name] for name in free & chosen.keys()}
        return found | {"validation": choice.splitter if choice.stops_early else None}

    def _run(self, data: Any, checked: Any, options: dict[str, Any]) -> None:
        """Fit the model to labelled data, and set the attributes; `checked` has no labels."""
        names = set(inspect.signature(type(self)._command).parameters) & set(options)
        arguments = {name: options[name] for name in names}
        fit = type(self)._command(data, self.n_components, **arguments)
        self.decomposition_ = fit
        self.components_: FloatArray = fit._factors[1]
        self.n_components_ = fit.rank
        self.alpha_ = float(fit.parameters["alpha"])
        self.offset_alpha_ = float(fit.parameters["offset_alpha"])
        self.n_iter_ = fit._n_iter
        self.reconstruction_err_ = self._reconstruction_error(checked)

    @any_frame
    def score(self, X: Any, y: Any = None) -> float:
        """Return the score of predictions of entries of X from the other entries of their rows.

        The columns are divided into five folds.  Each fold is held out in turn, the rows of W are
        computed from the other columns, and the held-out entries are predicted.  A larger rank
        does not automatically have a higher score, so that ranks, losses and nonlinearities can be
        compared.  If columns are of several kinds, X and prediction are taken in the units of
        their columns, less the best constant of each.

        Parameters
        ----------
        X : array_like, DataFrame, scipy.sparse or SparseObservations (n_samples, n_features)
            Rows; missing entries are left out.
        y : None
            Ignored.

        Returns
        -------
        float
            1 - ‖X - prediction‖² / ‖X‖² over the observed entries.  1 is perfect; a prediction of
            0 everywhere has the score 0.
        """
        check_is_fitted(self)
        checked = self._checked(X, reset=False)
        dense, seen = self._dense_and_seen(checked)
        model, columns = self._result._model, np.arange(dense.shape[1])
        source = columns if self._table is None else self._table.source
        folds = min(5, source[-1] + 1)  # of the columns, which are hidden in turn
        modelled = np.zeros((2, *dense.shape))  # and the best constant of each column
        for fold in range(folds):
            hidden = source % folds == fold
            visible = np.where(seen & ~hidden, dense, np.nan)
            modelled[0][:, hidden] = self._modelled(visible, X)[:, hidden]
        if model.is_mixed:
            modelled[1] = model.expected(np.zeros(columns.size), 0, columns)
        wrong = (model.in_units(dense - each, 0, columns)[seen] for each in modelled)
        error, size = (float(np.sum(np.square(each))) for each in wrong)
        return 1.0 - error / size if size > 0 else float(error == 0)

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """Return X after the checks of scikit-learn, with NaN at masked entries."""
        if isinstance(X, SparseObservations):
            if X.weights is not None:
                raise ValueError(
                    f"X has weights, which {type(self).__name__} does not take: use complete()."
                )
            if reset:
                X = X.to_csr()
            else:  # in the order of the columns of the fit
                columns = known_positions(X.labels, self._result._labels, "columns")
                shape = X.shape[0], self.n_features_in_
                X = sparse.csr_array((X.values, columns[X.indices], X.indptr), shape=shape)
        if reset:
            self._table = None
        if is_frame(X):
            refuse_repeats(X.columns)
            if reset and any(has_kinds(column) for _, column in X.items()):
                self._table = table_of(X)
            X = as_numbers(self._table, X)
        elif not sparse.issparse(X):
            X = plain_array(X)
        checked = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse=("csr", "csc", "coo"),
            dtype=(np.float64, np.float32),
            ensure_all_finite="allow-nan",
        )
        if self._is_positive_only():
            check_non_negative(checked, f"{type(self).__name__} (input X)")
        return checked

    def _dense_and_seen(self, X: Any) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return checked X as a dense array, and a mask that is True at observed entries."""
        if sparse.issparse(X):
            X = observe(X, absent_are_zeros=self._absent_are_zeros, may_be_empty=True).to_array()
        return X, ~np.isnan(X)

    @property
    def _result(self) -> Any:
        """The fit, or the posterior."""
        return vars(self).get("posterior_") or self.decomposition_

    def _fold(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Return the rows of W for checked rows of X, and their offsets, zeros without offsets."""
        m = X.shape[0]
        observations = observe(X, absent_are_zeros=self._absent_are_zeros, may_be_empty=True)
        W, offsets = fold_rows(
            self.decomposition_._row_model, observations, threads=as_compute(self.compute).threads
        )
        return W, np.zeros(m, W.dtype) if offsets is None else offsets

    def _at(self, W: FloatArray, offsets: FloatArray) -> FloatArray:
        """Return f(WH) for rows of W and their offsets."""
        fitted = self.decomposition_._fitted
        return fitted._replace(W=W, offsets=fitted.offsets._replace(rows=offsets)).block()

    def _modelled(self, X: Any, labelled: Any) -> FloatArray:
        """Return f(WH) for checked rows of X; `labelled` has them with their labels."""
        return self._at(*self._fold(X))

    def _reconstruction_error(self, X: Any) -> float:
        """Return ‖X - f(WH)‖ of the fit for the Frobenius loss, the sum of the loss for others."""
        fit = self.decomposition_
        observations = observe(X, absent_are_zeros=self._absent_are_zeros)
        if fit._model.is_mixed:
            return float(fit.relative_error * constants(observations, fit._model)[0])
        reference = fit.loss.reference(*observations.observed())
        if reference == 0:
            return fit.objective
        size = np.sqrt(2 * reference) if fit.loss.squares else reference
        return float(fit.relative_error * size)

    def _chosen(self) -> list[str]:
        """Return the names of the parameters that held-out entries choose."""
        names = ("n_components", "nonlinearity", "loss", "alpha")
        values = {name: getattr(self, name) for name in names}
        return [name for name, each in values.items() if is_auto(each)]

    def _is_positive_only(self) -> bool:
        """Return whether the loss needs X >= 0; one that is "auto" is chosen for any X."""
        if is_mixed(self.loss) or "loss" in self._chosen():
            return False
        return as_loss(self.loss).domain[0] >= 0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not (self._absent_are_zeros and self._chosen())
        tags.input_tags.allow_nan = True
        tags.input_tags.positive_only = self._is_positive_only()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class NMD(ClassNamePrefixFeaturesOutMixin, FactorModel):  # type: ignore[misc]
    """Dimension reduction by X ≈ f(WH), as an estimator of scikit-learn; every entry of X counts.

    `fit` computes the components H (r, n) by `decompose`; `transform` then computes for each row x
    of a matrix ::

        argmin_w  Σ_j d(x_j, f((wH)_j + b_j)) + alpha/2 ‖w‖²

    Parameters
    ----------
    n_components : int or "auto", default "auto"
        Number of components r.  "auto": chosen by cross-validation.
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
    are zeros.  A DataFrame with binary, ordinal or categorical columns has a model for the kind of
    each column, as in `decompose`, and `n_features_in_` counts the columns of its matrix of
    numbers.

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
