"""The completion explorer: held-out error while it fits, and predictions for single rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.result.summary import headline_of

from .charts import Panel, number_text, size_text, table, texts
from .components import signs_of
from .history import History
from .live_sample import LEVEL
from .ratings_state import CompletionState, Entry
from .settings import Field, value_of
from .view import ModelView

MOST_SUGGESTIONS = 500  # number of row labels that are suggested
HIDDEN = "● "  # mark in front of an entry that the fit has not seen
LISTED = 50  # largest number of entries in a list
YOU = "you"  # label of a person who is not in the data


class CompletionView(ModelView):
    """Curves, results of the posterior, components, and the entries of one row."""

    state: CompletionState
    panels = (
        Panel("error of held-out entries (RMSE)", {"held_out": "held out"}, "held_out"),
        Panel("relative error of the others", {"relative_error": "observed"}),
    )
    other_models = ("data",)

    def __init__(self, state: CompletionState) -> None:
        super().__init__(state, "completion.nc", (state.ratings, "ratings"))
        self.before = self.search = ""
        self._first_row()
        self.actions |= {
            "ask": self._ask,
            "rate": lambda m: self.state.person.rate(m["column"], m["number"]),
        }

    @property
    def title(self) -> str:
        """The data and their size."""
        entries = self.state.observations
        name = self.state.values["data"]
        return size_text(name, entries.shape, entries.n_observed / np.prod(entries.shape))

    def setting_changed(self, name: str) -> None:
        """Ask for the first row of other data."""
        super().setting_changed(name)
        if name == "data":
            self._first_row()

    def headline(self) -> dict[str, Any] | None:
        """Return the error where ratings are hidden, compared with that of the rivals."""
        return None if self.result is None else headline_of(self.result, self.state.errors)

    def select(self, selection: dict[str, Any] | None) -> None:
        """Show the entries of the row that was picked, also if it is the only one of a lasso."""
        before, now = self.selection or {}, selection or {}
        super().select(selection)
        row, rows = now.get("row"), now.get("rows") or []
        if row is None or row == before.get("row"):
            row = rows[0] if len(rows) == 1 and rows != before.get("rows") else None
        if row is not None:
            self.asked = str(self.state.data.labels("rows")[row])

    def parts(self, history: History, *_: Any) -> dict[str, Any]:
        """Return curves, intervals, components, plane and the entries of a row."""
        state, shown = self.state, self.state.shown
        row, problem = self._row()
        labels, data = state.observations.labels, state.data
        columns = data.column_titles() if data.titles else texts(labels, "columns")
        said = "; ".join(filter(None, (self.lost(shown), self._typical(shown))))
        parts = super().parts(history) | {
            "tables": [] if problem else self._tables(row),
            "facts": {"query": self._query(problem), "you": self.before if row is None else None},
            **self.factors.parts(shown, None, labels, said, columns),
        }
        fitted, at = state.fitted_row(row)
        if parts.get("scatter") and fitted is not None and not problem:
            plane, signs = parts["scatter"], signs_of(shown or fitted)
            x, y = (float(fitted.W[at, k] * signs[k]) for k in (plane["a"], plane["b"]))
            plane["person"] = {"name": self.asked, "x": x, "y": y}
        return parts

    def _first_row(self) -> None:
        """Ask for the first row."""
        self.asked = str(self.state.data.labels("rows")[0])

    def _ask(self, message: Mapping[str, Any]) -> None:
        """Change the row, or look for an item that the new person can rate."""
        name, text = message["name"], value_of(message["value"], "text")
        self.search = text if name == "search" else ""
        if name == "row":
            self.before = self.before if self.asked == YOU else self.asked
            self.asked = text.strip()
        elif name == "item" and text:
            self.state.person.offer(text)

    def _row(self) -> tuple[int | None, str]:
        """Return the row that is asked for, None for the new person, and what is wrong with it."""
        if self.asked == YOU:
            return None, ""
        try:
            return self.state.data.find(self.asked), ""
        except ValueError as error:
            return 0, str(error)

    def _query(self, problem: str) -> list[dict[str, Any]]:
        """Return the inputs above the tables."""
        data, person = self.state.data, self.state.person
        rows = [YOU, *map(str, data.labels("rows")[:MOST_SUGGESTIONS])]
        query = [Field("row", "Person", "text", rows, help="Label of a row, such as a user")]
        if self.asked == YOU:
            found = data.column_titles(person.search(self.search))
            about = "Words of a title, to rate it, too"
            query.append(Field("item", "Add", "text", found, help=about, searched=True))
        values = {"row": self.asked, "item": ""}
        return [field.shown(values, {"row": problem}) for field in query]

    def _tables(self, row: int | None) -> list[dict[str, Any]]:
        """Return the tables of the ratings and of the best predictions for the others."""
        rated, best = self.state.entries(row, LISTED)
        predicted = "fit" if self.state.draws is None else "draws"
        ratings = self._ratings(row, rated, predicted)
        if not best:
            return [ratings, table("top", ("predictions come with a fit",), [])]
        # A new person has all columns from the start: stars stay where they are
        columns = {"suggested": [e.label for e in best]}
        columns[predicted] = [number_text(e.predicted, 3) for e in best]
        columns["n"] = [str(e.n_ratings) for e in best]
        if row is None:
            columns["for you"] = [_text("{:+.2f}", e.for_you) for e in best]
        if row is None or self.state.draws is not None:
            ends = [_text("{:.3g} – {:.3g}", e.low, e.high) for e in best]
            columns[f"{100 * LEVEL:.0f} % interval"] = ends
        rows = [list(cells) for cells in zip(*columns.values(), strict=True)]
        return [ratings, table("top", list(columns), rows, ids=[e.column for e in best])]

    def _ratings(self, row: int | None, rated: list[Entry], predicted: str) -> dict[str, Any]:
        """Return the ratings of a row, marked if they are hidden, or those of the new person."""
        ids, rows = [entry.column for entry in rated], []
        hidden = set() if row is None else set(self.state.hidden_of(row).tolist())
        for entry in rated:
            label = f"{HIDDEN if entry.column in hidden else ''}{entry.label}"
            value = "" if row is None else f"{entry.observed:g}"
            rows.append([label, value, number_text(entry.predicted, 3)])
        if row is not None:
            name = f"rated ({HIDDEN}hidden)" if hidden else "rated"
            return table("known", (name, "value", predicted), rows, ids=ids)
        levels, ratings = self.state.person.levels, self.state.person.ratings
        stars = [levels.index(ratings[k]) + 1 if k in ratings else 0 for k in ids]
        rows = [[label, number] for label, _, number in rows]  # the page has stars for the value
        shown = table("known", ("your ratings", "", predicted), rows, ids=ids)
        return shown | {"ratings": levels, "rated": stars}

    def _typical(self, shown: FittedValues | None) -> str:
        """Return the rows of the chosen component in words."""
        rows = None if shown is None else self.factors.rows(shown)
        if rows is None:
            return ""
        named = ", ".join(str(label) for label in self.state.data.labels("rows")[rows])
        return f"rows with most of component {self.factors.chosen}: {named}"


def _text(form: str, *numbers: float) -> str:
    """Return numbers as text; an empty one for NaN."""
    return "" if math.isnan(numbers[0]) else form.format(*numbers)
