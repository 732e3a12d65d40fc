"""A person that is not in the data: ratings of some items, whose row is folded into a fit."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.posterior.posterior import Posterior
from nmd_lab.widgets.latest import Latest

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
        self._folded: defaultdict[Any, Latest[Any]] = defaultdict(Latest)

    @cached_property
    def levels(self) -> list[float]:
        """The ratings that stars can give: those of the data if they are few."""
        found = self._found
        levels = found if self.ends else np.linspace(found[0], found[-1], LEVELS)
        return [float(each) for each in levels]

    @property
    def ends(self) -> tuple[float, float] | None:
        """The ends of the scale of ratings; None if there are so many that there is no scale."""
        found = self._found
        return (float(found[0]), float(found[-1])) if found.size <= MOST_LEVELS else None

    @cached_property
    def _found(self) -> NDArray[Any]:
        return np.unique(self.data.observations.values)

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

    def fitted(self, fit: Decomposition, *, rated: bool = True) -> FittedValues:
        """Return the model of this one row, or of one without ratings, with the H of a fit."""
        found: FittedValues = self._once(self._fitted, fit, self.ratings if rated else {})
        return found

    def drawn(self, posterior: Posterior, *, rated: bool = True) -> Posterior:
        """Return the posterior of this one row, or of one without ratings."""
        found: Posterior = self._once(self._drawn, posterior, self.ratings if rated else {})
        return found

    def _once(self, fold_in: Any, model: Any, ratings: dict[int, float]) -> Any:
        """Return a model of one row, worked out again only if ratings or model are other ones."""

        def folded() -> Any:
            row = np.full((1, model.shape[1]), np.nan)
            row[0, list(ratings)] = list(ratings.values())
            return fold_in(model, row)

        latest = self._folded[fold_in.__name__, bool(ratings)]
        return latest(folded, model, dict(ratings))

    def _fitted(self, fit: Decomposition, row: NDArray[Any]) -> FittedValues:
        w = fit.fold_in(row, unknown="offsets")
        offsets = fit.fitted.offsets
        if "offset" in w.coords:
            offsets = offsets._replace(rows=w.coords["offset"].values)
        return fit.fitted._replace(W=w.values, offsets=offsets)

    def _drawn(self, posterior: Posterior, row: NDArray[Any]) -> Posterior:
        return posterior.fold_in(row, unknown="offsets")

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
