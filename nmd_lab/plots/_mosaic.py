"""Pictures in a grid on one Axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage


@dataclass(frozen=True)
class Mosaic:
    """Pictures of equal size in rows and columns.

    All lengths are in widths of one picture.
    """

    height: float
    gap: float = 0.08

    def size(self, rows: int, columns: int) -> tuple[float, float]:
        """Return width and height of a grid of pictures, with a gap after each of them."""
        return columns * (1 + self.gap), rows * (self.height + self.gap)

    def centre(self, row: int, column: int) -> tuple[float, float]:
        """Return x and y of the middle of a picture."""
        left, top = self.size(row, column)
        return left + 0.5, top + self.height / 2

    def draw(
        self, ax: Axes, row: int, column: int, picture: NDArray[Any], **style: Any
    ) -> AxesImage:
        """Draw one picture."""
        x, y = self.centre(row, column)
        half = self.height / 2
        return ax.imshow(
            picture, extent=(x - 0.5, x + 0.5, y + half, y - half), interpolation="none", **style
        )

    def finish(self, ax: Axes, rows: int, columns: int) -> None:
        """Fit the limits of the axes to the pictures, and remove the ticks."""
        width, height = self.size(rows, columns)
        ax.set(xlim=(-0.01, width - self.gap + 0.01), xticks=[], yticks=[])
        ax.set_ylim(height - self.gap + 0.01, -0.01)
        ax.set_aspect("equal")
