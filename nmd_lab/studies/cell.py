"""One cell of a study: the data, the arguments, the key and the errors of its fit."""

from __future__ import annotations

import inspect
import json
import math
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import xarray as xr
from joblib import hash as hash_of
from numpy.typing import NDArray

from nmd_lab import metrics
from nmd_lab._threads import one_thread
from nmd_lab.data.base import FloatArray
from nmd_lab.data.sparse import is_sparse
from nmd_lab.model.nonlinearities import MinMax
from nmd_lab.result.entries import entries_at
from nmd_lab.result.posterior.posterior import Posterior
from nmd_lab.solver.bounds import with_bounds
from nmd_lab.solver.settings import Compute
from nmd_lab.warnings import NotConvergedWarning, OutOfBoundsWarning

from .corruption import NO_NOISE, NOTHING_HIDDEN, Corruption, hidden_entries, noisy_values
from .known_entries import KnownEntries
from .methods import Method, Result, accepted, defaults, named_function

Metric = Callable[[Any, Any], float]

# Errors that have a name; "relative_error" is that of the Frobenius norm
METRICS: dict[str, Metric] = {n: getattr(metrics, n) for n in ("rmse", "mae", "relative_error")}
METRICS |= {f"relative_error_{n}": partial(metrics.relative_error, loss=n) for n in ("l1", "kl")}

# Numbers that only a posterior has, with their long names
POSTERIOR_SCORES = {
    "held_out_coverage_90": "share of held-out entries in their 90 % interval",
    "held_out_log_density": "mean log-density of held-out entries",
}


def make_metrics(metrics: Any) -> dict[str, Metric]:
    """Return errors by name, from keys of `METRICS` and functions of (X, Y)."""
    listed = metrics if metrics and isinstance(metrics, list | tuple) else [metrics]
    return dict(named_function("metrics", metric, METRICS) for metric in listed)


@dataclass(frozen=True)
class Cell:
    """One cell of a study, with everything that is needed to repeat its fit by hand.

    Attributes
    ----------
    data : KnownEntries
        Data, which all cells share.
    metrics : dict of str to callable
        Errors by name, which all cells share.
    method : callable
        Function that makes the fit.
    settings : dict
        Arguments of the method that the study sets.
    missing, noise : Corruption
        What is hidden, and the noise.
    seed : int
        Seed of both, and of the fit.
    """

    data: KnownEntries
    metrics: Mapping[str, Metric]
    method: Method
    settings: dict[str, Any]
    missing: Corruption
    noise: Corruption
    seed: int

    @cached_property
    def key(self) -> str:
        """Hash of everything that decides the record of the fit.

        Cells that differ only in arguments that their method ignores have the same one.
        """
        content = {
            "X": self.data.fingerprint,
            "metrics": [*self.metrics],
            "method": f"{self.method.__module__}.{self.method.__qualname__}",
            "arguments": defaults(self.method) | self.settings,
            "missing": self.missing if self.missing.level else NOTHING_HIDDEN,
            "noise": self.noise if self.noise.level else NO_NOISE,
            "seed": self.seed,
        }
        return str(hash_of(as_json(content)))

    @cached_property
    def hidden(self) -> NDArray[np.bool_]:
        """Mask of the known entries, row by row, that are hidden from the fit."""
        return hidden_entries(self.data, self.missing, self.seed)

    @cached_property
    def values(self) -> FloatArray:
        """Known entries with the noise of the cell, row by row."""
        return noisy_values(self.data, self.noise, self.seed)

    @property
    def X(self) -> Any:
        """Matrix of the fit: an array or DataArray with NaN for hidden entries, or sparse."""
        return self.data.matrix(self.values, ~self.hidden)

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of the method beside X."""
        arguments: dict[str, Any] = {"random_state": self.seed, "compute": Compute(threads=1)}
        if self.data.sample_dims is not None:
            arguments["sample_dims"] = self.data.sample_dims
        arguments = self.settings | accepted(self.method, arguments)
        if arguments.get("nonlinearity") == MinMax.name:  # noise may exceed the bounds of X itself
            arguments["nonlinearity"] = with_bounds(MinMax.name, self.data.observations)
        return arguments

    def expect_noise(self) -> None:
        """Ignore, from here on, the warning that a study has caused itself."""
        if self.noise.level > 0:
            warnings.simplefilter("ignore", OutOfBoundsWarning)

    def fit(self, **options: Any) -> Result:
        """Return the fit, made with one thread as in the study."""
        with one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConvergedWarning)  # stop_reason tells the same
            self.expect_noise()
            return self.method(self.X, **self.arguments, **options)

    def predict(self, fit: Result) -> FloatArray:
        """Return the values of a fit, or the means of a posterior, at the known entries."""
        rows, columns, _ = self.data.entries
        if is_sparse(self.data.X) or isinstance(fit, Posterior):  # which is slow at all entries
            return np.asarray(fit.predict(entries_at(rows, columns)))
        return fit.fitted.block()[rows, columns]

    def scores(self, fit: Result) -> dict[str, float]:
        """Return the errors of a fit, by their names in the results."""
        hidden, model = self.hidden, self.predict(fit)
        pairs = {
            "held_out": (self.values[hidden], model[hidden]),
            "observed": (self.values[~hidden], model[~hidden]),
            "clean": (self.data.entries.values, model),
        }
        scores = {
            f"{entry_set}_{name}": float(metric(truth, fitted)) if truth.size else math.nan
            for name, metric in self.metrics.items()
            for entry_set, (truth, fitted) in pairs.items()
        }
        return scores | self._posterior_scores(fit) if isinstance(fit, Posterior) else scores

    def _posterior_scores(self, posterior: Posterior) -> dict[str, float]:
        """Return coverage and log-density; NaN without entries or without a distribution."""
        scores, x = dict.fromkeys(POSTERIOR_SCORES, math.nan), self.values[self.hidden]
        i, j = (positions[self.hidden] for positions in self.data.entries[:2])
        with suppress(ValueError):  # a loss of the user, or a level that the posterior lacks
            if x.size:
                entries = entries_at(i, j)
                low, high = posterior.predict_interval(entries, level=0.9).T
                scores["held_out_coverage_90"] = float(np.mean((low <= x) & (x <= high)))
                scores["held_out_log_density"] = float(
                    np.mean(posterior.log_density(entries, values=x))
                )
        return scores


def as_json(value: Any) -> str:
    """Return an argument as text that identifies it; TypeError if it is, say, a function."""
    return json.dumps(value, sort_keys=True, default=_plain)


def _plain(value: Any) -> Any:
    """Return what JSON does not know as numbers and text."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray | xr.DataArray):
        return ["array", hash_of(np.ascontiguousarray(value))]
    if isinstance(value, np.dtype | type):
        return str(value)
    if inspect.isroutine(value):
        raise TypeError(f"{value!r} is a function")
    return [type(value).__qualname__, getattr(value, "settings", vars(value))]
