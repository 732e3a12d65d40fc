"""Ratings of a long table or a sparse matrix, and the stars of a person who is not in them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd

from nmd_lab.data.inputs import observe
from nmd_lab.data.labels import is_frame, pandas_of
from nmd_lab.data.long_table import observations_from_table
from nmd_lab.data.typed_table import long_table_columns
from nmd_lab.fit.held_out import HeldOut
from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.posterior import Posterior

from .background import Array, Memo
from .given import taken
from .printer import call, expression
from .words import LEVEL

# Columns of a long table that hold the labels and the values unless others are named
DEFAULT_COLUMNS = {"row": "user", "column": "item", "value": "rating"}

MAX_LISTED = 50  # entries in a list
# Weight of the few ratings of a new person: with 6 of MovieLens it lowers the error there from 0.82
# to 0.67, and that of all other ratings from 0.91 to 0.90; with 16 that is 0.92
OWN = 4.0
BEST = 0.25  # fraction of the columns, those with the highest predictions, ordered for a person


class Ratings:
    """Partly observed data, and the stars that a new person gives to some columns.

    Parameters
    ----------
    X : DataFrame, sparse matrix or observations
        The data as the user gave them.
    columns : mapping or None
        Columns of a long table; None for other data.
    titles : mapping, optional
        Titles by column label, such as the names of films; by default a column of the table.
    """

    def __init__(
        self, X: Any, columns: Mapping[str, str] | None, titles: Mapping[Any, str] | None = None
    ) -> None:
        table = pandas_of(X)
        # What makes the table, with one line for each pair, behind the name of the data
        self.code = ".to_pandas()" * (table is not X and not isinstance(X, pd.DataFrame))
        self.columns, self.titled = columns, False
        if columns is not None:
            pair, value = [columns["row"], columns["column"]], columns["value"]
            if table.duplicated(pair).any():
                mean = f".groupby({expression(pair)}, as_index=False)[{expression(value)}].mean()"
                table, self.code = taken(table, mean), self.code + mean
            self.titled = titles is None and "title" in set(table.columns) - {*columns.values()}
            if self.titled:
                distinct = table.drop_duplicates(columns["column"])
                titles = dict(zip(distinct[columns["column"]], distinct["title"], strict=True))
            table = observations_from_table(table, **columns)
        self.matrix, self.titles = table, titles or {}  # the data as `nmd_lab.complete` takes them
        self.observations = entries = observe(table).as_sparse()
        self.counts = np.bincount(entries.indices, minlength=entries.shape[1])
        self._by_count = np.argsort(-self.counts, kind="stable").tolist()
        self.offered: list[int] = self._by_count[:8]  # columns that the new person can rate
        self.stars: dict[int, float] = {}  # ratings of the new person by position of the column
        found = np.unique(entries.values).astype(float)
        ends, has_scale = (float(found[0]), float(found[-1])), found.size <= 10
        self.ends = ends if has_scale else None  # of the scale of ratings, if there is one
        # The ratings that stars can give: those of the data if they are few
        self.levels: list[float] = (found if has_scale else np.linspace(*ends, 5)).tolist()
        self._memo = Memo()

    @cached_property
    def _titles(self) -> list[str]:
        """Titles as searches compare them."""
        return [title.casefold() for title in self.column_titles()]

    def labels(self, axis: Literal["rows", "columns"]) -> Array:
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
        names, name = [*map(str, self.labels("rows"))], label.strip()
        if name not in names:
            hint = f"the first is {names[0]!r}, the last {names[-1]!r}"
            raise ValueError(f"no row is labelled {name!r}: {hint}.")
        return names.index(name)

    def error_of_means(self, hidden: HeldOut) -> float:
        """Return the RMSE at hidden entries of the means of what is seen of columns, or of all."""
        (_, columns), x, n = hidden.positions, hidden.values, self.counts.size
        entries, counts = self.observations, self.counts - np.bincount(columns, minlength=n)
        sums = np.bincount(entries.indices, entries.values, n) - np.bincount(columns, x, n)
        overall = sums.sum() / max(counts.sum(), 1)
        means = np.where(counts > 0, sums / np.maximum(counts, 1), overall)
        return float(np.sqrt(np.average((x - means[columns]) ** 2, weights=hidden.weights)))

    def rate(self, column: int, number: int) -> None:
        """Give the rating with a number among the levels, from 1; 0 takes it back."""
        self.stars.pop(column, None)
        if number > 0:
            self.stars[column] = self.levels[number - 1]

    def search(self, text: str) -> list[int]:
        """Return columns whose titles hold a text: that with just this title, then by ratings."""
        sought = text.strip().casefold()
        found = [k for k in self._by_count if sought and sought in self._titles[k]]
        return sorted(found, key=lambda k: self._titles[k] != sought)[:12]

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
        ratings = dict(self.stars if ratings is None else ratings)

        def folded() -> FittedValues | Posterior:
            row = np.full((1, model._shape[1]), np.nan)
            row[0, list(ratings)] = list(ratings.values())
            weights = np.full(row.shape, OWN)
            if isinstance(model, Posterior):
                return model.fold_in(row, weights=weights, unknown="offsets")
            w = model.fold_in(row, weights=weights, unknown="offsets")
            offsets = model._fitted.offsets
            if "offset" in w.coords:
                offsets = offsets._replace(rows=w.coords["offset"].values)
            return model._fitted._replace(W=w.values, offsets=offsets)

        return self._memo(f"{type(model).__name__} {len(ratings)}", folded, model, ratings)

    def reading(self) -> str:
        """Return the code that makes the observations ``observed`` of the table ``X``."""
        named = (self.columns or {}).items()
        renamed = [f"{k}={expression(name)}" for k, name in named if name != DEFAULT_COLUMNS[k]]
        return f"observed = {call('nmd.observations_from_table', 'X', *renamed)}\n"

    def code_of(self, row: int | None, sort: str, least: int, *, drawn: bool) -> str:
        """Return the code that prints the suggestions for a row, or for the new person."""
        labels, entries, new = self.labels("columns"), self.observations, row is None
        is_named, column = labels.dtype == object, expression(entries.labels.columns[0])
        who = ('"you"' if is_named else "-1") if new else expression(self.labels("rows")[row])
        items = f"fit.H.indexes[{column}]" if is_named else f"np.arange({labels.size})"
        stars = ", ".join(f"{expression(labels[k])}: {x!r}" for k, x in self.stars.items())
        you = "you" if is_named else "you.to_numpy()"
        model, fold = ("posterior", "fold_in") if drawn else ("fit", "append")
        folded = f'{model}.{fold}({{}}, weights=often, unknown="offsets")'
        rated = "{}:{}".format(*entries.indptr[row or 0 :][:2])
        gains = new and bool(self.stars)
        by = "low" if drawn and sort == "surest" else "stars"
        by = 'for_you", "stars' if gains and sort == "for_you" else by
        shown = '"stars", "low", "high"' if drawn else '"stars"'
        titles = f'X.drop_duplicates({column}).set_index({column})["title"]'
        lines = {  # and whether they are needed
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
            f"best = best[(best.n >= {least}) & ~best.index.isin(rated)].copy()": True,
            f"ends = one.predict_interval({who}, best.index, level={LEVEL})": drawn,
            'best["low"], best["high"] = ends.T': drawn,
            f"best = best[best.stars >= best.stars.quantile({1 - BEST})]": "for_you" in by,
            f'best = best.sort_values(["{by}"], ascending=False)[:{MAX_LISTED}]': True,
            f"best[[{shown}]] = best[[{shown}]].clip{self.ends}": self.ends is not None,
            f'best["title"] = {titles}': self.titled,
            "print(best.round(2).to_string())": True,
        }
        return "\n" + "".join(f"{line}\n" for line, is_needed in lines.items() if is_needed)


def table_columns(X: Any, asked: Mapping[str, str] = DEFAULT_COLUMNS) -> dict[str, str] | None:
    """Return the columns of a long table, or None if the data are none."""
    if not is_frame(X):
        return None
    named = {role: name for role, name in asked.items() if name != DEFAULT_COLUMNS[role]}
    columns = long_table_columns(X.columns, named)
    return columns if columns and (named or not X[columns["row"]].is_unique) else None
