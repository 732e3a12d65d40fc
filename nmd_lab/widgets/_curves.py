"""Curves over iterations in the browser: values under the cursor, zoom, a legend that switches.

Points travel as binary numbers, and ``front/curves.mjs`` draws them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import anywidget
import numpy as np
import traitlets

FRONT = Path(__file__).parent / "front"

MOST_POINTS = 800
"""Number of points above which a curve is thinned to half as many."""

Points = tuple[Sequence[float], Sequence[float]]
"""Iterations, and numbers."""


class Panel(NamedTuple):
    """One pair of axes.

    Attributes
    ----------
    title : str
        Title above the axes.
    labels : dict of str to str
        Label in the legend of each curve, by the curve's key.
    lowest : str or None, default None
        Key of the curve whose lowest point is marked.
    """

    title: str
    labels: Mapping[str, str]
    lowest: str | None = None


class CurveView(anywidget.AnyWidget):
    """Curves in panels from left to right.

    Parameters
    ----------
    panels : sequence of Panel
        The panels.

    Attributes
    ----------
    sizes : dict of str to int
        Number of points by key.
    values : bytes
        For each key all iterations and then all numbers, float64.
    """

    _esm = FRONT / "curves.mjs"
    _css = FRONT / "curves.css"

    panels: Any = traitlets.List().tag(sync=True)
    sizes: Any = traitlets.Dict().tag(sync=True)
    values: Any = traitlets.Bytes().tag(sync=True)

    def __init__(self, panels: Sequence[Panel]) -> None:
        self._keys = [key for panel in panels for key in panel.labels]
        described = [
            {
                "title": panel.title,
                "curves": [{"key": key, "label": label} for key, label in panel.labels.items()],
                "lowest": panel.lowest,
            }
            for panel in panels
        ]
        super().__init__(panels=described, sizes=dict.fromkeys(self._keys, 0))

    def show(self, data: Mapping[str, Points]) -> None:
        """Show other points; a key without points has no curve.

        Parameters
        ----------
        data : mapping of str to (sequence of float, sequence of float)
            Iterations and numbers by key.  Numbers that are not positive are left out.
        """
        thinned = {key: _thinned(*data.get(key, ((), ()))) for key in self._keys}
        with self.hold_sync():
            self.sizes = {key: points.shape[1] for key, points in thinned.items()}
            self.values = b"".join(points.tobytes() for points in thinned.values())


def _thinned(x: Sequence[float], y: Sequence[float]) -> Any:
    """Return points (2, n); thinning keeps the first, the last and the lowest positive one."""
    points = np.array([x, y], dtype="<f8")
    count = points.shape[1]
    if count <= MOST_POINTS:
        return points
    kept = np.linspace(0, count - 1, MOST_POINTS // 2).astype(int)
    lowest = int(np.argmin(np.where(points[1] > 0, points[1], np.inf)))
    return points[:, np.union1d(kept, lowest)]
