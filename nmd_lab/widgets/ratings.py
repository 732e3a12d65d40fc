"""The explorer of ratings: the error where some are hidden, one person, films for them, a map."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nmd_lab._runtime.checks import many
from nmd_lab.data.labels import pandas_of
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.request.options import OFFSETS
from nmd_lab.request.settings import ADMM, SPLITS
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.entries import entries_at
from nmd_lab.result.posterior import Posterior
from nmd_lab.result.summary import validation_error

from .background import MAX_JUDGED, Judged, Positions, Record, at_most, in_sample
from .charts import MAX_COMPONENTS, plane_part, texts
from .live import LEVEL, FitRun
from .matrix import MAX_COMPARED
from .model_state import DRAWS, ITERATIONS, MODEL, ModelState, Numbers
from .printer import PRINT_ERROR, PRINT_HIDDEN, default_nonlinearity, fit_call, given_code
from .ratings_data import (
    BEST,
    DEFAULT_COLUMNS,
    MAX_LISTED,
    NewPerson,
    as_ratings,
    error_of_means,
    of_pairs,
    reading_code,
    table_columns,
)
from .state import Field, hidden_fields
from .words import Number

WITHOUT_RIDGE = ("none", "global")  # kinds of offsets that have no ridge
SORTS = ("for_you", "highest", "surest")  # orders of the suggestions
MAX_NEAR = 6  # columns that light up beside one
YOU = "you"  # label of a person who is not in the data
DRAWN = "predicted by the draws; ● are held out"


class RatingsState(ModelState):
    """Partly observed entries, a model of them, a fit and draws, and the entries of one row."""

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
    filename = "completion.nc"

    def __init__(self, ratings: Any, **values: Any) -> None:
        named = {role: values.pop(role, name) for role, name in DEFAULT_COLUMNS.items()}
        titles: Mapping[Any, str] | None = values.pop("titles", None)
        self.columns = table_columns(pandas_of(ratings), named)
        table, self._first = of_pairs(ratings, self.columns)
        self.data = as_ratings(table, self.columns, titles)
        self.observations = self.data.observations
        self.person = NewPerson(self.data)  # a person who is not in the data
        self.counts = self.person.counts
        self.least = 20 if (self.counts >= 20).sum() >= 30 else 1  # ratings of what is suggested
        self.before = self.search = ""
        self.sort: str = SORTS[0]
        self.asked = str(self.data.labels("rows")[0])  # whose ratings are listed
        self._unseen: Positions | None = None
        alpha = values.get("alpha", "auto")
        offsets = "auto" if alpha == "auto" else "both"
        first = {"nonlinearity": default_nonlinearity(alpha), "offsets": offsets}
        super().__init__(ratings, values, first=first)
        ends = zip(("low", "high"), self.observations.range(), strict=True)
        self.values |= {name: values.get(name, end) for name, end in ends}
        self.actions |= {
            "ask": self._ask,
            "rate": lambda m: self.person.rate(m["column"], m["number"]),
        }

    # Settings and fit

    def arguments(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a fit with some settings, without the data."""
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

    def to_fit(self, _: FitRun) -> tuple[Any, dict[str, Any]]:
        """Return the data; the fit holds out entries itself."""
        return self.data.matrix, {}

    def judged(self) -> Judged:
        """Return the held-out ratings, or without any some that are seen."""
        entries, hidden = self.observations, self.fit.hidden
        if hidden is not None:
            return Judged(hidden.values, *hidden.positions)
        rows, columns, x = entries.select(in_sample(entries.n_observed, MAX_JUDGED)).entries()
        return Judged(x, rows, columns, "where seen")

    def rivals(self, fit: Decomposition) -> dict[str, float]:
        """Return the errors of the means of columns, and of a linear model."""
        hidden, entries = self.fit.hidden, self.observations
        if hidden is None:
            return {}
        found, few = dict[str, float](), entries.n_observed <= MAX_COMPARED
        if fit.nonlinearity.name != "identity" and few:
            linear = self._rival(fit, self.data.matrix, {"nonlinearity": "identity"})
            found["linear"] = validation_error(linear) or math.nan
        return found | {"average": error_of_means(entries, hidden)}

    @property
    def shown(self) -> FittedValues | None:
        """The last iterate while the fit runs, and then the result, as the page numbers it."""
        last = self.fit.state if self.fit.phase == "running" else self.fit.result or self.fit.state
        return self.factors.sorted(None if last is None else last._fitted)

    # Predictions for a row, or for the new person, who is None

    def hidden_of(self, row: int) -> NDArray[Any]:
        """Return the columns of a row that the model has not seen; while it runs, the last."""
        shown = self.fit if self.posterior is None else self.sample
        if shown.phase != "running":
            self._unseen = shown.unseen
        if self._unseen is None:
            return np.empty(0, np.intp)
        rows, columns = self._unseen
        return np.asarray(columns[rows == row])

    def model_of(self, row: int | None, ratings: Any = None, *, whole: bool = False) -> Any:
        """Return the draws, or the fit without what is off, and where a row is there.

        None without a model.  A new person, who may have other `ratings`, needs a fit that has
        ended.  The `whole` fit is that with all components.
        """
        off = [] if whole else self.off
        model: Any = None if whole or off else self.posterior
        if row is None:
            if model is None and self.fit.phase != "running":
                model = self.fit.result
            model, row = None if model is None else self.person.folded(model, ratings), 0
        elif model is None:
            model = self.shown
        return model.without(off) if off and model is not None else model, row

    def predicted(self, row: int | None, ratings: Any = None) -> Numbers:
        """Return the predictions of all columns in a row, NaN without a model."""
        (model, at), n = self.model_of(row, ratings), self.shape[1]
        if isinstance(model, Posterior):
            return np.asarray(model.predict(entries_at(at, np.arange(n))))
        return np.full(n, np.nan) if model is None else np.asarray(model.block([at])[0])

    def intervals(self, row: int | None, columns: Numbers) -> Numbers:
        """Return the ends of the intervals of some columns, NaN without draws."""
        model, at = self.model_of(row)
        if not isinstance(model, Posterior) or not columns.size:
            return np.full((columns.size, 2), np.nan)
        return np.asarray(model.predict_interval(entries_at(at, columns), level=LEVEL))

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
        """Return the ratings of a row, and the first of the others."""
        person, columns = self.person, np.arange(self.shape[1])
        every = pd.DataFrame({"column": columns, "predicted": self.predicted(row)})
        every = every.assign(n=self.counts, observed=np.nan, for_you=np.nan)
        if row is None:  # whose ratings the stars show
            rated, listed = np.array([*person.ratings], np.intp), np.array(person.offered)
            if person.ratings:
                every["for_you"] = self.added() - self.added().mean()
        else:
            entries = self.observations
            of_row = slice(entries.indptr[row], entries.indptr[row + 1])
            rated, values = entries.indices[of_row].astype(np.intp), entries.values[of_row]
            every.loc[rated, "observed"] = values
            listed = rated[np.lexsort((-values, ~np.isin(rated, self.hidden_of(row))))[:top]]
        others = every[(self.counts >= self.least) & every["predicted"].notna()]
        others = others[~others["column"].isin(rated)].copy()
        if sort == "surest":
            others[sort] = self.intervals(row, others["column"].to_numpy())[:, 0]
        by = sort if sort in others and others[sort].notna().any() else "predicted"
        if by == "for_you":
            others = others[others["predicted"] >= others["predicted"].quantile(1 - BEST)]
        best = others.sort_values([by, "predicted"], ascending=False)[:top]

        def shown(some: pd.DataFrame) -> pd.DataFrame:
            scale, at = person.ends or (-np.inf, np.inf), some["column"].to_numpy()
            low, high = self.intervals(row, at).clip(*scale).T
            titles, predicted = self.data.column_titles(at), some["predicted"].clip(*scale)
            return some.assign(label=titles, predicted=predicted, low=low, high=high)

        return shown(every.loc[listed]), shown(best)

    # The sentence

    @property
    def title(self) -> str:
        """The data and their size."""
        (m, n), (who, what) = self.observations.shape, self._things
        things = f"{many(n, what[:-1])} by {many(m, who[:-1])}"
        return f"{many(self.observations.n_observed, 'rating')} of {things}"

    @property
    def _things(self) -> tuple[str, str]:
        """The words for rows and for columns."""
        labels = self.observations.labels
        named = (("rows", labels.rows), ("columns", labels.columns))
        who, what = (f"{dims[0]}s" if len(dims) == 1 else plain for plain, dims in named)
        return who, what

    def guess(self) -> Number | None:
        """Return how well the model guesses the ratings that are hidden, on their scale."""
        return self._guess("ratings", self._things[1][:-1], self.person.ends)

    # The page

    def select(self, selection: dict[str, Any] | None) -> None:
        """Show the entries of the row that was picked, also if it is the only one of a lasso."""
        before, now = self.selection or {}, selection or {}
        super().select(selection)
        row, rows = now.get("row"), now.get("rows") or []
        if row is None or row == before.get("row"):
            row = rows[0] if len(rows) == 1 and rows != before.get("rows") else None
        if row is not None:
            self.asked = str(self.data.labels("rows")[row])

    def _ask(self, message: Mapping[str, Any]) -> None:
        """Change the row, the order of the list, or look for an item that can be rated."""
        name, text = message["name"], message["value"]
        self.search = text if name == "search" else ""
        if name == "row":
            self.before = self.before if self.asked == YOU else self.asked
            self.asked = text.strip()
        elif name == "item" and text:
            self.person.offer(text)
        elif name == "sort" and text in SORTS:
            self.sort = text
        elif name == "least" and text.isdecimal():
            self.least = int(text)

    def _row(self) -> tuple[int | None, str]:
        """Return the row that is asked for, None for the new person, and what is wrong with it."""
        if self.asked == YOU:
            return None, ""
        try:
            return self.data.find(self.asked), ""
        except ValueError as error:
            return 0, str(error)

    def _sort(self, row: int | None) -> str:
        """Return the order of the suggestions; those for a row have no difference for it alone."""
        return self.sort if row is None else self.sort.replace("for_you", "highest")

    def parts(self) -> Record:
        """Return curves, intervals, components, the map of the columns, and the lists of a row."""
        shown, (row, problem) = self.shown, self._row()
        labels, data = self.observations.labels, self.data
        columns = data.column_titles() if data.titles else texts(labels, "columns")
        parts = super().parts()
        parts |= self.factors.parts(shown, None, labels, columns)
        parts["facts"] |= {"lists": self._lists(row, problem)}
        parts["scatter"] = self._map(shown, row, problem)
        return parts

    def _map(self, shown: FittedValues | None, row: int | None, problem: str) -> Any:
        """Return the columns in the plane of two components, and where the person points."""
        if shown is None or shown.H.shape[0] < 2:
            return None
        often = np.argsort(-self.counts, kind="stable")[: at_most(3000, 1000)]
        often = often[self.counts[often] >= self.least]
        plane = plane_part(shown.H[:MAX_COMPONENTS, often].T, often) | {
            "things": self._things[1],
            "labels": self.data.column_titles(often),
            "named": list(range(min(often.size, 120))),
            "groups": [],
            "color": "",
            "values": [],
            "total": int(often.size),
        }
        model, at = self.model_of(row, whole=True)
        if model is not None and not problem and often.size:
            plane["person"] = {"name": self.asked, "weights": np.asarray(model.W[at]).tolist()}
        return plane

    def _fields(self, problem: str) -> list[Record]:
        """Return the inputs above the list of ratings."""
        rows = [YOU, *map(str, self.data.labels("rows")[:500])]
        field = Field("row", "Person", "text", rows, help="Label of a row, such as a user")
        if self.asked == YOU:
            found = self.data.column_titles(self.person.search(self.search))
            about = "Words of a title, to rate it, too"
            field = Field("item", "+ title", "text", found, help=about, searched=True)
        return [field.shown({"row": self.asked, "item": ""}, {"row": problem})]

    def _lists(self, row: int | None, problem: str) -> Record:
        """Return the ratings of a row or of the new person, and the best of the other columns."""
        person, sort = self.person, self._sort(row)
        found = () if problem else self.entries(row, MAX_LISTED, sort)
        known, best = [list(each.itertuples()) for each in found] or ([], [])
        hidden = set() if row is None else set(self.hidden_of(row).tolist())

        def rating(entry: Any) -> Record:
            if row is not None:
                return {"rating": f"{entry.observed:g}"}
            stars = person.ratings.get(entry.column)
            return {"number": 0 if stars is None else person.levels.index(stars) + 1}

        def for_you(entry: Any) -> Record:
            return {} if math.isnan(entry.for_you) else {"for_you": _more(entry.for_you)}

        return {
            "you": row is None,
            "person": self.asked,
            "turn": self.before if row is None else YOU,
            "fields": self._fields(problem),
            "levels": person.levels,
            "known": [
                self._line(each) | {"hidden": each.column in hidden} | rating(each)
                for each in known
            ],
            "top": [self._line(each) | for_you(each) | {"n": each.n} for each in best],
            "sort": sort,
            "least": self.least,
            "about": self._about(row, {each.column: each for each in best}),
        }

    def _line(self, entry: Any) -> Record:
        """Return one column of the data with its prediction; its interval on the scale."""
        low, high = self.person.ends or (math.nan, math.nan)
        drawn, ends = not math.isnan(entry.low), None
        if drawn and high > low:
            ends = np.array([entry.low, entry.high, entry.predicted])
            ends = np.clip((ends - low) / (high - low), 0, 1).round(3).tolist()
        return {
            "column": entry.column,
            "title": entry.label,
            "near": self._near(entry.column),
            "predicted": "" if math.isnan(entry.predicted) else f"{entry.predicted:.1f}",
            "text": f"{100 * LEVEL:.0f} %: {entry.low:.3g} to {entry.high:.3g}" if drawn else "",
            "ends": ends,
        }

    def _near(self, column: int) -> list[int]:
        """Return the columns with enough ratings that are most like one."""
        shown, counts = self.shown, self.counts
        if shown is None or self.active.phase == "running":
            return []

        def directions() -> tuple[Any, Any]:
            often = np.flatnonzero(counts >= self.least)
            H = np.asarray(shown.H) / (np.linalg.norm(shown.H, axis=0) + 1e-12)
            return often, H

        often, H = self.memo("directions", directions, shown.H, self.least)
        like = often[np.argsort(-(H[:, column] @ H[:, often]), kind="stable")[: MAX_NEAR + 1]]
        return [int(k) for k in like if k != column][:MAX_NEAR]

    def _reasons(self, entry: Any) -> str:
        """Return which ratings of the new person raise one column, the high ones first."""
        column, ratings = entry.column, self.person.ratings
        of = column, dict(ratings), self.posterior, self.fit.result, self.off
        moved = self.memo("reasons", lambda: self.because(column), *of)
        liked, helps = np.mean([*ratings.values()]), [k for k in moved if moved[k] > 0.005]
        most = sorted(helps, key=lambda k: (ratings[k] < liked, -moved[k]))[:2]
        ends = f"{100 * LEVEL:.0f} % in {entry.low:.1f} to {entry.high:.1f}, "
        about = f"{entry.label}: {entry.predicted:.1f}, {ends * (entry.low <= entry.high)}"
        about += f"for you {_more(entry.for_you)}"
        if not most:
            return f"{about}; none of your stars alone raises it"
        titles = zip(self.data.column_titles(most), most, strict=True)
        why = [f"{title} {ratings[k]:g} ★ ({_more(moved[k])})" for title, k in titles]
        return f"{about}, because you gave {' and '.join(why)}"

    def _about(self, row: int | None, best: Mapping[Any, Any]) -> str:
        """Return what the stars of the new person do; or what is missing for suggestions."""
        column = (self.selection or {}).get("column")
        share = 100 * self.sample.done // max(self.sample.planned, 1)
        follow = f"draws follow ({share} %): with 90 % intervals, and another list"
        later = follow if self.sample.phase == "running" else ""
        later = "by the fit without what is off, which has no intervals" if self.off else later
        if self.model_of(row)[0] is None:
            return "suggestions follow once the model is fitted"
        if row is not None:
            return later or DRAWN * (self.posterior is not None)
        if not self.person.ratings:
            return "give some stars: the list follows them"
        if column is not None and column in best:
            return self._reasons(best[column])
        moved = self.added().mean()
        way = "below" if moved < 0 else "above"
        side = f"{abs(moved):.1f} {way}" if abs(moved) >= 0.05 else "like"
        order = " the quarter predicted highest, ordered by what your stars change;"
        order *= self.sort == SORTS[0]
        added = f"you rate {side} most people;{order} a click says why"
        return "; ".join(filter(None, [added, later]))

    # Code

    def lines(self, source: str | None) -> str:
        """Return the lines that repeat fit and draws, and print the suggestions of the page."""
        arguments = self.fit.arguments or self.arguments(self.values)
        result = self.fit.result if self.fit.arguments else None
        lines, data = given_code("X", source, self._first), "X"
        if self.columns is not None:
            lines, data = lines + reading_code(data, self.columns), "observed"
        drawn = self.sample_code(data)
        if result is not None or not drawn:
            lines += fit_call(result, "complete", data, arguments)
            error = PRINT_HIDDEN.format("ratings", "fit.history.validation_rmse.values.min()")
            lines += error if arguments.get("validation") else PRINT_ERROR
            lines += "\n" * bool(drawn)
        return lines + drawn + self._suggestions_code()

    def _suggestions_code(self) -> str:
        """Return the lines that print the suggestions; none before a fit."""
        row, problem = self._row()
        if self.fit.result is None or problem:
            return ""
        observed = ""
        if self.columns is None:
            sparse = "nmd.observations_from_sparse(X)"
            is_sparse = isinstance(self.data.matrix, SparseObservations)
            observed = f"observed = {'X' if is_sparse else sparse}\n"
        drawn = self.posterior is not None
        return observed + self.person.code(row, self._sort(row), self.least, drawn=drawn)


def _more(stars: float) -> str:
    """Return by how many stars something is more, with two decimals, and no -0.00."""
    return f"{round(stars, 2) + 0.0:+.2f}"
