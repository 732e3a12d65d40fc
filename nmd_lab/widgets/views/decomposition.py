"""The decomposition explorer: pictures, brush, curves, components and errors of a fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.result.entries import entries_at
from nmd_lab.result.headline import headline
from nmd_lab.solver.state import State
from nmd_lab.widgets.parts.axis_labels import texts
from nmd_lab.widgets.parts.bar_texts import size_text
from nmd_lab.widgets.parts.charts import trials_charts
from nmd_lab.widgets.parts.curves import RESIDUALS, Panel, curves_part
from nmd_lab.widgets.parts.factors import FactorsPart, lost_text
from nmd_lab.widgets.parts.grid import Grid
from nmd_lab.widgets.parts.pictures import Shown, at, pictures_part, spread_at
from nmd_lab.widgets.parts.tables import errors_table
from nmd_lab.widgets.states.decomposition import DecompositionState
from nmd_lab.widgets.states.frame import Frame
from nmd_lab.widgets.states.matrix_data import MatrixData

from .history import History
from .sampling import SamplingView

PANELS = (
    Panel("relative error", {"relative_error": "observed", "held_out": "held out"}, "held_out"),
    RESIDUALS,
)

FITTED_SETTINGS = ("data", "noise", "level", "missing", "seed")
"""Settings that change the data of a fit."""

DATA_SETTINGS = ("data", "noise", "level", "missing", "seed", "shape")
"""Settings that change what is shown before a fit."""


class DecompositionView(SamplingView):
    """Pictures of the data and of the model, the brush, components and the plane of the rows."""

    state: DecompositionState

    def __init__(self, state: DecompositionState) -> None:
        super().__init__(state, "fit.nc")
        self.factors = FactorsPart()
        self._chosen_iteration: tuple[Any, int, int] | None = None
        self._frame: tuple[Any, Frame] | None = None
        self._still: tuple[Any, dict[str, Any]] | None = None
        self._said: tuple[Any, str] | None = None
        self.buttons["scan"] = "Find the rank"
        self.titles["scan"] = "Try ranks by held-out entries, and fit with the best one"
        self.actions |= self.factors.actions | {
            "scan": self._scan,
            "brush": self._brush,
            "brush_end": lambda _: None,
            "unpaint": lambda _: self.state.unpaint(),
            "iteration": self._show_iteration,
        }

    @property
    def source(self) -> tuple[Any, str]:
        """What the user gave, and the attribute of the state that holds it."""
        return self.state.given, "given"

    @property
    def title(self) -> str:
        """The data and their size."""
        data = self.state.data if not self.state.problems() else self._data()
        if data is None:
            return ""
        share = 1 - float(np.mean(np.isnan(data.original)))
        return size_text(self.state.values["data"], data.shape, share)

    def headline(self) -> dict[str, Any] | None:
        """Return the error where entries are hidden, beside that of the rivals."""
        errors, hidden = self.state.errors, self.state.hidden
        if not errors or hidden is None:
            return super().headline()
        (_, error), *rivals = [(name, hidden.in_units(each)) for name, each in errors.items()]
        return headline(error, hidden.words, dict(rivals))

    def parts(self, history: History) -> dict[str, Any]:
        """Return the pictures, curves, components, plane, trials and errors."""
        state, data = self._shown_state(), self._data()
        hidden = self.state.hidden
        curves = curves_part(
            PANELS,
            self.state.fit.recording,
            history.overlays(self.state),
            hidden.sample if hidden else "",
        )
        parts: dict[str, Any] = {
            "curves": curves,
            "dots": self.intervals() | trials_charts(self.state.fit.result),
            "tables": errors_table(self.state.errors, self.state.fitted_settings.get("rank")),
            "facts": {"iterations": self._iterations(), "iteration": state and state.iteration},
        }
        if data is None:
            return parts
        frame = self._frame_of(data, state)
        parts["pictures"] = self._pictures(data, frame, history)
        fitted = None if state is None else state.fitted
        if fitted is not None:
            shown = fitted.without(self.factors.off(fitted))
            parts["modelled"] = frame.arranged(frame.means(data.shape, shown.block))
        elif self.state.is_sampled and self.posterior is not None:
            mean = self.posterior.predict(entries_at(frame.rows[:, None], frame.columns))
            parts["modelled"] = frame.arranged(mean.reshape(frame.rows.size, -1))
        if data.labels.table is not None:
            parts |= self._as_table(data, fitted, parts["facts"])
        parts |= self.factors.parts(fitted, frame, data.labels, self._lost(fitted))
        if data.labels.table is None and self.state.fit.phase != "running":
            parts["drawing"] = self.factors.drawing(fitted, frame, data.original)
        return parts

    def _as_table(
        self, data: MatrixData, fitted: FittedValues | None, facts: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the table, and what the model says of the cell that was picked."""
        assert data.labels.table is not None
        posterior = self.posterior if self.state.is_sampled else None
        shown = None if fitted is None else fitted.without(self.factors.off(fitted))
        grid = Grid(data.labels.table, data.original, data.observed, shown, posterior)
        rows = self.factors.shown_rows(fitted, self.selection, data.shape[0])
        picked = self.selection or {}
        row, column = picked.get("row"), picked.get("column")
        cell = None if row is None or column is None else grid.cell(row, column)
        table = grid.shown(rows, texts(data.labels, "rows"))
        return {"grid": table, "facts": facts | {"cell": cell}}

    def place(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the entry at a pixel of a picture."""
        data = self._data()
        return {} if data is None else self._frame_of(data, self._shown_state()).entry(message)

    def setting_changed(self, name: str) -> None:
        """Forget the switched-off components of another model."""
        if name in ("data", "rank"):
            self.factors.forget()

    def why_disabled(self, name: str) -> str:
        """Return why a button has no use now, or an empty string."""
        if name == "scan":
            return next((s for n, s in self.state.problems().items() if n != "rank"), "")
        return super().why_disabled(name)

    def _data(self) -> MatrixData | None:
        """Return the data of the settings, or those of the fit where the settings are wrong."""
        fitted: MatrixData | None = getattr(self.state, "fitted_data", None)
        if self.state.fit.phase == "running" or {*DATA_SETTINGS} & set(self.state.problems()):
            return fitted
        return self.state.data

    def _shown_state(self) -> State | None:
        """Return the iterate that belongs to the data that are shown, if there is one.

        While the fit runs it is the last one, and afterwards the chosen one.
        """
        fit, fitted = self.state.fit, self.state.fitted_settings
        if fit.phase == "running" or fit.state is None:
            return fit.state
        if any(self.state.values[name] != fitted.get(name) for name in FITTED_SETTINGS):
            return None
        if self._chosen_iteration is None or self._chosen_iteration[:2] != self._run():
            return fit.state
        return fit.recording.snapshots[self._chosen_iteration[2]]

    def _run(self) -> tuple[Any, int]:
        """Return what tells the present run from others, and from its continuation."""
        return self.state.fit.recording, self.state.fit.done

    def _iterations(self) -> list[int]:
        """Return the iterations that can be shown again, once the fit has stopped."""
        fit = self.state.fit
        return [] if fit.phase == "running" else fit.recording.snapshots.iterations

    def _frame_of(self, data: MatrixData, state: State | None) -> Frame:
        """Return which entries are shown: selected rows, those of a component, or all."""
        fitted = None if state is None else state.fitted
        shown = self.factors.shown_rows(fitted, self.selection, data.shape[0])
        key = data, None if shown is None else shown.tolist()
        if self._frame is None or self._frame[0] != key:
            self._frame = key, data.frame(shown)
        return self._frame[1]

    def _pictures(self, data: MatrixData, frame: Frame, history: History) -> dict[str, Any]:
        """Return the pictures that do not change while the fit runs."""
        run = history.beside_run()
        posterior = self.posterior if self.state.is_sampled else None
        key = data, frame, run, posterior
        if self._still is None or any(
            one is not other for one, other in zip(self._still[0], key, strict=True)
        ):
            paint = self.state.paint
            shown = Shown(
                frame,
                at(frame, data.original),
                at(frame, data.observed),
                data.limits,
                texts(data.labels, "rows"),
                can_brush=True,
                n_painted=0 if paint is None else paint.n_painted,
                spread=None if posterior is None else spread_at(posterior, frame),
            )
            beside, title = None, ""
            if run is not None and run.fit.shape == data.shape:
                beside = frame.means(data.shape, run.fit.fitted.block)
                title = f"run {run.number}"
            self._still = key, pictures_part(shown, beside, title)
        return self._still[1]

    def _lost(self, fitted: FittedValues | None) -> str:
        """Return what is lost without the switched-off components."""
        off = self.factors.off(fitted)
        if fitted is None or not off or self.state.fit.phase == "running":
            return ""
        key = fitted.H, off
        if self._said is None or self._said[0][0] is not key[0] or self._said[0][1] != off:
            self._said = key, lost_text(off, *self.state.loss_without(fitted, off))
        return self._said[1]

    def _show_iteration(self, message: Mapping[str, Any]) -> None:
        """Show an earlier iterate; the last one follows the fit."""
        iteration = int(message["iteration"])
        if iteration not in self.state.fit.recording.snapshots.iterations:
            raise ValueError(f"iteration {iteration} is not kept: choose another.")
        self._chosen_iteration = *self._run(), iteration

    def brush(
        self, picture: int, points: Iterable[Sequence[float]], radius: float, *, hide: bool
    ) -> None:
        """Hide or reveal what the brush has touched, see `PaintingState.brush`."""
        data = self._data()
        if data is None:
            raise ValueError("the settings of the data are wrong: put them right first.")
        self.state.brush(self._frame_of(data, self._shown_state()), picture, points, radius, hide)

    def _brush(self, message: Mapping[str, Any]) -> None:
        """Do what a stroke asks for."""
        picture, hide = int(message["picture"]), bool(message["hide"])
        self.brush(picture, message["points"], float(message["radius"]), hide=hide)

    def _scan(self, _: Mapping[str, Any]) -> None:
        """Try ranks by held-out entries, and fit with the best one."""
        self.state.set("rank", "auto")
        self.state.start()
