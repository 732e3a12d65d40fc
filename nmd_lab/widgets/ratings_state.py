"""State of the completion explorer: data, settings and fit, without any widget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.checks import check_share
from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.entries import entries_at
from nmd_lab.result.posterior import Posterior
from nmd_lab.result.summary import validation_error
from nmd_lab.solver.options import OFFSETS
from nmd_lab.solver.settings import ADMM, SPLITS

from .background import Measure, Positions, error_of_means, in_sample
from .code import fit_call
from .live_sample import LEVEL
from .matrix_state import MOST_COMPARED as MOST_FITTED
from .model_state import ALPHA, DRAWS, HIGH, ITERATIONS, LOW, RANK, F, ModelState, Numbers
from .ratings import DEFAULT_COLUMNS, NewPerson, as_ratings, reading_code, table_columns
from .settings import WITHOUT_RIDGE, Field, check_option, default_nonlinearity

MOST_COMPARED = 50_000  # entries at which errors without components are compared, at most
LEAST, ENOUGH = 20, 30  # ratings of a column that is suggested, where so many have them
SORTS = ("for_you", "highest", "surest")  # orders of the suggestions


class Entry(NamedTuple):
    """One entry of a row; NaN for what is not known of it."""

    label: str  # title or label of its column
    column: int
    observed: float
    predicted: float
    low: float  # ends of the interval of a new observation
    high: float
    for_you: float  # prediction above that for somebody without ratings who is equally generous
    n_ratings: int  # of the column, by anybody


class CompletionState(ModelState):
    """Partly observed entries, a model of them, a fit and draws that can be stopped."""

    fields = (
        Field("validation", "Hidden", "share", (), "data", "Fraction of hidden ratings",
              value=0.1, check=lambda share: check_share("validation", share)),
        Field("seed", "Seed", "integer", (), "again", "Seed of hidden ratings and of the start",
              value=0, check=check_option("random_state")),
        F, LOW, HIGH, RANK, ALPHA,
        Field("offsets", "Offsets", "choice", OFFSETS, "again", "Offsets added to W H", auto=True),
        Field("offset_alpha", "Their ridge", "number", (), "again",
              "Keeps the offsets of rows and columns small", auto=True, value="auto",
              check=check_option("offset_alpha")),
        Field("split", "Split", "choice", SPLITS, value="auto"),
        Field("patience", "Patience", "integer", value=20,
              check=lambda patience: ADMM(patience=patience)),
        ITERATIONS._replace(value=200), DRAWS._replace(value=300),
    )  # fmt: skip
    numbers = MappingProxyType({"rank": 8, "alpha": 15.0, "offset_alpha": 5.0})
    hidden_share = "validation"

    def __init__(
        self,
        ratings: Any,
        *,
        row: str = DEFAULT_COLUMNS["row"],
        column: str = DEFAULT_COLUMNS["column"],
        value: str = DEFAULT_COLUMNS["value"],
        titles: Mapping[Any, str] | None = None,
        **values: Any,
    ) -> None:
        self.ratings = ratings
        self.columns = table_columns(ratings, {"row": row, "column": column, "value": value})
        self.data = as_ratings(ratings, self.columns, titles)
        self.observations = self.data.observations
        self.person = NewPerson(self.data)  # somebody who is not in the data
        self.counts = self.person.counts
        enough = int((self.counts >= LEAST).sum()) >= ENOUGH
        self.least = LEAST if enough else 1  # number of ratings from which a column is suggested
        self._unseen: Positions | None = None
        alpha = values.get("alpha", "auto")
        offsets = "auto" if alpha == "auto" else "both"
        first = {"nonlinearity": default_nonlinearity(alpha), "offsets": offsets}
        super().__init__(first, values)
        ends = zip(("low", "high"), self.observations.range(), strict=True)
        self.values |= {name: values.get(name, end) for name, end in ends}

    def arguments(self, values: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the arguments of the fit without the data."""
        values = self.values if values is None else values
        arguments = {
            "rank": values["rank"],
            "nonlinearity": self.nonlinearity(values),
            "offsets": values["offsets"],
            "alpha": values["alpha"],
            "solver": ADMM(split=values["split"]),
            "random_state": values["seed"],
            "max_iter": values["iterations"],
        }
        if values["offsets"] not in WITHOUT_RIDGE:
            arguments["offset_alpha"] = values["offset_alpha"]
        if values["validation"] > 0:
            arguments["validation"] = values["validation"]
            arguments["solver"] = ADMM(split=values["split"], patience=values["patience"])
        return arguments

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix that is fitted."""
        return self.observations.shape

    def unused(self) -> list[str]:
        """Return the names of the settings that have no effect now."""
        unused = super().unused()
        if self.values["validation"] == 0:
            unused.append("patience")
        if self.values["offsets"] in WITHOUT_RIDGE:
            unused.append("offset_alpha")
        return unused

    def to_sample(self) -> tuple[Any, Any]:
        """Return the data of the sampler, of which it sees a random fraction."""
        return self.data.matrix, None

    def to_fit(self) -> tuple[Any, dict[str, Any], Measure | None]:
        """Return the data; the fit holds out entries itself."""
        return self.data.matrix, {}, None

    def compared(self, fit: Decomposition) -> dict[str, float]:
        """Return the held-out errors of the means of columns, and of a linear model."""
        hidden, entries = self.fit.hidden, self.observations
        if hidden is None:
            return {}
        found = {"average": error_of_means(entries, hidden)}
        few = entries.n_observed <= MOST_FITTED
        if fit.nonlinearity.name != "identity" and few:
            linear = self._rival(fit, self.data.matrix, {"nonlinearity": "identity"})
            found["linear"] = validation_error(linear) or math.nan
        return found

    @property
    def generosity(self) -> float:
        """How much higher the new person rates than people without ratings."""
        return float((self._predicted(None) - self._predicted(None, rated=False)).mean())

    def entries(self, row: int | None, top: int, sort: str) -> tuple[list[Entry], list[Entry]]:
        """Return the ratings of a row, or of the new person, and the first of the others."""
        if row is None:
            person = self.person
            rated = np.array(list(person.ratings), dtype=np.intp)
            columns = np.array(person.offered)
            values = np.array([person.ratings.get(k, np.nan) for k in person.offered])
        else:
            entries = self.observations
            of_row = slice(entries.indptr[row], entries.indptr[row + 1])
            rated, values = entries.indices[of_row].astype(np.intp), entries.values[of_row]
            order = np.lexsort((-values, ~np.isin(rated, self.hidden_of(row))))[:top]
            columns, values = rated[order], values[order]
        predicted, for_you = self._predicted(row), np.full(self.shape[1], np.nan)
        if row is None and self.person.ratings:
            added = predicted - self._predicted(None, rated=False)
            for_you = added - added.mean()
        by = {"for_you": for_you, "surest": self._low(row)}.get(sort, predicted)
        by = predicted if np.isnan(by).all() else by
        left_out = np.isnan(predicted) | (self.counts < self.least)
        others = np.where(left_out, -np.inf, by)
        others[rated] = -np.inf
        best = np.argsort(-others, kind="stable")[:top]
        best = best[others[best] > -np.inf]
        return (
            self._entries(row, columns, values, predicted, for_you),
            self._entries(row, best, np.full(best.size, np.nan), predicted, for_you),
        )

    def _low(self, row: int | None) -> Numbers:
        """Return the lower end of the interval of each column with enough ratings; or NaN."""
        (model, at), low = self._model_of(row), np.full(self.shape[1], np.nan)
        if isinstance(model, Posterior):
            columns = np.flatnonzero(self.counts >= self.least)
            ends = model.predict_interval(entries_at(at, columns), level=LEVEL)
            low[columns] = np.asarray(ends)[:, 0]
        return low

    def _entries(self, row: int | None, columns: Numbers, *numbers: Numbers) -> list[Entry]:
        """Return the entries of some columns, with their intervals if there is a posterior."""
        values, predicted, for_you = numbers
        ends, (model, at) = np.full((columns.size, 2), np.nan), self._model_of(row)
        if isinstance(model, Posterior) and columns.size:
            ends = np.asarray(model.predict_interval(entries_at(at, columns), level=LEVEL))
        scale = self.person.ends or (-np.inf, np.inf)
        titles = self.data.column_titles(columns)
        about = values, predicted[columns].clip(*scale), *ends.clip(*scale).T, for_you[columns]
        about = *about, self.counts[columns]
        each = zip(titles, columns.tolist(), *(some.tolist() for some in about), strict=True)
        return [Entry(*entry) for entry in each]

    def hidden_of(self, row: int) -> NDArray[Any]:
        """Return the columns of a row that the model has not seen; while it runs, the last."""
        shown = self.fit if self.draws is None else self.sample
        if shown.phase != "running":
            self._unseen = shown.unseen
        if self._unseen is None:
            return np.empty(0, np.intp)
        rows, columns = self._unseen
        return np.asarray(columns[rows == row])

    def _predicted(self, row: int | None, *, rated: bool = True) -> Numbers:
        """Return what posterior or fit predict for a row or for the new person; NaN without one."""
        n, (model, at) = self.shape[1], self._model_of(row, rated=rated)
        if isinstance(model, Posterior):
            return np.asarray(model.predict(entries_at(at, np.arange(n))))
        return np.full(n, np.nan) if model is None else np.asarray(model.block([at])[0])

    def _model_of(self, row: int | None, *, rated: bool = True) -> tuple[Any, int]:
        """Return posterior or fit of a row, or of the new person, and its position there."""
        draws = self.draws
        if draws is None:
            return self.fitted_row(row, rated=rated)
        return (draws, row) if row is not None else (self.person.folded(draws, rated=rated), 0)

    def fitted_row(self, row: int | None, *, rated: bool = True) -> tuple[FittedValues | None, int]:
        """Return the model of a row and its position there; a new person needs a fit that ended."""
        if row is not None:
            return self.shown, row
        result = None if self.fit.phase == "running" else self.fit.result
        return (None if result is None else self.person.folded(result, rated=rated)), 0

    @property
    def shown(self) -> FittedValues | None:
        """The last iterate while the fit runs, and then the result; None without a fit."""
        last = self.fit.state if self.fit.phase == "running" else self.fit.result or self.fit.state
        return None if last is None else last._fitted

    def observed(self) -> tuple[Numbers, Numbers, Numbers]:
        """Return a sample of the ratings: values, rows and columns."""
        entries = self.observations
        rows, columns, x = entries.select(in_sample(entries.n_observed, MOST_COMPARED)).entries()
        return x, rows, columns

    def code(self, name: str | None = None) -> str:
        """Return a notebook cell that repeats fit and draws, or makes a fit if there is neither."""
        arguments = self._arguments or self.arguments()
        result = self.fit.result if self._arguments else None
        lines, data = "", name or "..."
        if self.columns is not None:
            lines, data = reading_code(data, self.columns), "observed"
        drawn = self.sample_code(data)
        fitted = fit_call(result, "complete", data, arguments)
        calls = fitted if not drawn else drawn if result is None else f"{fitted}\n{drawn}"
        rated = "" if result is None else self.person.code()
        return f"import nmd_lab as nmd\n{self.imports}\n{lines}{calls}{rated}"
