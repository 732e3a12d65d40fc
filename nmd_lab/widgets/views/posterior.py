"""The explorer of draws from a posterior: its mean, how sure it is, and whether it has settled."""

from __future__ import annotations

from typing import Any

import numpy as np

from nmd_lab._sample_warnings import sentence_of_chains
from nmd_lab.result.entries import entries_at
from nmd_lab.result.posterior.posterior import Posterior
from nmd_lab.widgets.parts.axis_labels import texts
from nmd_lab.widgets.parts.bar_texts import size_text
from nmd_lab.widgets.parts.pictures import Shown, pictures_part, spread_at
from nmd_lab.widgets.parts.tables import table
from nmd_lab.widgets.states.frame import Frame, frame_of

from .fit import FittedState
from .history import History
from .view import View


class PosteriorView(View):
    """Facts, posterior mean and standard deviation."""

    state: FittedState
    can_fit = False

    def __init__(self, state: FittedState) -> None:
        super().__init__(state, "posterior-copy.nc")
        self.posterior: Posterior = state.decomposition
        warning = sentence_of_chains(self.posterior)
        state.fit.phase, state.fit.message = "finished", str(self.posterior.stop_reason)
        state.fit.warnings = (warning,) if warning else ()
        self._drawn: tuple[list[int], dict[str, Any]] | None = None

    @property
    def source(self) -> tuple[Any, str]:
        """The posterior, unless it is from a file."""
        return (None if self.state.path is not None else self.posterior), "decomposition"

    @property
    def result(self) -> Posterior:
        """The posterior."""
        return self.posterior

    @property
    def title(self) -> str:
        """What is shown, and its size."""
        return size_text("posterior", self.state.decomposition.shape)

    def place(self, message: Any) -> dict[str, Any]:
        """Return the entry at a pixel of a picture."""
        return self._frame().entry(message)

    def headline(self) -> None:
        """Say nothing: a posterior knows no held-out error."""

    def cannot_run(self) -> str:
        """Return why nothing runs here."""
        return "a posterior holds no data: give the data to make a new one"

    def parts(self, history: History) -> dict[str, Any]:
        """Return all parts; the pictures are computed anew for other rows."""
        frame = self._frame()
        if self._drawn is None or self._drawn[0] != frame.rows.tolist():
            self._drawn = frame.rows.tolist(), self._pictures(frame)
        facts = [[name, text] for name, text in self.posterior._facts.items() if text]
        return {**self._drawn[1], "tables": [table("facts", ("", ""), facts)]}

    def _pictures(self, frame: Frame) -> dict[str, Any]:
        """Return the posterior mean and its standard deviation."""
        mean = self.posterior.predict(entries_at(frame.rows[:, None], frame.columns))
        limits, names = (float(mean.min()), float(mean.max())), texts(self.posterior.labels, "rows")
        shown = Shown(frame, None, None, limits, names, spread_at(self.posterior, frame))
        modelled = frame.arranged(mean.reshape(frame.rows.size, -1))
        return {"pictures": pictures_part(shown), "modelled": modelled}

    def _frame(self) -> Frame:
        """Return which entries are shown: rows that were picked, or all."""
        m = self.posterior.shape[0]
        rows = [row for row in (self.selection or {}).get("rows") or [] if row < m]
        picked = np.array(rows, dtype=np.intp)
        return frame_of(self.posterior.shape, self.state.picture, rows=picked)
