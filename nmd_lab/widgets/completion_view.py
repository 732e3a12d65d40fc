"""The completion explorer: validation error while it fits, and predictions for single rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ipywidgets as widgets

from ._completion_data import DEFAULT_COLUMNS
from ._controls import Control, toggle_class
from ._curves import Panel
from ._intervals import LEVEL
from ._live_chart import LiveChart
from ._row_entries import Entry
from ._tables import Cell, html_table, number_text
from .completion_state import CompletionState
from .fields import Field
from .sampling_explorer import SamplingExplorer


class CompletionExplorer(SamplingExplorer):
    """Complete ratings or any partly observed matrix, and look at single rows.

    Parameters
    ----------
    ratings : DataFrame, scipy.sparse matrix, SparseObservations or array_like, optional
        A long table with one observation a line, or anything that `nmd_lab.complete` takes; by
        default a data set of the library, which is chosen in the explorer.
    row, column, value : str, default "user", "item" and "rating"
        Columns of a long table that hold the labels and the values.  Where a default name is not in
        the table, a usual one takes its place, such as userId, movieId or stars.
    titles : mapping, optional
        Titles by column label; by default the table's column "title", if there is one.
    **settings
        Starting values of the controls: data, validation, seed, nonlinearity, low, high, rank,
        alpha, offsets, offset_alpha, constraint, patience, iterations, draws.  By default,
        nonlinearity, rank, alpha, offsets and offset_alpha are "auto": chosen by held-out entries
        at Run, which then shows them in the controls.

    Attributes
    ----------
    result : Decomposition or None
        Result of the iterations so far.
    posterior : Posterior or None
        Draws that "How sure?" has made.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> explorer = nmd.widgets.CompletionExplorer(data="generated", rank=3, alpha=5.0)
    >>> explorer.start()
    >>> explorer.join(60), explorer.result.rank
    (True, 3)
    >>> explorer.how_sure()
    >>> explorer.join(60), explorer.posterior.predict_interval(0, [0, 1]).shape
    (True, (2, 2))
    """

    state: CompletionState

    def __init__(
        self,
        ratings: Any = None,
        *,
        row: str = DEFAULT_COLUMNS["row"],
        column: str = DEFAULT_COLUMNS["column"],
        value: str = DEFAULT_COLUMNS["value"],
        titles: Mapping[Any, str] | None = None,
        **settings: Any,
    ) -> None:
        state = CompletionState(
            ratings, row=row, column=column, value=value, titles=titles, **settings
        )
        self._query: dict[str, Any] = {"row": str(state.data.labels("rows")[0]), "top": 10}
        self._shown_data = state.values["data"]
        super().__init__(state, "completion.nc")

    def body(self) -> Sequence[Any]:
        """Return the curves, what the posterior says, the search and the two tables."""
        self._curves = LiveChart(
            [
                Panel("error of held-out entries (RMSE)", {"held_out": "held out"}, "held_out"),
                Panel("relative error of the others", {"relative_error": "observed"}),
            ]
        )
        self.chart = self._curves.view
        self.search = Control(
            Field("row", "Row", "text", help="Label of a row, such as a user"),
            self._query["row"],
            self._suggestions(),
            self._ask,
        )
        self.top = Control(
            Field("top", "How many", "integer", help="Number of entries in each table"),
            self._query["top"],
            (),
            self._ask,
        )
        self.tables = [widgets.HTML().add_class("nmd-table") for _ in range(2)]
        for table, name in zip(self.tables, ("known", "top"), strict=True):
            table.add_class(f"nmd-{name}")
        query = widgets.Box([self.search.box, self.top.box]).add_class("nmd-tables")
        return (
            self.chart,
            self._curves.caption,
            *self._findings(),
            widgets.HTML("values and predictions of one row").add_class("nmd-heading"),
            query,
            widgets.Box(self.tables).add_class("nmd-tables"),
        )

    def _suggestions(self, count: int = 500) -> list[str]:
        """Return the labels of the first rows."""
        return [str(label) for label in self.state.data.labels("rows")[:count]]

    def code(self) -> str:
        """Return a notebook cell that repeats the fit and the draws."""
        return self.state.code(self._data_name(self.state.ratings, "ratings"))

    def draw(self) -> None:
        """Show the curves so far, and the entries of the chosen row."""
        self._curves.show(self.fit.curves, self.fit.held_out)
        if self._shown_data != self.state.values["data"]:
            self._shown_data = self.state.values["data"]
            labels = self._suggestions()
            self.search.input.options = labels
            self._query["row"] = self.search.input.value = labels[0]
        self._show_entries()

    def _ask(self, name: str, value: Any) -> None:
        """Change the row or the number of its entries."""
        self._query[name] = value
        self._refresh()

    def _show_entries(self) -> None:
        """Show the two tables, or what is wrong with the query."""
        top, row, no_row = self._query["top"], 0, ""
        try:
            row = self.state.data.find(self._query["row"])
        except ValueError as error:
            no_row = str(error)
        is_count = isinstance(top, int) and top >= 1
        wrong_top = "" if is_count else f"{top!r} is no number of entries: give one from 1 on"
        self.search.show(no_row, None)
        self.top.show(wrong_top, None)
        if no_row or wrong_top:
            return
        self._show_findings(row)
        observed, best = self.state.entries(row, top)
        sure = self.state.is_sampled
        for table in self.tables:
            toggle_class(table, "nmd-sure", sure)
        self.tables[0].value = html_table(
            ("observed", "value", *_heads(sure)),
            [[_label(entry), _number(entry.observed), *_model(entry, sure)] for entry in observed],
        )
        self.tables[1].value = (
            html_table(
                ("best of the others", *_heads(sure)),
                [[_label(entry), *_model(entry, sure)] for entry in best],
            )
            if best
            else "predictions come with a fit"
        )


def _label(entry: Entry) -> Cell:
    """Return the label of an entry, whose tooltip shows it in full."""
    return Cell(entry.label, tooltip=entry.label)


def _heads(sure: bool) -> list[str]:
    """Return the heads of the columns of the model; `sure` adds the intervals."""
    return ["predicted", *([f"{100 * LEVEL:.0f} % interval"] if sure else [])]


def _model(entry: Entry, sure: bool) -> list[Cell]:
    """Return what the model says of an entry."""
    ends = " – ".join(number_text(end, 3) for end in (entry.low, entry.high))
    return [_number(entry.predicted), *([Cell(ends)] if sure else [])]


def _number(number: float) -> Cell:
    """Return a number with three digits."""
    return Cell(number_text(number, 3))
