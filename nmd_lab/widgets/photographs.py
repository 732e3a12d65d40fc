"""The explorer of a photograph: hidden pixels, filled picture, uncertainty and the brush."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import ndimage
from scipy.interpolate import griddata

from nmd_lab._runtime.checks import as_generator, check_integer, many, new_stream
from nmd_lab.data.labels import plain_array
from nmd_lab.data.patches import Grid
from nmd_lab.inpainting import inpaint

from .background import Array, Background, Record, Run
from .charts import calibration_chart
from .given import PRINT_HIDDEN, as_photograph, call
from .pictures import Frame, Paint, at, frame_of
from .state import Field, State, hidden_fields
from .words import AVERAGE, LEVELS, Findings, Piece, painted_words, size_words

ALL = "fill all pixels", "Fill the whole photograph, which takes longer"
MAX_COMPARED = 500_000  # pixels of a picture that is interpolated, too, at most


class Stopped(Exception):
    """A filling that was asked to stop."""


@dataclass
class FillRun(Run):
    """One filling of a picture, the data, and what strokes of the brush have changed since."""

    visible: Any = None  # the pixels that it sees; NaN for the others
    grid: Any = None  # the places of the patches
    mean: Array | None = None  # the picture so far
    rivals: dict[str, Array] = field(default_factory=dict)  # the picture by interpolation
    touched: Any = False  # which pixels strokes have touched that are not filled yet


def compared(
    truth: Array, hidden: Array, filled: xr.Dataset, rivals: Mapping[str, Array]
) -> tuple[dict[str, float], Findings | None]:
    """Return errors of a picture that is filled and of rivals, and the coverage of intervals."""
    hidden = ~np.isnan(truth) & hidden.reshape(hidden.shape + (1,) * (truth.ndim - hidden.ndim))
    if not hidden.any():
        return {}, None
    pictures = {"patches": filled["picture"].to_numpy().astype(float), **rivals}
    off = {name: (each - truth)[hidden] for name, each in pictures.items()}
    errors = {name: float(np.sqrt(np.mean(each**2))) for name, each in off.items()}
    sizes = np.abs(off["patches"]) / np.maximum(filled["std"].to_numpy()[hidden], 1e-12)
    held = {p: float(np.mean(sizes <= NormalDist().inv_cdf((1 + p) / 2))) for p in LEVELS}
    return errors, Findings(True, held)


def in_bands(visible: Array, grid: Grid, stop: threading.Event) -> dict[str, Array]:
    """Return the picture by interpolation of bands of its rows; nothing if stopped."""
    far = 2 * int(inpaint.distance_to_seen(visible, grid).max())
    band = max(1, 50_000 // visible.shape[1])
    result = visible.copy()
    for begin in range(0, len(visible), band):
        if stop.is_set():
            return {}
        first = max(begin - far, 0)
        around = interpolated(visible[first : begin + band + far])
        result[begin : begin + band] = around[begin - first :][:band]
    return {"interpolation": result}


def interpolated(visible: Array) -> Array:
    """Return pixels with missing ones by linear interpolation, outside by the nearest.

    A pixel is missing if one of its channels is.
    """
    seen, result = ~np.isnan(visible).any(axis=tuple(range(2, visible.ndim))), visible.copy()
    places, missing = np.argwhere(seen), np.argwhere(~seen)
    result[~seen] = griddata(places, visible[seen], missing, "nearest")
    if np.ptp(places, axis=0).min() > 0 and len(places) > 3:
        linear = griddata(places, visible[seen], missing)
        result[~seen] = np.where(np.isnan(linear), result[~seen], linear)
    return result


class PhotographState(State):
    """A photograph, the pixels that are hidden or painted over, and its filling by patches."""

    fields = (
        *hidden_fields("missing", "pixels"),
        Field("method", "Method", "choice", tuple(inpaint.PASSES), "again",
              "sample is nearer to the truth, and takes longer", value="complete"),
        Field("groups", "Groups", "integer", (), "components", "Groups of patches at most",
              value=inpaint.GROUPS, check=lambda n: check_integer("groups", n, 1)),
    )  # fmt: skip
    filename, opens, things = "picture.nc", True, ("pixels", "column")
    kind = FillRun
    fit: Background[FillRun]

    def __init__(self, X: Any, *, whole: bool = False, **values: Any) -> None:
        self.brought = as_photograph(X, whole=whole)
        self.X = self.brought.data
        self.pixels = plain_array(self.X).astype(float)
        self.channels = self.pixels.shape[2] if self.pixels.ndim == 3 else 1
        self.shape: tuple[int, int] = self.pixels.shape[:2]
        self.limits = float(np.nanmin(self.pixels)), float(np.nanmax(self.pixels))
        super().__init__(X, values)
        self._one_stroke = threading.Lock()  # so that those that no longer count do not slow it
        self.paint = Paint(self.shape)
        self.actions |= {"brush": self.brush, "undo": lambda _: self.undo()}
        if self.brought.extent != "{}":
            times = round(math.prod(np.shape(X)[:2]) / math.prod(self.shape))
            self.about, self.buttons["take"] = f"all take about {times} times as long", ALL
            self.actions["take"] = lambda _: PhotographState(X, whole=True, **values)

    @property
    def mask(self) -> NDArray[np.bool_]:
        """The pixels that are neither hidden nor painted over."""
        seed, share, paint = self.values["seed"], self.values["missing"], self.paint

        def mask() -> NDArray[np.bool_]:
            return paint.mask(np.random.default_rng(seed).random(self.shape) >= share)

        return self.memo("mask", mask, seed, share, paint)

    @property
    def visible(self) -> Array:
        """The pixels that are seen; NaN for the others."""
        shown = self.mask.reshape(self.shape + (1,) * (self.pixels.ndim - 2))
        return np.where(shown, self.pixels, np.nan)

    # Filling

    def check(self, field: Field) -> None:
        """Raise an error if a setting is wrong."""
        super().check(field)
        if field.name == "missing" and np.isnan(self.visible).all():
            raise ValueError("no pixel is left to fit: hold out fewer of them.")

    def run(self, *, preview: bool = False) -> None:
        """Fill the photograph with the present settings."""
        self._fill(settings=self._settings(self.values), of=object(), touched=False)

    def _fill(self, **changes: Any) -> None:
        """Fill a photograph; what a stroke has touched comes first, with the groups as they are."""
        grid = inpaint.default_grid(self.X, self.values["method"])
        begun: Record = {"visible": self.visible, "grid": grid, "errors": {}}
        run = replace(self.fit.run, planned=100, done=0, **begun, **changes)  # percent
        self.fit.begin(run, self._work)

    def _work(self, run: FillRun) -> None:
        """Fill the picture."""
        visible, is_stroke = run.visible, np.any(run.touched)
        doing = "filled by the groups so far; all of it follows" if is_stroke else "filling"

        def tell(share: float, mean: Array | None) -> None:
            if run.stop.is_set():
                raise Stopped
            run.done = round(100 * share)
            if mean is not None and not is_stroke:
                run.mean = np.where(np.isnan(visible), mean, visible)
            self.fit.show(run, f"{doing}: {run.done} %", now=mean is not None)

        try:
            if is_stroke:
                with self._one_stroke:
                    self._refill(run)
                run.stop.wait(0.6)  # for another stroke
            method, groups, seed = (run.settings[name] for name in ("method", "groups", "seed"))
            plan = inpaint.Plan(groups, inpaint.PASSES[method], tell=tell)
            rng = new_stream(as_generator(seed))
            mean, std, groups = inpaint.fill_by_groups(visible, run.grid, plan, rng)
        except Stopped:
            run.result, run.errors, run.findings, run.rivals = None, {}, None, {}
            return self.fit.end(run, "stopped", "stopped before it was done")
        filled = inpaint.filled_dataset(self.X, ~np.isnan(visible), mean, std, groups)
        run.rivals = {}
        if visible.size <= MAX_COMPARED:
            self.fit.show(run, "comparing with interpolation", now=True)
            run.rivals = in_bands(visible, run.grid, run.stop)
        run.errors, run.findings = compared(self.pixels, np.isnan(visible), filled, run.rivals)
        run.result, run.mean = filled, filled["picture"].to_numpy().astype(float)
        run.warnings = tuple(filter(None, [inpaint.guess_in_words(visible, run.grid)]))
        run.done = 100
        self.fit.end(run, "finished", "done")

    def _refill(self, run: FillRun) -> None:
        """Fill what strokes have touched, and show it, even if another stroke has followed."""
        visible, groups, before = run.visible, run.result, run.mean
        if run.stop.is_set() or groups is None or before is None:
            return
        (box,), run.touched = ndimage.find_objects(run.touched.astype(int)), False
        channels = tuple(slice(0, n) for n in visible.shape[2:])
        mean = before.copy()
        mean[box] = visible[box]

        def tell(*_: Any) -> None:  # a later stroke does not end it
            if self.fit.run.stop.is_set() or self.fit.phase != "running":
                raise Stopped

        new = inpaint.refill(mean, (*box, *channels), run.grid, groups, tell)
        mean[box] = np.where(np.isnan(visible[box]), new, visible[box])
        with self.fit.lock:
            if self.fit.result is groups:
                self.fit.run.mean = mean
        self.fit.show(run, "filled by the groups so far; all of it follows", now=True)

    def brush(self, stroke: Mapping[str, Any]) -> None:
        """Hide pixels, and fill them anew."""
        self.repaint(self.paint.touched(frame_of(self.shape, None), stroke))

    def repaint(self, paint: Paint) -> None:
        """Take other painted pixels, and fill them and then all of the picture anew."""
        painted, before = self.paint, self.mask
        self.paint = paint
        if np.isnan(self.visible).all():
            self.paint = painted
            raise ValueError("the brush would mask all of it: take some back.")
        touched = self.mask != before
        if touched.any() and (self.fit.result is None or self.changed):
            self.run()
        elif touched.any():
            self._fill(touched=self.fit.touched | touched)

    # The sentence

    @property
    def title(self) -> str:
        """The size, and how much of it is known."""
        share = 1 - float(np.mean(np.isnan(self.pixels)))
        whole = size_words("a photograph of {} × {}", np.shape(self.input)[:2], share)
        return self.brought.extent.format(whole)

    @property
    def model(self) -> list[Piece]:
        """The groups and the size of their patches."""
        if self.result is None:
            return []
        grid = self.fit.grid
        size = " × ".join(str(grid.size[axis]) for axis in grid.space)
        groups = many(self.result.sizes["group"], "group")
        return [(groups, "components"), (f" of patches of {size}", "")]

    @property
    def painted(self) -> str:
        """Words on what was painted, for below the picture."""
        paint, filled = self.paint, self.result
        if filled is None or self.fit.phase == "running":
            return ""

        def words(stroke: str, under: Array) -> str:
            average = np.full_like(self.pixels, np.nanmean(self.visible))
            rivals = self.fit.rivals or {AVERAGE: average}
            errors, found = compared(self.pixels, under, filled, rivals)
            return "" if found is None else painted_words(stroke, errors, f"; {found.covers()}")

        return self.memo("painted", lambda: paint.in_words(words, ~self.mask), filled, paint)

    # The page

    def write(self, path: Path) -> None:
        """Write the filled picture to a file."""
        self.result.to_netcdf(path)

    def frame(self) -> Frame:
        """Return which pixels are shown."""
        height, width = self.shape
        return frame_of((height, width * self.channels), None, self.channels)

    def _at(self, picture: Array) -> Array:
        """Return pixels where they are shown, the channels side by side."""
        return at(self.frame(), picture.reshape(self.shape[0], -1))

    def parts(self) -> Record:
        """Return the pictures, errors and the coverage of intervals."""
        fill, run = self.fit, self.history.compared
        pictures = self.memo("pictures", self._layers, self.mask, self.result, run and run.result)
        facts = {"stage": "patches", "painted": self.painted}
        parts: Record = {"facts": facts, "pictures": pictures}
        if fill.findings is not None:
            parts["dots"] = {"intervals": calibration_chart(fill.findings)}
        if fill.mean is not None:
            parts["modelled"] = self.frame().arranged(self._at(fill.mean))
        return parts

    def _layers(self) -> Record:
        """Return the pictures that stay while it is filled, with those of a run to compare with."""
        filled, run = self.result, self.history.compared
        layers = {"original": self.pixels, "seen": self.visible}
        if filled is not None:
            spread, known = filled["std"].to_numpy(), ~np.isnan(self.visible)
            # A pixel that a stroke has just hidden, or given back, is not filled yet
            layers["spread"] = np.where((spread == 0) == known, spread, np.nan)
        if run is not None:
            layers["beside"] = run.result["picture"].to_numpy().astype(float)
        shown = {name: self._at(each) for name, each in layers.items()}
        # Without hidden pixels both sides of the divider would be alike
        return self.pictures(self.frame(), self.limits, [], shown) | {"many_missing": True}

    # Code

    def lines(self, source: str | None) -> str:
        """Return the lines that repeat the filling."""
        values = self.fit.settings or self.values
        name = "picture" if self.brought.code else "X"  # so that the cell runs twice
        lines = self.brought.loading(source, name)
        lines += f"mask = np.random.default_rng({values['seed']}).random({self.shape})"
        lines += f" >= {float(values['missing'])}\n"
        lines += self.paint.code()
        plain = {"method": "sample", "groups": inpaint.GROUPS}
        named = {name: values[name] for name in plain if values[name] != plain[name]}
        filled = call("nmd.inpaint", name, "mask", **named, random_state=values["seed"])
        lines += f"filled = {filled}\n"
        hidden = float(values["missing"]) > 0 or self.paint.n_painted > 0
        off = f"(filled.picture.values - np.asarray({name}, float))[~mask]"
        off = f"np.sqrt(np.nanmean({off} ** 2))"
        return lines + (PRINT_HIDDEN.format("pixels", off) if hidden else "")
