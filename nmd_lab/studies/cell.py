"""One fit of a study: its data, its numbers, its time and its memory, or why there are none."""

from __future__ import annotations

import inspect
import math
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab import metrics
from nmd_lab._checks import check_words
from nmd_lab._threads import one_thread
from nmd_lab.data.labels import Labels
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.warnings import NotConvergedWarning

from .corruption import hidden_entries, noisy_values
from .grid import Task
from .known_entries import Known
from .limits import TimeIsUp, alarm, peak_memory
from .methods import known_methods

Metric = Callable[[Any, Any], float]

METRICS: dict[str, Metric] = {
    "rmse": metrics.rmse,
    "mae": metrics.mae,
    "relative_error": metrics.relative_error,
    "relative_error_l1": partial(metrics.relative_error, loss="l1"),
    "relative_error_kl": partial(metrics.relative_error, loss="kl"),
}
"""Errors that can be chosen by name; those without a loss in their name are Frobenius'."""


def make_metrics(given: Any) -> dict[str, Metric]:
    """Return the metrics that names, functions or a list of them stand for, by name."""
    chosen: dict[str, Metric] = {}
    for each in given if isinstance(given, list | tuple) else [given]:
        if isinstance(each, str):
            check_words("metrics", [each], METRICS)
            chosen[each] = METRICS[each]
        elif callable(each) and getattr(each, "__name__", "<lambda>") != "<lambda>":
            chosen[each.__name__] = each
        else:
            raise TypeError(
                f"metrics={each!r} is neither a name nor a function that has one: choose from "
                f"{list(METRICS)}, or give a function of (X, Y)."
            )
    if not chosen:
        raise ValueError("metrics=[] is empty: give at least one, for example 'rmse'.")
    return chosen


@dataclass(frozen=True)
class Problem:
    """What all fits of a study have in common.

    Attributes
    ----------
    known : Known
        The data.
    metrics : dict of str to callable
        The errors that are measured.
    noisy : bool
        Whether X itself is the truth behind the noise that the study adds.
    constants : dict
        Arguments of every fit that say how X is read.
    """

    known: Known
    metrics: Mapping[str, Metric]
    noisy: bool
    constants: dict[str, Any]

    @property
    def parts(self) -> tuple[str, ...]:
        """Where errors are taken: the hidden entries, the others, the truth behind both."""
        truth = self.noisy or self.known.clean is not None
        return ("held_out", "observed", *(("clean",) if truth else ()))


@dataclass(frozen=True)
class Cell:
    """One fit of a study, taken apart, so that it can be done by hand.

    Attributes
    ----------
    problem : Problem
        The study's.
    task : Task
        Method, arguments, holes, noise and seed.

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

    problem: Problem
    task: Task

    @cached_property
    def hidden(self) -> NDArray[np.bool_]:
        """Which of the known entries, in the order of rows, the fit does not see."""
        return hidden_entries(self.problem.known, self.task.missing, self.task.seed)

    @cached_property
    def values(self) -> NDArray[np.floating]:
        """The known entries, in the order of rows, with the cell's noise."""
        return noisy_values(self.problem.known, self.task.noise, self.task.seed)

    @property
    def X(self) -> Any:
        """What the fit sees: an array or DataArray with NaN in its holes, or a sparse matrix."""
        return self.problem.known.matrix(self.values, ~self.hidden)

    @property
    def arguments(self) -> dict[str, Any]:
        """What the method is called with, beside X."""
        method = self.task.method
        takes = inspect.signature(method.function).parameters
        arguments = {n: v for n, v in self.problem.constants.items() if n in takes}
        arguments |= self.task.arguments
        own = {"random_state": self.task.seed, "threads": 1}
        return arguments | {name: value for name, value in own.items() if name in takes}

    def fit(self, **options: Any) -> Decomposition:
        """Return the fit, with one thread as in the study.

        Parameters
        ----------
        **options
            Further arguments of the method, for example ``progress=True``.
        """
        with one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConvergedWarning)  # the record says why it ended
            return self.task.method.function(self.X, **self.arguments, **options)

    def predict(self, fit: Decomposition) -> NDArray[np.floating]:
        """Return a fit's values at the known entries, in the order of rows."""
        return np.asarray(self.problem.known.predictions(fit)[0])

    def scores(self, fit: Decomposition) -> dict[str, float]:
        """Return the errors of a fit by the names that they have in the results."""
        known, hidden = self.problem.known, self.hidden
        model, model_of_truth = known.predictions(fit)
        pairs = {
            "held_out": (self.values[hidden], model[hidden]),
            "observed": (self.values[~hidden], model[~hidden]),
        }
        if known.clean is not None:
            pairs["clean"] = (known.clean, model_of_truth)
        elif self.problem.noisy:
            pairs["clean"] = (known.values, model)
        return {
            f"{part}_{name}": float(metric(truth, found)) if truth.size else math.nan
            for name, metric in self.problem.metrics.items()
            for part, (truth, found) in pairs.items()
        }


