"""The explorer of a fit or a posterior, without its data."""

from __future__ import annotations

from typing import Any

import numpy as np

from nmd_lab.api.messages import message_of_chains
from nmd_lab.data.labels import picture_of
from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.posterior import Posterior
from nmd_lab.result.summary import fit_facts, headline_of, posterior_facts

from .background import Record, Run, is_measured
from .charts import curves_chart, table, texts, trials_charts
from .matrix_data import is_photograph
from .pictures import Frame, frame_of
from .printer import PRINT_ERROR
from .state import State
from .tables import Grid
from .words import Number, size_words

EDGE = 1.0  # percentage of the values that may lie beyond each end of the scale


class ResultState(State):
    """A fit or a posterior, of whose data nothing is known: nothing can be fitted here."""

    def __init__(
        self, outcome: Decomposition | Posterior, shape: tuple[int, int] | None = None
    ) -> None:
        super().__init__(outcome, {})
        row = outcome._labels.label_columns(np.zeros((1, outcome._shape[1])))
        self.picture = picture_of(row.isel(component=0, drop=True), shape)
        self.posterior = outcome if isinstance(outcome, Posterior) else None
        self.name = "fit" if self.posterior is None else "posterior"
        self.filename = f"{self.name}-copy.nc"
        self.buttons = {}
        self.actions["arrange"] = self.order.arrange
        if self.posterior is None:
            self.fit.recall(Run(phase="finished", message="", result=outcome))
            self.actions |= self.factors.actions
        else:
            warnings = tuple(message_of_chains(self.posterior).values())
            message = str(self.posterior.stop_reason)
            self.fit.recall(Run(phase="finished", message=message, warnings=warnings))

    @property
    def result(self) -> Any:
        """The fit or the posterior."""
        return self.input

    @property
    def choice(self) -> Any:
        """The fit, if its settings were chosen by trials."""
        is_chosen = self.posterior is None and self.input.selection.sizes["trial"]
        return self.input if is_chosen else None

    def cannot_run(self) -> str:
        """Return why nothing runs here."""
        return f"a {self.name} holds no data: give the data to make a new one"

    @property
    def title(self) -> str:
        """What is shown, and its size."""
        (m, n), table = self.input._shape, self.input._labels.table
        if table is not None:  # classes have several columns of the matrix
            return size_words(f"a {self.name} of {{}} rows × {{}} columns", (m, len(table.columns)))
        return size_words(f"a {self.name} of {{}} × {{}}", (m, n))

    def number(self, *, of_fit: bool = False) -> Number | None:
        """Return the error of a fit, by which it was chosen, or the mean SD of a posterior."""
        outcome = self.input
        if self.off:  # without data its error is not known
            return None
        if self.posterior is None:
            if not outcome.selection.sizes["trial"] or "validation_rmse" in outcome.history:
                return super().number()
            of = headline_of(outcome)
            return Number(float(of["value"]), "Its error is ", f" {of['text']}")
        if outcome._labels.table is not None:
            return None
        spread = float(np.mean(self.drawn(self.frame())[1]))
        return Number(spread, "A prediction is uncertain by ", " on average (standard deviation)")

    @property
    def shown(self) -> FittedValues | None:
        """The model of a fit with its components as they are; None of a posterior."""
        return None if self.posterior else self.input._fitted

    def frame(self) -> Frame:
        """Return which entries are shown."""
        return frame_of(self.input._shape, self.picture, rows=self.rows(self.input._shape[0]))

    def parts(self) -> Record:
        """Return facts and pictures, of a fit curves, trials, components and plane, or a table."""
        outcome, frame, fitted = self.input, self.frame(), self.shown
        names, labels, without = texts(outcome._labels, "rows"), outcome._labels, None
        parts: Record = {"facts": {}}
        if fitted is None:
            facts, (shown, spread) = posterior_facts(outcome), self.drawn(frame)
        else:
            facts, spread = fit_facts(outcome), None
            without = fitted.without(self.off)
            shown = frame.means(outcome._shape, without.block)
            parts |= self.factors.parts(fitted, frame, labels) | {
                "curves": curves_chart(curves_of(outcome.history)),
                "dots": trials_charts(outcome),
                "drawing": self.factors.drawing(fitted, frame, labels),
            }
        tables = [table("facts", ("", ""), [pair for pair in facts.items() if pair[1]])]
        if labels.table is not None:
            nothing = np.full(outcome._shape, np.nan)
            grid = Grid(labels.table, nothing, nothing, without, self.posterior)
            parts["grid"] = grid.shown(self.rows(outcome._shape[0]), names, self.order)
            doubts = self.memo("doubts", lambda: grid.least_sure(names))
            tables += [] if doubts is None else [doubts]
        # As of the data: a linear model goes a little beyond them
        low, high = np.nanpercentile(shown, (EDGE, 100 - EDGE))
        limits = float(low), float(high)
        if frame.picture is None and labels.table is None and is_photograph(shown):
            parts |= {"facts": {"stage": "photograph"}, "scatter": None}  # as of its data
        return parts | {
            "pictures": self.pictures(frame, limits, names, {"spread": spread}),
            "modelled": frame.arranged(shown),
            "tables": tables,
        }

    def lines(self, source: str | None) -> str:
        """Return the lines that show the same without an explorer."""
        if self.posterior is not None:
            return f"posterior = {source or '...'}\nprint(posterior)\n"
        reading = "" if source == "fit" else f"fit = {source or '...'}\n"
        plots = "fit.plot.convergence()\nfit.plot.components()\n"
        plots += "fit.plot.selection()\n" if self.input.selection.sizes["trial"] else ""
        return f"{reading}{PRINT_ERROR}{plots}"


def curves_of(history: Any) -> dict[str, dict[int, float]]:
    """Return the error of each iteration, where entries are hidden if some are."""
    is_hidden = "validation_rmse" in history
    errors = history["validation_rmse" if is_hidden else "relative_error"].to_series()
    shown = {k: e for k, e in errors.items() if is_measured(k) or k == len(errors)}
    return {"hidden" if is_hidden else "seen": shown}
