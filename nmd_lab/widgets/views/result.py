"""The explorers of a finished fit and of draws from a posterior, without their data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from nmd_lab._sampling import sentence_of_chains
from nmd_lab.data.pictures import picture_of
from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.files import load
from nmd_lab.result.posterior import Posterior
from nmd_lab.widgets.latest import Latest
from nmd_lab.widgets.parts.charts import RESIDUALS, Panel, curves_part, trials_charts
from nmd_lab.widgets.parts.factors import FactorsPart
from nmd_lab.widgets.parts.pictures import Frame, frame_of, mean_at, pictures_part, spread_at
from nmd_lab.widgets.parts.texts import size_text, table, texts
from nmd_lab.widgets.states.code import PRINT_ERROR, call
from nmd_lab.widgets.states.fields import FitState

from .history import History
from .view import View


class FittedState(FitState):
    """A finished fit or a posterior, without the data that it was made of."""

    def __init__(
        self,
        fit: Decomposition | Posterior | str | os.PathLike[str],
        shape: tuple[int, int] | None = None,
    ) -> None:
        super().__init__({}, {})
        self.path = Path(fit) if isinstance(fit, str | os.PathLike) else None
        self.decomposition: Any = load(fit) if isinstance(fit, str | os.PathLike) else fit
        row = self.decomposition.labels.label_columns(np.zeros((1, self.decomposition.shape[1])))
        self.picture = picture_of(row.isel(component=0, drop=True), shape)

    @property
    def posterior(self) -> Posterior | None:
        """The posterior, if it is one."""
        return self.decomposition if isinstance(self.decomposition, Posterior) else None

    def code(self, name: str | None = None) -> str:
        """Return a notebook cell that shows the same without an explorer."""
        source = name or "..."
        if self.path is not None:
            source = call("nmd.load", f'"{self.path.as_posix()}"')
        if self.posterior is not None:
            return f"import nmd_lab as nmd\n\nposterior = {source}\nprint(posterior)\n"
        reading = "" if source == "fit" else f"fit = {source}\n"
        plots = "fit.plot.convergence()\nfit.plot.components()\n"
        plots += "fit.plot.selection()\n" if self.decomposition._choice else ""
        return f"import nmd_lab as nmd\n\n{reading}{PRINT_ERROR}{plots}"


class ResultView(View):
    """What was made of data: nothing can be fitted here."""

    state: FittedState
    can_fit = False
    fitted: FittedValues | None = None

    def __init__(self, state: FittedState, name: str) -> None:
        made_of = None if state.path is not None else state.decomposition
        super().__init__(state, f"{name}-copy.nc", (made_of, "decomposition"))
        self.name, self.factors = name, FactorsPart()

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
        elif "primal_residual" in fit.history:
            self._panels.append(RESIDUALS)

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
            "drawing": self.factors.drawing(self.fitted, frame),
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
