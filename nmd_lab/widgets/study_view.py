"""The study explorer: a chart with points to click, the fits behind each, and one fit repeated."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
import numpy as np
import xarray as xr

from nmd_lab.result import netcdf

from ._controls import button, replace_children, toggle_class
from ._curves import Panel
from ._dot_charts import DotSeries, dot_chart
from ._live_chart import RESIDUALS, LiveChart
from ._study_points import NO_DIMENSION, ChartPoint, is_numeric, label_text
from ._tables import Cell, html_table
from .code import name_in_notebook
from .explorer import Explorer
from .study_state import StudyState

if TYPE_CHECKING:
    from nmd_lab.studies import Study

CHOSEN = "_chosen"
"""How the names of variables end that hold what the fits chose by held-out entries."""

Series = dict[tuple[str, str], list[ChartPoint]]


class StudyExplorer(Explorer):
    """Look at the results of a study from any side, and at the fit behind each point.

    Parameters
    ----------
    study : Study, Dataset or path-like
        A study that was run, its results, or the path of their file.  Only a Study can repeat
        fits, since the results hold no data.
    **settings
        Starting values of the controls: metric, x, color, panel, iterations.

    Attributes
    ----------
    result : Decomposition, Dataset or None
        The repeated fit, or else the cells of the point that was clicked.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> study = nmd.Study(nmd.datasets.digits(40), rank=[1, 2, 3], n_splits=2, max_iter=10)
    >>> _ = study.run(progress=False)
    >>> explorer = nmd.widgets.StudyExplorer(study)
    >>> explorer.start()
    >>> explorer.join(60), explorer.result.n_iter
    (True, 10)
    """

    state: StudyState

    def __init__(self, study: Study | xr.Dataset | str | os.PathLike[str], **settings: Any) -> None:
        self._study = study
        self._layout: tuple[str, ...] | None = None
        self._points: list[ChartPoint] = []
        super().__init__(StudyState(study, **settings), "study-fit.nc")

    @property
    def result(self) -> Any:
        """The repeated fit, or the cells of the point that was clicked, or None."""
        if self.fit.result is not None:
            return self.fit.result
        chosen = self.state.selected
        return None if chosen is None else self.state.cells(chosen)

    def body(self) -> Sequence[Any]:
        """Return the chart with its points, the details of one, and the curves of its fit."""
        self.chart = widgets.Image().add_class("nmd-chart").add_class("nmd-plot")
        self._buttons = widgets.Box().add_class("nmd-points")
        self._details = widgets.HTML().add_class("nmd-table").add_class("nmd-details")
        self._curves = LiveChart(
            [Panel("relative error", {"relative_error": "observed"}), RESIDUALS]
        )
        self.curves = self._curves.view
        return (
            widgets.Box([self.chart, self._buttons]).add_class("nmd-clickable"),
            self._details,
            self.curves,
            self._curves.caption,
        )

    def code(self) -> str:
        """Return a notebook cell that repeats the fit, or that draws the chart."""
        return self.state.code(name_in_notebook(self._study))

    def cannot_run(self) -> str:
        """Return why the fit of the point cannot be repeated, or an empty string."""
        return self.state.why_not() or super().cannot_run()

    def start(self) -> None:
        """Repeat the fit of the point that was clicked, or else of the lowest one."""
        if self.state.selected is None and self._points:
            self._choose(min(self._points, key=lambda point: point.mean))
        super().start()

    def write(self, path: Path) -> None:
        """Write the repeated fit, or the cells of the point, to a file."""
        if isinstance(self.result, xr.Dataset):
            netcdf.write(self.result, path)
        else:
            self.result.save(path)

    def draw(self) -> None:
        """Show the chart, the chosen point and its fit."""
        values = self.state.values
        layout = tuple(values[name] for name in ("metric", "x", "color", "panel"))
        if layout != self._layout and not {"color", "panel"} & set(self.state.problems()):
            self._layout = layout
            self._draw_points()
        chosen = self.state.selected
        for point, each in zip(self._points, self._buttons.children, strict=True):
            toggle_class(each, "nmd-selected", chosen is not None and point.labels == chosen.labels)
        self._details.value = (
            "click a point to see the fits behind it" if chosen is None else self._about(chosen)
        )
        self._curves.show(self.fit.curves)

    def _draw_points(self) -> None:
        """Draw the chart, and lay a button over each of its points."""
        state, values = self.state, self.state.values
        results, x, metric = state.results, values["x"], values["metric"]
        series: Series = {}
        for point in state.points():
            series.setdefault((point.panel, point.color), []).append(point)
        self._points = [point for points in series.values() for point in points]
        if not series:
            raise ValueError(f"{metric} is NaN everywhere: choose another measure.")
        joined = is_numeric(results, x)
        titles = {panel: panel and f"{label_text(values['panel'])} {panel}" for panel, _ in series}
        self.chart.value, positions = dot_chart(
            {titles[panel]: dots for panel, dots in _dots(series, joined).items()},
            x=label_text(x),
            y=str(results[metric].attrs.get("long_name", metric)),
            color="" if values["color"] == NO_DIMENSION else label_text(values["color"]),
            ticks=[
                (float(label) if joined else float(k), label_text(label))
                for k, label in enumerate(results[x].values)
            ],
            joined=joined,
        )
        replace_children(
            self._buttons,
            (
                self._button(point, *position)
                for (panel, color), points in series.items()
                for point, position in zip(points, positions[titles[panel], color], strict=True)
            ),
        )

    def _button(self, point: ChartPoint, left: float, top: float) -> Any:
        """Return the button over a point, at a position in per cent of the chart."""
        made = button("", "point", self._guarded(partial(self._choose, point)))
        made.tooltip = f"{_labels_html(point.labels)}: {point.mean:.4g}"
        made.layout.left, made.layout.top = f"{left:.2f}%", f"{top:.2f}%"
        return made

    def _choose(self, point: ChartPoint) -> None:
        """Choose a point, and show its details."""
        self.state.choose(point)
        self.controls["iterations"].write(self.state.values["iterations"])
        self._settings_changed()

    def _about(self, point: ChartPoint, most: int = 12) -> str:
        """Return the HTML of a point's mean error and of a table of at most `most` cells."""
        cells = self.state.cells(point)
        metric = self.state.values["metric"]
        dims = [str(dim) for dim in cells.dims if cells.sizes[dim] > 1]
        chosen = [str(name) for name in cells.data_vars if str(name).endswith(CHOSEN)]
        names = dict.fromkeys([metric, *chosen, "n_iter", "seconds", "stop_reason"])
        columns = [name for name in names if name in cells]
        indices = list(np.ndindex(*(cells.sizes[dim] for dim in dims)))
        rows = []
        for index in indices[:most]:
            cell = cells.isel(dict(zip(dims, index, strict=True))).squeeze()
            texts = [label_text(cell[dim].values.item()) for dim in dims]
            texts += [_value_text(cell[name].values.item()) for name in columns]
            rows.append([Cell(text) for text in texts])
        table = html_table([name.replace("_", " ") for name in [*dims, *columns]], rows)
        more = f"<div>and {len(indices) - most} more</div>" if len(indices) > most else ""
        title = f"{_labels_html(point.labels)}: <b>{point.mean:.4g}</b> ± {point.spread:.2g}"
        return f"<div>{title}</div>{table}{more}"


