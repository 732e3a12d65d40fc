"""`MatrixCompletion`, in which only observed entries count: a fit, or a posterior."""

from __future__ import annotations

from dataclasses import replace
from inspect import signature
from typing import Any, Literal, Unpack

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OneToOneFeatureMixin
from sklearn.impute import MissingIndicator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from nmd_lab._runtime.checks import as_generator, check_integer, check_word, is_auto
from nmd_lab.api.fits import complete
from nmd_lab.api.posteriors import sample
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.folds import without_rows
from nmd_lab.data.inputs import observe, observe_dense
from nmd_lab.data.labels import any_frame, is_frame
from nmd_lab.data.matching import MatchedData, RowPlaces, mixed_with, observe_like, row_keys
from nmd_lab.data.sparse import is_sparse
from nmd_lab.result.entries import entries_at, entries_of
from nmd_lab.result.fill import copies, filled
from nmd_lab.result.fold_in import at_rows, draw_new_rows, places_of_new_rows
from nmd_lab.result.posterior import Posterior
from nmd_lab.result.predict import means, stds

from .factor_model import EstimatorOptions, FactorModel, with_parameters_of

OF_A_FIT = ("alpha", "offset_alpha", "solver", "validation", "w_constraint", "h_constraint")
"""Parameters of the model that only a fit has, whose defaults have no effect."""

Array = NDArray[np.float64]


def draw(data: Any, options: dict[str, Any]) -> Posterior:
    """Return the posterior for the parameters of a `MatrixCompletion`."""
    for name in ("nonlinearity", "loss"):
        if is_auto(options[name]):
            raise ValueError(
                f"{name}='auto' does not go with inference='sample': give one by name, or "
                "inference='fit'."
            )
    for name in OF_A_FIT:
        default = signature(complete).parameters[name].default
        if options[name] is not default and options[name] != default:
            raise ValueError(
                f"{name}={options[name]!r} is of a fit, and inference='sample' draws what it "
                f"needs: leave out {name}, or give inference='fit'."
            )
    check_integer("n_draws", options["n_draws"], 1)
    if options["n_tune"] is not None:
        check_integer("n_tune", options["n_tune"], 0)
    arguments = {name: options[name] for name in signature(sample).parameters if name in options}
    if arguments["nonlinearity"] is None:
        del arguments["nonlinearity"]
    return sample(
        data, options["n_components"], draws=options["n_draws"], tune=options["n_tune"], **arguments
    )


def reconstruction_error(posterior: Posterior, X: Any) -> float:
    """Return ‖X - mean‖ for Gaussian or ordinal data, and the sum of the loss for others.

    In a table of several kinds it is ‖X - mean‖ in the units of the columns.
    """
    rows, columns, values = observe(X).entries()
    model = posterior.predict(entries_at(rows, columns))
    loss, kinds = posterior.loss, posterior._model
    if kinds.is_mixed:
        return float(np.linalg.norm(kinds.in_units(values - model, rows, columns)))
    if loss.squares:
        return float(np.linalg.norm(values - model))
    return float(np.sum(loss(values, model)))


def _is_of_draws(model: Any) -> bool:
    """Return whether a model draws a posterior, which has more than one way to fill a cell."""
    if model.inference == "sample":
        return True
    raise AttributeError("sample_transform needs a posterior: use inference='sample'.")


