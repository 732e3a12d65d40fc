"""The points of a chart of a study's results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab.studies.summary import labels_of, ranked, trials

NO_DIMENSION = "none"  # option for a chart without colours or without panels


class ChartPoint(NamedTuple):
    """The best model at one position of the chart."""

    panel: str  # labels of panel and colour; empty without
    color: str
    place: float  # position along x
    labels: dict[str, Any]  # labels of the model, and of the conditions that the chart tells apart
    scores: NDArray[np.floating]  # errors of the model

    @property
    def mean(self) -> float:
        """Mean error over conditions and seeds."""
        return float(self.scores.mean())

    @property
    def spread(self) -> float:
        """Standard deviation of the error over seeds."""
        by_seed = self.scores.mean(axis=0)
        return float(by_seed.std(ddof=1)) if by_seed.size > 1 else 0.0


def chart_points(
    results: xr.Dataset, metric: str, x: str, color: str, panel: str
) -> list[ChartPoint]:
    """Return the points of a chart: at each position the model with the lowest mean error."""
    points = []
    for panel_label, in_panel in _split(results, panel):
        for color_label, in_color in _split(in_panel, color):
            for index, label in enumerate(in_color[x].values):
                here = in_color.isel({x: [index]})
                models = ranked(here, metric)
                if models.empty:
                    continue
                scores = models.iloc[0].to_numpy().reshape(-1, here.sizes["seed"])
                conditions = {
                    dim: here[dim].values.tolist()[0]
                    for dim in trials(here)
                    if results.sizes[dim] == 1 or dim in (x, color, panel)
                }
                labels = labels_of(here, models.index[0]) | conditions
                place = float(label) if is_numeric(results, x) else float(index)
                points.append(ChartPoint(panel_label, color_label, place, labels, scores))
    return points


def _split(results: xr.Dataset, dim: str) -> Iterator[tuple[str, xr.Dataset]]:
    """Yield the results at each label of a dimension, or all of them without a dimension."""
    if dim == NO_DIMENSION:
        yield "", results
        return
    for index, label in enumerate(results[dim].values):
        yield label_text(label), results.isel({dim: [index]})


def is_numeric(results: xr.Dataset, dim: str) -> bool:
    """Return whether the labels of a dimension are numbers."""
    return results[dim].dtype.kind in "iuf"


def label_text(label: Any) -> str:
    """Return a label for the user: short numbers, and spaces instead of underscores."""
    return f"{label:g}" if isinstance(label, float) else str(label).replace("_", " ")


def as_python(label: Any) -> Any:
    """Return a numpy scalar as a Python object, and any other label as it is."""
    return label.item() if isinstance(label, np.generic) else label