def _dots(series: Series, joined: bool, shift: float = 0.1) -> dict[str, list[DotSeries]]:
    """Return the dots of each panel.

    Parameters
    ----------
    series : dict of (str, str) to list of ChartPoint
        Points by panel and colour.
    joined : bool
        Whether lines join the dots; otherwise colours stand side by side.
    shift : float, default 0.1
        Distance along x between neighbouring colours.
    """
    panels: dict[str, list[DotSeries]] = {}
    for panel in dict.fromkeys(panel for panel, _ in series):
        colors = [color for other, color in series if other == panel]
        for k, color in enumerate(colors):
            points = series[panel, color]
            offset = 0.0 if joined else shift * (k - (len(colors) - 1) / 2)
            dots = DotSeries(
                color,
                [point.place + offset for point in points],
                [point.mean for point in points],
                [point.spread for point in points],
            )
            panels.setdefault(panel, []).append(dots)
    return panels


def _labels_html(labels: dict[str, Any]) -> str:
    """Return the labels of a point on one line."""
    return escape(", ".join(f"{label_text(n)} {label_text(v)}" for n, v in labels.items()))


def _value_text(value: Any) -> str:
    """Return a result of a cell: a number with four digits, or a text."""
    return f"{value:.4g}" if isinstance(value, float | int) else str(value)
