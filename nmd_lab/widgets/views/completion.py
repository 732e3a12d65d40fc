"""The completion explorer: held-out error while it fits, and predictions for single rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.widgets.live.findings import LEVEL
from nmd_lab.widgets.parts.axis_labels import texts
from nmd_lab.widgets.parts.bar_texts import size_text
from nmd_lab.widgets.parts.charts import trials_charts
from nmd_lab.widgets.parts.controls import value_of
from nmd_lab.widgets.parts.curves import Panel, curves_part
from nmd_lab.widgets.parts.factors import FactorsPart, lost_text
from nmd_lab.widgets.parts.tables import number_text, table
from nmd_lab.widgets.states.completion import CompletionState
from nmd_lab.widgets.states.row_entries import Entry

from .history import History
from .sampling import SamplingView

PANELS = (
    Panel("error of held-out entries (RMSE)", {"held_out": "held out"}, "held_out"),
    Panel("relative error of the others", {"relative_error": "observed"}),
)

MOST_SUGGESTIONS = 500
"""Number of row labels that are suggested."""


class CompletionView(SamplingView):
    """Curves, what the posterior says, components, and the entries of one row."""

    state: CompletionState

    def __init__(self, state: CompletionState) -> None:
        super().__init__(state, "completion.nc")
        self.query: dict[str, Any] = {"top": 10}
        self.factors = FactorsPart()
        self._of_data: tuple[Any, list[str]] | None = None
        self._first_row()
        self.actions |= self.factors.actions | {"ask": self._ask}

    @property
    def source(self) -> tuple[Any, str]:
        """What the user gave, and the attribute of the state that holds it."""
        return self.state.ratings, "ratings"

    @property
    def title(self) -> str:
        """The data and their size."""
        entries = self.state.observations
        name = self.state.values["data"]
        return size_text(name, entries.shape, entries.n_observed / np.prod(entries.shape))

    def setting_changed(self, name: str) -> None:
        """Ask for the first row of other data."""
        if name == "data":
            self._first_row()
            self.factors.forget()

    def select(self, selection: dict[str, Any] | None) -> None:
        """Show the entries of the row that was picked."""
        super().select(selection)
        row = (selection or {}).get("row")
        if row is not None:
            self.query["row"] = str(self.state.data.labels("rows")[row])

    def parts(self, history: History) -> dict[str, Any]:
        """Return curves, intervals, components, plane and the entries of a row."""
        shown, fit = self.state.shown, self.state.fit
        row, problems = self._asked()
        parts: dict[str, Any] = {
            "curves": curves_part(PANELS, fit.recording, history.overlays(self.state)),
            "dots": self.intervals() | trials_charts(fit.result),
            "tables": [] if problems else self._tables(row, self.query["top"]),
            "facts": {"query": self._query(problems)},
        }
        said = "" if shown is None else self._said(shown)
        labels = self.state.observations.labels
        parts |= self.factors.parts(shown, None, labels, said, self._columns())
        return parts

    def _columns(self) -> list[str]:
        """Return the titles or labels of the columns; an empty list if there are none."""
        data = self.state.data
        if self._of_data is None or self._of_data[0] is not data:
            names = texts(data.observations.labels, "columns")
            titles = {str(label): title for label, title in data.titles.items()}
            columns = [titles.get(name, name) for name in names]
            if not columns and data.titles:
                columns = [str(data.titles.get(k, k)) for k in data.labels("columns")]
            self._of_data = data, columns
        return self._of_data[1]

    def _first_row(self) -> None:
        """Ask for the first row."""
        self.query["row"] = str(self.state.data.labels("rows")[0])

    def _ask(self, message: Mapping[str, Any]) -> None:
        """Change the row or the number of its entries."""
        kind = "integer" if message["name"] == "top" else "text"
        self.query[message["name"]] = value_of(message["value"], kind)

    def _asked(self) -> tuple[int, dict[str, str]]:
        """Return the row of the query, and what is wrong with it."""
        row, problems, top = 0, {}, self.query["top"]
        try:
            row = self.state.data.find(self.query["row"])
        except ValueError as error:
            problems["row"] = str(error)
        if not isinstance(top, int) or top < 1:
            problems["top"] = f"{top!r} is no number of entries: give one from 1 on."
        return row, problems

    def _query(self, problems: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return the two inputs above the tables."""
        labels = [str(label) for label in self.state.data.labels("rows")[:MOST_SUGGESTIONS]]
        common = {"group": "", "auto": False, "reason": ""}
        return [
            common | {
                "name": "row", "label": "Row", "kind": "text", "value": self.query["row"],
                "help": "Label of a row, such as a user", "problem": problems.get("row", ""),
                "options": [[label, label] for label in labels],
            },
            common | {
                "name": "top", "label": "How many", "kind": "integer",
                "value": str(self.query["top"]), "help": "Number of entries in each table",
                "problem": problems.get("top", ""), "options": [],
            },
        ]  # fmt: skip

    def _tables(self, row: int, top: int) -> list[dict[str, Any]]:
        """Return the tables of the known and of the best other entries of a row."""
        observed, best = self.state.entries(row, top)
        sure = self.state.is_sampled
        heads = ["predicted", *([f"{100 * LEVEL:.0f} % interval"] if sure else [])]
        seen = self.state.seen(row, [entry.column for entry in observed])
        rows = [
            [entry.label, number_text(entry.observed, 3), *_model(entry, sure), mark]
            for entry, mark in zip(observed, seen, strict=True)
        ]
        head = ("observed", "value", *heads, "by the fit")
        tables = [table("known", head, rows, ids=[e.column for e in observed])]
        if best:
            rows = [[entry.label, *_model(entry, sure)] for entry in best]
            tables.append(
                table("top", ("best of the others", *heads), rows, ids=[e.column for e in best])
            )
        else:
            tables.append(table("top", ("predictions come with a fit",), []))
        return tables

    def _said(self, fitted: FittedValues) -> str:
        """Return what is lost without some components, and the rows of the chosen one."""
        said, off = [], self.factors.off(fitted)
        if off and self.state.fit.phase != "running":
            said.append(lost_text(off, *self.state.loss_without(fitted, off)))
        labels, rows = self.state.data.labels("rows"), self.factors.rows(fitted)
        if rows is not None:
            named = ", ".join(str(labels[row]) for row in rows)
            said.append(f"rows with most of component {self.factors.chosen}: {named}")
        return "; ".join(said)


def _model(entry: Entry, sure: bool) -> list[str]:
    """Return what the model says of an entry; `sure` adds the interval."""
    ends = " – ".join(number_text(end, 3) for end in (entry.low, entry.high))
    return [number_text(entry.predicted, 3), *([ends] if sure else [])]