class MatrixCompletion(OneToOneFeatureMixin, FactorModel):  # type: ignore[misc]
    """Impute missing values by X ≈ f(WH), or predict single entries, in pipelines of scikit-learn.

    With ``inference="fit"`` the factors minimise ::

        Σ_(i,j) observed d(x_ij, f((WH)_ij + b_ij)) + alpha/2 (‖W‖² + ‖H‖²) + offset_alpha/2 ‖b‖²

    as in `complete`.  With ``inference="sample"`` they are drawn from the posterior of `sample`,
    and predictions have standard deviations.

    Parameters
    ----------
    n_components : int or "auto", default "auto"
        Number of components r.  "auto": chosen by cross-validation; with "sample" an upper bound.
    inference : {"fit", "sample"}, default "fit"
        "fit": one fit, by `complete`.  "sample": a posterior, by `sample`, without a ridge;
        `n_components` is then an upper bound.
    n_draws : int, default 300
        Number of draws of "sample".
    n_tune : int, optional
        Number of sweeps of "sample" before them; by default 100.
    order : str, list of str or array_like, optional
        Order of the rows for "sample", as for `sample`; rows of a DataFrame with sorted dates as
        its index are in their order by themselves.  `transform` then forecasts later rows.
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
    NMD : The estimator for the factors of complete matrices.
    sklearn.impute.IterativeImputer : Imputation by regressions of each column on the others.

    Notes
    -----
    NaN in X and absent entries of a sparse X are missing.  If all options that can be
    "auto" are "auto", a DataFrame is fitted in the units of its columns, as by `complete`;
    standardise an array, or pass ``loss={}``.

    A DataFrame with binary, ordinal or categorical columns, or text with few values, has a model
    for the kind of each column, as in `complete`.  With "sample", `transform` returns a DataFrame
    with the columns, types and index of X, as `Posterior.impute` does, and `sample_transform`
    several.  With "fit", `transform` returns the matrix of numbers, in which a missing boolean has
    its probability, an ordinal cell its expected value, and a category a column of probabilities
    for each of its values; `get_feature_names_out` has the labels of these columns.

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

    Several completed copies for multiple imputation:

    >>> copies = model.sample_transform(seen, n=5, random_state=0)
    >>> len(copies), bool(copies[0].notna().all(axis=None))
    (5, True)
    """

    _command = staticmethod(complete)
    _absent_are_zeros = False

    posterior_: Posterior
    _positions: dict[int, int]  # of the fitted rows, by the hash of their observed entries

    @with_parameters_of(complete)
    def __init__(
        self,
        n_components: int | Literal["auto"] = "auto",
        *,
        inference: Literal["fit", "sample"] = "fit",
        n_draws: int = 300,
        n_tune: int | None = None,
        order: str | list[str] | ArrayLike | None = None,
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
            place, others = self._draws_of(checked, X)
            draws, parts = self.posterior_._draws, self._to_fill(X, checked, place)
            return self._as_output(filled(draws, *parts, others=others), checked)
        model = self._modelled(checked, X).astype(checked.dtype, copy=False)
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
            Number of completed copies.
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
        place, others = self._draws_of(checked, X, numbered=True)
        draws = self.posterior_._draws
        draws = draws.evenly() if (place < 0).all() else draws
        draws = at_rows(draws, np.maximum(place, -1), others)
        each = copies(draws, *self._to_fill(X, checked, np.arange(place.size)), count, rng)
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
        if columns is None:
            pairs = np.asarray(X)
            if pairs.dtype.kind in "iu" and pairs.shape[1:] == (2,) != (self.n_features_in_,):
                X, columns = pairs.T
        if columns is not None:
            entries = entries_of(self._result._labels, X, columns)
            mean = self._result.predict(entries)
            return (mean, self.posterior_.predict_std(entries)) if return_std else mean
        checked = self._checked(X, reset=False)
        return self._of_rows(checked, X, std=True) if return_std else self._modelled(checked, X)

    def _run(self, data: Any, checked: Any, options: dict[str, Any]) -> None:
        """Fit the model or draw its posterior, and note which columns have missing cells."""
        check_word("inference", self.inference, ["fit", "sample"])
        for name in [n for n in vars(self) if n.endswith("_") and not n.endswith("_in_")]:
            delattr(self, name)  # what was learned before
        self.__dict__.pop("_positions", None)
        if self.inference == "fit":
            if self.order is not None:
                raise ValueError(
                    "order= is of a posterior: leave it out, or use inference='sample'."
                )
            super()._run(data, checked, options)
        else:
            self.posterior_ = draw(data, options)
            draws = self.posterior_._draws
            places = draws.places if draws.is_ordered_by_name else None
            keys = self._keys(checked, places).tolist()
            self._positions = {key: position for position, key in enumerate(keys)}
            self.n_components_ = self.posterior_.rank
            self.n_iter_ = int(self.posterior_.parameters["sweeps"])
            self.reconstruction_err_ = reconstruction_error(self.posterior_, checked)
        counts = observe(checked, may_be_empty=True).counts(0)
        self._in_output = ((counts > 0) | self.keep_empty_features)[self._firsts]
        self.indicator_ = None
        if self.add_indicator:
            indicator = MissingIndicator(error_on_new=False)
            self.indicator_ = indicator.fit(self._where_missing(checked))

    def _where_missing(self, checked: Any) -> FloatArray:
        """Return NaN at the missing cells of the columns of the output, and 0 elsewhere."""
        return np.where(self._dense_and_seen(checked)[1], 0.0, np.nan)[:, self._firsts]

    def _as_output(self, filled: Any, checked: Any) -> Any:
        """Return filled rows without empty columns, and with the columns of the indicator."""
        filled = filled.loc[:, self._in_output] if is_frame(filled) else filled[:, self._in_output]
        if self.indicator_ is None:
            return filled
        flags = self.indicator_.transform(self._where_missing(checked))
        if not is_frame(filled):
            return np.hstack([filled, flags.astype(filled.dtype)])
        names = self.get_feature_names_out()[filled.shape[1] :]
        return pd.concat([filled, pd.DataFrame(flags, filled.index, names)], axis=1)

    @property
    def _is_sampled(self) -> bool:
        """Whether the model is a posterior."""
        return hasattr(self, "posterior_")

    def _modelled(self, X: Any, labelled: Any) -> FloatArray:
        return self._of_rows(X, labelled)[0] if self._is_sampled else super()._modelled(X, labelled)

    def _keys(
        self, X: Any, places: RowPlaces | None, *, numbered: bool = True
    ) -> NDArray[np.int64]:
        """Return a hash of the observed entries of each row, and of its place in an order.

        Equal rows have equal ones, unless they are numbered or have other places.
        """
        numbered &= places is None
        keys = row_keys(observe(X, may_be_empty=True), numbered=numbered)
        for each in places or ():
            keys = mixed_with(keys, each.view(np.int64))
        return keys

    def _draws_of(
        self, X: Any, labelled: Any, *, numbered: bool = False
    ) -> tuple[NDArray[np.intp], Any]:
        """Return the position of each row in the fit, < 0 for new ones, and draws of these.

        They are drawn given 60 draws of H, whatever the other rows are.  If rows are numbered,
        equal ones have draws of their own, and these are all draws if some rows are fitted ones.
        """
        labels, draws, places = self.posterior_._labels, self.posterior_._draws, None
        if draws.is_ordered_by_name:
            observed = observe_like(labels, labelled, may_be_empty=True)
            places = places_of_new_rows(labels, draws, observed)
        keys = self._keys(X, places, numbered=numbered).tolist()
        place = np.array([self._positions.get(key, -1) for key in keys], dtype=np.intp)
        new = np.flatnonzero(place < 0)
        place[new] = ~np.arange(new.size)
        if not new.size:
            return place, None
        rows = observe((X.tocsr() if hasattr(X, "tocsr") else X)[new], may_be_empty=True)
        draws = draws if numbered and new.size < place.size else draws.evenly()
        places = None if places is None else places.at(new)
        return place, draw_new_rows(labels, draws, rows, numbered=numbered, places=places)

    def _of_rows(self, X: Any, labelled: Any, std: bool = False) -> tuple[Array, Array | None]:
        """Return posterior means, and perhaps standard deviations, of all entries of some rows."""
        place, others = self._draws_of(X, labelled)
        found = np.empty((1 + std, *X.shape))
        for draws, at in ((self.posterior_._draws, place >= 0), (others, place < 0)):
            if at.any():
                i = np.maximum(place, ~place)[at]
                entries = entries_at(i[:, None], np.arange(X.shape[1]))
                each = [means(draws, entries)]
                each += [stds(draws, entries)] if std else []
                found[:, at] = np.reshape(each, (-1, i.size, X.shape[1]))
        return found[0], found[1] if std else None

    @property
    def _keeps_types(self) -> bool:
        """Whether a filled DataFrame has the types of X, not the numbers of its matrix."""
        return self._is_sampled and self._table is not None

    @property
    def _firsts(self) -> Any:
        """The first column of the matrix for each column of the output."""
        table = self._table if self._is_sampled else None
        return slice(None) if table is None else table.first_columns

    def _to_fill(self, X: Any, checked: Any, place: NDArray[np.intp]) -> tuple[Any, MatchedData]:
        """Return X with its missing cells as NaN, and its entries at places of the rows."""
        dense = self._dense_and_seen(checked)[0]
        labels = without_rows(self.posterior_._labels, len(dense))
        observations = replace(observe_dense(dense, may_be_empty=True), labels=labels)
        data = MatchedData(observations, place, np.arange(dense.shape[1]))
        return X if is_frame(X) else dense, data

    def _is_positive_only(self) -> bool:
        is_ordinal = "ordinal" in (self.loss, getattr(self.loss, "name", ""))
        return not (is_ordinal and self.inference == "sample") and super()._is_positive_only()
