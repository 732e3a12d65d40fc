"""State of the completion explorer: data, settings and fit, without any widget."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._checks import check_share
from nmd_lab.data.sparse_observations import SparseObservations
from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.model.nonlinearities import NONLINEARITIES
from nmd_lab.result.entries import entries_at
from nmd_lab.solver.options import OFFSETS
from nmd_lab.solver.sampler.options import SampleOptions
from nmd_lab.solver.settings import ADMM, SPLITS
from nmd_lab.widgets.live.findings import sample
from nmd_lab.widgets.live.held_out import error_at

from .choice import WITHOUT_RIDGE, default_nonlinearity
from .code import fit_call
from .data_choices import ratings_choices
from .fields import Field, check_option
from .ratings import (
    DEFAULT_COLUMNS,
    Ratings,
    as_ratings,
    is_table,
    reading_code,
    table_columns,
)
from .row_entries import Entry, row_entries
from .sampling import SamplingState, row_intervals

MOST_COMPARED = 50_000
"""Largest number of entries at which errors with and without components are compared."""

OWN_DATA = "your ratings"
"""Option for the data that the user gave."""


class CompletionState(SamplingState):
    """Partly observed entries, a model of them, a fit and draws that can be stopped.

    Attributes
    ----------
    ratings : matrix, DataFrame or None
        Data of the user.
    options : dict of str to list of str
        Options of the settings whose options depend on the data.
    """

    fields = (
        Field("data", "Data", "choice", group="Data"),
        Field("validation", "Held out", "share", (), "Data", "Share of held-out entries"),
        Field("seed", "Seed", "integer", (), "Data", "Seed of the split and of the start"),
        Field("nonlinearity", "f", "choice", ("auto", *NONLINEARITIES), "Model", "X ≈ f(W H)",
              {name: f.label for name, f in NONLINEARITIES.items()}, auto=True),
        Field("low", "Lower bound", "number", (), "Model"),
        Field("high", "Upper bound", "number", (), "Model"),
        Field("rank", "Rank", "integer", (), "Model", "Number of components", auto=True),
        Field("alpha", "Ridge alpha", "number", (), "Model", "Keeps W and H small", auto=True),
        Field("offsets", "Offsets", "choice", OFFSETS, "Model", "Offsets added to W H", auto=True),
        Field("offset_alpha", "Their ridge", "number", (), "Model",
              "Keeps the offsets of rows and columns small", auto=True),
        Field("split", "Split", "choice", SPLITS, "Solver", "Where T = W H holds"),
        Field("patience", "Patience", "integer", (), "Solver", "Iterations without a lower error"),
        Field("iterations", "Iterations", "integer", (), "Solver", "Number of each run"),
        Field("draws", "Draws", "integer", (), "How sure", "Sweeps of the sampler after tuning"),
    )  # fmt: skip
    numbers = MappingProxyType({"rank": 8, "alpha": 15.0, "offset_alpha": 5.0})
    fit_attributes = (*SamplingState.fit_attributes, "fitted_entries")

    def __init__(
        self,
        ratings: Any = None,
        *,
        row: str = DEFAULT_COLUMNS["row"],
        column: str = DEFAULT_COLUMNS["column"],
        value: str = DEFAULT_COLUMNS["value"],
        titles: Mapping[Any, str] | None = None,
        **values: Any,
    ) -> None:
        self.ratings = ratings
        self.fitted_entries: SparseObservations | None = None
        asked = {"row": row, "column": column, "value": value}
        self.columns = table_columns(ratings, asked) or asked
        self._titles = titles
        self.options = {
            "data": ([OWN_DATA] if ratings is not None else []) + list(ratings_choices())
        }
        super().__init__(
            {
                "data": self.options["data"][0],
                "validation": 0.1,
                "seed": 0,
                "nonlinearity": default_nonlinearity(values.get("alpha", "auto")),
                "low": 0.0,
                "high": 1.0,
                "rank": "auto",
                "alpha": "auto",
                "offsets": "auto" if values.get("alpha", "auto") == "auto" else "both",
                "offset_alpha": "auto",
                "split": "auto",
                "patience": 20,
                "iterations": 200,
                "draws": 300,
            }
        )
        self._loaded: tuple[str, Ratings] | None = None
        for name, start in values.items():
            self.set(name, start)
        range_of_values = self.observations.range()
        for name, end in zip(("low", "high"), range_of_values, strict=True):
            self.values[name] = values.get(name, end)

    @property
    def data(self) -> Ratings:
        """The chosen data."""
        name = self.values["data"]
        if self._loaded is None or self._loaded[0] != name:
            if name == OWN_DATA:
                loaded = as_ratings(self.ratings, self.columns, self._titles)
            else:
                loaded = as_ratings(ratings_choices()[name].load(), DEFAULT_COLUMNS, None)
            self._loaded = name, loaded
        return self._loaded[1]

    @property
    def observations(self) -> SparseObservations:
        """The observed entries of the chosen data."""
        return self.data.observations

    def arguments(self, values: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the arguments of the fit without the data, see `ChoosingState.arguments`."""
        values = self.values if values is None else values
        arguments = {
            "rank": values["rank"],
            "nonlinearity": self.nonlinearity(values),
            "offsets": values["offsets"],
            "alpha": values["alpha"],
            "solver": self._solver(values),
            "random_state": values["seed"],
            "max_iter": values["iterations"],
        }
        if values["offsets"] not in WITHOUT_RIDGE:
            arguments["offset_alpha"] = values["offset_alpha"]
        if values["validation"] > 0:
            arguments["validation"] = values["validation"]
        return arguments

    def _solver(self, values: Mapping[str, Any]) -> ADMM:
        """Return the settings of the algorithm."""
        patience = {"patience": values["patience"]} if values["validation"] > 0 else {}
        return ADMM(split=values["split"], **patience)

    def reasons(self) -> dict[str, str]:
        """Return why settings have no effect now, by the name of each such setting."""
        reasons = {}
        if len(self.options["data"]) == 1:
            reasons["data"] = "there is only one set"
        if self.values["validation"] == 0:
            reasons["patience"] = "nothing is held out"
        if not self._has_bounds:
            reasons["low"] = reasons["high"] = "only minmax has bounds"
        if self.values["offsets"] in WITHOUT_RIDGE:
            reasons["offset_alpha"] = "no offsets of rows or columns"
        return reasons

    def checks(self) -> dict[str, Callable[[], Any]]:
        """Return a function for each checked setting that raises an error if it is wrong."""
        values = self.values
        return {
            "validation": lambda: check_share("validation", values["validation"]),
            "seed": lambda: check_option("random_state", values["seed"]),
            "high": self.nonlinearity,
            "rank": lambda: self.check_rank(self.observations.shape),
            "alpha": lambda: check_option("alpha", values["alpha"]),
            "offset_alpha": lambda: check_option("offset_alpha", values["offset_alpha"]),
            "patience": lambda: ADMM(patience=values["patience"]),
            "iterations": lambda: check_option("max_iter", values["iterations"]),
            "draws": lambda: SampleOptions(draws=values["draws"]),
        }

    @property
    def share_hidden(self) -> float:
        """Share of held-out entries."""
        share: float = self.values["validation"]
        return share

    def sample_now(self) -> None:
        """Draw from the posterior with the present settings."""
        self._launch_sampler(self.data.matrix)

    def start(self) -> None:
        """Start a fit with the present settings."""
        super().start()
        self.fitted_entries = self.observations
        self._launch(self.data.matrix, absent_are_zeros=False)

    def entries(self, row: int, top: int) -> tuple[list[Entry], list[Entry]]:
        """Return the largest observed entries of a row, and the best predictions for its others."""
        posterior, n = self.posterior, self.observations.shape[1]
        if posterior is not None and self.is_sampled:
            predicted = posterior.predict(entries_at(row, np.arange(n)))
            return row_entries(
                self.data, row, top, predicted, partial(row_intervals, posterior, row)
            )
        return row_entries(self.data, row, top, self._predictions(row))

    def seen(self, row: int, columns: Sequence[int]) -> list[str]:
        """Return for each entry whether the model that is shown has seen it; dashes before."""
        shown = self.sample if self.posterior is not None and self.is_sampled else self.fit
        if (self.shown is None and shown is self.fit) or shown.phase == "running":
            return ["–"] * len(columns)
        rows, held_out = shown.unseen or (np.empty(0), np.empty(0))
        unseen = held_out[rows == row].tolist()
        return ["held out" if column in unseen else "seen" for column in columns]

    @property
    def is_fitted(self) -> bool:
        """Whether the fit is of the chosen data."""
        return self.fitted_entries is self.observations

    def _predictions(self, row: int) -> NDArray[Any]:
        """Return the predicted row, of the last iterate while the fit runs."""
        shown = self.shown
        if shown is None:
            return np.full(self.observations.shape[1], np.nan)
        predicted: NDArray[Any] = shown.block([row])[0]
        return predicted

    @property
    def shown(self) -> FittedValues | None:
        """The last iterate while the fit runs, and then the result; None without a fit."""
        fit = self.fit
        if not self.is_fitted or fit.phase == "ready":
            return None
        last = fit.state if fit.result is None or fit.phase == "running" else fit.result
        return None if last is None else last.fitted

    def loss_without(self, fitted: FittedValues, off: Collection[int]) -> tuple[float, float]:
        """Return the error at a sample of the entries with and without components."""
        rows, columns, x = sample(self.observations, MOST_COMPARED).entries()
        with_all, without = (
            error_at(fitted.model, x, fitted.without(which).at(rows, columns), rows, columns)
            for which in ([], list(off))
        )
        return with_all, without

    def code(self, name: str | None = None) -> str:
        """Return a notebook cell that repeats fit and draws, or makes a fit if there is neither."""
        result, values, arguments = self.fit.result, self.values, self.arguments()
        if result is not None and self._arguments:
            values, arguments = values | self.fitted_settings, self._arguments
        else:
            result = None
            values = values if self.posterior is None else values | self.sampled_settings
        if values["data"] == OWN_DATA:
            data, columns = name or "...", self.columns
            from_table = is_table(self.ratings, columns)
        else:
            data, columns = ratings_choices()[values["data"]].code, DEFAULT_COLUMNS
            from_table = True
        lines = ""
        if from_table:
            lines, data = reading_code(data, columns), "observed"
        drawn = self.sample_code(data)
        fitted = fit_call(result, "complete", data, arguments)
        calls = fitted if not drawn else drawn if result is None else f"{fitted}\n{drawn}"
        return f"import nmd_lab as nmd\n{self.imports}\n{lines}{calls}"
