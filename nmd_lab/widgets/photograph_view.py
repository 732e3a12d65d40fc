"""The explorer of a photograph: data and filled picture, the brush, and the groups of patches."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.stats import multivariate_normal

from nmd_lab._inpainting import NOISE
from nmd_lab.data.patches import CHANNELS, Average, Grid

from .background import many
from .charts import calibration_chart
from .components import tiles_part
from .history import History
from .paint import Paint
from .photograph_state import PhotographState
from .pictures import Frame, at, frame_of, pictures_part
from .view import View
from .words import Number, Piece, painted_words, rounded_ends, size_words

PATTERNS = 2  # patterns of a group along each side of its tile
MOSTLY = 0.5  # fraction of the patches of a pixel that make it one of a group

Array = NDArray[Any]


class PhotographView(View):
    """Pixels as they are seen and filled, their uncertainty, and the groups of patches."""

    state: PhotographState
    opens = True

    def __init__(self, state: PhotographState) -> None:
        super().__init__(state, "picture.nc", (state.picture, "picture"))
        self.group: int | None = None  # group whose pixels are shown
        self.actions |= {
            "brush": self._brush,
            "undo": lambda _: self.state.undo(),
            "component": self._show_group,
        }

    @property
    def title(self) -> str:
        """The size, and how much of it is known."""
        share = 1 - float(np.mean(np.isnan(self.state.pixels)))
        return size_words("a photograph of {} × {}", self.state.shape, share)

    @property
    def result(self) -> xr.Dataset | None:
        """The filled picture."""
        return self.state.fill.filled

    @property
    def model(self) -> list[Piece]:
        """The groups and the size of their patches."""
        if self.result is None:
            return []
        grid = self.state.grid
        size = " × ".join(str(grid.size[axis]) for axis in grid.space)
        groups = many(self.result.sizes["group"], "group")
        return [(groups, "components"), (f" of patches of {size}", "")]

    def number(self) -> Number | None:
        """Return the error where pixels are hidden, compared with interpolation."""
        errors = self.state.fill.errors
        if not errors or self.result is None or self.state.fill.phase == "running":
            return None
        (_, error), *rivals = errors.items()
        low, high = rounded_ends(np.nanmin(self.state.pixels), np.nanmax(self.state.pixels))
        after = f" of {low}…\N{WORD JOINER}{high}{self._painted[0]}"
        found = self.state.fill.findings
        covered = "" if found is None else found.clause
        return Number(error, "Hidden pixels are guessed to ", after, dict(rivals), more=covered)

    @property
    def _painted(self) -> tuple[str, str]:
        """Words on what was painted: behind the number, and below a solid stroke."""
        state, paint = self.state, self.state.paint
        if paint is None or self.result is None or state.fill.phase == "running":
            return "", ""
        hidden = (paint.signs < 0) & ~state.mask
        guesses = self.result["picture"].to_numpy(), np.nanmean(state.visible)
        found = ((guess - state.pixels)[hidden] for guess in guesses)
        known = (each[np.isfinite(each)] for each in found)
        errors = (float(np.sqrt(np.mean(x**2))) if x.size else math.nan for x in known)
        return painted_words(paint, *errors)

    def write(self, path: Path) -> None:
        """Write the filled picture to a file."""
        assert self.result is not None
        self.result.to_netcdf(path)

    def frame(self) -> Frame:
        """Return which pixels are shown."""
        return self.state.frame

    def parts(self, history: History) -> dict[str, Any]:
        """Return the pictures, the groups, errors and the coverage of intervals."""
        state, fill, frame = self.state, self.state.fill, self.state.frame
        parts: dict[str, Any] = {
            "facts": {"stage": "photograph", "painted": self._painted[1]},
            "pictures": self._pictures(frame),
            "components": self._groups(),
        }
        if fill.findings is not None:
            parts["dots"] = {"intervals": calibration_chart(fill.findings)}
        if fill.mean is not None:
            parts["modelled"] = frame.arranged(at(frame, state.as_matrix(fill.mean)))
        return parts

    def _pictures(self, frame: Frame) -> dict[str, Any]:
        """Return the pictures that stay as they are while the photograph is filled."""
        state, filled, group, paint = self.state, self.result, self.group, self.state.paint

        def pictures() -> dict[str, Any]:
            layers = {"original": state.pixels, "seen": state.visible}
            title = ""
            if filled is not None:
                layers["spread"] = filled["std"].to_numpy()
            if filled is not None and group is not None and group < filled.sizes["group"]:
                title = f"group {group}"
                layers["beside"] = self._pixels_of(group, filled)
            shown = {name: at(frame, state.as_matrix(each)) for name, each in layers.items()}
            limits = float(np.nanmin(state.pixels)), float(np.nanmax(state.pixels))
            more: dict[str, Any] = {
                "beside_title": title,
                "n_painted": 0 if paint is None else paint.n_painted,
            }
            # Without hidden pixels both sides of the divider would be alike
            return pictures_part(frame, limits, [], shown, **more) | {"many_missing": True}

        return self.memo("pictures", pictures, state.mask, filled, group)

    def _pixels_of(self, group: int, filled: xr.Dataset) -> Array:
        """Return the filled picture where patches are of a group; NaN elsewhere."""
        areas = self.memo("areas", lambda: areas_of(self.state.grid, filled), filled)
        pixels = filled["picture"].to_numpy().astype(float)
        return np.where(areas[group] >= MOSTLY, pixels, np.nan)

    def _groups(self) -> dict[str, Any] | None:
        """Return tiles with the patterns of each group."""
        filled = self.result
        if filled is None:
            return None
        tiles = self.memo("tiles", lambda: tiles_of(self.state.grid, filled), filled)
        return tiles | {"chosen": self.group, "off": []}

    def _show_group(self, message: Mapping[str, Any]) -> None:
        """Show the pixels of a group, or no longer."""
        self.group = None if self.group == message["k"] else int(message["k"])

    def _brush(self, stroke: Mapping[str, Any]) -> None:
        """Hide or reveal pixels, and fill them anew."""
        paint = Paint(self.state.shape) if self.state.paint is None else self.state.paint
        self.state.repaint(paint.touched(frame_of(self.state.shape, None), stroke))


def tiles_of(grid: Grid, filled: xr.Dataset) -> dict[str, Any]:
    """Return the patterns in which the patches of each group differ most, besides brightness."""
    weights, covariances = (filled[f"group_{x}"].to_numpy() for x in ("weight", "covariance"))
    height, width = (grid.size[axis] for axis in grid.space)
    count, d = covariances.shape[:2]
    flat = np.eye(d) - np.full((d, d), 1 / d)
    tiles = np.full((count, PATTERNS * (height + 1) - 1, PATTERNS * (width + 1) - 1), np.nan)
    for tile, covariance in zip(tiles, covariances, strict=True):
        sizes, patterns = np.linalg.eigh(flat @ covariance @ flat)
        for n in range(PATTERNS**2):
            picture = np.reshape(patterns[:, -1 - n] * np.sqrt(max(sizes[-1 - n], 0)), grid.size)
            if grid.dims[-1] in CHANNELS:
                picture = picture.mean(axis=-1)
            top, left = (n // PATTERNS) * (height + 1), (n % PATTERNS) * (width + 1)
            tile[top : top + height, left : left + width] = picture
    return tiles_part("image", tiles, weights.tolist()) | {
        "total": count,
        "lists": [],
        "captions": [f"{100 * weight:.2g} %" for weight in weights],
        "words": [f"{100 * w:.2g} % of the patches; click: where they are" for w in weights],
        "thing": "group",
        "hint": "groups of patches by their four strongest patterns; click: where a group is",
        "said": "",
    }


def areas_of(grid: Grid, filled: xr.Dataset) -> Array:
    """Return for each group the fraction of the patches of each pixel that it explains best."""
    pixels = filled["picture"].to_numpy().astype(float)
    noise = NOISE * (float(np.ptp(pixels)) or 1.0) ** 2
    places = grid.positions(np.arange(len(grid.corners)))
    rows = pixels.reshape(-1)[places]
    names = ("group_weight", "group_mean", "group_covariance")
    scores = []
    for weight, mean, covariance in zip(*(filled[x].to_numpy() for x in names), strict=True):
        group = multivariate_normal(mean, covariance + noise * np.eye(len(mean)))
        scores.append(np.log(weight) + group.logpdf(rows))
    labels, areas = np.argmax(scores, axis=0), []
    for k in range(len(scores)):
        average = Average(pixels.shape)
        is_one = np.broadcast_to(labels[:, None] == k, places.shape)
        average.add(places, is_one.astype(float), np.ones(places.shape))
        areas.append(average.result())
    return np.array(areas)
