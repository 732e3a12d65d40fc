"""The filling of a photograph in a thread of its own, whole or where a stroke has touched it."""

from __future__ import annotations

import threading
from itertools import count
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.interpolate import LinearNDInterpolator, NearestNDInterpolator

from nmd_lab._inpainting import Plan, fill_by_groups, refill
from nmd_lab._runtime.checks import as_generator, new_stream
from nmd_lab._runtime.machine import one_thread
from nmd_lab.data.patches import Grid
from nmd_lab.inpainting import PASSES, filled_dataset, guess_in_words

from .background import Background
from .live_sample import LEVELS, Findings

STEPS = 3  # of a filling, besides a pass of similar patches
CALM = 0.6  # seconds after a stroke until the whole picture is filled anew
MOST_COMPARED = 1_000_000  # pixels of a picture that is interpolated, too, at most

Array = NDArray[Any]
Box = tuple[slice, slice]  # rows and columns


class Stopped(Exception):
    """A filling that was asked to stop."""


class FillRequest(NamedTuple):
    """What `inpaint` is called with."""

    picture: Any  # (y, x) or (y, x, channel)
    visible: Array  # the pixels that it sees; NaN for the others
    grid: Grid  # the places of the patches
    method: str
    groups: int
    seed: int

    def fill(self, tell: Any) -> xr.Dataset:
        """Return what `inpaint` returns."""
        plan = Plan(self.groups, PASSES[self.method], tell=tell)
        rng = new_stream(as_generator(self.seed))
        with one_thread():
            mean, std, groups = fill_by_groups(self.visible, self.grid, plan, rng)
        return filled_dataset(self.picture, ~np.isnan(self.visible), mean, std, groups)


class LiveFill(Background):
    """The filling of a photograph; at most one run counts, the last one begun."""

    def __init__(self) -> None:
        self._one_stroke = threading.Lock()  # so that those that no longer count do not slow it
        super().__init__()

    def _clear(self) -> None:
        super()._clear()
        self.filled: xr.Dataset | None = None  # of the last run that has ended
        self.mean: Array | None = None  # the picture so far
        self.errors: dict[str, float] = {}  # at known pixels that it does not see, by model
        self.findings: Findings | None = None  # coverage of its intervals there
        self._touched: list[Box] = []  # pixels that strokes have touched, and not filled yet

    def start(self, request: FillRequest, touched: Box | None = None) -> None:
        """Fill a photograph; what a stroke has touched comes first, with the groups as they are."""
        with self._lock:
            self._touched += [] if touched is None else [touched]
        self.planned, self._done = PASSES[request.method] + STEPS, 0
        self._begin(lambda stop: self._work(request, stop), "nmd-fill")

    def _work(self, request: FillRequest, stop: threading.Event) -> None:
        """Fill the picture; `stop` tells this run from later ones."""
        visible, is_stroke, steps = request.visible, bool(self._touched), count()
        if is_stroke:
            with self._one_stroke:
                self._refill(request, stop)
            stop.wait(CALM)

        def tell(step: str, mean: Array | None) -> None:
            if stop.is_set():
                raise Stopped
            if mean is not None and not is_stroke:
                self._update(stop, mean=np.where(np.isnan(visible), mean, visible))
            self._update(stop, _done=next(steps))
            self._show_progress(stop, step, now=True)

        try:
            filled = request.fill(tell)
        except Stopped:
            nothing: dict[str, Any] = {"filled": None, "errors": {}, "findings": None}
            message = "stopped before it was done"
            return self._end(stop, "stopped", message=message, **nothing)
        self._show_progress(stop, "comparing with interpolation", now=True)
        errors, findings = compared(request, filled)
        guess = guess_in_words(visible, request.grid)
        self._end(
            stop,
            "finished",
            filled=filled,
            mean=filled["picture"].to_numpy().astype(float),
            errors=errors,
            findings=findings,
            warnings=(guess,) if guess else (),
            message="done" if findings is None else f"done: {findings.summary}",
        )

    def _refill(self, request: FillRequest, stop: threading.Event) -> None:
        """Fill what strokes have touched, and show it, even if another stroke has followed."""
        visible = request.visible
        with self._lock:
            groups, before = self.filled, self.mean
            if stop.is_set() or not self._touched or groups is None or before is None:
                return
            box, self._touched = around(*self._touched), []
        channels = tuple(slice(0, n) for n in visible.shape[2:])
        mean = before.copy()
        mean[box] = visible[box]
        with one_thread():
            new = refill(mean, (*box, *channels), request.grid, groups)
        mean[box] = np.where(np.isnan(visible[box]), new, visible[box])
        with self._lock:
            if self.filled is groups:
                self.mean = mean
        self._show_progress(stop, "filled by the groups so far; all of it follows", now=True)


def around(*boxes: Box) -> Box:
    """Return the smallest box with some boxes in it."""
    rows, columns = (
        slice(min(box[axis].start for box in boxes), max(box[axis].stop for box in boxes))
        for axis in (0, 1)
    )
    return rows, columns


def compared(request: FillRequest, filled: xr.Dataset) -> tuple[dict[str, float], Findings | None]:
    """Return errors of the filled picture and of interpolation, and the coverage of intervals."""
    truth, visible = np.asarray(request.picture, dtype=float), request.visible
    hidden = np.isnan(visible) & ~np.isnan(truth)
    if not hidden.any():
        return {}, None
    off = filled["picture"].to_numpy().astype(float)[hidden] - truth[hidden]
    errors = {"patches": float(np.sqrt(np.mean(off**2)))}
    if visible.size <= MOST_COMPARED:
        rival = interpolated(visible)[hidden] - truth[hidden]
        errors["interpolation"] = float(np.sqrt(np.mean(rival**2)))
    sizes = np.abs(off) / np.maximum(filled["std"].to_numpy()[hidden], 1e-12)
    held = {p: float(np.mean(sizes <= NormalDist().inv_cdf((1 + p) / 2))) for p in LEVELS}
    return errors, Findings(True, held)


def interpolated(visible: Array) -> Array:
    """Return the picture with its missing pixels by linear interpolation, outside by the nearest.

    A pixel is missing if one of its channels is.
    """
    seen = ~np.isnan(visible).any(axis=tuple(range(2, visible.ndim)))
    places, missing, result = np.argwhere(seen), np.argwhere(~seen), visible.copy()
    found = np.full((len(missing), *visible.shape[2:]), np.nan)
    if np.ptp(places, axis=0).min() > 0 and len(places) > 3:
        found = LinearNDInterpolator(places, visible[seen])(missing)
    outside = np.isnan(found).any(axis=tuple(range(1, found.ndim)))
    if outside.any():
        found[outside] = NearestNDInterpolator(places, visible[seen])(missing[outside])
    result[~seen] = found
    return result
