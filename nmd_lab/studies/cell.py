"""One cell of a study: the data, the arguments and the errors of its fit."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab import metrics
from nmd_lab._threads import one_thread
from nmd_lab.model.nonlinearities import MinMax
from nmd_lab.result.posterior.posterior import Posterior
from nmd_lab.solver.bounds import bounded
from nmd_lab.warnings import NotConvergedWarning, OutOfBoundsWarning

from .corruption import hidden_entries, noisy_values
from .grid import Task
from .known_entries import KnownEntries
from .methods import Result, named_function

Metric = Callable[[Any, Any], float]

LOSSES = {f"relative_error_{n}": partial(metrics.relative_error, loss=n) for n in ("l1", "kl")}
METRICS: dict[str, Metric] = {n: getattr(metrics, n) for n in ("rmse", "mae", "relative_error")}
METRICS |= LOSSES
"""Errors that have a name; "relative_error" is that of the Frobenius norm."""

LEVEL = 0.9  # of the intervals whose coverage is measured

POSTERIOR_SCORES = {
    "held_out_coverage_90": "share of held-out entries in their 90 % interval",
    "held_out_log_density": "mean log-density of held-out entries",
}
"""Numbers that only a posterior has, with their long names."""


def make_metrics(metrics: Any) -> dict[str, Metric]:
    """Return errors by name, from keys of `METRICS` and functions of (X, Y)."""
    listed = metrics if metrics and isinstance(metrics, list | tuple) else [metrics]
    return dict(named_function("metrics", metric, METRICS) for metric in listed)


@dataclass(frozen=True)
class StudyProblem:
    """What all cells share: data, errors by name, whether there is noise, fixed arguments."""

    data: KnownEntries
    metrics: Mapping[str, Metric]
    noisy: bool
    constants: dict[str, Any]

    @property
    def entry_sets(self) -> tuple[str, ...]:
        """Names of the sets of entries on which errors are taken."""
        has_truth = self.noisy or self.data.clean is not None
        return ("held_out", "observed", *(("clean",) if has_truth else ()))


@dataclass(frozen=True)
class Cell:
    """One cell of a study, with everything that is needed to repeat its fit by hand.

    Attributes
    ----------
    problem : StudyProblem
        Data and errors, which all cells share.
    task : Task
        Method, arguments, missing entries, noise and seed.
    """

    problem: StudyProblem
    task: Task

    @cached_property
    def hidden(self) -> NDArray[np.bool_]:
        """Mask of the known entries, row by row, that are hidden from the fit."""
        return hidden_entries(self.problem.data, self.task.missing, self.task.seed)

    @cached_property
    def values(self) -> NDArray[np.floating]:
        """Known entries with the noise of the cell, row by row."""
        return noisy_values(self.problem.data, self.task.noise, self.task.seed)

    @property
    def X(self) -> Any:
        """Matrix of the fit: an array or DataArray with NaN for hidden entries, or sparse."""
        return self.problem.data.matrix(self.values, ~self.hidden)

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of the method beside X."""
        method, data = self.task.method, self.problem.data
        arguments = method.accepted(self.problem.constants) | self.task.arguments
        if arguments.get("nonlinearity") == MinMax.name:  # noise may exceed the bounds of X itself
            ends = float(data.values.min()), float(data.values.max())
            arguments["nonlinearity"] = bounded(MinMax.name, ends, data.labels.valid_range)
        return arguments | method.accepted({"random_state": self.task.seed, "threads": 1})

    def expect_noise(self) -> None:
        """Ignore, from here on, the warning that a study has caused itself."""
        if self.task.noise.level > 0:
            warnings.simplefilter("ignore", OutOfBoundsWarning)

    def fit(self, **options: Any) -> Result:
        """Return the fit, made with one thread as in the study."""
        with one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConvergedWarning)  # stop_reason tells the same
            self.expect_noise()
            return self.task.method.function(self.X, **self.arguments, **options)

    def predict(self, fit: Result) -> NDArray[np.floating]:
        """Return the values of a fit at the known entries, row by row."""
        data = self.problem.data
        return data.predict(fit, data.rows, data.columns)

    def scores(self, fit: Result) -> dict[str, float]:
        """Return the errors of a fit, by their names in the results."""
        data, hidden, model = self.problem.data, self.hidden, self.predict(fit)
        sets = {"held_out": hidden, "observed": ~hidden}
        pairs = {name: (self.values[mask], model[mask]) for name, mask in sets.items()}
        if data.clean is not None:
            *places, truth = data.clean
            pairs["clean"] = (truth, data.predict(fit, *places))
        elif self.problem.noisy:
            pairs["clean"] = (data.values, model)
        scores = {
            f"{entry_set}_{name}": float(metric(truth, fitted)) if truth.size else math.nan
            for name, metric in self.problem.metrics.items()
            for entry_set, (truth, fitted) in pairs.items()
        }
        return scores | self._posterior_scores(fit) if isinstance(fit, Posterior) else scores

    def _posterior_scores(self, posterior: Posterior) -> dict[str, float]:
        """Return coverage and log-density; NaN without entries or without a distribution."""
        scores, x = dict.fromkeys(POSTERIOR_SCORES, math.nan), self.values[self.hidden]
        at = self.problem.data.rows[self.hidden], self.problem.data.columns[self.hidden]
        with suppress(ValueError):  # a loss of the user, or a level that the posterior lacks
            if x.size:
                low, high = posterior.predict_interval(*at, level=LEVEL).T
                scores["held_out_coverage_90"] = float(np.mean((low <= x) & (x <= high)))
                scores["held_out_log_density"] = float(np.mean(posterior.log_density(*at, x)))
        return scores
