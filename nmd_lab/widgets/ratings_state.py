"""State of the completion explorer: data, settings and fit, without any widget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.entries import entries_at
from nmd_lab.result.posterior import Posterior
from nmd_lab.result.summary import validation_error
from nmd_lab.solver.options import OFFSETS
from nmd_lab.solver.settings import ADMM, SPLITS

from .background import Measure, Positions, error_of_means, in_sample
from .code import PRINT_ERROR, PRINT_HIDDEN, fit_call
from .components import order_of
from .live_fit import Begun
from .live_sample import LEVEL
from .matrix_data import loading_lines
from .matrix_state import MOST_COMPARED
from .model_state import DRAWS, ITERATIONS, MODEL, MOST_JUDGED, ModelState, Numbers
from .ratings import BEST, DEFAULT_COLUMNS, NewPerson, as_ratings, reading_code, table_columns
from .settings import WITHOUT_RIDGE, Field, default_nonlinearity, hidden_fields

LEAST, ENOUGH = 20, 30  # ratings of a column that is suggested, where so many have them
SORTS = ("for_you", "highest", "surest")  # orders of the suggestions


class CompletionState(ModelState):
    """Partly observed entries, a model of them, a fit and draws that can be stopped."""

    fields = (
        *hidden_fields("validation", "ratings"),
        *MODEL,
        Field("offsets", "Offsets", "choice", OFFSETS, "again", "Offsets added to W H", auto=True),
        Field("offset_alpha", "Penalty of offsets", "number", (), "again",
              "Keeps the offsets of rows and columns small", auto=True, value="auto",
              check="offset_alpha"),
        Field("split", "", "choice", SPLITS, value="auto"),
        Field("patience", value=20, check=lambda patience: ADMM(patience=patience)),
        ITERATIONS._replace(value=500), DRAWS._replace(value=300),
    )  # fmt: skip
    numbers = MappingProxyType({"rank": 8, "alpha": 15.0, "offset_alpha": 5.0})
    hidden_share = "validation"

    def __init__(self, ratings: Any, **values: Any) -> None:
        named = {role: values.pop(role, name) for role, name in DEFAULT_COLUMNS.items()}
        titles: Mapping[Any, str] | None = values.pop("titles", None)
        self.input = ratings
        self.columns = table_columns(ratings, named)
        self.data = as_ratings(ratings, self.columns, titles)
        self.observations = self.data.observations
        self.person = NewPerson(self.data)  # somebody who is not in the data
        self.counts = self.person.counts
        enough = int((self.counts >= LEAST).sum()) >= ENOUGH
        self.least = LEAST if enough else 1  # number of ratings from which a column is suggested
        self._unseen: Positions | None = None
        self.off: list[int] = []  # components that are switched off, by size; lists do without them
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
        return ["offset_alpha"] if self.values["offsets"] in WITHOUT_RIDGE else []

    def to_sample(self) -> tuple[Any, Any]:
        """Return the data of the sampler, of which it sees a random fraction."""
        return self.data.matrix, None

    def to_fit(self, _: Begun) -> tuple[Any, dict[str, Any], Measure | None]:
        """Return the data; the fit holds out entries itself."""
        return self.data.matrix, {}, None

    def rivals(self, fit: Decomposition) -> dict[str, float]:
        """Return the errors of the means of columns, and of a linear model."""
        hidden, entries = self.fit.hidden, self.observations
        if hidden is None:
            return {}
        found, few = dict[str, float](), entries.n_observed <= MOST_COMPARED
        if fit.nonlinearity.name != "identity" and few:
            linear = self._rival(fit, self.data.matrix, {"nonlinearity": "identity"})
            found["linear"] = validation_error(linear) or math.nan
        return found | {"average": error_of_means(entries, hidden)}

    def added(self) -> Numbers:
        """Return what the ratings of the new person add to the predictions."""
        return self.predicted(None) - self.predicted(None, {})

    def because(self, column: int) -> dict[int, float]:
        """Return by how much each rating of the new person moves one column more than others."""
        ratings, now = self.person.ratings, self.predicted(None)
        less = ({j: x for j, x in ratings.items() if j != k} for k in ratings)
        added = [now - self.predicted(None, each) for each in less]
        return {k: float(x[column] - x.mean()) for k, x in zip(ratings, added, strict=True)}

    def entries(self, row: int | None, top: int, sort: str) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the ratings of a row, or of the new person, and the first of the others."""
        person, enough = self.person, self.counts >= self.least
        if row is None:
            rated, columns = np.array([*person.ratings], np.intp), np.array(person.offered)
            values = np.array([person.ratings.get(k, np.nan) for k in person.offered])
        else:
            entries = self.observations
            of_row = slice(entries.indptr[row], entries.indptr[row + 1])
            rated, values = entries.indices[of_row].astype(np.intp), entries.values[of_row]
            order = np.lexsort((-values, ~np.isin(rated, self.hidden_of(row))))[:top]
            columns, values = rated[order], values[order]
        predicted, for_you = self.predicted(row), np.full(self.shape[1], np.nan)
        if row is None and person.ratings:
            added = self.added()
            for_you = np.round(added - added.mean(), 1) + 0.0  # no -0.0
        by = for_you if sort == "for_you" else predicted
        if sort == "surest":
            by = np.full(self.shape[1], np.nan)
            by[enough] = self.intervals(row, np.flatnonzero(enough))[:, 0]
        by, among = predicted if np.isnan(by).all() else by, enough & ~np.isnan(predicted)
        among[rated] = False
        if by is for_you and among.any():
            among &= predicted >= np.quantile(predicted[among], 1 - BEST)
        others = np.where(among, by, -np.inf)
        best = np.lexsort((-predicted, -others))[:top]  # of those that look alike, the highest
        best = best[others[best] > -np.inf]

        def listed(columns: Numbers, values: Any) -> pd.DataFrame:
            scale = person.ends or (-np.inf, np.inf)
            low, high = self.intervals(row, columns).clip(*scale).T
            return pd.DataFrame({
                "label": self.data.column_titles(columns), "column": columns, "observed": values,
                "predicted": predicted[columns].clip(*scale), "low": low, "high": high,
                "for_you": for_you[columns], "n": self.counts[columns],
            })  # fmt: skip

        return listed(columns, values), listed(best, np.nan)

    def hidden_of(self, row: int) -> NDArray[Any]:
        """Return the columns of a row that the model has not seen; while it runs, the last."""
        shown = self.fit if self.posterior is None else self.sample
        if shown.phase != "running":
            self._unseen = shown.unseen
        if self._unseen is None:
            return np.empty(0, np.intp)
        rows, columns = self._unseen
        return np.asarray(columns[rows == row])

    def model_of(self, row: int | None, ratings: Any = None, *, drawn: bool = True) -> Any:
        """Return the draws or the fit, None without one, and where a row is there.

        A new person, None, who may have other `ratings`, needs a fit that has ended.
        """
        model: Any = self.posterior if drawn else None
        if row is not None:
            return self.shown if model is None else model, row
        if model is None and self.fit.phase != "running":
            model = self.fit.result
        return None if model is None else self.person.folded(model, ratings), 0

    def _shown_of(self, row: int | None, ratings: Any = None) -> Any:
        """Return what `model_of` does, or the fit without the components that are off."""
        model, at = self.model_of(row, ratings, drawn=not self.off)
        if self.off and model is not None and self.shown is not None:
            order, _ = order_of(self.shown)
            model = model.without([int(order[k]) for k in self.off])
        return model, at

    def predicted(self, row: int | None, ratings: Any = None) -> Numbers:
        """Return the predictions of all columns in a row, NaN without a model."""
        (model, at), n = self._shown_of(row, ratings), self.shape[1]
        if isinstance(model, Posterior):
            return np.asarray(model.predict(entries_at(at, np.arange(n))))
        return np.full(n, np.nan) if model is None else np.asarray(model.block([at])[0])

    def intervals(self, row: int | None, columns: Numbers) -> Numbers:
        """Return the ends of the intervals of some columns, NaN without draws."""
        model, at = self._shown_of(row)
        if not isinstance(model, Posterior) or not columns.size:
            return np.full((columns.size, 2), np.nan)
        return np.asarray(model.predict_interval(entries_at(at, columns), level=LEVEL))

    @property
    def shown(self) -> FittedValues | None:
        """The last iterate while the fit runs, and then the result; None without a fit."""
        last = self.fit.state if self.fit.phase == "running" else self.fit.result or self.fit.state
        return None if last is None else last._fitted

    def known(self) -> tuple[Numbers, Numbers, Numbers]:
        """Return a sample of the ratings: values, rows and columns."""
        entries = self.observations
        rows, columns, x = entries.select(in_sample(entries.n_observed, MOST_JUDGED)).entries()
        return x, rows, columns

    def lines(self, source: str | None) -> str:
        """Return the lines that repeat fit and draws, or make a fit if there is neither."""
        arguments = self.fit.begun.arguments or self.arguments()
        result = self.fit.result if self.fit.begun.arguments else None
        lines, data = loading_lines(source, ""), "X"
        if self.columns is not None:
            lines, data = lines + reading_code(data, self.columns), "observed"
        drawn = self.sample_code(data)
        fitted = fit_call(result, "complete", data, arguments)
        validated = arguments.get("validation")
        error = PRINT_HIDDEN.format("ratings", "fit.history.validation_rmse.values.min()")
        fitted += error if validated else PRINT_ERROR
        return lines + (fitted if not drawn else drawn if result is None else f"{fitted}\n{drawn}")
