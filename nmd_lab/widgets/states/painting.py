"""State of an explorer with a brush: hidden and revealed entries, and the fit that follows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from nmd_lab.result.decomposition import Decomposition
from nmd_lab.solver.prepare import prepare
from nmd_lab.solver.prepared import Prepared
from nmd_lab.widgets.live.recording import Measure

from .brush import Paint
from .choice import parted
from .frame import Frame
from .matrix_data import MatrixData
from .sampling import SamplingState

BRUSH_ITERATIONS = 100  # number of iterations after each stroke of the brush
JOIN = 5.0  # longest time that a stroke of the brush waits for a run to stop, in seconds


class BeforeBrush(NamedTuple):
    """What was there before the first stroke of the brush."""

    fit: Decomposition  # the fit
    paint: Paint | None  # its paint
    saved: dict[str, Any]  # what brings it back, see `FitState.recall`


class PaintingState(SamplingState):
    """Settings of a fit of a matrix whose entries can be hidden and revealed.

    Each stroke fits again from the factors before the first one, with all that is painted so far,
    so that a few lines of code repeat it.

    Attributes
    ----------
    paint : Paint or None
        What the brush has done.
    before_brush : BeforeBrush or None
        What was there before the first stroke after the last run.
    fitted_data, fitted_paint : MatrixData, and Paint or None
        Data of the fit, and their paint.
    """

    fit_attributes = (
        *SamplingState.fit_attributes,
        "fitted_data",
        "fitted_paint",
        "paint",
        "before_brush",
    )
    fitted_data: MatrixData

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(values)
        self.paint: Paint | None = None
        self.fitted_paint: Paint | None = None
        self.before_brush: BeforeBrush | None = None

    def data_with(self, paint: Paint | None) -> MatrixData:
        """Return the data of the present settings, with some paint."""
        raise NotImplementedError

    @property
    def data(self) -> MatrixData:
        """The data of the present settings, with the present paint."""
        return self.data_with(self.paint)

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
        """Hide or reveal entries around points of a picture, and go on from the present factors."""
        paint = Paint(self.data.shape) if self.paint is None else self.paint
        self._repaint(paint.touched(frame, picture, points, radius, hide=hide))

    def unpaint(self) -> None:
        """Go back to the fit before the first stroke; without one, fit again without paint."""
        if self.before_brush is not None and not self.changed:
            self.recall(self.before_brush.saved)
            self.fit.tell()
        else:
            self._repaint(None)

    def _repaint(self, paint: Paint | None) -> None:
        """Take other painted entries, and fit again from the factors before the first stroke.

        While the settings are not those of the fit, the paint only counts in the next run.
        """
        if self.fit.phase == "running" and self.before_brush is None:
            self.fit.stop()
            self.fit.join(JOIN)
        data = self.data_with(paint)
        if np.isnan(data.observed).all():
            raise ValueError("the brush would hide everything: reveal some pixels first.")
        before = self.before_brush
        if before is None and self.fit.result is not None:
            before = BeforeBrush(self.fit.result, self.fitted_paint, self.keep())
        self.paint = paint
        if before is None or not self._arguments or self.changed:
            return
        measure = self.prepare_measure()
        self.before_brush = before
        options = {"max_iter": BRUSH_ITERATIONS, "init": before.fit}
        model, named = parted(self._arguments | options)

        def prepared() -> Prepared:
            return prepare(data.seen, *model, absent_are_zeros=False, observed=data.mask, **named)

        seen_before = ~np.isnan(before.saved["fitted_data"].observed[data.hidden])
        self.fit.start(prepared, BRUSH_ITERATIONS, measure, remembers=bool(seen_before.any()))
