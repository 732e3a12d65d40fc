"""A person that is not in the data: ratings of some items, whose row is folded into a fit."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.result.decomposition import Decomposition

from .code import call, expression
from .ratings import Ratings

OFFERED, FOUND = 8, 12
"""Numbers of items that are offered at first, and of those that a search finds."""

MOST_LEVELS, LEVELS = 10, 5
"""Largest number of different ratings that stars can give, and their number if there are more."""


class NewPerson:
    """Ratings by position of the column, and the columns that can be rated, which are offered."""

    def __init__(self, data: Ratings) -> None:
        self.data = data
        self.ratings: dict[int, float] = {}
        entries = data.observations
        counts = np.bincount(entries.indices, minlength=entries.shape[1])
        self._by_count = np.argsort(-counts, kind="stable").tolist()
        self.offered: list[int] = self._by_count[:OFFERED]
        self._folded: tuple[Decomposition, dict[int, float], FittedValues] | None = None

    @cached_property
    def levels(self) -> list[float]:
        """The ratings that stars can give: those of the data if they are few."""
        found = np.unique(self.data.observations.values)
        levels = found if found.size <= MOST_LEVELS else np.linspace(found[0], found[-1], LEVELS)
        return [float(each) for each in levels]

    @cached_property
    def _titles(self) -> list[str]:
        return [title.casefold() for title in self.data.column_titles()]

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

    def fitted(self, fit: Decomposition) -> FittedValues:
        """Return the model of this one row, with the H of a fit."""
        last = self._folded
        if last is None or last[0] is not fit or last[1] != self.ratings:
            row = np.full((1, fit.shape[1]), np.nan)
            row[0, list(self.ratings)] = list(self.ratings.values())
            w = fit.fold_in(row, unknown="offsets")
            offsets = fit.fitted.offsets
            if "offset" in w.coords:
                offsets = offsets._replace(rows=w.coords["offset"].values)
            last = fit, dict(self.ratings), fit.fitted._replace(W=w.values, offsets=offsets)
            self._folded = last
        return last[2]

    def code(self) -> str:
        """Return the code that prints the suggestions; an empty string without ratings."""
        columns, labels = list(self.ratings), self.data.labels("columns")
        if not columns:
            return ""
        if labels.dtype != object:  # positions
            row = f"np.full((1, {labels.size}), np.nan)\nyou[0, {columns}] = "
            row += f"{list(self.ratings.values())}"
            return _CODE.format("numpy as np", row, f"-1, exclude={columns}")
        rated = ", ".join(f"{expression(labels[k])}: {x!r}" for k, x in self.ratings.items())
        series = call("pd.Series", f"{{{rated}}}", name="you")
        return _CODE.format("pandas as pd", series, '"you", exclude=you')


_CODE = "\nimport {}\n\nyou = {}\nprint(fit.append(you).top({}))\n"
