"""The posterior behind an estimator: its rows, and predictions of other rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.impute import MissingIndicator

from nmd_lab._runtime.checks import check_integer, check_word
from nmd_lab.api.posteriors import sample
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.inputs import observe, observe_dense
from nmd_lab.data.labels import Labels, is_frame
from nmd_lab.data.matching import MatchedData, row_keys
from nmd_lab.data.split import without_rows
from nmd_lab.result.entries import entries_at, entries_of
from nmd_lab.result.posterior import Posterior

from ._base import FactorModel

ALSO_OF_SAMPLE = (
    "nonlinearity", "loss", "dtype", "init", "offsets", "time_limit", "callback",
    "progress", "random_state", "compute",
)  # fmt: skip
"""Parameters of `MatrixCompletion` that mean the same for a posterior."""

OF_A_FIT = {
    "alpha": "auto", "offset_alpha": "auto", "solver": "auto", "validation": None,
    "w_constraint": None, "h_constraint": None,
}  # fmt: skip
"""Parameters of the model that only a fit has, with the values without effect."""

Array = NDArray[np.float64]


def draw(data: Any, options: dict[str, Any]) -> Posterior:
    """Return the posterior for the parameters of a `MatrixCompletion`."""
    for name in ("nonlinearity", "loss"):
        if isinstance(options[name], str) and options[name] == "auto":
            raise ValueError(
                f"{name}='auto' does not go with inference='sample': give one by name, or "
                "inference='fit'."
            )
    for name, default in OF_A_FIT.items():
        if options[name] is not default and options[name] != default:
            raise ValueError(
                f"{name}={options[name]!r} is of a fit, and inference='sample' draws what it "
                f"needs: leave out {name}, or give inference='fit'."
            )
    check_integer("n_draws", options["n_draws"], 1)
    if options["n_tune"] is not None:
        check_integer("n_tune", options["n_tune"], 0)
    arguments = {name: options[name] for name in ALSO_OF_SAMPLE}
    limits = ("at_most", "at_least", "upper")
    arguments |= {name: options[name] for name in limits if name in options}
    if arguments["nonlinearity"] is None:
        del arguments["nonlinearity"]
    return sample(
        data, options["n_components"], draws=options["n_draws"], tune=options["n_tune"], **arguments
    )


def misfit(posterior: Posterior, X: Any) -> float:
    """Return ‖X - mean‖ for Gaussian or ordinal data, and the sum of the loss for others.

    In a table of several kinds it is ‖X - mean‖ in the units of the columns.
    """
    rows, columns, values = observe(X).entries()
    model = posterior.predict(entries_at(rows, columns))
    loss, kinds = posterior.loss, posterior._kinds
    if kinds is not None:
        return float(np.linalg.norm(kinds.in_units(values - model, rows, columns)))
    if loss.squares:
        return float(np.linalg.norm(values - model))
    return float(np.sum(loss(values, model)))


_LEARNED = (
    "components_", "n_components_", "alpha_", "offset_alpha_", "n_iter_", "reconstruction_err_",
    "decomposition_", "posterior_", "_positions",
)  # fmt: skip
"""Attributes of a fitted `MatrixCompletion`."""


class SampledModel(FactorModel):
    """An estimator that fits, or draws a posterior if its `inference` is "sample"."""

    inference: str
    add_indicator: bool
    keep_empty_features: bool
    posterior_: Posterior
    _positions: dict[int, int]  # of the fitted rows, by the hash of their observed entries

    def _predict_entries(self, rows: Any, columns: Any, return_std: bool) -> Any:
        """Return the model at entries of the fitted matrix, perhaps with standard deviations."""
        model = self.posterior_ if self._is_sampled else self.decomposition_
        entries = entries_of(model._labels, rows, columns)
        mean = model.predict(entries)
        return (mean, self.posterior_.predict_std(entries)) if return_std else mean

    def _run(self, data: Any, checked: Any, options: dict[str, Any]) -> None:
        """Fit the model, and note which columns of the output have missing cells."""
        self._solve(data, checked, options)
        counts = np.bincount(
            observe(checked, may_be_empty=True).entries().columns, minlength=checked.shape[1]
        )
        self._in_output = (counts > 0) | self.keep_empty_features
        if self._keeps_types and self._table is not None:
            self._in_output = self._in_output[self._table.first_columns]
        self.indicator_ = None
        if self.add_indicator:
            indicator = MissingIndicator(error_on_new=False)
            self.indicator_ = indicator.fit(self._where_missing(checked))

    def _where_missing(self, checked: Any) -> FloatArray:
        """Return NaN at the missing cells of the columns of the output, and 0 elsewhere."""
        missing = np.where(self._dense_and_seen(checked)[1], 0.0, np.nan)
        if self._keeps_types and self._table is not None:
            missing = missing[:, self._table.first_columns]
        return missing

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

    def _solve(self, data: Any, checked: Any, options: dict[str, Any]) -> None:
        """Fit the model or draw its posterior, and set the attributes of this alone."""
        check_word("inference", self.inference, ["fit", "sample"])
        for name in _LEARNED:
            self.__dict__.pop(name, None)
        if self.inference == "fit":
            super()._run(data, checked, options)
            return
        self.posterior_ = draw(data, options)
        keys = row_keys(observe(checked), numbered=True).tolist()
        self._positions = {key: position for position, key in enumerate(keys)}
        self.n_components_ = self.posterior_.rank
        self.n_iter_ = int(self.posterior_.parameters["sweeps"])
        self.reconstruction_err_ = misfit(self.posterior_, checked)

    @property
    def _is_sampled(self) -> bool:
        """Whether the model is a posterior."""
        return hasattr(self, "posterior_")

    @property
    def _labels(self) -> Labels:
        return self.posterior_._labels if self._is_sampled else super()._labels

    def _modelled(self, X: Any) -> FloatArray:
        return self._of_rows(X)[0] if self._is_sampled else super()._modelled(X)

    def _places(self, X: Any, numbered: bool = False) -> tuple[NDArray[np.intp], Any]:
        """Return the position of each row in the fit, < 0 for new ones, and these as observations.

        Equal rows are the same, unless they are numbered.
        """
        keys = row_keys(observe(X, may_be_empty=True), numbered=numbered).tolist()
        place = np.array([self._positions.get(key, -1) for key in keys], dtype=np.intp)
        new = np.flatnonzero(place < 0)
        place[new] = ~np.arange(new.size)
        rows = (X.tocsr() if hasattr(X, "tocsr") else X)[new]
        return place, observe(rows, may_be_empty=True) if new.size else None

    def _posteriors_of(self, X: Any) -> tuple[NDArray[np.intp], Any]:
        """Return the positions of rows as `_places` does, and the posterior of the new ones.

        That is drawn given 60 draws of H, whatever the other rows are.
        """
        place, new = self._places(X)
        return place, None if new is None else self.posterior_._with_draws()._of_new_rows(new)

    def _of_rows(self, X: Any, std: bool = False) -> tuple[Array, Array | None]:
        """Return posterior means, and perhaps standard deviations, of all entries of some rows."""
        place, others = self._posteriors_of(X)
        found = np.empty((1 + std, *X.shape))
        for posterior, at in ((self.posterior_, place >= 0), (others, place < 0)):
            if at.any():
                i = np.maximum(place, ~place)[at]
                entries = entries_at(i[:, None], np.arange(X.shape[1]))
                each = [posterior.predict(entries)]
                each += [posterior.predict_std(entries)] if std else []
                found[:, at] = np.reshape(each, (-1, i.size, X.shape[1]))
        return found[0], found[1] if std else None

    @property
    def _keeps_types(self) -> bool:
        """Whether a filled DataFrame has the types of X, not the numbers of its matrix."""
        return self._is_sampled and self._table is not None

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
