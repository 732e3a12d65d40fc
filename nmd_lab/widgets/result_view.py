"""The explorer of a fit or a posterior, without its data."""

from __future__ import annotations

from typing import Any

import numpy as np

from nmd_lab._messages import message_of_chains
from nmd_lab.result.selection import choice_in_words
from nmd_lab.result.summary import headline_of, posterior_facts

from .background import Latest
from .charts import curves_chart, table, texts, trials_charts
from .history import History
from .matrix_state import FittedState
from .photograph_state import is_photograph
from .pictures import Frame, drawn_at, frame_of, pictures_part
from .tables import Grid, Order
from .view import View
from .words import Number, size_words

EDGE = 1.0  # percentage of the values that may lie beyond each end of the scale


class ResultView(View):
    """A fit or a posterior, of whose data nothing is known: nothing can be fitted here."""

    state: FittedState
    can_fit = False

    def __init__(self, state: FittedState) -> None:
        outcome = self.outcome = state.decomposition
        self.name = "fit" if state.posterior is None else "posterior"
        source = None if state.path is not None else outcome
        super().__init__(state, f"{self.name}-copy.nc", (source, "decomposition"))
        self._pictured, self._order = Latest[tuple[Any, Any]](), Order()
        self._doubts = Latest[dict[str, Any] | None]()
        self.actions["arrange"] = self._order.arrange
        if state.posterior is None:
            state.fit.show(outcome)
            state.fit.message = ""  # nothing can go on here
            self.actions |= self.factors.actions
        else:
            state.fit.phase, state.fit.message = "finished", str(outcome.stop_reason)
            state.fit.warnings = tuple(message_of_chains(outcome).values())

    @property
    def result(self) -> Any:
        """The fit or the posterior."""
        return self.outcome

    @property
    def title(self) -> str:
        """What is shown, and its size."""
        (m, n), table = self.outcome._shape, self.outcome._labels.table
        if table is not None:  # classes have several columns of the matrix
            return size_words(f"a {self.name} of {{}} rows × {{}} columns", (m, len(table.columns)))
        return size_words(f"a {self.name} of {{}} × {{}}", (m, n))

    def cannot_run(self) -> str:
        """Return why nothing runs here."""
        return f"a {self.name} holds no data: give the data to make a new one"

    def number(self) -> Number | None:
        """Return the error of a fit, or the mean standard deviation of a posterior."""
        if self.state.posterior is None:
            fit = self.outcome
            return self._chosen_number(fit) if fit.selection.sizes["trial"] else super().number()
        if self.outcome._labels.table is not None:
            return None
        spread = float(np.mean(self._drawn(self.frame())[1]))
        return Number(spread, "A prediction is uncertain by ", " on average (standard deviation)")

    def _chosen_number(self, fit: Any) -> Number | None:
        """Return the error by which the model was chosen."""
        if "validation_rmse" in fit.history:
            return super().number()
        of = headline_of(fit)
        return Number(float(of["value"]), "Its error is ", f" {of['text']}")

    def _drawn(self, frame: Frame) -> tuple[Any, Any]:
        """Return mean and standard deviation of the posterior where pictures are shown."""
        return self._pictured(lambda: drawn_at(self.outcome, frame), frame.rows.tolist())

    def frame(self) -> Frame:
        """Return which entries are shown: rows that were picked or of a component, or all."""
        rows = self.factors.shown_rows(self._fitted, self.selection, self.outcome._shape[0])
        return frame_of(self.outcome._shape, self.state.picture, rows=rows)

    def parts(self, history: History) -> dict[str, Any]:
        """Return facts and pictures, and of a fit curves, trials, components and plane."""
        outcome, frame, posterior = self.outcome, self.frame(), self.state.posterior
        if posterior is not None:
            facts = posterior_facts(outcome).items()
            shown, spread = self._drawn(frame)
            more: dict[str, Any] = {}
        else:
            fitted, facts, spread = self._fitted, self._facts(), None
            assert fitted is not None
            shown = frame.means(outcome._shape, fitted.without(self.factors.off(fitted)).block)
            more = {
                "curves": curves_chart(self._labels, self.state.fit.recording),
                "dots": trials_charts(outcome),
                **self.factors.parts(fitted, frame, outcome._labels, ""),
                "drawing": self.factors.drawing(fitted, frame, outcome._labels),
                "facts": {},
            }
        # As of the data: a linear model goes a little beyond them
        low, high = np.nanpercentile(shown, (EDGE, 100 - EDGE))
        limits = float(low), float(high)
        names = texts(outcome._labels, "rows")
        if self._pictured_as(outcome, frame, shown):
            more |= {"facts": {"stage": "photograph"}, "scatter": None}
        tables = [table("facts", ("", ""), [(name, text) for name, text in facts if text])]
        if outcome._labels.table is not None:
            more |= self._grid(names)
            doubts = self._doubts(lambda: self._table.least_sure(names), outcome)
            tables += [] if doubts is None else [doubts]
        return more | {
            "pictures": pictures_part(frame, limits, names, {"spread": spread}),
            "modelled": frame.arranged(shown),
            "tables": tables,
        }

    @staticmethod
    def _pictured_as(outcome: Any, frame: Frame, shown: Any) -> bool:
        """Return whether a matrix is one picture, as its explorer shows the data."""
        of_cases = frame.picture is not None or outcome._labels.table is not None
        return not of_cases and is_photograph(shown)

    @property
    def _table(self) -> Grid:
        """The predictions of all cells of a table, without its data."""
        outcome, posterior = self.outcome, self.state.posterior
        assert outcome._labels.table is not None
        nothing, fitted = np.full(outcome._shape, np.nan), None
        if posterior is None:
            fitted = self._fitted.without(self.factors.off(self._fitted))
        return Grid(outcome._labels.table, nothing, nothing, fitted, posterior)

    def _grid(self, names: list[str]) -> dict[str, Any]:
        """Return the cells of a table, and the one that was picked."""
        rows = self.factors.shown_rows(self._fitted, self.selection, self.outcome._shape[0])
        return {"grid": self._table.shown(rows, names, self._order), "facts": {}}

    @property
    def _labels(self) -> dict[str, str]:
        """The curves of a fit: the errors of hidden entries, or else those of all."""
        hidden = "validation_rmse" in self.outcome.history
        return {"held_out": "hidden"} if hidden else {"relative_error": "seen"}

    @property
    def _fitted(self) -> Any:
        """The model of a fit with its components by size; None of a posterior."""
        return None if self.state.posterior else self.factors.sorted(self.outcome._fitted)

    def _facts(self) -> Any:
        """Return names and texts of the details of a fit."""
        fit = self.outcome
        return [
            ("model", f"X ≈ {fit.nonlinearity}(W H), loss {fit.loss.name}, rank {fit.rank}"),
            ("size", f"{fit._shape[0]} x {fit._shape[1]}"),
            ("relative error", f"{fit.relative_error:.4g}"),
            ("iterations", f"{fit._n_iter} in {float(fit.history.seconds[-1]):.2f} s"),
            ("ended", str(fit.stop_reason)),
            *choice_in_words(fit.selection).items(),
        ]
