"""State of the explorer of a photograph: pixels, what is hidden, and how they are filled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab._runtime.checks import check_integer, check_share
from nmd_lab.data.patches import CHANNELS, Grid
from nmd_lab.inpainting import GROUPS, PASSES, default_grid

from .background import Memo
from .code import PRINT_HIDDEN, call
from .live_fill import Box, FillRequest, LiveFill
from .matrix_data import mean_difference
from .paint import Paint
from .pictures import Frame, frame_of
from .settings import Field, FitState, hidden_fields

LEAST, LONGEST = 48, 4.0  # pixels along a side, and ratio of the sides, of a matrix with a picture
ALIKE = 0.6  # ratio of differences of neighbouring pixels to those of any two, of a picture

Array = NDArray[Any]


def is_photograph(X: Any) -> bool:
    """Return whether data are one picture: in colours, or with neighbouring pixels alike."""
    if type(X) not in (np.ndarray, xr.DataArray) or X.dtype.kind not in "fiu":
        return False
    sides = X.shape[:2]
    if X.ndim == 3:
        named = isinstance(X, np.ndarray) or X.dims[-1] in CHANNELS
        return named and X.shape[-1] in (3, 4) and min(sides) >= LEAST // 2
    if X.ndim != 2 or min(sides) < LEAST or max(sides) > LONGEST * min(sides):
        return False
    pixels = np.asarray(X, dtype=float)
    return all(_are_alike(each) for each in (pixels, pixels.T))


def _are_alike(pixels: Array) -> bool:
    """Return whether rows are like the next ones, compared with any two."""
    other = np.random.default_rng(0).permutation(len(pixels))
    next_one = mean_difference(pixels[1:], pixels[:-1])
    return next_one < ALIKE * mean_difference(pixels, pixels[other])


class PhotographState(FitState):
    """A photograph, the pixels that are hidden or painted over, and its filling by patches."""

    fields = (
        *hidden_fields("missing", "pixels"),
        Field("method", "Method", "choice", tuple(PASSES), "again",
              "sample is nearer to the truth, and takes longer", value="complete"),
        Field("groups", "Groups", "integer", (), "components", "Groups of patches at most",
              value=GROUPS, check=lambda n: check_integer("groups", n, 1)),
    )  # fmt: skip

    def __init__(self, X: Any, **values: Any) -> None:
        super().__init__({}, values)
        self.picture = X
        self.X = X[..., :3] if np.ndim(X) == 3 else X  # without opacity
        self.pixels = np.asarray(self.X, dtype=float)
        self.channels = self.pixels.shape[2] if self.pixels.ndim == 3 else 1
        self.fill = LiveFill()
        self.active, self.works = self.fill, [self.fill]
        self.paint: Paint | None = None
        self._memo = Memo()

    @property
    def grid(self) -> Grid:
        """The places of the patches."""
        return default_grid(self.X, self.values["method"])

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        height, width = self.pixels.shape[:2]
        return height, width

    @property
    def frame(self) -> Frame:
        """The pixels that are shown."""
        height, width = self.shape
        return frame_of((height, width * self.channels), None, self.channels)

    def as_matrix(self, picture: Array) -> Array:
        """Return pixels with the channels side by side, as a frame has them."""
        return picture.reshape(self.shape[0], -1)

    @property
    def mask(self) -> NDArray[np.bool_]:
        """The pixels that are neither hidden nor painted over."""
        seed, share, paint = self.values["seed"], self.values["missing"], self.paint

        def mask() -> NDArray[np.bool_]:
            seen = np.random.default_rng(seed).random(self.shape) >= share
            return seen if paint is None else paint.mask(seen)

        return self._memo("mask", mask, seed, share, paint)

    @property
    def visible(self) -> Array:
        """The pixels that are seen; NaN for the others."""
        shown = self.mask.reshape(self.shape + (1,) * (self.pixels.ndim - 2))
        return np.where(shown, self.pixels, np.nan)

    def checks(self) -> dict[str, Callable[[], Any]]:
        """Return a function for each checked setting that raises an error if it is wrong."""

        def something_is_seen() -> None:
            check_share("missing", self.values["missing"])
            if np.isnan(self.visible).all():
                raise ValueError("no pixel is left to see: hide fewer of them.")

        return super().checks() | {"missing": something_is_seen}

    def start(self, *, looks: bool = False, touched: Box | None = None) -> None:
        """Fill the photograph with the present settings."""
        self.fitted_settings = self._settings(self.values)
        values = self.values
        named = values["method"], values["groups"], values["seed"]
        self.fill.start(FillRequest(self.X, self.visible, self.grid, *named), touched)

    def repaint(self, paint: Paint | None) -> None:
        """Take other painted pixels, and fill them and then all of the picture anew."""
        painted, before = self.paint, self.mask
        self.paint = paint
        if np.isnan(self.visible).all():
            self.paint = painted
            raise ValueError("the brush would hide everything: reveal some pixels first.")
        rows, columns = np.nonzero(self.mask != before)
        if not rows.size:
            return
        box = slice(rows.min(), rows.max() + 1), slice(columns.min(), columns.max() + 1)
        self.start(touched=None if self.fill.filled is None or self.changed else box)

    def undo(self) -> None:
        """Take the last stroke of the brush back."""
        self.repaint(None if self.paint is None else self.paint.before)

    def code(self, name: str | None = None) -> str:
        """Return a notebook cell that repeats the filling."""
        values = self.fitted_settings or self.values
        source = name or "..."
        picture = source
        numpy = "" if "numpy" in self.imports else "import numpy as np\n\n"
        lines = f"{numpy}import nmd_lab as nmd\n{self.imports}\n"
        if np.shape(self.picture) != np.shape(self.X):
            picture = f"{source}[..., :3]"
        if picture != "X":
            lines += f"X = {picture}{'' if name else '  # your picture'}\n"
        size = f"({self.shape[0]}, {self.shape[1]})"
        lines += f"mask = np.random.default_rng({values['seed']}).random({size})"
        lines += f" >= {float(values['missing'])}\n"
        lines += "" if self.paint is None else self.paint.code()
        named = {} if values["method"] == "sample" else {"method": values["method"]}
        named |= {} if values["groups"] == GROUPS else {"groups": values["groups"]}
        filled = call("nmd.inpaint", "X", "mask", **named, random_state=values["seed"])
        lines += f"filled = {filled}\n"
        hidden = float(values["missing"]) > 0 or self.paint is not None
        off = "np.sqrt(np.nanmean((filled.picture.values - np.asarray(X, float))[~mask] ** 2))"
        return lines + (PRINT_HIDDEN.format("pixels", off) if hidden else "")
