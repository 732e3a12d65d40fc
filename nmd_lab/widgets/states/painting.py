"""State of an explorer with a brush: hidden and revealed entries, and the fit that follows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from nmd_lab.result.decomposition import Decomposition
from nmd_lab.solver.prepare import Prepared, prepare
from nmd_lab.widgets.live.recording import Measure

from .brush import Paint
from .choice import parted
from .choosing import ChoosingState
from .frame import Frame
from .matrix_data import MatrixData

BRUSH_ITERATIONS = 100
"""Number of iterations after each stroke of the brush."""

JOIN = 5.0
"""Longest time that a stroke of the brush waits for a run to stop, in seconds."""


class PaintingState(ChoosingState):
    """Settings of a fit of a matrix whose entries can be hidden and revealed.

    Each stroke fits again from the factors before the first one, with all that is painted so far,
    so that a few lines of code repeat it.

    Parameters
    ----------
    values : dict
        Value of each field by name.

    Attributes
    ----------
    paint : Paint or None
        What the brush has done.
    before_brush : Decomposition or None
        The fit before the first stroke.
    fitted_data : MatrixData
        Data of the fit.
    """

    kept = (*ChoosingState.kept, "fitted_data", "paint", "before_brush")
    fitted_data: MatrixData

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(values)
        self.paint: Paint | None = None
        self.before_brush: Decomposition | None = None

    @property
    def data(self) -> MatrixData:
        """The data of the present settings, with the paint."""
        raise NotImplementedError

    def prepare_measure(self) -> Measure | None:
        """Take the present data as those of the fit; return what measures its held-out error."""
        raise NotImplementedError

    def brush(
        self,
        frame: Frame,
        picture: int,
        points: Iterable[Sequence[float]],
        radius: float,
        hide: bool,
    ) -> None:
        """Hide or reveal entries around points of a picture, and go on from the present factors.

        Parameters
        ----------
        frame : Frame
            What of the matrix is shown.
        picture : int
            Number of the picture.
        points : iterable of (float, float)
            Centres (y, x) of the brush.
        radius : float
            Its radius, in shown pixels.
        hide : bool
            Whether entries are hidden; otherwise they are revealed.
        """
        paint = Paint(self.data.shape) if self.paint is None else self.paint
        self._repaint(paint.touched(frame, picture, points, radius, hide=hide))

    def unpaint(self) -> None:
        """Forget what the brush has done."""
        self._repaint(None)

    def _repaint(self, paint: Paint | None) -> None:
        """Take other painted entries, and fit again from the factors before the first stroke."""
        if self.fit.phase == "running" and self.before_brush is None:
            self.fit.stop()
            self.fit.join(JOIN)
        before = self.before_brush or self.fit.result
        self.paint = paint
        if before is None or not self._arguments:
            return
        if np.isnan(self.data.observed).all():
            raise ValueError("the brush would hide everything: reveal some pixels first.")
        measure = self.prepare_measure()
        self.before_brush = before
        model, named = parted(self._arguments | {"max_iter": BRUSH_ITERATIONS, "init": before})
        data = self.fitted_data

        def prepared() -> Prepared:
            return prepare(data.seen, *model, absent_are_zeros=False, mask=data.mask, **named)

        self.fit.start(prepared, BRUSH_ITERATIONS, measure)
