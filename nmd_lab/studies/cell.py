"""One fit of a study: its data, its arguments, and the record of its errors, time and memory."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab import metrics
from nmd_lab._checks import check_words
from nmd_lab._errors import sentence
from nmd_lab._threads import one_thread
from nmd_lab.model.nonlinearities import MinMax
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.posterior.posterior import Posterior
from nmd_lab.result.selection import SELECTION
from nmd_lab.solver.bounds import bounded
from nmd_lab.warnings import NotConvergedWarning, OutOfBoundsWarning

from .corruption import hidden_entries, noisy_values
from .grid import Task
from .known_entries import KnownEntries
from .limits import TimeLimitExceeded, peak_memory, time_limit
from .methods import Result
from .uncertainty import held_out_scores

Metric = Callable[[Any, Any], float]

METRICS: dict[str, Metric] = {
    "rmse": metrics.rmse,
    "mae": metrics.mae,
    "relative_error": metrics.relative_error,
    "relative_error_l1": partial(metrics.relative_error, loss="l1"),
    "relative_error_kl": partial(metrics.relative_error, loss="kl"),
}
"""Errors that have a name; "relative_error" is that of the Frobenius norm."""


def make_metrics(chosen: Any) -> dict[str, Metric]:
    """Return the chosen errors by name.

    Parameters
    ----------
    chosen : str, callable or list of them
        Keys of `METRICS`, or functions of (X, Y).

    Raises
    ------
    ValueError, TypeError
        If there is no such error, or none at all.
    """
    by_name: dict[str, Metric] = {}
    for metric in chosen if isinstance(chosen, list | tuple) else [chosen]:
        if isinstance(metric, str):
            check_words("metrics", [metric], METRICS)
            by_name[metric] = METRICS[metric]
        elif callable(metric) and getattr(metric, "__name__", "<lambda>") != "<lambda>":
            by_name[metric.__name__] = metric
        else:
            raise TypeError(
                f"metrics={metric!r} is neither a name nor a function that has one: choose from "
                f"{list(METRICS)}, or give a function of (X, Y)."
            )
    if not by_name:
        raise ValueError("metrics=[] is empty: give at least one, for example 'rmse'.")
    return by_name


@dataclass(frozen=True)
class StudyProblem:
    """What all fits of a study have in common.

    Attributes
    ----------
    data : KnownEntries
        The known entries of X.
    metrics : dict of str to callable
        Errors by name.
    noisy : bool
        Whether the study adds noise, so that X itself is the truth behind it.
    constants : dict
        Arguments of every fit that tell how to read X.
    """

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

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> study = nmd.Study(nmd.datasets.digits(50), rank=[2, 5], max_iter=50, n_splits=2)
    >>> cell = study.cell(rank=5, seed=1)
    >>> fit = nmd.complete(cell.X, **cell.arguments)
    >>> error = nmd.metrics.rmse(cell.values[cell.hidden], cell.predict(fit)[cell.hidden])
    >>> error == cell.scores(fit)["held_out_rmse"]
    True
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
        method = self.task.method
        constants = method.accepted(self.problem.constants)
        reserved = method.accepted({"random_state": self.task.seed, "threads": 1})
        return constants | self.task.arguments | self._nonlinearity() | reserved

    def _nonlinearity(self) -> dict[str, Any]:
        """Return the nonlinearity with the bounds of X itself, which noise may exceed."""
        name = self.task.arguments.get("nonlinearity")
        if name != MinMax.name:
            return {}
        data = self.problem.data
        ends = float(data.values.min()), float(data.values.max())
        return {"nonlinearity": bounded(name, ends, data.labels.valid_range)}

    def ignore_expected_warnings(self) -> None:
        """Ignore, from here on, what a study reports elsewhere or has caused itself."""
        if self.task.noise.level > 0:
            warnings.simplefilter("ignore", OutOfBoundsWarning)

    def fit(self, **options: Any) -> Result:
        """Return the fit, made with one thread as in the study.

        Parameters
        ----------
        **options
            Further arguments of the method, for example ``progress=True``.
        """
        with one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConvergedWarning)  # stop_reason tells the same
            self.ignore_expected_warnings()
            return self.task.method.function(self.X, **self.arguments, **options)

    def predict(self, fit: Result) -> NDArray[np.floating]:
        """Return the values of a fit at the known entries, row by row."""
        return np.asarray(self.problem.data.predictions(fit)[0])

    def scores(self, fit: Result) -> dict[str, float]:
        """Return the errors of a fit, by their names in the results."""
        data, hidden = self.problem.data, self.hidden
        model, model_at_clean = data.predictions(fit)
        pairs = {
            "held_out": (self.values[hidden], model[hidden]),
            "observed": (self.values[~hidden], model[~hidden]),
        }
        if data.clean is not None:
            pairs["clean"] = (data.clean, model_at_clean)
        elif self.problem.noisy:
            pairs["clean"] = (data.values, model)
        errors = {
            f"{entry_set}_{name}": float(metric(truth, fitted)) if truth.size else math.nan
            for name, metric in self.problem.metrics.items()
            for entry_set, (truth, fitted) in pairs.items()
        }
        if not isinstance(fit, Posterior):
            return errors
        at = data.rows[hidden], data.columns[hidden]
        return errors | held_out_scores(fit, *at, self.values[hidden])


def measure(problem: StudyProblem, task: Task, limit: float | None) -> dict[str, Any]:
    """Do one fit and return its record, which JSON can hold; errors of the fit become records.

    Parameters
    ----------
    problem : StudyProblem
        Data and errors, which all fits share.
    task : Task
        Method, arguments, missing entries, noise and seed.
    limit : float or None
        Largest duration of the fit in seconds; None sets no limit.
    """
    cell = Cell(problem, task)
    record: dict[str, Any] = {"key": task.key, "status": "done"}
    began = time.perf_counter()
    try:
        with one_thread(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            cell.ignore_expected_warnings()
            X, arguments = cell.X, cell.arguments | task.method.accepted({"progress": False})
            with warnings.catch_warnings(action="ignore"):
                tiny = problem.data.tiny_matrix(with_missing=task.missing.level > 0)
                task.method.compile(tiny, arguments)
            with peak_memory() as memory, time_limit(limit):
                began = time.perf_counter()
                fit = task.method.function(X, **arguments)
                record["seconds"] = time.perf_counter() - began
            if fit.stop_reason.code == "interrupted":
                raise KeyboardInterrupt  # it has ended the fit early, which is no result
            record["peak_memory"] = memory[0]
            record |= _ending(fit)
            record |= {"scores": cell.scores(fit)}
    except TimeLimitExceeded:
        return record | _no_result("timed out", f"time limit: not done after {limit:g} s")
    except (TypeError, ValueError) as error:
        # The library raises these before any work, where arguments do not fit X
        status = "failed" if isinstance(error, np.linalg.LinAlgError) else "left out"
        return record | _no_result(status, f"{status}: {sentence(error)}")
    except Exception as error:
        seconds = time.perf_counter() - began
        return record | _no_result("failed", f"failed: {sentence(error)}") | {"seconds": seconds}
    messages = dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in caught)
    return record | ({"warnings": list(messages)} if messages else {})


def _ending(fit: Result) -> dict[str, Any]:
    """Return stop reason, iterations (0 for a direct method), objective and choices."""
    ending: dict[str, Any] = {"stop_reason": str(fit.stop_reason)}
    if isinstance(fit, Posterior):
        return ending | {"n_iter": fit.parameters["sweeps"]}
    n_iter = 0 if fit.stop_reason.code == "direct" else fit.n_iter
    ending |= {"n_iter": n_iter, "objective": fit.objective}
    chosen = _chosen(fit)
    return ending | ({"chosen": chosen} if chosen else {})


def _chosen(fit: Decomposition) -> dict[str, Any]:
    """Return the options of a fit that held-out entries chose, as numbers and text."""
    names = fit.parameters.get(SELECTION, {}).get("options", [])
    models = {"nonlinearity": repr(fit.nonlinearity), "loss": fit.loss.name}
    return {name: models.get(name, fit.parameters.get(name)) for name in names}


def _no_result(status: str, stop_reason: str) -> dict[str, Any]:
    return {"status": status, "stop_reason": stop_reason}
