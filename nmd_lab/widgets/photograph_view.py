"""The explorer of a photograph: data and filled picture, uncertainty and the brush."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from .background import many
from .charts import calibration_chart
from .history import History
from .paint import STROKES, Paint
from .photograph_state import PhotographState, compared
from .pictures import Frame, at, frame_of, pictures_part
from .view import Guess, View
from .words import AVERAGE, Number, Piece, painted_words, range_words, size_words


class PhotographView(View):
    """Pixels as they are seen and filled, and their uncertainty."""

    state: PhotographState
    filename, opens = "picture.nc", True

    def __init__(self, state: PhotographState) -> None:
        super().__init__(state)
        self.actions |= {"brush": self._brush, "undo": lambda _: self.state.undo()}

    @property
    def title(self) -> str:
        """The size, and how much of it is known."""
        share = 1 - float(np.mean(np.isnan(self.state.pixels)))
        return size_words("a photograph of {} × {}", self.state.shape, share)

    @property
    def result(self) -> xr.Dataset | None:
        """The filled picture."""
        return self.state.fill.result

    @property
    def model(self) -> list[Piece]:
        """The groups and the size of their patches."""
        if self.result is None:
            return []
        grid = self.state.grid
        size = " × ".join(str(grid.size[axis]) for axis in grid.space)
        groups = many(self.result.sizes["group"], "group")
        return [(groups, "components"), (f" of patches of {size}", "")]

    def guess(self) -> Guess:
        """Return how well the pixels that are hidden are filled, once a run has ended."""
        fill, found = self.state.fill, self.state.fill.findings
        return Guess(
            {} if fill.phase == "running" else fill.errors,
            "pixels",
            range_words(np.nanmin(self.state.pixels), np.nanmax(self.state.pixels)),
            "" if found is None else f"; {found.covers()}",
        )

    def number(self, *, of_fit: bool = False) -> Number | None:
        """Return the error where pixels are hidden."""
        guess = self.guess()
        return guess.number if guess.errors else None

    @property
    def painted(self) -> str:
        """Words on what was painted, for below the picture."""
        state, paint = self.state, self.state.paint
        if paint is None or (filled := self.result) is None or state.fill.phase == "running":
            return ""

        def strokes() -> Iterator[tuple[str, dict[str, float], str]]:
            average = np.full_like(state.pixels, np.nanmean(state.visible))
            rivals = state.fill.rivals or {AVERAGE: average}
            for stroke, sign in STROKES.items():
                under = (paint.signs == sign) & ~state.mask
                errors, found = compared(state.pixels, under, filled, rivals)
                if found is not None:
                    yield stroke, errors, f"; {found.covers()}"

        return self.memo("painted", lambda: painted_words(strokes()), filled, paint)

    def write(self, path: Path) -> None:
        """Write the filled picture to a file."""
        assert self.result is not None
        self.result.to_netcdf(path)

    def frame(self) -> Frame:
        """Return which pixels are shown."""
        return self.state.frame

    def parts(self, history: History) -> dict[str, Any]:
        """Return the pictures, errors and the coverage of intervals."""
        state, fill, frame = self.state, self.state.fill, self.state.frame
        parts: dict[str, Any] = {
            "facts": {"stage": "patches", "painted": self.painted},
            "pictures": self._pictures(history),
        }
        if fill.findings is not None:
            parts["dots"] = {"intervals": calibration_chart(fill.findings)}
        if fill.mean is not None:
            parts["modelled"] = frame.arranged(at(frame, state.as_matrix(fill.mean)))
        return parts

    def _pictures(self, history: History) -> dict[str, Any]:
        """Return the pictures that stay as they are while the photograph is filled."""
        run = history.runs.get(history.left or 0)
        title = "" if run is None else history.words(run)
        key = self.state.mask, self.result, run and run.fit, title
        return self.memo("pictures", lambda: self._layers(run and run.fit, title), *key)

    def _layers(self, other: xr.Dataset | None, title: str) -> dict[str, Any]:
        """Return the pictures, with those of a run that is compared."""
        state, filled, paint = self.state, self.result, self.state.paint
        layers = {"original": state.pixels, "seen": state.visible}
        if filled is not None:
            spread, known = filled["std"].to_numpy(), ~np.isnan(state.visible)
            # A pixel that a stroke has just hidden, or given back, is not filled yet
            layers["spread"] = np.where((spread == 0) == known, spread, np.nan)
        if other is not None:
            layers["beside"] = other["picture"].to_numpy().astype(float)
        shown = {name: at(state.frame, state.as_matrix(each)) for name, each in layers.items()}
        limits = float(np.nanmin(state.pixels)), float(np.nanmax(state.pixels))
        n = 0 if paint is None else paint.n_painted
        pictures = pictures_part(state.frame, limits, [], shown, n_painted=n, beside_title=title)
        # Without hidden pixels both sides of the divider would be alike
        return pictures | {"many_missing": True}

    def _brush(self, stroke: Mapping[str, Any]) -> None:
        """Hide pixels, and fill them anew."""
        paint = Paint(self.state.shape) if self.state.paint is None else self.state.paint
        self.state.repaint(paint.touched(frame_of(self.state.shape, None), stroke))
