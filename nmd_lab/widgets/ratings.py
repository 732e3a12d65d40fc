"""The explorer of ratings: the error where some are hidden, one person, films for them, a map.

Ratings of a long table or a sparse matrix, and the stars of a person who is not in them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from nmd_lab._runtime.checks import many
from nmd_lab.data.folds import split_observed
from nmd_lab.data.inputs import observe
from nmd_lab.data.labels import is_frame, pandas_of
from nmd_lab.data.long_table import observations_from_table
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.data.typed_table import long_table_columns
from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.request.options import OFFSETS
from nmd_lab.request.settings import ADMM, SPLITS
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.entries import entries_at
from nmd_lab.result.posterior import Posterior

from .background import MAX_JUDGED, Array, FitRun, Judged, Record, at_most, in_sample
from .charts import MAX_COMPONENTS, plane_part, texts
from .fitting import DRAWS, ITERATIONS, MODEL, ModelState
from .given import PRINT_ERROR, PRINT_HIDDEN, call, expression, fit_call, given_code, taken
from .state import Field, hidden_fields, option
from .words import LEVEL

# Columns of a long table that hold the labels and the values unless others are named
DEFAULT_COLUMNS = {"row": "user", "column": "item", "value": "rating"}

MAX_LISTED = 50  # entries in a list
# Weight of the few ratings of a new person: with 6 of MovieLens it lowers the error there from 0.82
# to 0.67, and that of all other ratings from 0.91 to 0.90; with 16 that is 0.92
OWN = 4.0
BEST = 0.25  # fraction of the columns, those with the highest predictions, ordered for a person


def table_columns(X: Any, asked: Mapping[str, str] = DEFAULT_COLUMNS) -> dict[str, str] | None:
    """Return the columns of a long table, or None if the data are none."""
    named = {role: name for role, name in asked.items() if name != DEFAULT_COLUMNS[role]}
    return long_table_columns(X, named) if is_frame(X) else None


WITHOUT_RIDGE = ("none", "global")  # kinds of offsets that have no ridge
SORTS = ("for_you", "highest", "surest")  # orders of the suggestions
MAX_NEAR = 6  # columns that light up beside one
YOU = "you"  # label of a person who is not in the data


class RatingsState(ModelState):
    """Partly observed entries, a model of them, a fit and draws, and the entries of one row."""

    fields = (
        *hidden_fields("validation", "ratings"),
        *MODEL,
        Field("offsets", "Offsets", "choice", OFFSETS, "again", "Offsets added to W H", auto=True,
              value="auto"),
        Field("offset_alpha", "Penalty of offsets", "number", (), "again",
              "Keeps the offsets of rows and columns small", auto=True, value="auto",
              check=option("offset_alpha")),
        Field("split", "", "choice", SPLITS, value="auto"),
        Field("patience", value=20, check=lambda patience: ADMM(patience=patience)),
        ITERATIONS._replace(value=500), DRAWS._replace(value=300),
    )  # fmt: skip
    numbers: Mapping[str, Any] = {"rank": 8, "alpha": 15.0, "offset_alpha": 5.0}
    hidden_share = "validation"
    filename = "completion.nc"

    def __init__(self, ratings: Any, **values: Any) -> None:
        named = {role: values.pop(role, name) for role, name in DEFAULT_COLUMNS.items()}
        self._read(ratings, named, values.pop("titles", None))
        labels = self.observations.labels
        self.who, self.what = (" ".join(dims) for dims in (labels.rows, labels.columns))
        self.things = "ratings", self.what
        self.least = 20 if (self.counts >= 20).sum() >= 30 else 1  # ratings of what is suggested
        self.before = self.search = ""
        self.sort: str = SORTS[0]
        self.ask_for(str(self.row_labels[0]))
        has_ridge = values.get("alpha", "auto") != "auto"  # then that of `complete`
        first = {"nonlinearity": "identity", "offsets": "both"} if has_ridge else {}
        super().__init__(ratings, values, first)
        ends = zip(("low", "high"), self.observations.range(), strict=True)
        self.values |= {name: values.get(name, end) for name, end in ends}
        self.actions |= {"ask": self._ask, "rate": lambda m: self.rate(m["column"], m["number"])}

    # Data

    def _read(self, X: Any, named: Mapping[str, str], titles: Mapping[Any, str] | None) -> None:
        """Read the data as the user gave them; titles by column label are a column by default."""
        table = pandas_of(X)
        self.columns, self.titled = table_columns(table, named), False
        # What makes the table, with one line for each pair, behind the name of the data
        self.taking = ".to_pandas()" * (table is not X and not isinstance(X, pd.DataFrame))
        if self.columns is not None:
            pair, value = [self.columns["row"], self.columns["column"]], self.columns["value"]
            if table.duplicated(pair).any():
                mean = f".groupby({expression(pair)}, as_index=False)[{expression(value)}].mean()"
                table, self.taking = taken(table, mean), self.taking + mean
            self.titled = titles is None and "title" in set(table.columns) - {*pair, value}
            if self.titled:
                titles = table.drop_duplicates(pair[1]).set_index(pair[1])["title"].to_dict()
            table = observations_from_table(table, **self.columns)
        self.matrix, self.titles = table, titles or {}  # the data as `nmd_lab.complete` takes them
        self.observations = entries = observe(table).as_sparse()
        self.shape = entries.shape
        self.row_labels, self.column_labels = entries.row_labels, entries.column_labels
        self.counts = np.bincount(entries.indices, minlength=entries.shape[1])
        self._by_count = np.argsort(-self.counts, kind="stable").tolist()
        self.offered_columns: list[int] = self._by_count[:8]  # that the new person can rate
        self.stars: dict[int, float] = {}  # ratings of the new person by position of the column
        found = np.unique(entries.values).astype(float)
        ends, has_scale = (float(found[0]), float(found[-1])), found.size <= 10
        self.limits = ends if has_scale else None  # of the scale of ratings, if there is one
        # The ratings that stars can give: those of the data if they are few
        self.levels: list[float] = (found if has_scale else np.linspace(*ends, 5)).tolist()

    def column_titles(self, columns: Any = slice(None)) -> list[str]:
        """Return the titles of columns, or their labels where there are none."""
        return [str(self.titles.get(label, label)) for label in self.column_labels[columns]]

    def rate(self, column: int, number: int) -> None:
        """Give the rating with a number among the levels, from 1; 0 takes it back."""
        self.stars.pop(column, None)
        if number > 0:
            self.stars[column] = self.levels[number - 1]

    def columns_with(self, text: str) -> list[int]:
        """Return columns whose titles hold a text: that with just this title, then by ratings."""
        sought, titles = text.strip().casefold(), [each.casefold() for each in self.column_titles()]
        found = [k for k in self._by_count if sought and sought in titles[k]]
        return sorted(found, key=lambda k: titles[k] != sought)[:12]

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

    def unused(self) -> list[str]:
        """Return the names of the settings that have no effect now."""
        return ["offset_alpha"] if self.values["offsets"] in WITHOUT_RIDGE else []

    def to_sample(self, values: Mapping[str, Any]) -> tuple[Any, Any, Any]:
        """Return a random part of the data, which a sampler sees, and the others."""
        X, share = self.matrix, values["validation"]
        split = split_observed(X, share, values["seed"]) if share else (X, None)
        return *split, None

    def to_fit(self, run: FitRun) -> None:
        """Give the data to a fit, which holds out entries itself."""
        run.X = self.matrix

    def judged(self) -> Judged:
        """Return the held-out ratings, or without any some that are seen."""
        entries, hidden = self.observations, self.fit.hidden
        if hidden is not None:
            return Judged(hidden.values, *hidden.positions)
        rows, columns, x = entries.select(in_sample(entries.n_observed, MAX_JUDGED)).entries()
        return Judged(x, rows, columns, "where seen")

    # Predictions for the row that is asked for, or for the new person

    def ask_for(self, label: str) -> None:
        """Show a row by its label, or the new person, whose row is None; else tell the problem."""
        self.asked, self.row, self.problem = label, None, ""
        names = [*map(str, self.row_labels)]
        if label != YOU and label not in names:
            hint = f"the first is {names[0]!r}, the last {names[-1]!r}"
            self.problem = f"no row is labelled {label!r}: {hint}."
        if label != YOU:
            self.row = 0 if self.problem else names.index(label)

    @property
    def sorting(self) -> str:
        """The order of the suggestions; those for a row have no difference for it alone."""
        return self.sort if self.row is None else self.sort.replace("for_you", "highest")

    def model_of(self, stars: Any = None, *, whole: bool = False) -> Any:
        """Return the draws, or the fit without what is off, and where the row is there.

        None without a model.  A new person, who may have other `stars`, needs a fit that has ended.
        The `whole` fit is that with all components.
        """
        off, row = [] if whole else self.off, self.row
        model: Any = None if whole or off else self.posterior
        if model is None:
            ended = None if self.fit.phase == "running" else self.fit.result
            model = ended if row is None else self.shown
        if row is None and model is not None:
            model, row = self._folded(model, dict(self.stars if stars is None else stars)), 0
        return model.without(off) if off and model is not None else model, row

    def _folded(self, model: Decomposition | Posterior, stars: dict[int, float]) -> Any:
        """Return fitted values or a posterior of one row with such ratings."""

        def folded() -> Any:
            row = np.full((1, self.shape[1]), np.nan)
            row[0, list(stars)] = list(stars.values())
            weights = np.full(row.shape, OWN)
            w: Any = model.fold_in(row, weights=weights, unknown="offsets")
            if isinstance(model, Posterior):
                return w
            of_row = w.coords["offset"].values if "offset" in w.coords else None
            offsets = model._fitted.offsets._replace(rows=of_row)
            return model._fitted._replace(W=w.values, offsets=offsets)

        return self.memo(f"{type(model).__name__} {len(stars)}", folded, model, stars)

    def predicted(self, stars: Any = None) -> Array:
        """Return the predictions of all columns, NaN without a model."""
        (model, at), n = self.model_of(stars), self.shape[1]
        if isinstance(model, Posterior):
            return np.asarray(model.predict(entries_at(at, np.arange(n))))
        return np.full(n, np.nan) if model is None else np.asarray(model.block([at])[0])

    def intervals(self, columns: Array) -> Array:
        """Return the ends of the intervals of some columns, NaN without draws."""
        model, at = self.model_of()
        if not isinstance(model, Posterior) or not columns.size:
            return np.full((columns.size, 2), np.nan)
        return np.asarray(model.predict_interval(entries_at(at, columns), level=LEVEL))

    def added(self) -> Array:
        """Return what the stars of the new person add to the predictions; NaN without any."""
        has_stars = self.row is None and bool(self.stars)
        return self.predicted() - (self.predicted({}) if has_stars else math.nan)

    def because(self, column: int) -> dict[int, float]:
        """Return by how much each star of the new person moves one column more than others."""
        stars, now = self.stars, self.predicted()
        less = ({j: x for j, x in stars.items() if j != k} for k in stars)
        added = [now - self.predicted(each) for each in less]
        return {k: float(x[column] - x.mean()) for k, x in zip(stars, added, strict=True)}

    def entries(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the ratings of the row, or what a new person can rate, and the best others."""
        sort, added, entries = self.sorting, self.added(), self.observations
        known = pd.Series(self.stars, dtype=float)
        if self.row is not None:
            of_row = slice(*entries.indptr[self.row : self.row + 2])
            known = pd.Series(entries.values[of_row], entries.indices[of_row])
        every = pd.DataFrame({"predicted": self.predicted(), "n": self.counts})
        every = every.assign(rating=known, for_you=added - added.mean())
        rows, columns = (self.fit if self.posterior is None else self.sample).unseen
        every["hidden"] = every.index.isin(columns[rows == self.row])
        rated = every["rating"].notna()
        listed = every[rated].sort_values(["hidden", "rating"], ascending=False)[:MAX_LISTED]
        listed = every.loc[self.offered_columns] if self.row is None else listed
        others = every[(every["n"] >= self.least) & every["predicted"].notna() & ~rated]
        if sort == "surest":
            others = others.assign(surest=self.intervals(others.index.to_numpy())[:, 0])
        by = sort if sort in others and others[sort].notna().any() else "predicted"
        if by == "for_you":
            others = others[others["predicted"] >= others["predicted"].quantile(1 - BEST)]
        best = others.sort_values([by, "predicted"], ascending=False)[:MAX_LISTED]
        return self._with_ends(listed), self._with_ends(best)

    def _with_ends(self, entries: pd.DataFrame) -> pd.DataFrame:
        """Return entries with titles, and their predictions and intervals within the scale."""
        scale, at = self.limits or (-np.inf, np.inf), entries.index.to_numpy()
        low, high = self.intervals(at).clip(*scale).T
        entries = entries.assign(low=low, high=high, predicted=entries["predicted"].clip(*scale))
        return entries.assign(label=self.column_titles(at), near=self._near(at))

    # The sentence

    @property
    def title(self) -> str:
        """The data and their size."""
        m, n = self.shape
        things = f"{many(n, self.what)} by {many(m, self.who)}"
        return f"{many(self.observations.n_observed, 'rating')} of {things}"

    # The page

    def select(self, selection: dict[str, Any] | None) -> None:
        """Show the entries of the row that was picked, also if it is the only one of a lasso."""
        before, now = self.selection or {}, selection or {}
        super().select(selection)
        row, rows = now.get("row"), now.get("rows") or []
        if row is None or row == before.get("row"):
            row = rows[0] if len(rows) == 1 and rows != before.get("rows") else None
        if row is not None:
            self.ask_for(str(self.row_labels[row]))

    def _ask(self, message: Mapping[str, Any]) -> None:
        """Change the row, the order of the list, or look for an item that can be rated."""
        name, text = message["name"], message["value"]
        self.search = text if name == "search" else ""
        if name == "row":
            self.before = self.before if self.asked == YOU else self.asked
            self.ask_for(text.strip())
        elif name == "item" and text:
            if not (found := self.columns_with(text)):
                raise ValueError(f"no title holds {text.strip()!r}: give another.")
            self.offered_columns = [*dict.fromkeys([found[0], *self.offered_columns])]
        elif name == "sort" and text in SORTS:
            self.sort = text
        elif name == "least" and text.isdecimal():
            self.least = int(text)

    def parts(self) -> Record:
        """Return curves, intervals, components, the map of the columns, and the lists of a row."""
        labels = self.observations.labels
        columns = self.column_titles() if self.titles else texts(labels, "columns")
        parts = super().parts()
        parts |= self.components(None, labels, columns)
        parts["facts"] |= {"lists": self._lists()}
        return parts | {"scatter": self._map(self.shown)}

    def _map(self, shown: FittedValues | None) -> Any:
        """Return the columns in the plane of two components, and where the person points."""
        if shown is None or shown.H.shape[0] < 2:
            return None
        often = np.argsort(-self.counts, kind="stable")[: at_most(3000, 1000)]
        often = often[self.counts[often] >= self.least]
        plane = plane_part(shown.H[:MAX_COMPONENTS, often].T, often) | {
            "things": f"{self.what}s",
            "labels": self.column_titles(often),
            "named": list(range(min(often.size, 120))),
        }
        model, at = self.model_of(whole=True)
        if model is not None and not self.problem and often.size:
            plane["person"] = {"name": self.asked, "weights": np.asarray(model.W[at]).tolist()}
        return plane

    def _fields(self) -> list[Record]:
        """Return the inputs above the list of ratings."""
        rows = [YOU, *map(str, self.row_labels[:500])]
        field = Field("row", "Person", "text", rows, help="Label of a row, such as a user")
        if self.row is None:
            found = self.column_titles(self.columns_with(self.search))
            about = "Words of a title, to rate it, too"
            field = Field("item", "+ title", "text", found, help=about, searched=True)
        return [field.shown({"row": self.asked, "item": ""}, {"row": self.problem})]

    def _lists(self) -> Record:
        """Return the ratings of the row or of the new person, and the best of the other columns."""
        found = () if self.problem else self.entries()
        known, best = [list(each.itertuples()) for each in found] or ([], [])
        return {
            "you": self.row is None,
            "person": self.asked,
            "turn": self.before if self.row is None else YOU,
            "fields": self._fields(),
            "levels": self.levels,
            "known": [self._line(each) | self._rating(each) for each in known],
            "top": [self._line(each) | self._gain(each) | {"n": each.n} for each in best],
            "sort": self.sorting,
            "least": self.least,
            "about": self._about({each.Index: each for each in best}),
        }

    def _rating(self, entry: Any) -> Record:
        """Return the rating of a row, hidden or not, or the number of stars of the new person."""
        if self.row is not None:
            return {"hidden": entry.hidden, "rating": f"{entry.rating:g}"}
        return {"hidden": False, "number": sum(x <= entry.rating for x in self.levels)}

    def _gain(self, entry: Any) -> Record:
        """Return what the stars of the new person add to a prediction."""
        return {} if math.isnan(entry.for_you) else {"for_you": _more(entry.for_you)}

    def _line(self, entry: Any) -> Record:
        """Return one column of the data with its prediction; its interval on the scale."""
        low, high = self.limits or (math.nan, math.nan)
        drawn, ends = not math.isnan(entry.low), None
        if drawn and high > low:
            ends = np.array([entry.low, entry.high, entry.predicted])
            ends = np.clip((ends - low) / (high - low), 0, 1).round(3).tolist()
        return {
            "column": entry.Index,
            "title": entry.label,
            "near": entry.near,
            "predicted": "" if math.isnan(entry.predicted) else f"{entry.predicted:.1f}",
            "text": f"{100 * LEVEL:.0f} %: {entry.low:.3g} to {entry.high:.3g}" if drawn else "",
            "ends": ends,
        }

    def _near(self, columns: Array) -> list[Any]:
        """Return those columns with enough ratings that are most like each of some."""
        if self.shown is None or self.active.phase == "running":
            return [[]] * columns.size
        often = np.flatnonzero(self.counts >= self.least)
        H = self.shown.H / (np.linalg.norm(self.shown.H, axis=0) + 1e-12)
        order = np.argsort(-(H[:, columns].T @ H[:, often]), axis=1, kind="stable")
        near = zip(columns, often[order[:, : MAX_NEAR + 1]].tolist(), strict=True)
        return [[k for k in each if k != column][:MAX_NEAR] for column, each in near]

    def _reasons(self, entry: Any) -> str:
        """Return which ratings of the new person raise one column, the high ones first."""
        column, ratings = entry.Index, self.stars
        of = column, dict(ratings), self.posterior, self.fit.result, self.off
        moved = self.memo("reasons", lambda: self.because(column), *of)
        liked, helps = np.mean([*ratings.values()]), [k for k in moved if moved[k] > 0.005]
        most = sorted(helps, key=lambda k: (ratings[k] < liked, -moved[k]))[:2]
        about = f"For you {_more(entry.for_you)}"
        if not most:
            return f"{about}; none of your stars alone raises it"
        titles = zip(self.column_titles(most), most, strict=True)
        why = [f"{title} {ratings[k]:g} ★ ({_more(moved[k])})" for title, k in titles]
        return f"{about}, because you gave {' and '.join(why)}"

    def _about(self, best: Mapping[Any, Any]) -> str:
        """Return what the stars of the new person do; or what is missing for suggestions."""
        column = (self.selection or {}).get("column")
        share = 100 * self.sample.done // max(self.sample.planned, 1)
        follow = f"draws follow ({share} %): with 90 % intervals, and another list"
        later = follow if self.sample.phase == "running" else ""
        later = "by the fit without what is off, which has no intervals" if self.off else later
        if self.model_of()[0] is None:
            return "suggestions follow once the model is fitted"
        if self.row is not None:
            return later or "predicted by the draws; ● are held out" * (self.posterior is not None)
        if not self.stars:
            return "give some stars: the list follows them"
        if column in best:
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
        result, data = self.fit.result, "X"
        lines = given_code("X", source, self.taking)
        if self.columns is not None:
            named = self.columns.items()
            renamed = [f"{k}={expression(name)}" for k, name in named if name != DEFAULT_COLUMNS[k]]
            lines += f"observed = {call('nmd.observations_from_table', 'X', *renamed)}\n"
            data = "observed"
        drawn = self.sample_code(data)
        if result is not None or not drawn:
            lines += fit_call(result, "complete", data, arguments)
            error = PRINT_HIDDEN.format("ratings", "fit.history.validation_rmse.values.min()")
            lines += error if arguments.get("validation") else PRINT_ERROR
            lines += "\n" * bool(drawn)
        if result is None or self.problem:
            return lines + drawn
        return lines + drawn + self._suggestions_code()

    def _suggestions_code(self) -> str:
        """Return the code that prints the suggestions for a row, or for the new person."""
        labels, entries, row, sort = self.column_labels, self.observations, self.row, self.sorting
        drawn, new = self.posterior is not None, row is None
        dim = entries.labels.columns[0]
        is_named, column = entries.labels.index(dim) is not None, expression(dim)
        who = ('"you"' if is_named else "-1") if new else expression(self.row_labels[row])
        items = f"fit.H.indexes[{column}]" if is_named else f"np.arange({labels.size})"
        stars = ", ".join(f"{expression(labels[k])}: {x!r}" for k, x in self.stars.items())
        you = "you" if is_named else "you.to_numpy()"
        model, fold = ("posterior", "fold_in") if drawn else ("fit", "append")
        folded = f'{model}.{fold}({{}}, weights=often, unknown="offsets")'
        rated = "{}:{}".format(*entries.indptr[row or 0 :][:2])
        gains = new and bool(self.stars)
        by = 'low", "stars' if drawn and sort == "surest" else "stars"
        by = 'for_you", "stars' if gains and sort == "for_you" else by
        shown = '"stars", "low", "high"' if drawn else '"stars"'
        titles = f'X.drop_duplicates({column}).set_index({column})["title"]'
        is_sparse = isinstance(self.matrix, SparseObservations)
        observed = "X" if is_sparse else "nmd.observations_from_sparse(X)"
        lines = {  # and whether they are needed
            f"observed = {observed}": self.columns is None,
            "": True,
            f"items = {items}": True,
            f'you = pd.DataFrame([{{{stars}}}], ["you"], items)': new,
            f"you, rated = {you}, items[you.notna().iloc[0]]": new,
            f"often = np.full(you.shape, {OWN})  # the few ratings count more": new,
            f"one, average = {folded.format('you')}, {folded.format('you * np.nan')}": new,
            f"one, rated = {model}, items[observed.indices[{rated}]]": not new,
            f'best = pd.DataFrame({{"stars": one.predict({who}, items)}}, items)': True,
            f"added = best.stars - average.predict({who}, items)": gains,
            'best["for_you"] = added - added.mean()': gains,
            'best["n"] = np.bincount(observed.indices, minlength=len(items))': True,
            f"best = best[(best.n >= {self.least}) & ~best.index.isin(rated)].copy()": True,
            f"ends = one.predict_interval({who}, best.index, level={LEVEL})": drawn,
            'best["low"], best["high"] = ends.T': drawn,
            f"best = best[best.stars >= best.stars.quantile({1 - BEST})]": "for_you" in by,
            f'best = best.sort_values(["{by}"], ascending=False)[:{MAX_LISTED}]': True,
            f"best[[{shown}]] = best[[{shown}]].clip{self.limits}": self.limits is not None,
            f'best["title"] = {titles}': self.titled,
            "print(best.round(2).to_string())": True,
        }
        return "".join(f"{line}\n" for line, is_needed in lines.items() if is_needed)


def _more(stars: float) -> str:
    """Return by how many stars something is more, with two decimals, and no -0.00."""
    return f"{round(stars, 2) + 0.0:+.2f}"
