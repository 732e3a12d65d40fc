"""The posterior behind an estimator: its rows, and predictions of other rows."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.impute import MissingIndicator

from nmd_lab._runtime.checks import check_integer, check_word
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.inputs import observe
from nmd_lab.data.labels import Labels, is_frame
from nmd_lab.data.matching import MatchedData, observe_like
from nmd_lab.result.entries import entries_at, entries_of
from nmd_lab.result.fold_in import at_rows
from nmd_lab.result.posterior import Posterior
from nmd_lab.sampling import sample

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


def row_keys(X: Any) -> list[bytes]:
    """Return a hash of the observed entries of each row; NaN and absent entries are missing."""
    if hasattr(X, "tocsr"):
        rows, columns, x = observe(X).entries()
    else:
        seen = ~np.isnan(X)
        (rows, columns), x = np.nonzero(seen), X[seen]
    ends = np.cumsum(np.bincount(rows, minlength=X.shape[0]))
    columns, values = columns.astype(np.int64), x.astype(np.float64) + 0.0  # no -0.0
    keys, start = [], 0
    for end in ends:
        content = columns[start:end].tobytes() + values[start:end].tobytes()
        keys.append(hashlib.blake2b(content, digest_size=16).digest())
        start = end
    return keys


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
    _positions: dict[bytes, int]  # of the fitted rows, by the hash of their observed entries

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

    def _as_output(self, filled: Any, X: Any) -> Any:
        """Return filled rows without empty columns, and with the columns of the indicator."""
        filled = filled.loc[:, self._in_output] if is_frame(filled) else filled[:, self._in_output]
        if self.indicator_ is None:
            return filled
        missing = self._where_missing(self._checked(X, reset=False))
        flags = self.indicator_.transform(missing)
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
        keys = row_keys(checked)
        self._positions = dict(zip(reversed(keys), reversed(range(len(keys))), strict=True))
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

    def _posterior_of(self, X: Any) -> Posterior:
        """Return the posterior of some rows, each a fitted one or drawn given the draws of H."""
        place = np.array([self._positions.get(key, -1) for key in row_keys(X)], dtype=np.intp)
        new = np.flatnonzero(place < 0)
        if new.size == 0 and np.array_equal(place, np.arange(self.posterior_._shape[0])):
            return self.posterior_
        rows = (X.tocsr() if hasattr(X, "tocsr") else X)[new]
        posterior = self.posterior_._with_draws() if new.size == place.size else self.posterior_
        others = posterior.fold_in(rows, unknown="offsets") if new.size else None
        return at_rows(posterior, place, others)

    def _of_rows(self, X: Any, std: bool = False) -> tuple[Array, Array | None]:
        """Return posterior means, and perhaps standard deviations, of all entries of some rows."""
        posterior = self._posterior_of(X)
        entries = entries_at(np.arange(X.shape[0])[:, None], np.arange(X.shape[1]))
        mean = posterior.predict(entries).reshape(X.shape).astype(np.float64)
        return mean, posterior.predict_std(entries).reshape(X.shape) if std else None

    @property
    def _keeps_types(self) -> bool:
        """Whether a filled DataFrame has the types of X, not the numbers of its matrix."""
        return self._is_sampled and self._table is not None

    def _to_fill(self, X: Any) -> tuple[Posterior, Any, MatchedData]:
        """Return the posterior of the rows of X, and X with the positions of its entries there."""
        checked = self._checked(X, reset=False)
        if not is_frame(X):
            X = self._dense_and_seen(checked)[0]
        posterior = self._posterior_of(checked)
        m, n = posterior._shape
        observations = observe_like(posterior._labels, X)
        return posterior, X, MatchedData(observations, np.arange(m), np.arange(n))

    def _is_positive_only(self) -> bool:
        is_ordinal = "ordinal" in (self.loss, getattr(self.loss, "name", ""))
        return not (is_ordinal and self.inference == "sample") and super()._is_positive_only()
