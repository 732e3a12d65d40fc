"""The completion explorer: validation while it fits, and what it says of a single row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import ipywidgets as widgets

from ._charts import Curves, Panel
from ._controls import Control
from .code import name_of
from .completion_state import CompletionState, Entry
from .explorer import Explorer
from .fields import Field

SUGGESTED = 500
"""Row labels that are offered for completion in the search."""


class CompletionExplorer(Explorer):
    """Complete ratings, or any partly observed matrix, by hand, and ask for single rows.

    Parameters
    ----------
    ratings : DataFrame, scipy.sparse matrix, SparseObservations or array_like, optional
        A long table with one observation a line, or anything that `nmd_lab.complete` takes;
        without it a set is chosen in the explorer.
    row, column, value : str, default "user", "item" and "rating"
        For a table: which of its columns hold the labels and the values.
    titles : mapping, optional
        Words for the labels of columns; by default the table's column "title", if there is one.
    **settings
        Where the controls begin: data, validation, seed, rank, alpha, offsets, constraint,
        patience, iterations.

    Attributes
    ----------
    result : Decomposition or None
        The fit as far as it has come.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> explorer = nmd.widgets.CompletionExplorer(data="generated", rank=3, iterations=20)
    >>> explorer.start()
    >>> explorer.join(60), explorer.result.rank
    (True, 3)
    """

    def __init__(
        self,
        ratings: Any = None,
        *,
        row: str = "user",
        column: str = "item",
        value: str = "rating",
        titles: Mapping[Any, str] | None = None,
        **settings: Any,
    ) -> None:
        state = CompletionState(
            ratings, row=row, column=column, value=value, titles=titles, **settings
        )
        self._asked: dict[str, Any] = {"row": str(state.data.labels("rows")[0]), "top": 10}
        self._source = state.values["data"]
        self._drawn = -1
        super().__init__(state, "completion.nc")

    @property
    def state(self) -> CompletionState:
        """What the explorer knows."""
        state: CompletionState = self._state
        return state

    def body(self) -> Sequence[Any]:
        """Return the curves, the search and the two tables."""
        self.chart = widgets.Image().add_class("nmd-chart").add_class("nmd-plot")
        self._curves = Curves(
            [
                Panel("error of held-out entries (RMSE)", {"validation_rmse": "held out"}),
                Panel("relative error of the others", {"relative_error": "observed"}),
            ]
        )
        self.search = Control(
            Field("row", "Row", "words", help="The label of a row, such as a user"),
            self._asked["row"],
            [str(label) for label in self._state.data.labels("rows")[:SUGGESTED]],
            self._ask,
        )
        self.top = Control(
            Field("top", "How many", "integer", help="Entries in each table"), 10, (), self._ask
        )
        self.tables = [widgets.HTML().add_class("nmd-table") for _ in range(2)]
        for table, name in zip(self.tables, ("known", "top"), strict=True):
            table.add_class(f"nmd-{name}")
        asked = widgets.Box([self.search.box, self.top.box]).add_class("nmd-tables")
        return (
            self.chart,
            widgets.HTML("what it says of one row").add_class("nmd-heading"),
            asked,
            widgets.Box(self.tables).add_class("nmd-tables"),
        )

    def code(self) -> str:
        """Return a cell that repeats the fit."""
        ratings = self.state.ratings
        name = name_of(ratings) if ratings is not None else None
        if ratings is not None and name is None:
            mine = name_of(self)
            name = f"{mine}.state.ratings" if mine else None
        return self.state.code(name)

    def draw(self) -> None:
        """Show the curves so far, and the tables of the row that was asked for."""
        curves = self.fit.curves
        count = len(curves.get("iteration", ()))
        self.chart.layout.display = None if count else "none"
        if count and count != self._drawn:
            self.chart.value = self._curves.draw(
                {name: (curves["iteration"], numbers) for name, numbers in curves.items()}
            )
        self._drawn = count
        if self._source != self.state.values["data"]:
            self._source = self.state.values["data"]
            labels = [str(label) for label in self.state.data.labels("rows")]
            self.search.input.options = labels[:SUGGESTED]
            self._asked["row"] = self.search.input.value = labels[0]
        self._show_entries()

    def _ask(self, name: str, value: Any) -> None:
        self._asked[name] = value
        self._refresh()

    def _show_entries(self) -> None:
        problem = ""
        try:
            row = self.state.data.find(self._asked["row"])
        except ValueError as error:
            problem = str(error)
        wrong = "" if self._asked["top"] >= 1 else f"{self._asked['top']} is no number of entries"
        self.search.show(problem, None)
        self.top.show(wrong, None)
        if problem or wrong:
            return
        known, best = self.state.entries(row, self._asked["top"])
        self.tables[0].value = _table("known", ("value", "predicted"), known)
        self.tables[1].value = (
            _table("best of the others", ("predicted",), best)
            if best
            else "predictions come with a fit"
        )


def _table(title: str, columns: Sequence[str], entries: Sequence[Entry]) -> str:
    """Return entries as an HTML table."""
    head = "".join(f"<th>{name}</th>" for name in columns)
    rows = ""
    for entry in entries:
        numbers = [entry.predicted] if len(columns) == 1 else [entry.known, entry.predicted]
        cells = "".join(f"<td>{'–' if math.isnan(x) else f'{x:.3g}'}</td>" for x in numbers)
        label = escape(entry.label)
        rows += f'<tr><td title="{label}">{label}</td>{cells}</tr>'
    return f"<table><thead><tr><th>{title}</th>{head}</tr></thead><tbody>{rows}</tbody></table>"
