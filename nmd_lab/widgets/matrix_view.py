"""The explorers of a matrix, and of a fit or a posterior without its data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from nmd_lab._sampling import sentence_of_chains
from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.result.posterior import Posterior
from nmd_lab.result.selection import as_text
from nmd_lab.result.summary import headline
from nmd_lab.solver.state import State

from .background import Latest
from .charts import (
    Panel,
    curves_part,
    errors_table,
    row_texts,
    size_text,
    table,
    texts,
    trials_charts,
)
from .history import History, PastRun
from .matrix_data import MatrixData, Paint
from .matrix_state import CORRUPTING, DecompositionState, FittedState
from .pictures import Frame, at, frame_of, mean_at, pictures_part, spread_at
from .tables import Grid, Order
from .view import ModelView, View


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
        self._painted = Latest[float]()
        trying = "Try ranks by held-out entries, and fit with the best one"
        self.buttons["scan"] = "Find the rank", trying
        self.actions |= {
            "scan": self._scan,
            "brush": self._brush,
            "undo": lambda _: self.state.undo(),
            "unpaint": lambda _: self.state.unpaint(),
            "iteration": self._show_iteration,
            "arrange": self._arrange,
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
        return size_text(self.state.values["data"], (m, n), share, is_table=columns is not None)

    def headline(self) -> dict[str, Any] | None:
        """Return the error where entries are hidden, beside that of the rivals."""
        errors, hidden = self.state.errors, self.state.hidden
        if not errors:
            return super().headline()
        (_, error), *rivals = [(name, hidden.in_units(each)) for name, each in errors.items()]
        words, fit, data = hidden.words, self.result, self.state.fitted_data
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
        fitted = None if state is None else state.fitted
        shown = None if fitted is None else fitted.without(self.factors.off(fitted))
        if shown is not None:
            parts["modelled"] = frame.arranged(frame.means(data.shape, shown.block))
        elif posterior is not None:
            parts["modelled"] = frame.arranged(mean_at(posterior, frame))
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
        wrong = {*CORRUPTING, "shape"} & set(self.state.problems())
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
        if any(self.state.values[name] != fitted.get(name) for name in CORRUPTING):
            return None
        if self._chosen_iteration is None or self._chosen_iteration[:2] != self._run():
            return fit.state
        return fit.recording.snapshots[self._chosen_iteration[2]]

    def _run(self) -> tuple[Any, int]:
        """Return what tells the present run from others, and from its continuation."""
        return self.state.fit.recording, self.state.fit.done

    def _rows(self, data: MatrixData, fitted: FittedValues | None) -> Any:
        """Return selected rows, or those of a component; None for neither."""
        return self.factors.shown_rows(fitted, self.selection, data.shape[0])

    def _frame_of(self, data: MatrixData, state: State | None) -> Frame:
        """Return which entries are shown: selected rows, those of a component, or all."""
        rows = self._rows(data, None if state is None else state.fitted)
        key = None if rows is None else rows.tolist()
        return self._frames(
            lambda: frame_of(data.shape, data.picture, data.channels, rows), data, key
        )

    def _pictures(
        self, data: MatrixData, frame: Frame, run: PastRun | None, posterior: Posterior | None
    ) -> dict[str, Any]:
        """Return the pictures that do not change while the fit runs."""

        def pictures() -> dict[str, Any]:
            paint, same = self.state.paint, run if run and run.fit.shape == data.shape else None
            layers = {"original": at(frame, data.original), "seen": at(frame, data.observed)}
            if posterior is not None:
                layers["spread"] = spread_at(posterior, frame)
            if same is not None:
                layers["beside"] = frame.means(data.shape, same.fit.fitted.block)
            return pictures_part(
                frame,
                data.limits,
                row_texts(data.labels),
                layers,
                beside_title="" if same is None else f"run {same.number}",
                n_painted=0 if paint is None else paint.n_painted,
            )

        return self._still(pictures, data, frame, run, posterior)

    def _show_iteration(self, message: Mapping[str, Any]) -> None:
        """Show an earlier iterate; the last one follows the fit."""
        iteration = int(message["iteration"])
        if iteration not in self.state.fit.recording.snapshots.iterations:
            raise ValueError(f"iteration {iteration} is not kept: choose another.")
        self._chosen_iteration = *self._run(), iteration

    def _arrange(self, message: Mapping[str, Any]) -> None:
        """Sort the rows of a table by a column, or show other ones."""
        self._order = self._order.after(message)

    def _brush(self, stroke: Mapping[str, Any]) -> None:
        """Hide or reveal what the brush has touched, and go on from the present factors."""
        data, frame, paint = self._data(), self.frame(), self.state.paint
        if data is None or frame is None:
            raise ValueError("the settings of the data are wrong: put them right first.")
        paint = Paint(data.shape) if paint is None else paint
        self.state.repaint(paint.touched(frame, stroke))

    def _scan(self, _: Mapping[str, Any]) -> None:
        """Try ranks by held-out entries, and fit with the best one."""
        self.state.set("rank", "auto")
        self.state.start()


class ResultView(View):
    """What was made of data: nothing can be fitted here."""

    state: FittedState
    can_fit = False
    fitted: FittedValues | None = None

    def __init__(self, state: FittedState, name: str) -> None:
        made_of = None if state.path is not None else state.decomposition
        super().__init__(state, f"{name}-copy.nc", (made_of, "decomposition"))
        self.name = name

    @property
    def title(self) -> str:
        """What is shown, and its size."""
        return size_text(self.name, self.state.decomposition.shape)

    def cannot_run(self) -> str:
        """Return why nothing runs here."""
        return f"a {self.name} holds no data: give the data to make a new one"

    def frame(self) -> Frame:
        """Return which entries are shown: rows that were picked or of a component, or all."""
        shape = self.state.decomposition.shape
        rows = self.factors.shown_rows(self.fitted, self.selection, shape[0])
        return frame_of(shape, self.state.picture, rows=rows)


class FitView(ResultView):
    """Facts, reconstruction, curves, trials, components and the plane of the rows."""

    def __init__(self, state: FittedState) -> None:
        super().__init__(state, "fit")
        fit = state.decomposition
        state.fit.show(fit)
        self.fitted: FittedValues = fit.fitted
        self._trials = trials_charts(fit)
        self.actions |= self.factors.actions
        self._panels = [Panel("relative error", {"relative_error": "observed"})]
        if "validation_rmse" in fit.history:
            held_out = {"held_out": "held out"}
            self._panels.insert(0, Panel("error of held-out entries (RMSE)", held_out, "held_out"))

    def parts(self, history: History) -> dict[str, Any]:
        """Return all parts."""
        fit, frame = self.state.decomposition, self.frame()
        window = frame.means(fit.shape, self.fitted.without(self.factors.off(self.fitted)).block)
        limits = float(np.nanmin(window)), float(np.nanmax(window))
        facts = [
            ("model", f"X ≈ {fit.nonlinearity}(W H), loss {fit.loss.name}, rank {fit.rank}"),
            ("size", f"{fit.shape[0]} x {fit.shape[1]}"),
            ("relative error", f"{fit.relative_error:.4g}"),
            ("iterations", f"{fit.n_iter} in {float(fit.history.seconds[-1]):.2f} s"),
            ("ended", str(fit.stop_reason)),
            *fit._choice.items(),
        ]
        return {
            "curves": curves_part(self._panels, self.state.fit.recording),
            "pictures": pictures_part(frame, limits, texts(fit.labels, "rows"), {}),
            "modelled": frame.arranged(window),
            "dots": self._trials,
            "tables": [table("facts", ("", ""), facts)],
            **self.factors.parts(self.fitted, frame, fit.labels, ""),
            "drawing": self.factors.drawing(self.fitted, frame, fit.labels),
        }


class PosteriorView(ResultView):
    """Facts, posterior mean and standard deviation."""

    def __init__(self, state: FittedState) -> None:
        super().__init__(state, "posterior")
        self.posterior: Posterior = state.decomposition
        warning = sentence_of_chains(self.posterior)
        state.fit.phase, state.fit.message = "finished", str(self.posterior.stop_reason)
        state.fit.warnings = (warning,) if warning else ()
        self._drawn = Latest[dict[str, Any]]()

    @property
    def result(self) -> Posterior:
        """The posterior."""
        return self.posterior

    def headline(self) -> None:
        """Say nothing: a posterior knows no held-out error."""

    def parts(self, history: History) -> dict[str, Any]:
        """Return all parts; the pictures are computed anew for other rows."""
        frame = self.frame()
        drawn = self._drawn(lambda: self._pictures(frame), frame.rows.tolist())
        facts = [[name, text] for name, text in self.posterior._facts.items() if text]
        return {**drawn, "tables": [table("facts", ("", ""), facts)]}

    def _pictures(self, frame: Frame) -> dict[str, Any]:
        """Return the posterior mean and its standard deviation."""
        mean, spread = mean_at(self.posterior, frame), spread_at(self.posterior, frame)
        limits, names = (float(mean.min()), float(mean.max())), texts(self.posterior.labels, "rows")
        return {
            "pictures": pictures_part(frame, limits, names, {"spread": spread}),
            "modelled": frame.arranged(mean),
        }
