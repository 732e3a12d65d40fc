"""State of the completion explorer: ratings, settings, fit, a new person; no widget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nmd_lab.data.inputs import observe
from nmd_lab.data.labels import is_frame
from nmd_lab.data.long_table import observations_from_table
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.data.typed_table import long_table_columns
from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.request.options import OFFSETS
from nmd_lab.request.settings import ADMM, SPLITS
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.entries import entries_at
from nmd_lab.result.posterior import Posterior
from nmd_lab.result.summary import validation_error

from .background import Measure, Memo, Positions, error_of_means, in_sample
from .charts import order_of
from .history import WITHOUT_RIDGE, Field, default_nonlinearity, hidden_fields
from .live import LEVEL, Begun
from .matrix_state import MOST_COMPARED, loading_lines
from .model_state import DRAWS, ITERATIONS, MODEL, MOST_JUDGED, ModelState, Numbers
from .words import PRINT_ERROR, PRINT_HIDDEN, call, expression, fit_call

# Columns of a long table that hold the labels and the values unless others are named
DEFAULT_COLUMNS = {"row": "user", "column": "item", "value": "rating"}

LISTED = 50  # largest number of entries in a list
BEST = 0.25  # fraction of the columns, those with the highest predictions, ordered for a person
OFFERED, FOUND = 8, 12  # numbers of items that are offered at first, and that a search finds
MOST_LEVELS, LEVELS = 10, 5  # different ratings that stars can give, and their number if more


class Ratings(NamedTuple):
    """Partly observed data."""

    matrix: Any  # the data as `nmd_lab.complete` takes them
    observations: SparseObservations  # the observed entries
    titles: Mapping[Any, str]  # titles by column label, such as the names of films
    titled: bool = False  # whether the titles are a column of the data

    def labels(self, axis: Literal["rows", "columns"]) -> NDArray[Any]:
        """Return the labels of the rows or of the columns; their positions if there are none."""
        labels, shape = self.observations.labels, self.observations.shape
        dims, size = (labels.rows, shape[0]) if axis == "rows" else (labels.columns, shape[1])
        index = labels.coords.indexes.get(dims[0]) if len(dims) == 1 else None
        return np.arange(size) if index is None else np.asarray(index, dtype=object)

    def column_titles(self, columns: Any = slice(None)) -> list[str]:
        """Return the titles of columns, or their labels where there are none."""
        return [str(self.titles.get(label, label)) for label in self.labels("columns")[columns]]

    def find(self, label: str) -> int:
        """Return the position of the row with a label, as the user writes it."""
        names = [str(name) for name in self.labels("rows")]
        name = label.strip()
        if name not in names:
            hint = f"the first is {names[0]!r}, the last {names[-1]!r}"
            raise ValueError(f"no row is labelled {name!r}: {hint}.")
        return names.index(name)


def as_ratings(
    X: Any, columns: Mapping[str, str] | None, titles: Mapping[Any, str] | None
) -> Ratings:
    """Return data, a long table if they have columns, as sparse observations."""
    titled = (
        columns is not None and titles is None and "title" in set(X.columns) - {*columns.values()}
    )
    if columns is not None:
        if titled:
            distinct = X.drop_duplicates(columns["column"])
            titles = dict(zip(distinct[columns["column"]], distinct["title"], strict=True))
        X = observations_from_table(X, **columns)
    return Ratings(X, observe(X).as_sparse(), titles or {}, titled)


def reading_code(table: str, columns: Mapping[str, str]) -> str:
    """Return the code that makes the observations ``observed`` of a long table."""
    renamed = [
        f"{key}={expression(name)}" for key, name in columns.items() if name != DEFAULT_COLUMNS[key]
    ]
    return f"observed = {call('nmd.observations_from_table', table, *renamed)}\n"


def table_columns(X: Any, asked: Mapping[str, str] = DEFAULT_COLUMNS) -> dict[str, str] | None:
    """Return the columns of a long table, or None if the data are none."""
    if not is_frame(X):
        return None
    named = {role: name for role, name in asked.items() if name != DEFAULT_COLUMNS[role]}
    columns = long_table_columns(X.columns, named)
    return columns if columns and (named or not X[columns["row"]].is_unique) else None


class NewPerson:
    """Ratings by position of the column, and the columns that can be rated, which are offered."""

    def __init__(self, data: Ratings) -> None:
        self.data = data
        self.ratings: dict[int, float] = {}
        entries = data.observations
        self.counts = np.bincount(entries.indices, minlength=entries.shape[1])
        self._by_count = np.argsort(-self.counts, kind="stable").tolist()
        self.offered: list[int] = self._by_count[:OFFERED]
        self._memo = Memo()
        self._titles = [title.casefold() for title in data.column_titles()]
        found = np.unique(entries.values).astype(float)
        ends = float(found[0]), float(found[-1])
        has_scale = found.size <= MOST_LEVELS
        self.ends = ends if has_scale else None  # of the scale of ratings, if there is one
        # The ratings that stars can give: those of the data if they are few
        self.levels: list[float] = (found if has_scale else np.linspace(*ends, LEVELS)).tolist()

    def rate(self, column: int, number: int) -> None:
        """Give the rating with a number among the levels, from 1; 0 takes it back."""
        self.ratings.pop(column, None)
        if number > 0:
            self.ratings[column] = self.levels[number - 1]

    def search(self, text: str) -> list[int]:
        """Return columns whose titles hold a text: that with just this title, then by ratings."""
        sought = text.strip().casefold()
        found = [k for k in self._by_count if sought and sought in self._titles[k]]
        return sorted(found, key=lambda k: self._titles[k] != sought)[:FOUND]

    def offer(self, text: str) -> None:
        """Offer the first item that a search finds."""
        found = self.search(text)
        if not found:
            raise ValueError(f"no title holds {text.strip()!r}: give another.")
        self.offered = [found[0], *(k for k in self.offered if k != found[0])]

    def folded(
        self, model: Decomposition | Posterior, ratings: Mapping[int, float] | None = None
    ) -> Any:
        """Return fitted values or a posterior of this one row, or of one with other ratings."""
        ratings = dict(self.ratings if ratings is None else ratings)

        def folded() -> FittedValues | Posterior:
            row = np.full((1, model._shape[1]), np.nan)
            row[0, list(ratings)] = list(ratings.values())
            if isinstance(model, Posterior):
                return model.fold_in(row, unknown="offsets")
            w, offsets = model.fold_in(row, unknown="offsets"), model._fitted.offsets
            if "offset" in w.coords:
                offsets = offsets._replace(rows=w.coords["offset"].values)
            return model._fitted._replace(W=w.values, offsets=offsets)

        return self._memo(f"{type(model).__name__} {len(ratings)}", folded, model, ratings)

    def code(self, row: int | None, sort: str, least: int, *, drawn: bool) -> str:
        """Return the code that prints the suggestions for a row, or for the new person."""
        labels, entries = self.data.labels("columns"), self.data.observations
        is_named = labels.dtype == object
        model, fold = ("posterior", "fold_in") if drawn else ("fit", "append")
        who = '"you"' if is_named else "-1"
        named = f'fit.H.indexes["{entries.labels.columns[0]}"]'
        lines = ["", f"items = {named if is_named else f'np.arange({labels.size})'}"]
        if row is None:
            stars = (f"{expression(labels[k])}: {x!r}" for k, x in self.ratings.items())
            folded = f'{model}.{fold}({{}}, unknown="offsets")'
            lines += [
                f'you = pd.DataFrame([{{{", ".join(stars)}}}], ["you"], items)',
                f"you, rated = you{'' if is_named else '.to_numpy()'}, items[you.notna().iloc[0]]",
                f"one, average = {folded.format('you')}, {folded.format('you * np.nan')}",
            ]
        else:
            who = expression(self.data.labels("rows")[row])
            begin, end = entries.indptr[row : row + 2]
            lines += [f"one, rated = {model}, items[observed.indices[{begin}:{end}]]"]
        lines += [f'best = pd.DataFrame({{"stars": one.predict({who}, items)}}, items)']
        if row is None and self.ratings:
            lines += [
                f"added = best.stars - average.predict({who}, items)",
                'best["for_you"] = (added - added.mean()).round(1) + 0.0',
            ]
        lines += [
            'best["n"] = np.bincount(observed.indices, minlength=len(items))',
            f"best = best[(best.n >= {least}) & ~best.index.isin(rated)].copy()",
        ]
        shown, by = '"stars"', "stars"
        if drawn:
            shown, by = '"stars", "low", "high"', "low" if sort == "surest" else by
            lines += [f"ends = one.predict_interval({who}, best.index, level={LEVEL})"]
            lines += ['best["low"], best["high"] = ends.T']
        if sort == "for_you" and row is None and self.ratings:
            by = 'for_you", "stars'
            lines += [f"best = best[best.stars >= best.stars.quantile({1 - BEST})]"]
        lines += [f'best = best.sort_values(["{by}"], ascending=False)[:{LISTED}]']
        if self.ends is not None:
            lines += [f"best[[{shown}]] = best[[{shown}]].clip{self.ends}"]
        if self.data.titled:
            column = expression(entries.labels.columns[0])
            titles = f'X.drop_duplicates({column}).set_index({column})["title"]'
            lines += [f'best["title"] = {titles}']
        return "\n".join([*lines, "print(best.round(1).to_string())", ""])


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
