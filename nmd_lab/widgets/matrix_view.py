"""The explorers of a matrix, and of a fit or a posterior without its data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.result.posterior import Posterior
from nmd_lab.result.selection import as_text
from nmd_lab.result.summary_parts import headline
from nmd_lab.solver.state import State

from .background import Latest
from .charts import (
    Panel,
    errors_table,
    model_text,
    row_texts,
    size_text,
    texts,
)
from .history import History, PastRun
from .matrix_data import MatrixData
from .matrix_state import OF_DATA, THIS, DecompositionState
from .paint import Paint
from .pictures import Frame, at, drawn_at, frame_of, pictures_part
from .tables import Grid, Order
from .view import ModelView


class DecompositionView(ModelView):
    """Pictures of the data and of the model, the brush, components and the plane of the rows."""

    state: DecompositionState
    panels = (Panel("error where", {"relative_error": "seen", "held_out": "hidden"}, "held_out"),)
    other_models = ("data", "rank")

    def __init__(self, state: DecompositionState) -> None:
        super().__init__(state, "fit.nc", (state.given, "given"))
        self._chosen_iteration: tuple[Any, int, int] | None = None
        self._frames, self._still = Latest[Frame](), Latest[dict[str, Any]]()
        self._doubts, self._order = Latest[dict[str, Any] | None](), Order()
        self._painted, self._drawn = Latest[float](), Latest[tuple[Any, Any]]()
        self._of_draws = Latest[float]()
        trying = "Try ranks by held-out entries, and fit with the best one"
        self.buttons["scan"] = "Find the rank", trying
        if state.guessed is not None:
            self.buttons["flat"] = "Rows as numbers", "No longer show each row as a picture"
        self.actions |= {
            "flat": lambda _: self.state.set("shape", "none"),
            "scan": self._scan,
            "brush": self._brush,
            "undo": lambda _: self.state.undo(),
            "unpaint": lambda _: self.state.unpaint(),
            "iteration": self._show_iteration,
            "arrange": self._order.arrange,
        }

    @property
    def title(self) -> str:
        """The data and their size."""
        data = self.state.data if not self.state.problems() else self._data()
        if data is None:
            return ""
        share = 1 - float(np.mean(np.isnan(data.original)))
        (m, n), columns = data.shape, data.labels.table
        if columns is not None:
            n = len(columns.columns)  # classes have several columns of the matrix
        text = size_text(self.state.values["data"], (m, n), share, is_table=columns is not None)
        if self.state.values["shape"] == "auto" and self.state.guessed is not None:
            text += ", each row as a picture of {} × {}".format(*self.state.guessed)
        return text

    @property
    def _drawn_table(self) -> Posterior | None:
        """The draws that the cells of a table show; None where these are of the fit."""
        data = self.state.fitted_data
        is_table = data is not None and data.labels.table is not None
        fitted = None if self.result is None else self.result._fitted
        return self.state.draws if is_table and not self.factors.off(fitted) else None

    @property
    def model(self) -> str:
        """The model of what is shown: of the fit, or of the draws of a table."""
        drawn = self._drawn_table
        return super().model if drawn is None else f"{model_text(drawn)}, draws"

    def headline(self) -> dict[str, Any] | None:
        """Return the error where entries are hidden, compared with that of the rivals."""
        errors, hidden = self.state.errors, self.state.hidden
        if not errors:
            return super().headline()
        if (drawn := self._drawn_table) is not None:
            of_draws = self._of_draws(
                lambda: hidden.error_of_draws(drawn, self.result), drawn, self.result
            )
            others = {"the fit" if name == THIS else name: e for name, e in errors.items()}
            return headline(of_draws, f"{hidden.words}, mean of the draws", others)
        (_, error), *rivals = [(name, hidden.in_units(each)) for name, each in errors.items()]
        words, fit, data = hidden.words, self.result, self.state.fitted_data
        if (earlier := self._earlier()) is not None:
            error = hidden.in_units(self._of_draws(lambda: hidden.error(earlier), earlier))
            return headline(error, f"{words}, iteration {earlier.iteration}", dict(rivals))
        if data is not None and (paint := data.paint) is not None:
            painted = self._painted(lambda: hidden.error(fit, paint.signs < 0), fit, paint)
            if not math.isnan(painted):
                words += f", {as_text(hidden.in_units(painted), 2)} where you painted"
        return headline(error, words, dict(rivals))

    def parts(self, history: History, *_: Any) -> dict[str, Any]:
        """Return the pictures, curves, components, plane, trials and errors."""
        state, fit, hidden = self._shown_state(), self.state.fit, self.state.hidden
        data, running = self._data(), fit.phase == "running"
        iterations = [] if running else fit.recording.snapshots.iterations
        errors = {name: hidden.in_units(error) for name, error in self.state.errors.items()}
        parts = super().parts(history, hidden.sample, hidden.sizes) | {
            "tables": errors_table(errors, self.state.fitted_settings.get("rank")),
            "facts": {"iterations": iterations, "iteration": state and state.iteration},
        }
        if data is None:
            return parts
        frame = self._frame_of(data, state)
        posterior = self.state.draws
        beside = history.runs.get(history.beside or 0)
        parts["pictures"] = self._pictures(data, frame, beside, posterior)
        fitted = None if state is None else state._fitted
        shown = None if fitted is None else fitted.without(self.factors.off(fitted))
        if shown is not None:
            parts["modelled"] = frame.arranged(frame.means(data.shape, shown.block))
        elif posterior is not None:
            parts["modelled"] = frame.arranged(self._drawn_at(posterior, frame)[0])
        if data.labels.table is not None:
            drawn = Grid(data.labels.table, data.original, data.observed, shown, posterior)
            names = texts(data.labels, "rows")
            doubts = self._doubts(lambda: drawn.least_sure(names), data, posterior)
            parts["tables"] += [] if doubts is None else [doubts]
            grid = drawn._replace(posterior=None) if self.factors.off(fitted) else drawn
            parts["grid"] = grid.shown(self._rows(data, fitted), names, self._order)
            picked = self.selection or {}
            parts["facts"]["cell"] = grid.cell(picked.get("row"), picked.get("column"))
        said = [self.lost(fitted, hidden.sizes.get("relative_error"))]
        if self.factors.rows(fitted) is not None:
            said.insert(0, f"above: the rows with most of component {self.factors.chosen}")
        parts |= self.factors.parts(fitted, frame, data.labels, "; ".join(filter(None, said)))
        if data.labels.table is None and not running:
            parts["drawing"] = self.factors.drawing(fitted, frame, data.labels, data.original)
        return parts

    def frame(self) -> Frame | None:
        """Return which entries are shown as pictures; None without data."""
        data = self._data()
        return None if data is None else self._frame_of(data, self._shown_state())

    def _data(self) -> MatrixData | None:
        """Return the data of the settings, or those of the fit where the settings are wrong."""
        wrong = {*OF_DATA, "shape"} & set(self.state.problems())
        if self.state.fit.phase == "running" or wrong:
            return self.state.fitted_data
        return self.state.data

    def _shown_state(self) -> State | None:
        """Return the iterate that belongs to the data that are shown, if there is one.

        While the fit runs it is the last one, and afterwards the chosen one.
        """
        fit, fitted = self.state.fit, self.state.fitted_settings
        if fit.phase == "running" or fit.state is None:
            return fit.state
        if any(self.state.values[name] != fitted.get(name) for name in OF_DATA):
            return None
        if self._chosen_iteration is None or self._chosen_iteration[:2] != self._run():
            return fit.state
        return fit.recording.snapshots[self._chosen_iteration[2]]

    def _earlier(self) -> State | None:
        """Return the iterate that was chosen, unless it is the last one."""
        shown = self._shown_state()
        return shown if shown is not None and shown.iteration < self.state.fit.done else None

    def _run(self) -> tuple[Any, int]:
        """Return what tells the present run from others, and from its continuation."""
        return self.state.fit.recording, self.state.fit.done

    def _rows(self, data: MatrixData, fitted: FittedValues | None) -> Any:
        """Return selected rows, or those of a component; None for neither."""
        return self.factors.shown_rows(fitted, self.selection, data.shape[0])

    def _frame_of(self, data: MatrixData, state: State | None) -> Frame:
        """Return which entries are shown: selected rows, those of a component, or all."""
        rows = self._rows(data, None if state is None else state._fitted)
        key = None if rows is None else rows.tolist()
        return self._frames(
            lambda: frame_of(data.shape, data.picture, data.channels, rows), data, key
        )

    def _pictures(
        self, data: MatrixData, frame: Frame, run: PastRun | None, posterior: Posterior | None
    ) -> dict[str, Any]:
        """Return the pictures that do not change while the fit runs."""

        def pictures() -> dict[str, Any]:
            paint, same = self.state.paint, run if run and run.fit._shape == data.shape else None
            layers = {"original": at(frame, data.original), "seen": at(frame, data.observed)}
            if posterior is not None:
                layers["spread"] = self._drawn_at(posterior, frame)[1]
            if same is not None:
                layers["beside"] = frame.means(data.shape, same.fit._fitted.block)
            return pictures_part(
                frame,
                data.limits,
                row_texts(data.labels),
                layers,
                beside_title="" if same is None else f"run {same.number}",
                n_painted=0 if paint is None else paint.n_painted,
            )

        return self._still(pictures, data, frame, run, posterior)

    def _drawn_at(self, posterior: Posterior, frame: Frame) -> tuple[Any, Any]:
        """Return mean and standard deviation of a posterior where pictures are shown."""
        return self._drawn(lambda: drawn_at(posterior, frame), posterior, frame)

    def _show_iteration(self, message: Mapping[str, Any]) -> None:
        """Show an earlier iterate; the last one follows the fit."""
        iteration = int(message["iteration"])
        if iteration not in self.state.fit.recording.snapshots.iterations:
            raise ValueError(f"iteration {iteration} is not kept: choose another.")
        self._chosen_iteration = *self._run(), iteration

    def _brush(self, stroke: Mapping[str, Any]) -> None:
        """Hide or reveal what the brush has touched, and continue from the present factors."""
        data, frame, paint = self._data(), self.frame(), self.state.paint
        if data is None or frame is None:
            raise ValueError("the settings of the data are wrong: put them right first.")
        paint = Paint(data.shape) if paint is None else paint
        self.state.repaint(paint.touched(frame, stroke))

    def _scan(self, _: Mapping[str, Any]) -> None:
        """Try ranks by held-out entries, and fit with the best one."""
        self.state.set("rank", "auto")
        self.state.start()
