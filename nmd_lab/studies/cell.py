"""One cell of a study: the data, the arguments and the key of its fit."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.machine import one_thread
from nmd_lab.checkpoint.call import hash_of, stored_form
from nmd_lab.checkpoint.encoding import Classes
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.sparse import SparseObservations, is_sparse
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.entries import entries_at
from nmd_lab.result.posterior import Posterior
from nmd_lab.solver.bounds import with_bounds
from nmd_lab.solver.settings import Compute
from nmd_lab.warnings import NotConvergedWarning, OutOfBoundsWarning

from .corruption import NO_NOISE, NOTHING_HIDDEN, Corruption, hidden_entries, noisy_values
from .known_entries import KnownEntries
from .methods import METHODS, Method, Result, accepted, defaults, takes_numbers
from .scores import Metric, scores_of


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
        arguments = defaults(self.method) | self.settings
        content = {
            "X": self.data.fingerprint,
            "metrics": [*self.metrics],
            "method": f"{self.method.__module__}.{self.method.__qualname__}",
            "arguments": {name: stored_form(name, v, Classes()) for name, v in arguments.items()},
            "missing": self.missing if self.missing.level else NOTHING_HIDDEN,
            "noise": self.noise if self.noise.level else NO_NOISE,
            "seed": self.seed,
        }
        return hash_of(json.dumps(content, sort_keys=True))

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
        """Data of the fit, of the type of X: NaN for hidden entries, or nothing that is stored."""
        if takes_numbers(self.method):
            return self.data.matrix(
                self.data.units.standard(self.values), ~self.hidden, encoded=True
            )
        return self.data.matrix(self.values, ~self.hidden)

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of the method beside X."""
        arguments = dict(self.data.arguments)
        arguments |= {"random_state": self.seed, "compute": Compute(threads=1)}
        if self.method not in METHODS.values() and takes_numbers(self.method):
            stored = isinstance(self.data.X, SparseObservations) or is_sparse(self.data.X)
            arguments["observed"] = None if stored else ~np.isnan(np.asarray(self.X))
        arguments = self.settings | accepted(self.method, arguments)
        if arguments.get("nonlinearity") == "minmax":  # noise may exceed the bounds of X itself
            arguments["nonlinearity"] = with_bounds("minmax", self.data.observations)
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
        if isinstance(fit, Decomposition | Posterior):
            model = np.asarray(fit.predict(entries_at(rows, columns)))
        else:
            model = np.reshape(fit, self.data.observations.shape)[rows, columns]
        return self.data.units.restore(model) if takes_numbers(self.method) else model

    def scores(self, fit: Result) -> dict[str, float]:
        """Return the errors of a fit, by their names in the results."""
        hidden = self.hidden
        sets = {"held_out": (self.values, hidden), "observed": (self.values, ~hidden)}
        sets["clean"] = self.data.entries.values, np.ones_like(hidden)
        return scores_of(fit, self.predict(fit), self.data, self.metrics, sets)