def measure(problem: Problem, task: Task, time_limit: float | None) -> dict[str, Any]:
    """Do one fit and return its record, which JSON can hold; never raise because of the fit."""
    cell = Cell(problem, task)
    record: dict[str, Any] = {"key": task.key, "status": "done"}
    began = time.perf_counter()
    try:
        with one_thread(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            X, arguments = cell.X, cell.arguments
            if "progress" in inspect.signature(task.method.function).parameters:
                arguments["progress"] = False
            with warnings.catch_warnings(action="ignore"):
                _compile(task, problem, arguments)
            with peak_memory() as memory, alarm(time_limit):
                began = time.perf_counter()
                fit = task.method.function(X, **arguments)
                record["seconds"] = time.perf_counter() - began
            record["peak_memory"] = memory[0]
            if fit.stop_reason.code == "interrupted":
                raise KeyboardInterrupt  # a fit that Ctrl-C has cut short is no result
            record |= {"stop_reason": str(fit.stop_reason), "n_iter": _iterations(fit)}
            record |= {"objective": fit.objective, "scores": cell.scores(fit)}
    except TimeIsUp:
        reason = f"time limit: not done after {time_limit:g} s"
        return record | {"status": "timed out", "stop_reason": reason}
    except (TypeError, ValueError) as error:
        # By contract the library's own way to say, before any work, that arguments do not fit X.
        status = "failed" if isinstance(error, np.linalg.LinAlgError) else "left out"
        return record | {"status": status, "stop_reason": f"{status}: {_sentence(error)}"}
    except Exception as error:
        seconds = time.perf_counter() - began
        reason = f"failed: {_sentence(error)}"
        return record | {"status": "failed", "stop_reason": reason, "seconds": seconds}
    messages = dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in caught)
    return record | ({"warnings": list(messages)} if messages else {})


def _iterations(fit: Decomposition) -> int:
    """Return how many iterations the fit took; 0 if its method has none."""
    return 0 if fit.stop_reason.code == "direct" else fit.n_iter


def _sentence(error: BaseException) -> str:
    text = " ".join(str(error).split())
    ours = isinstance(error, ValueError | TypeError) and text.endswith(".")
    return text if ours else f"{type(error).__name__}: {text}"


_compiled: set[str] = set()


def _compile(task: Task, problem: Problem, arguments: dict[str, Any]) -> None:
    """Let Numba compile what the fit needs, so that its seconds are its own."""
    method = task.method
    if method.function not in known_methods().values():
        return
    named = ("nonlinearity", "loss", "dtype", "offsets", "constraint", "penalty", "progress")
    chosen = {name: arguments[name] for name in named if name in arguments}
    if "max_iter" in method.defaults:
        chosen["max_iter"] = 2
    name = f"{method.name} {chosen!r}"
    if name in _compiled:
        return
    _compiled.add(name)
    known = problem.known
    small = Known(
        rows=np.repeat(np.arange(4), 3),
        columns=np.tile(np.arange(3), 4),
        values=np.resize(known.values, 12),
        shape=(4, 4 if task.missing.level else 3),
        labels=Labels(("row", "column"), (4, 4), ("row",)),
        form="sparse" if known.is_sparse else "plain",
    )
    X = small.matrix(small.values, np.ones(12, bool))
    with suppress(Exception):  # whatever is wrong shows in the fit itself
        method.function(X, 1, **chosen)
