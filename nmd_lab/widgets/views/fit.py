"""The explorer of a finished fit: reconstruction, history, components and the plane of the rows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nmd_lab.data.pictures import Picture, picture_of
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.loading import load
from nmd_lab.result.posterior.posterior import Posterior
from nmd_lab.widgets.parts.axis_labels import texts
from nmd_lab.widgets.parts.bar_texts import size_text
from nmd_lab.widgets.parts.charts import trials_charts
from nmd_lab.widgets.parts.curves import RESIDUALS, Panel, curves_part
from nmd_lab.widgets.parts.factors import FactorsPart
from nmd_lab.widgets.parts.pictures import Shown, pictures_part
from nmd_lab.widgets.parts.tables import table
from nmd_lab.widgets.states.code import PRINT_ERROR, call
from nmd_lab.widgets.states.fields import FitState
from nmd_lab.widgets.states.frame import Frame, frame_of

from .history import History
from .view import View


class FittedState(FitState):
    """A finished fit or a posterior, without the data that it was made of.

    Attributes
    ----------
    decomposition : Decomposition or Posterior
        The fit, or the posterior.
    picture : Picture or None
        Layout of a row as a picture, if the rows are pictures.
    """

    def __init__(
        self,
        fit: Decomposition | Posterior | str | os.PathLike[str],
        shape: tuple[int, int] | None = None,
    ) -> None:
        self.path = Path(fit) if isinstance(fit, str | os.PathLike) else None
        self.decomposition: Any = load(fit) if isinstance(fit, str | os.PathLike) else fit
        self.options = {}
        super().__init__({})
        row = self.decomposition.labels.label_columns(np.zeros((1, self.decomposition.shape[1])))
        self.picture: Picture | None = picture_of(row.isel(component=0, drop=True), shape)

    remembers = False

    @property
    def held_out(self) -> dict[int, float]:
        """Validation errors by iteration; empty if nothing was held out."""
        history = self.decomposition.history
        if "validation_rmse" not in history:
            return {}
        errors = history.validation_rmse.values.tolist()
        return dict(zip(history.iteration.values.tolist(), errors, strict=True))

    @property
    def curves(self) -> dict[str, list[float]]:
        """The history of the fit, as `LiveFit.curves`."""
        history = self.decomposition.history
        return {str(name): history[name].values.tolist() for name in history.variables}

    def code(self, name: str | None = None) -> str:
        """Return a notebook cell that shows the same without an explorer."""
        source = name or "..."
        if self.path is not None:
            source = call("nmd.load", f'"{self.path.as_posix()}"')
        if isinstance(self.decomposition, Posterior):
            return f"import nmd_lab as nmd\n\nposterior = {source}\nprint(posterior)\n"
        reading = "" if source == "fit" else f"fit = {source}\n"
        plots = "fit.plot.convergence()\nfit.plot.components()\n"
        if self.decomposition._choice:
            plots += "fit.plot.selection()\n"
        return f"import nmd_lab as nmd\n\n{reading}{PRINT_ERROR}{plots}"


class FitView(View):
    """Facts, reconstruction, curves, trials, components and the plane of the rows."""

    state: FittedState
    can_fit = False

    def __init__(self, state: FittedState) -> None:
        super().__init__(state, "fit-copy.nc")
        state.fit.show(state.decomposition)
        self.factors, self._fitted = FactorsPart(), state.decomposition.fitted
        self._trials = trials_charts(state.decomposition)
        self.actions |= self.factors.actions

    @property
    def source(self) -> tuple[Any, str]:
        """The fit, unless it is from a file."""
        return (None if self.state.path is not None else self.state.decomposition), "decomposition"

    @property
    def title(self) -> str:
        """What is shown, and its size."""
        return size_text("fit", self.state.decomposition.shape)

    def place(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the entry at a pixel of a picture."""
        return self._frame().entry(message)

    def cannot_run(self) -> str:
        """Return why nothing runs here."""
        return "a fit holds no data: give the data to make a new one"

    def parts(self, history: History) -> dict[str, Any]:
        """Return all parts."""
        state, fit = self.state, self.state.decomposition
        frame = self._frame()
        shown = self._fitted.without(self.factors.off(self._fitted))
        window = frame.means(fit.shape, shown.block)
        limits = float(np.nanmin(window)), float(np.nanmax(window))
        names = texts(fit.labels, "rows")
        held_out = {"held_out": "held out"}
        panels = [Panel("error of held-out entries (RMSE)", held_out, "held_out")]
        panels = panels * bool(state.held_out) + [
            Panel("relative error", {"relative_error": "observed"})
        ]
        if "primal_residual" in state.curves:
            panels.append(RESIDUALS)
        facts = [list(each) for each in _facts(fit)]
        return {
            "curves": curves_part(panels[:2], state),
            "pictures": pictures_part(Shown(frame, None, None, limits, names)),
            "modelled": frame.arranged(window),
            "dots": self._trials,
            "tables": [table("facts", ("", ""), facts)],
            **self.factors.parts(self._fitted, frame, fit.labels, ""),
            "drawing": self.factors.drawing(self._fitted, frame),
        }

    def _frame(self) -> Frame:
        """Return which entries are shown."""
        fit = self.state.decomposition
        rows = self.factors.shown_rows(self._fitted, self.selection, fit.shape[0])
        return frame_of(fit.shape, self.state.picture, rows=rows)


def _facts(fit: Decomposition) -> list[tuple[str, str]]:
    """Return what a fit is, in pairs of a name and a text."""
    m, n = fit.shape
    return [
        ("model", f"X ≈ {fit.nonlinearity}(W H), loss {fit.loss.name}, rank {fit.rank}"),
        ("size", f"{m} x {n}"),
        ("relative error", f"{fit.relative_error:.4g}"),
        ("iterations", f"{fit.n_iter} in {float(fit.history.seconds[-1]):.2f} s"),
        ("ended", str(fit.stop_reason)),
        *fit._choice.items(),
    ]
