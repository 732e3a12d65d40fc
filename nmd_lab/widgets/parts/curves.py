"""Curves over iterations, as numbers that ``front/curves.mjs`` draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab.widgets.live.recording import REMEMBERED, Recording

MOST_POINTS = 800  # number of points above which a curve is thinned to half as many

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#f0e442")
"""Colours of the curves (Okabe and Ito, 2008), as in ``front/dom.mjs``."""

GRAY = "#8a8a8a"  # of what the fit still remembers
SECOND = ("held_out", "dual_residual")  # curves in the second colour, the others in the first

Points = tuple[Sequence[float], Sequence[float]]  # iterations, and numbers


class Panel(NamedTuple):
    """One pair of axes."""

    title: str  # title above the axes
    labels: Mapping[str, str]  # label in the legend of each curve, by the curve's key
    lowest: str | None = None  # key of the curve whose lowest point is marked


RESIDUALS = Panel("residuals", {"primal_residual": "‖T − WH‖", "dual_residual": "dual"})
"""Panel that several explorers show."""


def curves_part(
    panels: Sequence[Panel],
    recording: Recording | Any,
    past: Sequence[tuple[str, Recording]] = (),
    where: str = "",
    sizes: Mapping[str, float] = MappingProxyType({}),
) -> dict[str, Any] | None:
    """Return panels and points, or None if there are no points; errors are multiplied by sizes."""
    keys = [key for panel in panels for key in panel.labels]
    data = points_of(recording, keys, "", sizes)
    if not data:
        return None
    for label, other in past:
        data |= points_of(other, keys, f" {label}", sizes)
    thinned = {key: _thinned(*points) for key, points in data.items()}
    labels = ["", *(f" {label}" for label, _ in past)]
    return {
        "panels": [
            _described(panel, labels, thinned, mark=not recording.remembers) for panel in panels
        ],
        "sizes": {key: points.shape[1] for key, points in thinned.items()},
        "values": b"".join(points.tobytes() for points in thinned.values()),
        "caption": where,
    }


def points_of(
    recording: Any, keys: Sequence[str], suffix: str, sizes: Mapping[str, float]
) -> dict[str, Points]:
    """Return the points of those curves that have some, by key and suffix.

    A fit that begins at one that has seen the held-out entries forgets them while their error rises
    to its highest: a curve of its own, which says nothing of the model.
    """
    curves, held_out = recording.curves, recording.held_out
    iterations = curves.get("iteration", ())
    found: dict[str, Points] = {key: (iterations, curves[key]) for key in keys if key in curves}
    if "held_out" in keys:
        x, y = tuple(held_out), tuple(held_out.values())
        end = int(np.argmax(y)) if recording.remembers and y else 0
        found |= {"held_out": (x[end:], y[end:]), REMEMBERED: (x[: end + 1], y[: end + 1])}
        if not end:
            del found[REMEMBERED]
    scaled = {key: (x, [sizes.get(key, 1.0) * each for each in y]) for key, (x, y) in found.items()}
    return {f"{key}{suffix}": points for key, points in scaled.items() if len(points[0])}


def arrays_of(curves: Mapping[str, Any]) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    """Return the points of the curves of a page by key."""
    numbers, found, begin = np.frombuffer(curves["values"], dtype="<f8"), {}, 0
    for key, size in curves["sizes"].items():
        found[key] = numbers[begin : begin + size], numbers[begin + size : begin + 2 * size]
        begin += 2 * size
    return found


def _described(
    panel: Panel, suffixes: Sequence[str], points: Mapping[str, Any], *, mark: bool
) -> dict[str, Any]:
    """Return a panel with one entry for each of its curves in each run."""
    labels = dict(panel.labels)
    if "held_out" in labels and any(f"{REMEMBERED}{suffix}" in points for suffix in suffixes):
        labels[REMEMBERED] = "seen before"
    curves = [
        {
            "key": f"{key}{suffix}",
            "label": f"{label}{suffix and ','}{suffix}",
            "color": GRAY if key == REMEMBERED else COLORS[(2 * k + (key in SECOND)) % len(COLORS)],
            "past": bool(suffix),
        }
        for k, suffix in enumerate(suffixes)
        for key, label in labels.items()
        if (not suffix and key in panel.labels) or f"{key}{suffix}" in points
    ]
    return {"title": panel.title, "curves": curves, "lowest": panel.lowest if mark else None}


def _thinned(x: Sequence[float], y: Sequence[float]) -> Any:
    """Return points (2, n); thinning keeps the first, the last and the lowest positive one."""
    points = np.array([x, y], dtype="<f8")
    count = points.shape[1]
    if count <= MOST_POINTS:
        return points
    spaced = np.linspace(0, count - 1, MOST_POINTS // 2).astype(int)
    lowest_one = int(np.argmin(np.where(points[1] > 0, points[1], np.inf)))
    return points[:, np.union1d(spaced, lowest_one)]
